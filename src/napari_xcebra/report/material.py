"""Gathers what there is to report of a run from the folder it was written to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from napari_xcebra.attribution import Attribution
from napari_xcebra.attribution.comparison import Comparison, compare
from napari_xcebra.attribution.methods import METHODS
from napari_xcebra.attribution.single_cell import STATISTICS, CellStatistics
from napari_xcebra.checksums import finish_writing
from napari_xcebra.errors import InputError
from napari_xcebra.files import name_of
from napari_xcebra.io import open_recording
from napari_xcebra.io.opening import FILE as OPENING
from napari_xcebra.io.opening import Opening
from napari_xcebra.learn import Factor, Fit
from napari_xcebra.recording.fingerprint import check_same
from napari_xcebra.recording.recording import Recording
from napari_xcebra.runs import ANALYSIS, Run, problems_in, results_in, why_not_of
from napari_xcebra.spreadsheets import read_csv

Tables = Mapping[str, pd.DataFrame]
"""By factor, a row a cell."""


@dataclass(frozen=True, eq=False)
class Material:
    """One run with all that was computed of it.

    Parameters
    ----------
    name : str
    fit : Fit
    attributions : mapping of str to Attribution
        By method.
    created : str
        When it was trained; empty if not known.
    factors : mapping of str to Factor
        As they were asked for; empty if not known.
    recording : Recording or None
    opening : Opening or None
        How the recording was opened.
    stability : mapping of str to DataFrame
        By factor, as `Stability.table` gives it; empty if there was one seed only.
    statistics : CellStatistics or None
    comparison : Comparison or None
        All methods that were computed, side by side.
    analysis : str
        Name of the file that makes it again, if there is one.
    missing : tuple of str
        What could not be found, in a sentence each.
    """

    name: str
    fit: Fit
    attributions: Mapping[str, Attribution] = field(default_factory=dict)
    created: str = ""
    factors: Mapping[str, Factor] = field(default_factory=dict)
    recording: Recording | None = None
    opening: Opening | None = None
    stability: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    statistics: CellStatistics | None = None
    comparison: Comparison | None = None
    analysis: str = ""
    missing: tuple[str, ...] = ()

    @classmethod
    def of_run(
        cls,
        run: Run,
        recording: Recording | None,
        opening: Opening | None = None,
        statistics: CellStatistics | None = None,
    ) -> Material:
        """From a run of the window."""
        several = len(run.attributions) > 1 or (statistics is not None and run.attributions)
        return cls(
            run.name,
            run.fit,
            run.attributions,
            run.created,
            run.factors,
            recording,
            opening,
            statistics=statistics,
            comparison=compare(run.attributions, statistics) if several else None,
        )

    @property
    def methods(self) -> tuple[str, ...]:
        """Methods that were computed, the first to look at first."""
        return tuple(method for method in METHODS if method in self.attributions)

    @property
    def first(self) -> Attribution | None:
        """The attribution to look at first."""
        return self.attributions[self.methods[0]] if self.methods else None

    @property
    def source(self) -> str:
        """What the recording is called, without the folders of this computer."""
        path = str(self.opening.path) if self.opening else self.fit.source
        return name_of(path) if path else "a recording that was not opened from a file"


def material_in(folder: Path, recording: Recording | None = None) -> Material:
    """Run in a folder that the command line or the window wrote.

    Parameters
    ----------
    folder : Path
    recording : Recording, optional
        If not given, it is looked for where it was when the run was trained.
    """
    folder = folder.parent if folder.name == "fit" else folder
    found = run_in(folder)
    missing = [*found.missing, *problems_in(folder, found.fit)]
    if recording is None:
        recording, why = _recording_for(folder, found.fit)
        missing += [why] if why else []
    else:
        found.fit.inputs.columns(recording)  # raises if it is another one
    if recording is not None:
        of = [found.fit.fingerprint, *(one.fingerprint for one in found.attributions.values())]
        notes = [check_same(each, recording, "the run") for each in of]
        missing += dict.fromkeys(filter(None, notes))
    attributions = {
        method: replace(one, fit=found.fit, recording=recording)
        for method, one in found.attributions.items()
    }
    found = replace(found, attributions=attributions, recording=recording)
    found = _with_tables(found, folder, missing)
    return replace(found, missing=tuple(dict.fromkeys(missing)))


def run_in(folder: Path) -> Material:
    """Fit and attributions in a folder, without the recording and the tables beside them."""
    finish_writing(folder)
    if (folder / "run.json").exists():
        run = Run.load(folder)
        return replace(Material.of_run(run, None, _opening(folder)), analysis=_again(folder))
    for place in (folder / "fit", folder):
        if (place / "fit.json").exists():
            fit = Fit.load(place)
            attributions, missing = _attributions(folder, fit)
            return Material(
                folder.absolute().name,
                fit,
                attributions,
                opening=_opening(folder),
                analysis=_again(folder),
                missing=missing,
            )
    raise InputError(
        f"{folder} holds no run: there is neither a run.json, nor a fit, nor a sweep.json in it. "
        "Name the folder that run, fit or sweep wrote, or one that a run was saved to."
    )


def _attributions(folder: Path, fit: Fit) -> tuple[dict[str, Attribution], tuple[str, ...]]:
    """All that are in the folder and belong to the fit."""
    found: dict[str, Attribution] = {}
    missing = []
    files = results_in(folder)
    for path in sorted(folder.glob("*.npz")):
        if why := why_not_of(fit, folder, path.name, files):
            missing.append(why)
            continue
        try:
            loaded = Attribution.load(path)
        except InputError:
            continue  # a recording, or something else
        if loaded.parts == fit.parts:
            found[loaded.method] = loaded
        else:
            missing.append(f"{path.name} belongs to another training run and is left out.")
    return found, tuple(missing)


def _again(folder: Path) -> str:
    return ANALYSIS if (folder / ANALYSIS).exists() else ""


def _opening(folder: Path) -> Opening | None:
    try:
        return Opening.load(folder)
    except InputError:
        return None


def _recording_for(folder: Path, fit: Fit) -> tuple[Recording | None, str]:
    """The recording, if it is where the run says, or why it is not there."""
    tried = [name_of(fit.source)] if fit.source else []
    for place in (folder / OPENING, folder / "recording.npz", Path(fit.source or "-")):
        if not place.exists():
            continue
        try:
            known = place.name == OPENING
            recording = Opening.load(folder).open() if known else open_recording(place)
            fit.inputs.columns(recording)
        except (InputError, OSError) as error:
            return None, f"The recording could not be opened: {error}"
        return recording, ""
    which = f" ({tried[0]})" if tried else ""
    return None, (
        f"The recording{which} was not found, so the painted field, tuning and the embedding are "
        "left out. To include them, name it: napari-xcebra report RUN RECORDING."
    )


def _with_tables(found: Material, folder: Path, missing: list[str]) -> Material:
    """Adds what `run --seeds` and `compare` wrote next to the fit."""
    cells = found.first.cell_ids if found.first is not None else None
    tables: dict[str, Tables] = {}
    files = results_in(folder)
    for name in ("stability.csv", "statistics.csv", "methods.csv"):
        if (folder / name).exists() and cells is not None:
            if why := why_not_of(found.fit, folder, name, files):
                missing.append(why)
                continue
            try:
                table = read_csv(folder / name)
                by_factor = {str(f): rows for f, rows in table.groupby("factor", sort=False)}
                if all(np.array_equal(rows["cell"], cells) for rows in by_factor.values()):
                    tables[name] = by_factor
                    continue
            except (OSError, ValueError, KeyError):
                pass
            missing.append(f"{name} belongs to other cells or is damaged, so it is left out.")
    statistics = _statistics(tables.get("statistics.csv"), cells)
    return replace(
        found,
        stability=tables.get("stability.csv", {}),
        statistics=statistics,
        comparison=_comparison(found, tables.get("methods.csv"), statistics),
    )


def _statistics(tables: Tables | None, cells: np.ndarray | None) -> CellStatistics | None:
    if tables is None or cells is None:
        return None
    return CellStatistics(cells, {f: _columns(rows, STATISTICS) for f, rows in tables.items()})


def _comparison(
    found: Material,
    tables: Tables | None,
    statistics: CellStatistics | None,
) -> Comparison | None:
    first = found.first
    if first is None:
        return None
    if tables is None:
        several = len(found.attributions) > 1 or statistics is not None
        return compare(found.attributions, statistics) if several else None
    names = (*METHODS, *STATISTICS)
    scores = {f: _columns(rows, names) for f, rows in tables.items() if f in first.factors}
    at_chance = {factor: first.at_chance(factor) for factor in scores}
    return Comparison(first.cell_ids, scores, at_chance)


def _columns(rows: pd.DataFrame, names: Iterable[str]) -> dict[str, np.ndarray]:
    """Those of the columns that are there and hold something."""
    there = [name for name in names if name in rows and rows[name].notna().any()]
    return {name: rows[name].to_numpy(np.float64) for name in there}
