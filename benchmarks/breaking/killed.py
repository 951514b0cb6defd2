"""Processes killed while they write: what is there is whole, and what was acknowledged is there."""

from __future__ import annotations

import itertools
import math
import random
import shutil
import time
from pathlib import Path

from breaking.commands import COMMANDS, OTHER, Command, unguarded
from breaking.faults import KILLED, KILLED_AFTER, Failing
from breaking.processes import PATIENCE, Fork, Tell, failure_of
from breaking.tally import Tally
from breaking.targets import START, TARGETS, Mixed, Target

RENAMES = ("replace", "rename", "link")
MOST = 60
"""Renames of one write, at most."""
LONGEST = 0.15
"""Seconds after its first write at which a process is killed at the latest."""


def family(
    home: Path, rng: random.Random, tally: Tally, targets: tuple[Target, ...] = TARGETS
) -> None:
    """Kill a writer of each kind in turn until the time is over."""
    last: dict[Target, int] = {}
    for target in targets:
        _begin(target, home)
        last[target] = START
    while tally.in_time:
        for target in targets:
            kill_once(target, home / target.name, rng, tally, last)
    for target in targets:
        if last[target] != START:
            check_left(target, home / target.name, tally)


def renames(
    home: Path,
    rng: random.Random,
    tally: Tally,
    targets: tuple[Target, ...] = (*TARGETS, *COMMANDS),
    most: int = MOST,
) -> None:
    """Everything that writes, killed at each rename; a command, at some until its time is over."""
    with unguarded():
        for left, target in zip(range(len(targets), 0, -1), targets, strict=True):
            until = tally.share(left) if isinstance(target, Command) else math.inf
            at_renames(target, home, tally, rng, most, until)


def at_renames(
    target: Target,
    home: Path,
    tally: Tally,
    rng: random.Random,
    most: int,
    until: float = math.inf,
) -> None:
    """Kill a write right before and right after each rename: all is old, or all is new."""
    template, folder = home / f"{target.name} template", home / target.name
    _begin(target, home)
    shutil.rmtree(template, ignore_errors=True)
    folder.rename(template)
    begun = [*range(MOST)] if most >= MOST else sorted(rng.sample(range(24), most))
    if until < math.inf:
        rng.shuffle(begun)
    none_from = MOST
    for number, code in itertools.product(begun, (KILLED, KILLED_AFTER)):
        if number >= none_from:
            continue
        if time.monotonic() > until and tally.trials:
            return
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(template, folder)

        def work(tell: Tell, number: int = number, code: int = code) -> None:
            with target.opened(folder) as write, Failing(number, code, operations=RENAMES):
                write(OTHER)
            tell("unharmed")

        lines, in_time = Fork(work).lines(4 * PATIENCE)
        if lines[-1:] == ["unharmed"]:
            none_from = number
            continue
        tally.trials += 1
        case = f"{target.name}, killed {'after' if code == KILLED_AFTER else 'before'} a rename"
        for line in lines if in_time else ["!hang"]:
            tally.broke("hang" if line == "!hang" else "other", f"{case}: {line}"[:200])
        try:
            found = target.found(folder)
        except Exception as error:
            what = str(error) if isinstance(error, Mixed) else failure_of(error)
            tally.broke("mixed", f"{case}: {_short(what, folder)}")
            continue
        if found not in (START, OTHER):
            tally.broke("mixed", f"{case}: neither the old nor the new one")


def kill_once(
    target: Target, folder: Path, rng: random.Random, tally: Tally, last: dict[Target, int]
) -> None:
    """Let a process write numbers in turn, kill it, and look at what is there."""
    before = last[target]
    first = 1 if before == START else (before + 1) % 60_000

    def work(tell: Tell) -> None:
        with target.opened(folder) as write:
            for number in range(first, 60_000):
                write(number)
                tell(str(number))

    fork = Fork(work)
    if rng.random() < 0.8:
        fork.wait_for_line()
    time.sleep(rng.uniform(0, LONGEST))
    said = fork.kill()
    tally.trials += 1
    for line in said:
        if line.startswith(("!", "-")):
            tally.broke("other", f"{target.name}: {line}")
    numbers = [int(line) for line in said if line.isdigit()]
    acknowledged = numbers[-1] if numbers else before
    under_way = acknowledged + 1 if numbers else first
    try:
        found = target.found(folder)
    except Exception as error:
        what = str(error) if isinstance(error, Mixed) else failure_of(error)
        tally.broke("mixed", f"{target.name}: {_short(what, folder)}")
        _begin(target, folder.parent)
        last[target] = START
        return
    if found not in (acknowledged, under_way):
        tally.broke(target.column, f"{target.name}: found another than the acknowledged one")
    last[target] = found


def check_left(target: Target, folder: Path, tally: Tally) -> None:
    """Count what lies around after killed writes once a write has succeeded."""
    try:
        with target.opened(folder) as write:
            write(59_999)
    except Exception as error:
        tally.broke("other", f"{target.name}: {_short(failure_of(error), folder)}")
    left = target.left(folder)
    for _ in left:
        tally.broke("left", f"{target.name}: a temporary file or folder")


def _begin(target: Target, home: Path) -> None:
    folder = home / target.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    target.prepare(folder)


def _short(text: str, folder: Path) -> str:
    return text.replace(str(folder), "…")[:160]
