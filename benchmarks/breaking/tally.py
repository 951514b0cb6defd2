"""Counts broken promises: bystanders that are touched, and files of known truth read wrongly."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from breaking.processes import PATIENCE, Fork, Tell
from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording
from napari_xcebra.recording import Recording

COLUMNS = {
    "outside": "touched outside",
    "hang": "hangs > 20 s",
    "memory": "above 2 GB",
    "silent": "silently wrong",
    "mixed": "lost or mixed results",
    "lost": "lost decisions",
    "other": "other exceptions",
    "left": "left behind",
}
"""Promises that can be broken, and the heads of their columns."""
EXAMPLES = 12
"""Cases that are named for each column of a family."""
NAMES_A_WAY = re.compile(r"`[a-z_]+`|--[a-z-]+|layout|rate\b|offset|trigger|open it with", re.I)
"""A refusal that names what mends it is a question."""
GUESSED = (
    "guess|if (it|that|this) is (wrong|not)|would fit|(longer|shorter) than|not the same length"
)
"""A note that says so lets nobody believe what was read."""


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
    words: Counter[str] = field(default_factory=Counter)
    """How trials with a known truth ended: right, asked, refused …"""
    seen: list[str] = field(default_factory=list)
    """What was asked and refused, to be read by somebody."""

    def broke(self, column: str, case: str) -> None:
        """Count a broken promise; its case is named below the table."""
        assert column in COLUMNS
        self.broken[column] += 1
        self.cases.setdefault(column, []).append(case)

    @property
    def in_time(self) -> bool:
        """Whether there is time for another random trial."""
        return time.monotonic() < self.until

    def share(self, parts: int) -> float:
        """Time (monotonic) until which the next of so many parts may take."""
        now = time.monotonic()
        return now + max(0.0, self.until - now) / parts

    def cells(self) -> list[object]:
        """Row of the table."""
        seconds = round((self.ended or time.monotonic()) - self.began)
        return [self.family, self.trials, *(self.broken[name] for name in COLUMNS), seconds]

    def lines(self, examples: int = EXAMPLES) -> Iterator[str]:
        """How trials ended, and examples of what was broken, alike ones once with their number."""
        if self.words:
            ends = ", ".join(f"{count:,} {word}" for word, count in self.words.most_common())
            yield f"- {self.family}: {ends}"
        for column, cases in self.cases.items():
            alike = Counter(cases)
            for case, count in alike.most_common(examples):
                yield f"- {self.family}, {COLUMNS[column]}: {case} ({count})"
            if len(alike) > examples:
                yield f"- {self.family}, {COLUMNS[column]}: {len(alike) - examples} other cases"


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


@dataclass(frozen=True)
class Trial:
    """Files to open, and what is in them.

    Parameters
    ----------
    case : str
    path : Path
    judge : function of Recording
        Gives what was read wrongly, in words; empty if all is right.
    options : mapping
        Arguments of `open_recording`.
    """

    case: str
    path: Path
    judge: Callable[[Recording], str]
    options: Mapping[str, Any] = field(default_factory=dict)

    def outcome(self) -> tuple[str, str]:
        """A word (right, asked, refused, guessed, silent, other) and what was said or wrong."""
        try:
            recording = open_recording(self.path, **self.options)
            wrong = self.judge(recording)
        except InputError as error:
            return ("asked" if NAMES_A_WAY.search(str(error)) else "refused"), str(error)
        except Exception as error:
            return "other", f"{type(error).__name__}: {error}"
        if not wrong:
            return "right", ""
        said = " ".join((*recording.notes, *recording.warnings))
        return ("guessed" if re.search(GUESSED, said, re.I) else "silent"), f"{wrong} [{said}]"


def judge_all(trials: Iterable[Trial], tally: Tally, until_told: bool = True) -> None:
    """Open one after the other in a process of its own, and count."""

    def work(tell: Tell) -> None:
        for trial in trials:
            tell(json.dumps([trial.case, *trial.outcome()]))
            if until_told and not tally.in_time:
                break

    fork = Fork(work)
    lines, in_time = fork.lines(each=PATIENCE)
    for line in lines:
        if line.startswith(("!", "-")):
            tally.broke("other", line)
            continue
        case, word, said = json.loads(line)
        tally.trials += 1
        tally.words[word] += 1
        if word in ("silent", "other"):
            tally.broke(word, f"{case}: {said}"[:400])
        elif word != "right":
            tally.seen.append(f"{word}: {case}: {said}")
    if not in_time:
        tally.broke("hang", f"after {lines[-1] if lines else 'the start'}")


def alike(found: np.ndarray, truth: np.ndarray) -> bool:
    """Whether columns follow those that are true, wherever both are known."""
    if found.shape != truth.shape:
        return False
    known = np.isfinite(found) & np.isfinite(truth)
    if not known.any():
        return False
    one, other = (np.where(known, a, 0.0) - np.mean(a[known]) for a in (found, truth))
    scale = np.sqrt((one**2).sum() * (other**2).sum())
    return bool(scale == 0 or (one * other).sum() / scale > 0.99)
