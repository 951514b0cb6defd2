"""Decides which axis of an array of traces is cells: one rule for every kind of file.

Every piece of evidence speaks for a reading with a weight. Where one side clearly outweighs the
other, and the other has nothing solid to say, the array is read so; else `LayoutUnclear` asks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.clocks.timestamps import ascends, scale_of, words_of
from napari_xcebra.io.extraction import Behavior
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.recording.traces import read_block

if TYPE_CHECKING:
    from napari_xcebra.io.footprint_files import Regions

ENOUGH, DOUBT = 2.0, 2.0
"""A reading needs this much more weight than the other, which must have less than the second.

Weights are 3 for what hardly errs (a name that says it, a clock, regions, smoothness along one axis
alone), 2 for what may belong to something else, and up to 1 for habits. Chosen on simulated calcium
(20 to 1,000 cells, 300 to 3,000 frames, 2 to 30 Hz; raw, ΔF/F, denoised, z-scored, events, sorted
cells, correlated neighbours); `tests/io/test_orientation.py` has others: none is read wrongly.
"""
SPARSE = 0.8
"""Share of zeros from which on an array holds events."""
FEW_FRAMES, MANY_TIMES = 20, 5
"""A reading with fewer frames than the first is none if the other has so many times more."""
SMOOTH = 0.5
"""Correlation of successive values from which on a variable runs over time (position, speed)."""
_BLOCK, _SHOWN = 1024, 200
"""Sides of blocks in the middle of the array: for smoothness, and for pictures of both readings."""
_MOST_BESIDE, _LARGEST_BESIDE, _WIDEST_BESIDE = 8, 64 * 2**20, 60
"""Tables beside the traces whose rows are counted unasked, and the bytes and columns each may
have."""

CELL_WORDS = set(words_of("cell cells neuron neurons roi rois unit units component components"))
FRAME_WORDS = set(words_of("frame frames time times t sample samples"))
_PER_CELL = set(words_of(
    "depth depths coord coords coordinate coordinates centroid centroids center centers centre "
    "centres com snr skew skewness npix npixels region regions layer layers red redcell iscell "
    "radius compact compactness footprint plane planes iplane celltype celltypes diameter "
    "eccentricity rval rvalues fitness genotype cnn roundness accepted rejected ids"
))  # fmt: skip
_PER_FRAME = set(words_of(
    "speed velocity position pos lick licks licking reward rewards stimulus stim trial trials time "
    "times frame frames heading running wheel pupil angle direction pumping acceleration whisking "
    "behavior behaviour odor odour sound choice locomotion motion"
))  # fmt: skip
_CELLS, _FRAMES = (
    "(?:cells?|neurons?|rois?|units?|components?)",
    "(?:time|times|t|frames?|samples?)",
)
_BETWEEN = "[ _-]*(?:x|by|[ _-])[ _-]*"
_CELLS_FIRST = re.compile(f"(?<![a-z]){_CELLS}{_BETWEEN}{_FRAMES}(?![a-z])", re.IGNORECASE)
_FRAMES_FIRST = re.compile(f"(?<![a-z]){_FRAMES}{_BETWEEN}{_CELLS}(?![a-z])", re.IGNORECASE)


@dataclass(frozen=True)
class Evidence:
    """One piece of it.

    Parameters
    ----------
    cells_first : bool
        The reading it speaks for.
    weight : float
    why : str
        A clause, such as "depth has 300 entries, one for each cell".
    solid : bool
        Whether a reading that rests on it is more than a guess.
    """

    cells_first: bool
    weight: float
    why: str
    solid: bool = True


class LayoutUnclear(InputError):
    """Asks which axis is cells: the evidence is thin, or speaks for both readings.

    Parameters
    ----------
    sentence : str
        The question, with both readings spelled out.
    name : str
        Array and file.
    shape : (int, int)
        Of the array, as it is stored.
    reasons : mapping of bool to str
        What speaks for cells being first, and for frames; empty if nothing does.
    block : (a, b) float32
        From the middle of the array, as it is stored, to draw it in either reading.
    """

    def __init__(
        self,
        sentence: str,
        name: str,
        shape: tuple[int, int],
        reasons: Mapping[bool, str],
        block: np.ndarray,
    ) -> None:
        super().__init__(sentence, name, shape, reasons, block)
        self.name, self.shape, self.reasons, self.block = name, shape, dict(reasons), block

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True)
class Layout:
    """Whether cells come first, and how that is known."""

    cells_first: bool
    why: str
    guessed: bool = False

    def note(self, name: str, shape: tuple[int, int]) -> str:
        """How the array was read, and how to change that if it was guessed."""
        text = f"{name} was read as {reading(shape, self.cells_first)}: {self.why}"
        other = "frames-cells" if self.cells_first else "cells-frames"
        return (
            f"{text} (a guess; set `layout` to {other} if it is wrong)."
            if self.guessed
            else f"{text}."
        )


def reading(shape: tuple[int, ...], cells_first: bool) -> str:
    """An array of that shape in words.

    >>> reading((300, 4000), True)
    '300 cells × 4000 frames'
    """
    first, second = ("cells", "frames") if cells_first else ("frames", "cells")
    return f"{shape[0]} {first} × {shape[1]} {second}"


def layout_of(
    array: Any, settings: OpenSettings, evidence: Sequence[Evidence] = (), *, name: str = ""
) -> Layout:
    """Decide which axis of an array is cells.

    Parameters
    ----------
    array : (a, b) array
        In memory or on disk; only a block in its middle is read.
    settings : OpenSettings
        Its `layout` stands above everything.
    evidence : sequence of Evidence
        What is known beside the values, the name and the shape of the array.
    name : str
        What sentences call it: array and file. ``cells_x_time`` in it says it.

    Raises
    ------
    LayoutUnclear
        If the evidence is too thin, or speaks for both.
    """
    if settings.layout != "auto":
        return Layout(settings.layout == "cells-frames", "as `layout` says")
    shape = tuple(map(int, array.shape))
    known = [*evidence, *_of_name(name), *_of_values(array), *_of_shape(shape)]
    known.sort(key=lambda each: -each.weight)
    sides = {first: [e for e in known if e.cells_first == first] for first in (True, False)}
    weights = {first: sum(e.weight for e in side) for first, side in sides.items()}
    cells_first = weights[True] > weights[False]
    side = sides[cells_first]
    solid = any(e.solid for e in side)
    lead = weights[cells_first] - weights[not cells_first]
    # where both axes are equally long, similar neighbours alone do not tell them apart
    sure = lead >= ENOUGH and weights[not cells_first] < DOUBT
    if sure and (solid or shape[0] != shape[1]):
        told = [e for e in side if e.solid] or side
        return Layout(cells_first, _listed(told), guessed=not solid)
    readings = " or ".join(
        reading(shape, first) + (f" ({_listed(sides[first])})" if sides[first] else "")
        for first in (cells_first, not cells_first)
    )
    name = name or "The array of traces"
    raise LayoutUnclear(
        f"{name} is {shape[0]} × {shape[1]}, which may be {readings}: set "
        f"`layout` to cells-frames for {reading(shape, True)}, or to frames-cells for "
        f"{reading(shape, False)}.",
        name,
        (shape[0], shape[1]),
        {first: _listed(side) for first, side in sides.items()},
        _middle(array, _SHOWN),
    )


# ------------------------------------------------------------ what an array says itself


def _of_name(name: str) -> Iterator[Evidence]:
    for pattern, cells_first in ((_CELLS_FIRST, True), (_FRAMES_FIRST, False)):
        if found := pattern.search(name):
            yield Evidence(cells_first, 3.5, f"the name says {found[0]}")
            return


def _of_shape(shape: tuple[int, ...]) -> Iterator[Evidence]:
    fewer, more = sorted(shape)
    if fewer == more:
        return
    if fewer < FEW_FRAMES and more >= MANY_TIMES * fewer:
        yield Evidence(shape[1] == more, 3.0, f"{fewer} frames would be no recording", False)
        return
    weight = min(1.0, float(np.log10(more / fewer)))
    why = "recordings usually have more frames than cells"
    yield Evidence(shape[1] == more, weight, why, False)


def _of_values(array: Any) -> Iterator[Evidence]:
    """Calcium decays over frames, while cells have no order, unless they were sorted."""
    (first, error), (second, other) = _alike_along(array)
    low, high = sorted((first, second))
    if high - low <= 0.05 + 4 * np.hypot(error, other):
        return
    weight = 3.0 * (1 - 2 * max(low, 0.0) / high)
    if weight > 0:
        why = "successive values along the frames are similar"
        yield Evidence(second > first, weight, why, False)


def smoother_axis(array: Any) -> int | None:
    """Axis along which neighbours are clearly more alike: that is time; None if neither is."""
    return next((int(each.cells_first) for each in _of_values(array)), None)


def _alike_along(array: Any) -> tuple[tuple[float, float], tuple[float, float]]:
    """How alike neighbours are along each axis, and the error of that by chance.

    Means of rows and of columns are subtracted first: cells differ in brightness, and may be
    sorted by it.
    """
    block = _middle(array, _BLOCK).astype(np.float64)
    known = np.isfinite(block)
    for axis in (0, 1) if not known.all() and known.any() else ():
        block = np.compress(known.any(axis=1 - axis), block, axis)  # frames and cells without any
    block[~np.isfinite(block)] = 0
    sparse = bool((block == 0).mean() > SPARSE)
    with np.errstate(all="ignore"):  # extreme numbers tell nothing
        block -= block.mean(axis=0)
        block -= block.mean(axis=1, keepdims=True)
        return _neighbours_alike(block.T, sparse), _neighbours_alike(block, sparse)


def _middle(array: Any, side: int) -> np.ndarray:
    """Block in the middle of an array, float32."""
    rows, columns = (slice(max(0, (n - side) // 2), min(n, (n + side) // 2)) for n in array.shape)
    return read_block(array, rows, columns)


def _neighbours_alike(lines: np.ndarray, sparse: bool) -> tuple[float, float]:
    """Mean correlation of each entry with the next along the rows, and its error by chance.

    Where nearly all entries are 0, rows count by their variance: those without an event hold
    nothing but the means that were subtracted.
    """
    length = lines.shape[1]
    power = (lines**2).mean(axis=1)
    varied = power > 1e-12 * power.max(initial=0)
    if length < 2 or not varied.any():
        return 0.0, np.inf
    lines, power = lines[varied], power[varied]
    alike = (lines[:, 1:] * lines[:, :-1]).mean(axis=1) / power
    # numbers that add up to zero are a little unlike each other
    weight = power / power.sum() if sparse else np.full(len(lines), 1 / len(lines))
    error = np.sqrt(np.square(weight).sum() / (length - 1))
    return float(weight @ alike) + 1 / (length - 1), float(error)


# ------------------------------------------------------------ what lies beside it


def is_per_cell(name: str) -> bool:
    """Whether an array of that name has an entry per cell.

    >>> [is_per_cell(name) for name in ("depth", "cell_coordinates", "SNR", "speed", "roi_x")]
    [True, True, True, False, True]
    """
    words = set(words_of(name))
    return bool(words & CELL_WORDS or (words & _PER_CELL and not words & _PER_FRAME))


def is_per_frame(name: str) -> bool:
    """Whether an array of that name has an entry per frame, as behaviour and clocks have."""
    return not is_per_cell(name) and bool(
        set(words_of(name)) & _PER_FRAME or scale_of(name) is not None
    )


def of_arrays(shape: tuple[int, ...], arrays: Mapping[str, Any]) -> list[Evidence]:
    """What other arrays say by their names, lengths and courses.

    Parameters
    ----------
    shape : (int, int)
        Of the traces.
    arrays : mapping of str to array
        Those of one axis, or two of which one is short.
    """
    evidence: list[Evidence] = []
    for axis, length in enumerate(shape):
        if shape[0] == shape[1]:
            break
        here = {n: a for n, a in arrays.items() if _fits(a, length, shape[1 - axis])}
        cells = [n for n in here if is_per_cell(n)]
        clocks = [n for n, a in here.items() if scale_of(n) is not None and ascends(a)]
        frames = [n for n in here if is_per_frame(n) and n not in clocks]
        rest = {n: a for n, a in here.items() if n not in (*cells, *clocks, *frames)}
        courses = [n for n, a in rest.items() if _runs(a, length)]
        if cells:
            evidence.append(Evidence(axis == 0, 3.0, _entries(cells, length, "for each cell")))
        if clocks:
            evidence.append(Evidence(axis == 1, 3.0, _entries(clocks, length, "for each frame")))
        if frames:
            evidence.append(Evidence(axis == 1, 3.0, _entries(frames, length, "like behaviour")))
        if courses:
            why = _entries(courses, length, "that change slowly, as behaviour does")
            evidence.append(Evidence(axis == 1, 2.0, why))
    return evidence


def of_axes(axes: Sequence[str]) -> list[Evidence]:
    """What the file calls the two axes of an array."""
    words = [set(words_of(axis)) for axis in axes]
    found = []
    for first, (cells, frames) in ((True, (0, 1)), (False, (1, 0))):
        if len(words) == 2 and (words[cells] & CELL_WORDS or words[frames] & FRAME_WORDS):
            found.append(Evidence(first, 3.5, f"its axes are {axes[0]} and {axes[1]}"))
    return found


@dataclass(frozen=True)
class FilesBeside:
    """What may say how many cells and frames a file has, outside of it.

    Parameters
    ----------
    path : Path
        Of the file.
    regions : sequence of Regions
        Label images and ROIs beside it.
    behavior : sequence of Behavior
        Files that were given with it.
    """

    path: Path
    regions: Sequence[Regions] = ()
    behavior: Sequence[Behavior] = ()

    def evidence(
        self, shape: tuple[int, ...], rate: float | None, inside: Sequence[Regions] = ()
    ) -> list[Evidence]:
        """What they say of traces of that shape; `inside` are regions of the file itself."""
        every = [*inside, *self.regions]
        return [
            *_of_regions(shape, lambda n: next((r.name for r in every if r.fit(n)), None)),
            *_of_behavior(shape, self.behavior, rate),
            *(() if self.behavior else _of_tables_beside(self.path, shape)),
        ]


def _of_regions(shape: tuple[int, ...], fits: Callable[[int], str | None]) -> list[Evidence]:
    """What label images and footprints say; `fits` names one that has that many cells."""
    names = [fits(length) for length in shape]
    if shape[0] == shape[1] or (names[0] is None) == (names[1] is None):
        return []
    axis = 0 if names[0] is not None else 1
    return [Evidence(axis == 0, 3.5, f"{names[axis]} has {shape[axis]} cells")]


def _of_behavior(
    shape: tuple[int, ...], sources: Sequence[Behavior], rate: float | None
) -> list[Evidence]:
    """What files of behaviour that were given say: their rows, or how long they last.

    Parameters
    ----------
    shape : (int, int)
        Of the traces.
    sources : sequence of Behavior
    rate : float or None
        Frames per second, if known.
    """
    evidence: dict[str, Evidence] = {}
    tables_of_cells = [source for source in sources if _is_table_of_cells(source)]
    for source, series in ((given, one) for given in sources for one in given.series):
        rows = len(series.values)
        axes = [axis for axis in (0, 1) if shape[axis] == rows]
        name = source.name or series.name
        if len(axes) == 1 and any(source is table for table in tables_of_cells):
            why = f"{name} has {rows} rows, one for each cell"
            evidence.setdefault(name, Evidence(axes[0] == 0, 3.0, why))
        elif len(axes) == 1:
            why = f"{name} has {rows} rows"
            weight = 2.0 if series.times is not None and series.times_in != "frames" else 3.0
            evidence.setdefault(name, Evidence(axes[0] == 1, weight, why))
        elif not axes and rate and series.times is not None and rows > 1:
            known = series.times[np.isfinite(series.times)]
            lasts = float(np.ptp(known)) if len(known) else 0.0
            lasts /= rate if series.times_in == "frames" else 1.0
            near = [abs(np.log(max(lasts, 1e-9) * rate / n)) < 0.05 for n in shape]
            if near[0] != near[1]:
                why = f"{name} lasts {lasts:.4g} s"
                evidence.setdefault(name, Evidence(near[1], 2.0, why))
    return list(evidence.values())


def _is_table_of_cells(source: Behavior) -> bool:
    """Whether a file that was given as behaviour says by its columns that its rows are cells."""
    if source.intervals or source.events or any(s.times is not None for s in source.series):
        return False
    names = [series.name for series in source.series]
    ids = any(
        set(words_of(s.name)) <= CELL_WORDS | {"id", "ids", "number", "index"}
        and len(np.unique(s.values)) == len(s.values)  # an animal has an id, too
        for s in source.series
    )
    return (
        bool(names) and not any(map(is_per_frame, names)) and (ids or all(map(is_per_cell, names)))
    )


def _of_tables_beside(path: Path, shape: tuple[int, ...]) -> list[Evidence]:
    """What narrow tables in the same folder say by their rows, which are only counted.

    A wide one holds the traces of another recording.
    """
    try:
        tables = sorted(p for p in path.parent.iterdir()
                        if p.suffix.lower() in (".csv", ".tsv") and p != path and p.is_file()
                        and p.stat().st_size <= _LARGEST_BESIDE)  # fmt: skip
        counts = {p.name: _lines(p) for p in tables[:_MOST_BESIDE] if _is_narrow(p, shape)}
    except OSError:
        return []
    evidence = []
    for name, lines in counts.items():
        axes = [axis for axis in (0, 1) if shape[axis] in (lines, lines - 1)]  # with a header
        if len(axes) == 1 and shape[0] != shape[1]:
            cells = is_per_cell(Path(name).stem)
            why = f"{name} beside it has {shape[axes[0]]} rows"
            evidence.append(Evidence((axes[0] == 0) == cells, 1.5, why))
    return evidence


def _is_narrow(path: Path, shape: tuple[int, ...]) -> bool:
    with path.open("rb") as file:
        head = file.readline(2**16)
    columns = 1 + max(head.count(mark) for mark in b",;\t")
    return columns <= _WIDEST_BESIDE and columns not in shape


def _lines(path: Path) -> int:
    with path.open("rb") as file:
        text, count = b"", 0
        while block := file.read(2**20):
            text, count = block, count + block.count(b"\n")
    return count + (not text.endswith(b"\n") if text else 0)


def _fits(array: Any, length: int, other: int) -> bool:
    """Whether an array has an entry, or a few numbers, for each of so many."""
    if array.ndim == 1:
        return len(array) == length
    # a matrix of both lengths is another version of the traces
    return array.ndim == 2 and length in array.shape and other not in array.shape


def _runs(array: Any, length: int) -> bool:
    """Whether values change slowly along that many entries."""
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "iuf" or length < FEW_FRAMES:
        return False
    values = (array if len(array) == length else array.T).reshape(length, -1).astype(np.float64)
    counts = (np.diff(values, axis=0) == 1).all(axis=0)  # which may number anything
    values = values[:, np.isfinite(values).all(axis=0) & ~counts]
    with np.errstate(all="ignore"):
        values = values - values.mean(axis=0)
        alike = (values[1:] * values[:-1]).sum(axis=0) / np.square(values).sum(axis=0)
    return bool(len(alike) and np.nan_to_num(alike).mean() > SMOOTH)


def _entries(names: Sequence[str], length: int, what: str) -> str:
    shown = ", ".join(names[:3]) + (" …" if len(names) > 3 else "")
    return f"{shown} {'has' if len(names) == 1 else 'have'} {length} entries {what}"


def _listed(evidence: Sequence[Evidence]) -> str:
    return " and ".join(each.why for each in evidence[:3])
