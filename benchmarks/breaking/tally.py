"""Counts broken promises, and keeps a world of files in which a touched bystander shows."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

COLUMNS = {
    "outside": "touched outside",
    "hang": "hangs > 20 s",
    "memory": "above 2 GB",
    "mixed": "lost or mixed results",
    "lost": "lost decisions",
    "other": "other exceptions",
    "left": "left behind",
}
"""Promises that can be broken, and the heads of their columns."""
EXAMPLES = 12
"""Cases that are named for each column of a family."""


@dataclass
class Tally:
    """Trials of a family, and which promises were broken in them.

    Parameters
    ----------
    family : str
    until : float
        Time (monotonic) after which no further random trial begins.
    """

    family: str
    until: float = float("inf")
    trials: int = 0
    broken: Counter[str] = field(default_factory=Counter)
    cases: dict[str, list[str]] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)
    ended: float = 0.0

    def broke(self, column: str, case: str) -> None:
        """Count a broken promise; its case is named below the table."""
        assert column in COLUMNS
        self.broken[column] += 1
        self.cases.setdefault(column, []).append(case)

    @property
    def in_time(self) -> bool:
        """Whether there is time for another random trial."""
        return time.monotonic() < self.until

    def cells(self) -> list[object]:
        """Row of the table."""
        seconds = round((self.ended or time.monotonic()) - self.began)
        return [self.family, self.trials, *(self.broken[name] for name in COLUMNS), seconds]

    def lines(self) -> Iterator[str]:
        """Examples of what was broken, those that are alike once with their number."""
        for column, cases in self.cases.items():
            alike = Counter(cases)
            for case, count in alike.most_common(EXAMPLES):
                yield f"- {self.family}, {COLUMNS[column]}: {case} ({count})"
            if len(alike) > EXAMPLES:
                yield f"- {self.family}, {COLUMNS[column]}: {len(alike) - EXAMPLES} other cases"


@dataclass(frozen=True)
class World:
    """Folder with everything that a trial may touch, and a thesis that it may not.

    Parameters
    ----------
    home : Path
        `shared/` is what somebody sent, with the recording in it; `thesis/` beside it is not ours;
        `own/` has the folders that the program may use: temporary files, logs, data.
    """

    home: Path

    @classmethod
    def at(cls, home: Path) -> World:
        """An empty one, whatever was there before."""
        shutil.rmtree(home, ignore_errors=True)
        world = cls(home)
        for folder in (world.shared, world.own / "tmp", world.thesis / ".git"):
            folder.mkdir(parents=True)
        (world.thesis / ".env").write_text("KEY=1\n")
        (world.thesis / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        (world.thesis / "chapter.tex").write_text("years of work\n" * 20)
        os.utime(world.thesis / "chapter.tex", (10**9, 10**9))  # which others may know
        return world

    @property
    def shared(self) -> Path:
        return self.home / "shared"

    @property
    def thesis(self) -> Path:
        return self.home / "thesis"

    @property
    def own(self) -> Path:
        return self.home / "own"

    @property
    def canary(self) -> Path:
        """Made by whatever runs a command from a file."""
        return self.home / "canary"

    def environment(self) -> dict[str, str]:
        """Environment of a program that is to use the folders of this world alone."""
        own = {name: str(self.own / name.lower()) for name in ("LOGS", "DATA", "CACHE")}
        return {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "HOME": str(self.own / "home"),
            "TMPDIR": str(self.own / "tmp"),
            **{f"NAPARI_XCEBRA_{name}": folder for name, folder in own.items()},
        }

    def outside(self) -> dict[str, str]:
        """Everything but `own/` and `shared/`."""
        return snapshot(self.home, without=("own", "shared"))


def snapshot(folder: Path, without: tuple[str, ...] = ()) -> dict[str, str]:
    """What lies in a folder: names, kinds and contents."""
    found = {}
    for place, folders, files in os.walk(folder):
        if Path(place) == folder:
            folders[:] = [name for name in folders if name not in without]
        for name in [*folders, *files]:
            path = Path(place) / name
            found[path.relative_to(folder).as_posix()] = _content(path)
    return found


def _content(path: Path) -> str:
    if path.is_symlink():
        return f"link to {path.readlink()}"
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    return "folder" if path.is_dir() else "other"


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Names of what was changed, made or removed."""
    names = before.keys() | after.keys()
    return sorted(name for name in names if before.get(name) != after.get(name))
