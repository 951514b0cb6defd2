"""Reads traces that the Inscopix Data Processing Software exported as .csv.

The first row has the names of the cells (`` C00``, `` C01`` …), the second ``Time(s)/Cell Status``
and what was decided about each cell: accepted, undecided or rejected. Images of the cells
(``name_C00.tif``) or a table of their properties (``name-props.csv``) may lie beside it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from napari_xcebra.errors import InputError, sentence_on_failure
from napari_xcebra.io.clocks.timestamps import ascends, rate_of
from napari_xcebra.io.containers.tables import TABLE, read_table, text_form
from napari_xcebra.io.containers.tiff import read_tiff
from napari_xcebra.io.extraction import Extraction
from napari_xcebra.io.formats.arrays import ids_from
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.recording.footprints import Footprints

NAME = "traces exported from Inscopix (.csv)"

STATUSES = ("accepted", "undecided", "rejected")
CORE = 0.5
"""Share of its greatest weight from which on a pixel of a cell image belongs to the cell."""
RADIUS = 5
"""Pixels, of the discs that stand for cells of which only the centre is known."""
FURTHEST = 2**14
_HEAD = 2**23
_CORNER = re.compile(r"time.*cell status", re.IGNORECASE)
_PROPERTIES = re.compile(r"(.*[-_ ])?prop(ertie)?s\.csv", re.IGNORECASE)
_BESIDE = re.compile(rf".*\.tiff?|{_PROPERTIES.pattern}", re.IGNORECASE)


def sniff(path: Path) -> bool:
    """Whether the second row is that of an export by Inscopix."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            second = [file.readline(_HEAD) for _ in range(2)][1]
    except (OSError, ValueError):
        return False
    return bool(_CORNER.match(second[:100].decode("utf-8", "replace").strip(' "\ufeff')))


def load(path: Path, settings: OpenSettings) -> Extraction:
    """Traces, their clock, and what was decided about each cell."""
    with sentence_on_failure(path, TABLE):
        form = text_form(path, n_rows=2)
        names, statuses = (list(row[1:]) for row in form.rows)
        table = pd.read_csv(
            path,
            sep=form.separator,
            encoding=form.encoding,
            skiprows=form.skipped + 2,
            header=None,
            skipinitialspace=True,
            index_col=False,
            compression=None,  # pandas would unpack by the name alone
        )
    _check(path, names, statuses, table)
    times = table[0].to_numpy(np.float64)
    if not ascends(times):
        raise InputError(f"The times of {path} do not increase: each row needs a later one.")
    with np.errstate(all="ignore"):
        traces = table.iloc[:, 1:].to_numpy(np.float32, na_value=np.nan)
    accepted = np.array([status.lower() != "rejected" for status in statuses])
    undecided = sum(status.lower() == "undecided" for status in statuses)
    notes = [f"{undecided} cells are undecided and count as accepted."] if undecided else []
    footprints, more = _footprints(path, names)
    return Extraction(
        {"traces": traces},
        rate=rate_of(times),
        times=times,
        cell_ids=ids_from(names),
        accepted=accepted,
        cells={"name": np.array(names), "status": np.array([s.lower() for s in statuses])},
        footprints=footprints,
        notes=(*notes, *more),
    )


def _check(path: Path, names: list[str], statuses: list[str], table: pd.DataFrame) -> None:
    if not names or len(names) != len(statuses) or table.shape[1] != len(names) + 1:
        raise InputError(
            f"{path} has {len(names)} names, {len(statuses)} statuses and {table.shape[1] - 1} "
            "columns of traces: one of each per cell is needed."
        )
    odd = [status for status in statuses if status.lower() not in STATUSES]
    if odd:
        raise InputError(
            f"{path} has a cell with the status {odd[0][:40]!r}: {', '.join(STATUSES)} are known."
        )
    numeric = [pd.api.types.is_numeric_dtype(column) for _, column in table.items()]
    if not all(numeric):
        column = ["of times", *names][numeric.index(False)]
        raise InputError(f"Column {column} of {path} has entries that are not numbers.")
    if len(set(names)) != len(names):
        raise InputError(f"{path} has two cells with the same name: export it again.")


def _footprints(path: Path, names: Sequence[str]) -> tuple[Footprints | None, list[str]]:
    """Footprints from files beside the traces, if there are any."""
    home = path.parent.resolve()
    try:
        beside = [f for f in sorted(path.parent.iterdir()) if _BESIDE.fullmatch(f.name)]
        files = [f for f in beside if f.resolve().parent == home]
        return _from_images(files, names) or _from_properties(files, names) or (None, [])
    except (InputError, OSError) as error:
        return None, [f"No footprints were used: {error}"]


def _from_images(
    files: Sequence[Path], names: Sequence[str]
) -> tuple[Footprints, list[str]] | None:
    """One image per cell, named after it; the prefix with the most cells is used."""
    cells = {name.lower(): i for i, name in enumerate(names)}
    groups: dict[str, dict[int, Path]] = {}
    for file in files:
        start, _, end = file.stem.rpartition("_")
        if file.suffix.lower() in (".tif", ".tiff") and end.lower() in cells:
            groups.setdefault(start, {})[cells[end.lower()]] = file
    images = max(groups.values(), key=len, default={})
    if 2 * len(images) < len(names):
        return None
    empty = np.zeros_like(_core(next(iter(images.values()))))
    footprints = Footprints.from_masks(
        _core(images[cell]) if cell in images else empty for cell in range(len(names))
    )
    return footprints, [f"Footprints come from {len(images)} cell images beside the traces."]


def _core(file: Path) -> np.ndarray:
    """Weights of the pixels in a cell image; 0 in the haze around the cell."""
    image = read_tiff(file)
    if image.ndim != 2:
        raise InputError(f"{file} has {len(image)} images: one is needed.")
    weights = np.nan_to_num(image.astype(np.float64), posinf=0.0, neginf=0.0)
    return np.where(weights > CORE * max(weights.max(), 0), weights, 0).astype(np.float32)


def _from_properties(
    files: Sequence[Path], names: Sequence[str]
) -> tuple[Footprints, list[str]] | None:
    """Discs around the centres of the cells."""
    for file in files:
        if not _PROPERTIES.fullmatch(file.name):
            continue
        table = read_table(file).rename(columns=lambda name: str(name).strip())
        if not {"Name", "CentroidX", "CentroidY"} <= set(table.columns):
            continue
        rows = table.assign(Name=table["Name"].astype(str).str.strip()).drop_duplicates("Name")
        rows = rows.set_index("Name").reindex(list(names))
        centres = rows[["CentroidY", "CentroidX"]].apply(pd.to_numeric, errors="coerce").to_numpy()
        known = np.isfinite(centres).all(axis=1) & (np.abs(centres) < FURTHEST).all(axis=1)
        if known.any():
            note = f"Cells are drawn as discs around their centres in {file.name}."
            return _discs(centres, known), [note]
    return None


def _discs(centres: np.ndarray, known: np.ndarray) -> Footprints:
    """Discs around the (row, column) of the cells whose centre is known."""
    y, x = np.mgrid[-RADIUS : RADIUS + 1, -RADIUS : RADIUS + 1]
    disc = np.argwhere(y**2 + x**2 <= RADIUS**2) - RADIUS
    cell = np.repeat(np.flatnonzero(known), len(disc)).astype(np.int32)
    row, column = (np.round(centres[known])[:, None].astype(np.int32) + disc).reshape(-1, 2).T
    inside = (row >= 0) & (column >= 0)
    cell, row, column = cell[inside], row[inside], column[inside]
    shape = int(row.max(initial=0)) + 1, int(column.max(initial=0)) + 1
    return Footprints(shape, cell, row, column, np.ones(len(cell), np.float32))
