"""Which folders of suite2p belong to a path: planes, and `combined` which has all of them."""

from __future__ import annotations

import re
from pathlib import Path

from napari_xcebra.io.suite2p import facts

FILES = {
    "F.npy", "Fneu.npy", "spks.npy", "stat.npy", "iscell.npy", "redcell.npy", *facts.FILES
}  # fmt: skip
COMBINED = "combined"


def folders_at(path: Path) -> list[Path]:
    """Folders to read: one, or those of several planes; none if this is not suite2p's."""
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


def is_extracted(folder: Path) -> bool:
    """Whether there are traces."""
    return (folder / "F.npy").is_file()


def plane_number(plane: Path) -> int:
    """Number in the name of a plane's folder; -1 if it is none."""
    match = re.fullmatch(r"plane_?(\d{1,6})", plane.name)
    return int(match.group(1)) if match else -1
