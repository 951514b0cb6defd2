"""Finds the folders that suite2p wrote, and reads what their options say of the recording."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.containers.npy import read_object_npy
from napari_xcebra.io.extraction import finite_image
from napari_xcebra.io.pixel_size import judged, pair

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
