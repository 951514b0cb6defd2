"""Finds the folders that suite2p wrote: planes, and all of them side by side (`combined`)."""

from __future__ import annotations

import re
from pathlib import Path

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
