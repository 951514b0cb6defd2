"""Two and four processes that write to the same place at once: one after the other, or refused."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from breaking.processes import PATIENCE, Fork, Tell, failure_of
from breaking.tally import Tally
from breaking.targets import START, TARGETS, Caiman, Decisions, Mixed, Suite2p, Target
from napari_xcebra.errors import InputError

WRITES = 6
RESULTS = ("fit", "run", "workspace")
"""What is also read meanwhile: a reader finds one version or another, at any time."""

Work = Callable[[Tell], None]


def family(
    home: Path, rng: random.Random, tally: Tally, targets: tuple[Target, ...] = TARGETS
) -> None:
    """Races of each kind by two and by four until the time is over, each at least once."""
    first = True
    while first or tally.in_time:
        for count in (2, 4):
            for target in targets:
                race(target, home / target.name, count, tally, restoring=False)
                if isinstance(target, Suite2p | Caiman):
                    race(target, home / target.name, count, tally, restoring=True)
        first = False


def race(target: Target, folder: Path, count: int, tally: Tally, *, restoring: bool) -> None:
    """Let processes write their own numbers at once, and look at what is there then."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    target.prepare(folder)
    case = f"{target.name}{' and restoring' if restoring else ''}, {count} processes"
    before = target.originals(folder) if isinstance(target, Suite2p | Caiman) else {}
    start = time.monotonic() + 0.3
    forks = [Fork(_writing(target, folder, number, start)) for number in range(count)]
    if restoring:
        forks.append(Fork(_restoring(target, folder, start)))
    readers = [Fork(_reading(target, folder, start))] if target.name in RESULTS else []
    tally.trials += 1
    told = []
    for fork in forks:
        lines, in_time = fork.lines(PATIENCE + 10 * count)
        told.append(lines)
        if not in_time:
            tally.broke("hang", case)
    for reader in readers:
        told.append(reader.kill())
    for line in (line for lines in told for line in lines):
        if line.startswith("!"):
            column = "mixed" if line.startswith("!reader") else "other"
            tally.broke(column, f"{case}: {_short(line, folder)}")
    _check(target, folder, told, tally, case)
    if before:
        _check_originals(target, folder, before, tally, case)


def _check(target: Target, folder: Path, told: list[list[str]], tally: Tally, case: str) -> None:
    """One of the numbers that was written last by a process is there, and whole."""
    numbers = [[int(line) for line in lines if line.isdigit()] for lines in told]
    if isinstance(target, Decisions):
        missing = {n for lines in numbers for n in lines} - set(target.decided(folder))
        for _ in missing:
            tally.broke("lost", f"{case}: a decision")
        return
    last = {lines[-1] for lines in numbers if lines} or {START}
    if target.name == "sweep":  # every member has a place of its own
        last = {max(last)} if last != {START} else last
    try:
        found = target.found(folder)
    except Exception as error:
        what = str(error) if isinstance(error, Mixed) else failure_of(error)
        tally.broke("mixed", f"{case}: {_short(what, folder)}")
        return
    if found not in last:
        tally.broke(target.column, f"{case}: none of those that were written last is there")


def _check_originals(
    target: Target, folder: Path, before: dict[str, bytes], tally: Tally, case: str
) -> None:
    """Restoring brings back what was there before the first of them wrote."""
    assert isinstance(target, Suite2p | Caiman)
    try:
        target.restore(folder)
    except InputError as error:
        if target.originals(folder) != before:
            tally.broke("lost", f"{case}: {_short(str(error), folder)}")
        return
    except Exception as error:
        tally.broke("other", f"{case}: {_short(failure_of(error), folder)}")
    if target.originals(folder) != before:
        tally.broke("lost", f"{case}: the originals do not come back")


def _writing(target: Target, folder: Path, number: int, start: float) -> Work:
    def work(tell: Tell) -> None:
        time.sleep(max(0, start - time.monotonic()))
        for count in range(WRITES):
            own = 1 + number * 1000 + count
            try:
                with target.opened(folder) as write:
                    write(own)
                    tell(str(own))
            except Exception as error:
                tell(failure_of(error))

    return work


def _restoring(target: Target, folder: Path, start: float) -> Work:
    assert isinstance(target, Suite2p | Caiman)

    def work(tell: Tell) -> None:
        time.sleep(max(0, start - time.monotonic()))
        for _ in range(WRITES):
            try:
                target.restore(folder)
                tell(str(START))
            except Exception as error:
                tell(failure_of(error))

    return work


def _reading(target: Target, folder: Path, start: float) -> Work:
    def work(tell: Tell) -> None:
        while time.monotonic() < start + PATIENCE:
            try:
                target.found(folder)
            except Exception as error:
                what = str(error) if isinstance(error, Mixed) else type(error).__name__
                tell(f"!reader: {what}")
                return  # once is enough

    return work


def _short(text: str, folder: Path) -> str:
    return text.replace(str(folder), "…")[:130]
