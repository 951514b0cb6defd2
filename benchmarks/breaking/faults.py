"""Every file operation fails in turn: all is as it was, or all is new, and a sentence says so."""

from __future__ import annotations

import builtins
import contextlib
import errno
import io
import itertools
import math
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from breaking.commands import COMMANDS, Command, unguarded
from breaking.processes import Fork, Tell, failure_of
from breaking.tally import Tally
from breaking.targets import START, TARGETS, Mixed, Target

OPERATIONS = ("open", "write", "replace", "rename", "link", "unlink", "remove", "fsync", "mkdir",
              "rmdir", "ftruncate", "chmod")  # fmt: skip
ERRORS = (errno.ENOSPC, errno.EACCES, errno.EIO)
KILLED, KILLED_AFTER = -1, -2
MOST = 400
"""Operations of one write, at most."""
PAGES = 2048
"""Room on a disk beyond which nothing is too large."""
NEW = 7


class Failing:
    """Lets the n-th file operation fail, or all from the n-th on.

    Parameters
    ----------
    number : int
        From 0; -1 counts only.
    code : int
        Such as `errno.ENOSPC`.
        `KILLED` ends the process there, `KILLED_AFTER` once it is done.
    on : bool
        Whether those after it fail as well.
    operations : tuple of str
        Of `os`, those that count.
    """

    def __init__(
        self, number: int, code: int, on: bool = False, operations: tuple[str, ...] = OPERATIONS
    ) -> None:
        self.count, self._number, self._code, self._on = 0, number, code, on
        self.failed, self._operations = "", operations

    def __enter__(self) -> Failing:
        for name in self._operations:
            setattr(os, name, self._wrapped(getattr(os, name), f"os.{name}"))
        real = io.open
        if self._operations != OPERATIONS:
            return self
        for module in (io, builtins):
            module.open = self._wrapped(real, "open")  # type: ignore[attr-defined]
        return self

    def __exit__(self, *_: object) -> None:
        self._number = -1

    def _wrapped(self, real: Callable[..., Any], name: str) -> Callable[..., Any]:
        def operation(*given: Any, **named: Any) -> Any:
            # reading is tried elsewhere, with damaged files
            if name == "open" and not set(str([*given[1:2], named.get("mode", "")])) & set("wax+"):
                return real(*given, **named)
            number, self.count = self.count, self.count + 1
            if number == self._number or (self._on and 0 <= self._number <= number):
                self.failed = self.failed or name
                if self._code == KILLED_AFTER:
                    real(*given, **named)
                if self._code in (KILLED, KILLED_AFTER):
                    os.kill(os.getpid(), signal.SIGKILL)
                path = given[0] if given and not isinstance(given[0], int) else None
                raise OSError(self._code, os.strerror(self._code), path)
            return real(*given, **named)

        return operation


def family(
    home: Path, rng: random.Random, tally: Tally, targets: tuple[Target, ...] = TARGETS
) -> None:
    """Each operation of each write in turn, by as many errors as time allows."""
    for number, (on, code) in enumerate(itertools.product((False, True), ERRORS)):
        for target in targets:
            if number == 0 or tally.in_time:
                each_operation(target, home / target.name, code, on, tally)


def each_operation(target: Target, folder: Path, code: int, on: bool, tally: Tally) -> None:
    """Let the first operation of a write fail, then the second, until none is left to fail."""
    template = folder.with_name(f"{folder.name} template")
    shutil.rmtree(template, ignore_errors=True)
    template.mkdir(parents=True)
    target.prepare(template)
    for number in range(MOST):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(template, folder)
        lines = _tried(target, folder, number, code, on)
        if lines[-1:] == ["unharmed"]:
            return
        tally.trials += 1
        word = errno.errorcode[code] + (" from then on" if on else "")
        failed = next((line[1:] for line in lines if line.startswith(">")), "?")
        _check(target, folder, lines, tally, f"{target.name}, {word} at {failed}")


def _tried(target: Target, folder: Path, number: int, code: int, on: bool) -> list[str]:
    """Write in a process of its own, in which an operation fails; what it told."""

    def work(tell: Tell) -> None:
        with contextlib.ExitStack() as stack:
            write = stack.enter_context(target.opened(folder))
            with Failing(number, code, on) as failing:
                try:
                    write(NEW)
                    said = str(NEW)
                except Exception as error:
                    said = _told(error, code)
            tell(said)
            tell(f">{failing.failed}")
            if not failing.failed:
                tell("unharmed")

    lines, in_time = Fork(work).lines()
    return lines if in_time else [*lines, "hang"]


def _told(error: Exception, code: int) -> str:
    """What a write says; one that hands on the error of the system is as good as a sentence."""
    if isinstance(error, OSError) and error.errno == code:
        return f"-{error}"
    return failure_of(error)


def _check(target: Target, folder: Path, lines: list[str], tally: Tally, case: str) -> None:
    """Old and refused, or new and done; and a write afterwards succeeds."""
    for line in lines:
        if line.startswith("!"):
            tally.broke("other", f"{case}: {line.replace(str(folder), '…')}")
    if "hang" in lines:
        tally.broke("hang", case)
    done = str(NEW) in lines
    try:
        found = target.found(folder)
    except Exception as error:
        what = str(error) if isinstance(error, Mixed) else failure_of(error)
        tally.broke("mixed", f"{case}: {what.replace(str(folder), '…')}"[:200])
        return
    if done and found != NEW:
        tally.broke(target.column, f"{case}: said to be done, and is not there")
    # results that are saved whole although clearing up failed do no harm; decisions are counted,
    # unless the disk refuses everything from then on: what was written cannot be taken back either
    lasting = "from then on" in case
    if not done and found != START and target.column == "lost" and not lasting:
        tally.broke("lost", f"{case}: said to have failed, and is there")


def disks(
    home: Path,
    rng: random.Random,
    tally: Tally,
    targets: tuple[Target, ...] = (*TARGETS, *COMMANDS),
    most: int = PAGES,
) -> None:
    """Everything that writes, on a full disk, where there is a right to make one."""
    with unguarded():
        for left, target in zip(range(len(targets), 0, -1), targets, strict=True):
            until = tally.share(left) if isinstance(target, Command) else math.inf
            full_disk(target, home / f"full {target.name}", tally, most, until)


def full_disk(target: Target, folder: Path, tally: Tally, most: int, until: float) -> None:
    """A disk with room for some more pages, from none to enough, or until the time is over."""
    pages = 0
    while pages < most and (time.monotonic() < until or not pages):
        with small_disk(folder) as room:
            if room is None:
                return
            target.prepare(room)
            before = {path.name for path in room.rglob("*")}
            free = os.statvfs(room)
            filler = room / "filler"
            filler.write_bytes(bytes(max(0, free.f_bavail - pages) * free.f_bsize))
            lines = _tried(target, room, -1, 0, False)
            lines = [f"-{line[1:]}" if "No space left" in line else line for line in lines]
            filler.unlink()
            tally.trials += 1
            case = f"{target.name}, disk with {pages} pages left"
            _check(target, room, lines, tally, case)
            if str(NEW) in lines:
                return
            if not any(line.startswith(("-", "!")) for line in lines):
                tally.broke("silent", f"{case}: failed without a word")
            for path in room.rglob("*"):
                if path.name not in before and not path.name.endswith((".lock", ".written")):
                    tally.broke("left", f"{target.name}, full disk: {path.relative_to(room)}")
        pages = pages + 2 if pages < 24 else pages * 3 // 2


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[Path | None]:
    """A disk of 16 MB at a folder; None where there is no right to make one."""
    folder.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)]
    try:
        made = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except OSError:
        made = False
    try:
        yield folder if made else None
    finally:
        if made:
            subprocess.run(["umount", str(folder)], check=True)
