"""Finds the folders that suite2p wrote, and reads their ROIs (stat.npy, iscell.npy) and options."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.containers.npy import read_npy, read_object_npy
from napari_xcebra.io.extraction import Extraction, Signal, finite_image, judged, pair
from napari_xcebra.recording.footprints import Footprints

Roi = dict[str, Any]

_COLUMNS = {"skew": "skew", "radius": "radius", "snr": "snr", "compactness": "compact",
            "npix": "npix"}  # fmt: skip


def mixed(folder: Path, n_cells: int, name: str, n_others: int, what: str = "cells") -> InputError:
    """Sentence on files that do not belong together."""
    return InputError(
        f"{folder}: F.npy has {n_cells} {what} but {name} has {n_others}: the folder mixes two "
        "suite2p runs."
    )


def read_stat(path: Path, n_cells: int) -> list[Roi]:
    """The ROIs, one for each cell of F.npy."""
    found = read_object_npy(path)
    rois = found.ravel().tolist() if isinstance(found, np.ndarray) else found
    if not isinstance(rois, list) or not all(isinstance(roi, dict) for roi in rois):
        raise InputError(f"{path} does not hold suite2p ROIs (dictionaries).")
    if len(rois) != n_cells:
        raise mixed(path.parent, n_cells, path.name, len(rois))
    return rois


def footprints_of(
    rois: Sequence[Roi], field: tuple[int, int] | None, path: Path
) -> tuple[Footprints, tuple[str, ...]]:
    """Where the ROIs lie.

    Parameters
    ----------
    rois : sequence of dict
    field : (height, width) or None
        The field of view; None if not known, the pixels then say how large it is at least.
    path : Path
        Of stat.npy, for sentences.

    Returns
    -------
    Footprints
    tuple of str
        Notes.
    """
    pixels = [_pixels(roi, field, f"ROI {i} of {path}") for i, roi in enumerate(rois)]
    counts = [len(rows) for rows, _, _ in pixels]
    row, column, weight = (np.concatenate([[], *axis]) for axis in zip(*pixels, strict=True))
    row, column = row.astype(np.int64), column.astype(np.int64)
    bottom, right = int(row.max(initial=0)) + 1, int(column.max(initial=0)) + 1
    if min(row.min(initial=0), column.min(initial=0)) < 0 or bottom * right > LARGEST_FIELD:
        raise InputError(f"{path} has pixels at implausible positions: it is damaged.")
    notes: tuple[str, ...] = ()
    if field is None:
        field = (bottom, right)
        notes = (
            f"The size of the field of view is unknown: {bottom} × {right} pixels, as far as the "
            "ROIs reach, are used.",
        )
    elif bottom > field[0] or right > field[1]:
        raise InputError(
            f"{path} has pixels up to row {bottom - 1} and column {right - 1}, outside the field "
            f"of view of {field[0]} × {field[1]} pixels: the folder mixes two suite2p runs."
        )
    cell = np.repeat(np.arange(len(rois), dtype=np.int32), counts)
    at = (row.astype(np.int32), column.astype(np.int32))
    return Footprints(field, cell, *at, weight.astype(np.float32)), notes


def columns_of(rois: Sequence[Roi]) -> dict[str, np.ndarray]:
    """What stat.npy measured of each ROI, (cells,) each; "plane" and "roi" in `combined`."""
    columns = {}
    for name, entry in _COLUMNS.items():
        values = np.array([_number(roi.get(entry)) for roi in rois], np.float32)
        if np.isfinite(values).any():
            columns[name] = values
    plane = np.array([_number(roi.get("iplane")) for roi in rois])
    if np.isfinite(plane).all():
        columns["plane"] = plane.astype(np.int64)
        columns["roi"] = _count_within(columns["plane"])
    return columns


def is_all_shared(roi: Roi) -> bool:
    """Whether every pixel of an ROI belongs to others as well."""
    overlap = roi.get("overlap")
    return (
        isinstance(overlap, np.ndarray)
        and overlap.dtype == bool
        and bool(overlap.size and overlap.all())
    )


def read_flags(path: Path, n_cells: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Flag of each ROI, (cells,) bool, and the probability of it, (cells,) float32 if known."""
    table = read_npy(path)
    if table.dtype.kind not in "biuf" or table.ndim not in (1, 2) or 0 in table.shape[1:]:
        raise InputError(f"{path} has shape {table.shape}: (cells, 2) is needed.")
    if len(table) != n_cells:
        raise mixed(path.parent, n_cells, path.name, len(table))
    flags = table if table.ndim == 1 else table[:, 0]
    likely = table[:, 1].astype(np.float32) if table.ndim == 2 and table.shape[1] > 1 else None
    return flags > 0, likely


def _pixels(
    roi: Roi, field: tuple[int, int] | None, name: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, columns and weights of the pixels of an ROI."""
    if "ypix" in roi and "xpix" in roi:
        row, column = _whole(roi["ypix"], name), _whole(roi["xpix"], name)
    elif "ipix" in roi and field is not None:
        row, column = np.divmod(_whole(roi["ipix"], name), field[1])
    else:
        raise InputError(f"{name} has no pixels (ypix and xpix, or ipix and a known width).")
    weight = np.ravel(roi.get("lam", np.ones(len(row))))
    if len(row) != len(column) or len(row) != len(weight) or weight.dtype.kind not in "biuf":
        raise InputError(
            f"{name} has {len(row)} rows, {len(column)} columns and {len(weight)} weights of "
            "pixels: the same number of each is needed."
        )
    with np.errstate(all="ignore"):
        return row, column, np.nan_to_num(weight.astype(np.float32), posinf=0, neginf=0)


def _whole(values: Any, name: str) -> np.ndarray:
    values = np.ravel(values)
    if values.size and values.dtype.kind not in "iu":
        raise InputError(f"{name} has pixels of type {values.dtype}: whole numbers are needed.")
    return values.astype(np.int64)


def _number(value: Any) -> float:
    return float(value) if isinstance(value, Real) and -1e30 < value < 1e30 else np.nan


def _count_within(groups: np.ndarray) -> np.ndarray:
    """Running number of each within its own group, from 0."""
    count = np.empty(len(groups), np.int64)
    for group in np.unique(groups):
        here = groups == group
        count[here] = np.arange(here.sum())
    return count


_ROI = re.compile(r"stat[({](\d+)[)}]\.(\w+)")
_PIXELS = ("ypix", "xpix", "ipix")
_SIGNALS: dict[Signal, str] = {"fluorescence": "F", "neuropil": "Fneu", "events": "spks"}


def read_fall(arrays: Mapping[str, np.ndarray], path: Path) -> Extraction | None:
    """What suite2p found in a plane; None if these are not the arrays of a Fall.mat.

    Parameters
    ----------
    arrays : mapping of str to array
        As `containers.matlab.read_mat` gives them: ``stat{3}.ypix``, ``ops.fs``, ``F`` …
    path : Path
        For sentences.
    """
    rois = _rois(arrays)
    count, fluorescence = len(rois), arrays.get("F")
    if not rois or fluorescence is None or count not in fluorescence.shape:
        return None
    # as suite2p writes it, unless somebody turned it in MATLAB
    cells_first = fluorescence.shape[0] == count
    alike = {s: arrays[n] for s, n in _SIGNALS.items() if n in arrays}
    signals = {s: a.T if cells_first else a for s, a in alike.items()
               if a.shape == fluorescence.shape}  # fmt: skip
    notes = [f"{path.name} was read as suite2p's Fall.mat: a struct for each of {count} ROIs."]
    notes += [f"{_SIGNALS[s]} of {path.name} does not have the size of F: left out."
              for s in alike if s not in signals]  # fmt: skip
    facts = Facts(_options(arrays))
    if "events" in signals and not facts.deconvolved:
        del signals["events"]
    footprints, on_rois = footprints_of(rois, facts.field, path)
    cells = columns_of(rois)
    accepted, likely = _flags(arrays.get("iscell"), count)
    cells |= {} if likely is None else {"probability": likely}
    red, likely = _flags(arrays.get("redcell"), count)
    cells |= {} if red is None else {"red": red}
    cells |= {} if likely is None else {"red_probability": likely}
    return plane_of(facts, signals, cells, accepted, footprints, [*notes, *on_rois])


def plane_of(
    facts: Facts,
    signals: dict[Signal, Any],
    cells: dict[str, np.ndarray],
    accepted: np.ndarray | None,
    footprints: Footprints | None,
    notes: Sequence[str],
) -> Extraction:
    """What was found in a plane, with all that the options of suite2p say of it."""
    n_frames, n_cells = signals["fluorescence"].shape
    images, more = ({}, ()) if facts.field is None else facts.images(facts.field)
    excluded, bad = facts.bad_frames(n_frames)
    starts, pieces = facts.starts(n_frames)
    pixel_size, about_pixels = facts.pixel_size
    return Extraction(
        signals,
        facts.rate,
        cell_ids=np.arange(n_cells),
        accepted=accepted,
        cells=cells,
        footprints=footprints,
        images=images,
        excluded=excluded,
        starts=starts,
        neuropil_coefficient=facts.neuropil_coefficient,
        pixel_size=pixel_size,
        notes=(*notes, *more, *bad, *pieces, *about_pixels),
    )


def _rois(arrays: Mapping[str, np.ndarray]) -> list[dict[str, Any]]:
    """Entries of stat, in order; none if one lacks pixels."""
    rois: dict[int, dict[str, Any]] = {}
    for name, array in arrays.items():
        if found := _ROI.fullmatch(name):
            rois.setdefault(int(found[1]), {})[found[2]] = _plain(array, found[2] in _PIXELS)
    whole = all({"ypix", "xpix"} <= set(roi) for roi in rois.values())
    return [rois[number] for number in sorted(rois)] if whole else []


def _options(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Entries of ops; structs in it are dictionaries."""
    options: dict[str, Any] = {}
    for name, array in arrays.items():
        first, *inner = name.split(".")
        if first != "ops" or not inner or "{" in name or "(" in name:
            continue
        place = options
        for struct in inner[:-1]:
            place = place.setdefault(struct, {})
        place[inner[-1]] = _plain(array)
    return options


def _plain(array: np.ndarray, pixels: bool = False) -> Any:
    """A number, a vector or an image: MATLAB has matrices only, of float64 by habit."""
    if pixels and array.dtype.kind == "f" and (array == np.round(array)).all():
        array = array.astype(np.int64)
    if array.size == 1 and not pixels:
        return array.item()
    return array.reshape(-1) if 1 in array.shape else array


def _flags(table: np.ndarray | None, count: int) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Flag of each ROI, (cells,) bool, and its probability if known."""
    if table is None or table.dtype.kind not in "biuf" or count not in table.shape:
        return None, None
    table = (table if len(table) == count else table.T).reshape(count, -1)
    likely = table[:, 1].astype(np.float32) if table.shape[1] > 1 else None
    return table[:, 0] > 0, likely


FACTS = ("db.npy", "settings.npy", "reg_outputs.npy", "detect_outputs.npy", "ops.npy")
"""Later ones say it better: `db` has the mean image before registration, the others after."""
FILES = {"F.npy", "Fneu.npy", "spks.npy", "stat.npy", "iscell.npy", "redcell.npy", *FACTS}
COMBINED = "combined"


def folders_at(path: Path) -> list[Path]:
    """Folders to read: one, or one per plane; none if this is not suite2p output."""
    if path.is_file():
        beside = [name for name in FILES if (path.parent / name).is_file()]
        return folders_at(path.parent) if path.name in FILES and len(beside) > 1 else []
    if not path.is_dir():
        return []
    for folder in (path, path / "suite2p"):
        if is_extracted(folder):
            return [folder]
        planes = planes_in(folder)
        if any(is_extracted(plane) or (plane / "ops.npy").is_file() for plane in planes):
            return planes
        if is_extracted(folder / COMBINED):
            return [folder / COMBINED]
        if (folder / "stat.npy").is_file():
            return [folder]
    return []


def planes_in(folder: Path) -> list[Path]:
    """Folders of planes in a folder, by their number."""
    numbers = {plane_number(plane): plane for plane in folder.glob("plane*") if plane.is_dir()}
    return [numbers[number] for number in sorted(numbers) if number >= 0]


def folders_near(path: Path) -> list[Path]:
    """The folder of a recording, and those that suite2p's decisions are written to with it."""
    folder = path if path.is_dir() else path.parent
    if not path.is_dir() and path.name not in FILES:
        return [folder]
    home = folder.parent if plane_number(folder) >= 0 or folder.name == COMBINED else folder
    families = ([*planes_in(place), place / COMBINED, place] for place in (home, home / "suite2p"))
    return list(dict.fromkeys([folder, *(place for family in families for place in family)]))


def is_extracted(folder: Path) -> bool:
    """Whether there are traces."""
    return (folder / "F.npy").is_file()


def plane_number(plane: Path) -> int:
    """Number in the name of a plane folder; -1 for any other folder."""
    match = re.fullmatch(r"plane_?(\d{1,6})", plane.name)
    return int(match.group(1)) if match else -1


LARGEST_FIELD = 2**28
"""Pixels that a field of view may have (16,384 × 16,384)."""

Real = int | float | np.integer | np.floating

_IMAGES = {
    "mean": "meanImg",
    "enhanced": "meanImgE",
    "max": "max_proj",
    "correlation": "Vcorr",
    "mean of channel 2": "meanImg_chan2",
}


_PIXEL_SIZE = (
    "um_per_pixel",
    "um_per_pix",
    "umPerPixel",
    "umPerPix",
    "pixel_size_um",
    "microns_per_pixel",
    "micronsPerPixel",
)


@dataclass(frozen=True)
class Facts:
    """Entries of the files above by name; none is trusted."""

    entries: Mapping[str, Any]

    def number(self, *names: str, low: float, high: float) -> float | None:
        """Number under a (nested) name, if it is one and within the bounds."""
        value: Any = self.entries
        for name in names:
            value = value.get(name) if isinstance(value, Mapping) else None
        if isinstance(value, bool) or not isinstance(value, Real):
            return None
        return float(value) if low <= value <= high else None

    def array(self, name: str, kinds: str = "biuf") -> np.ndarray | None:
        """Array, or list of numbers, under a name, if its values are of one of these kinds."""
        value = self.entries.get(name)
        if not isinstance(value, np.ndarray | list | tuple):
            return None
        try:
            array = np.asarray(value)
        except (ValueError, TypeError, RecursionError):  # such as lists of different lengths
            return None
        return array if array.dtype.kind in kinds else None

    @property
    def version(self) -> str:
        """Version of suite2p that wrote it; empty if not said."""
        version = self.entries.get("suite2p_version", self.entries.get("version"))
        return version if isinstance(version, str) and len(version) < 30 else ""

    @property
    def rate(self) -> float | None:
        """Frames per second of a plane; volumes per second where there are several."""
        return self.number("fs", low=1e-6, high=1e5) or None

    @property
    def neuropil_coefficient(self) -> float | None:
        """Share of the neuropil that suite2p subtracted before deconvolution."""
        old = self.number("neucoeff", low=0, high=2)
        new = self.number("extraction", "neuropil_coefficient", low=0, high=2)
        return new if old is None else old

    @property
    def pixel_size(self) -> tuple[float | None, tuple[str, ...]]:
        """Micrometres per pixel, with notes; suite2p has no name for it, so labs add their own."""
        for name in _PIXEL_SIZE:
            if (size := pair(self.entries.get(name))) is not None:
                return judged(*size)
        return None, ()

    @property
    def deconvolved(self) -> bool:
        """Whether spks.npy holds events: suite2p fills it with zeros if deconvolution was off."""
        run = self.entries.get("run")
        new = run.get("do_deconvolution", True) if isinstance(run, Mapping) else True
        return bool(self.entries.get("spikedetect", True)) and bool(new)

    @property
    def field(self) -> tuple[int, int] | None:
        """Height and width of the field of view, in pixels."""
        mean = self.array("meanImg")
        sizes = [self.number(name, low=1, high=LARGEST_FIELD) for name in ("Ly", "Lx")]
        if None in sizes and mean is not None and mean.ndim == 2 and mean.size:
            sizes = [float(size) for size in mean.shape]
        height, width = (int(size or 0) for size in sizes)
        return (height, width) if 0 < height * width <= LARGEST_FIELD else None

    def images(self, field: tuple[int, int]) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
        """Images (height, width) float32 of the field of view, and notes on those left out."""
        images, notes = {}, []
        for name, entry in _IMAGES.items():
            image = self.array(entry)
            if image is None or image.ndim != 2 or not image.size or _is_blank(image):
                continue
            filled = finite_image(image)
            if filled is None:
                continue
            placed = self._placed(filled, field)
            if placed is None:
                notes.append(
                    f"{entry} has {image.shape[0]} × {image.shape[1]} pixels, and where they "
                    f"lie in the field of view of {field[0]} × {field[1]} is unknown: left out."
                )
            else:
                images[name] = placed
        return images, tuple(notes)

    def _placed(self, image: np.ndarray, field: tuple[int, int]) -> np.ndarray | None:
        """A cropped image at its place in the field of view."""
        if image.shape == field:
            return image
        ranges = [self.array(name, "iu") for name in ("yrange", "xrange")]
        if any(r is None or r.shape != (2,) for r in ranges):
            return None
        (top, bottom), (left, right) = (r.tolist() for r in ranges if r is not None)
        inside = 0 <= top < bottom <= field[0] and 0 <= left < right <= field[1]
        if not inside or image.shape != (bottom - top, right - left):
            return None
        whole = np.full(field, image.min(), np.float32)
        whole[top:bottom, left:right] = image
        return whole

    def bad_frames(self, n_frames: int) -> tuple[np.ndarray | None, tuple[str, ...]]:
        """(frames,) bool, frames that suite2p marked as bad, with a note; None if none are."""
        bad = self.array("badframes")
        if bad is None or not bad.any():
            return None, ()
        # `combined` has those of its last plane, which may be a frame shorter
        if bad.ndim != 1 or abs(len(bad) - n_frames) > 1:
            return None, (
                f"badframes has shape {bad.shape} for {n_frames} frames: no frame is left out.",
            )
        marked = np.zeros(n_frames, bool)
        marked[: len(bad)] = bad[:n_frames] != 0
        return marked, (f"{int(marked.sum())} frames that suite2p marks as bad are left out.",)

    def starts(self, n_frames: int) -> tuple[np.ndarray | None, tuple[str, ...]]:
        """First frames of the files or folders that were concatenated, with a note.

        Files of less than a second are pieces of one movie (Bruker writes one frame per file).
        """
        least = {"file": self.rate or 10.0, "folder": 1.0}
        for what, shortest in least.items():
            counts = self.array(f"frames_per_{what}", "iu")
            if counts is None or counts.ndim != 1 or len(counts) < 2 or (counts < 0).any():
                continue
            starts = np.cumsum(np.r_[0, counts.astype(np.int64)])
            # the planes of a volume may differ by one frame
            if abs(int(starts[-1]) - n_frames) <= 1 and np.median(counts) >= shortest:
                starts = np.unique(starts[:-1][starts[:-1] < n_frames])
                note = f"{len(counts)} {what}s were concatenated: each begins a segment of its own."
                return starts, (note,)
        return None, ()


def read_facts(folder: Path) -> Facts:
    """What suite2p says about the plane in a folder; may be empty."""
    entries: dict[str, Any] = {}
    for name in FACTS:
        path = folder / name
        if path.is_file():
            found = read_object_npy(path)
            if not isinstance(found, dict):
                raise InputError(f"{path} does not hold suite2p options (a dictionary).")
            entries |= found
    return Facts(entries)


def _is_blank(image: np.ndarray) -> bool:
    return bool((image == image.flat[0]).all())
