"""Has processes write to one recording at once, or kills them, and says what went wrong.

    python racing.py race suite2p FOLDER --processes 4 --rounds 300
    python racing.py kill caiman FOLDER --rounds 300
    python racing.py steps suite2p FOLDER

Processes are forked from this one, which has imported everything and started no thread.
"""

import argparse
import json
import os
import shutil
import signal
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

import numpy as np
from written_files import CELLS, caiman_file, suite2p_folder, temporary_files

from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording
from napari_xcebra.io.decisions.outputs import plan_output
from napari_xcebra.io.decisions.restoring import repair, restore

ORIGINALLY = ("plane0/iscell.npy", "plane1/iscell.npy", "combined/iscell.npy", "results.hdf5")


class Raced:
    """A recording, what its files held at first, and what went wrong."""

    def __init__(self, kind, home):
        self.kind, self.home = kind, home
        self.path = home / ("suite2p" if kind == "suite2p" else "results.hdf5")
        suite2p_folder(self.path) if kind == "suite2p" else caiman_file(self.path)
        self.folder = self.path if kind == "suite2p" else home
        files = [self.folder / name for name in ORIGINALLY]
        self.originals = {file: file.read_bytes() for file in files if file.is_file()}
        self.wrong, self.counts = [], Counter()
        self.outside = home / "thesis.txt"
        self.outside.write_text("of mine")

    def accepted(self, path=None):
        return open_recording(path or self.path).accepted.tolist()

    def note(self, what):
        self.counts[what] += 1

    def act(self, what, seed):
        """Write or restore; the decisions that are then in the files."""
        if what == "restore":
            restore(self.path)
            return None
        if what == "repair":
            repair(self.path)
            return None
        accepted = self.decisions(seed)
        recording = open_recording(self.path)
        plan_output(self.kind, recording, self.path, np.array(accepted)).write()
        return accepted

    def die_half_way(self, seed):
        """Write, and end once the first file of decisions has taken its place."""
        real = os.replace

        def dying(old, new):
            real(old, new)
            if Path(new) in self.originals:
                os.kill(os.getpid(), signal.SIGKILL)

        os.replace = dying
        self.act("export", (seed, 2))

    def decisions(self, seed):
        return (np.random.default_rng(seed).random(2 * CELLS) > 0.5).tolist()

    def check_files(self, when):
        """No original is lost, nothing is left behind, and planes agree."""
        for file, content in self.originals.items():
            kept = [file, *file.parent.glob(f"{file.name}.original*")]
            if not any(each.is_file() and each.read_bytes() == content for each in kept):
                self.wrong.append(f"{when}: the original of {file} is lost")
            if not file.is_file():
                self.wrong.append(f"{when}: {file} is gone")
        if left := temporary_files(self.home):
            self.wrong.append(f"{when}: left behind {left}")
        if self.kind == "suite2p" and self.accepted() != self.accepted(self.path / "combined"):
            self.wrong.append(f"{when}: planes and combined disagree")
        if self.outside.read_text() != "of mine":
            self.wrong.append(f"{when}: a file elsewhere was touched")


def forked(action, report):
    """Run the action in a process of its own, which reports to a file."""
    process = os.fork()
    if process:
        return process
    said = {"began": time.monotonic_ns()}
    try:
        said["decisions"] = action()
        said["outcome"] = "done"
    except InputError as error:
        said["outcome"], said["sentence"] = "refused", str(error)
    except BaseException:
        said["outcome"], said["sentence"] = "failed", traceback.format_exc()
    said["ended"] = time.monotonic_ns()
    report.write_text(json.dumps(said))
    os._exit(0)


def outcome_in(report):
    try:
        return json.loads(report.read_text())
    except (OSError, ValueError):
        return {"outcome": "killed"}


def race(raced, processes, rounds, kills=False):
    """Several write and restore at once, round after round on the same files; one may be killed."""
    rng = np.random.default_rng(0)
    at_first = raced.accepted()
    usual = 0.0
    for number in range(rounds):
        before = raced.accepted()
        reports = [raced.home.parent / f"report-{i}.json" for i in range(processes)]
        for report in reports:
            report.unlink(missing_ok=True)
        acts = [rng.choice(["export", "export", "restore"]) for _ in range(processes)]
        began = time.monotonic()
        running = [
            forked(lambda w=what, s=(number, i): raced.act(w, s), report)
            for i, (what, report) in enumerate(zip(acts, reports, strict=True))
        ]
        if kills and number:  # the first round tells how long one takes here
            time.sleep(rng.random() * usual)
            os.kill(running[0], signal.SIGKILL)
        for process in running:
            os.waitpid(process, 0)
        usual = usual or time.monotonic() - began
        said = [outcome_in(report) for report in reports]
        done = [each for each in said if each["outcome"] == "done"]
        if said[0]["outcome"] == "killed":  # it may have written everything, and not said so
            meant = raced.decisions((number, 0)) if acts[0] == "export" else at_first
            done.append({"decisions": meant, "began": 0, "ended": time.monotonic_ns()})
            done.append({"decisions": before, "began": 0, "ended": time.monotonic_ns()})
            repair(raced.path)
            for leftover in temporary_files(raced.home):
                leftover.unlink()
        for what, each in zip(acts, said, strict=True):
            raced.note(f"{what} {each['outcome']}")
            if each["outcome"] == "failed":
                raced.wrong.append(f"round {number}: {each['sentence']}")
        # whoever began after another had ended was the later one
        last = [s for s in done if not any(t["began"] > s["ended"] for t in done)]
        now = raced.accepted()
        if now not in [s["decisions"] or at_first for s in last] and (done or now != before):
            raced.wrong.append(f"round {number}: {now} is not what was reported: {done}")
        raced.check_files(f"round {number}")


def kill(raced, rounds):
    """One is killed at a random time."""
    rng = np.random.default_rng(0)
    raced.act("export", 0)
    usual = timed(lambda: raced.act("export", 1))
    for number in range(rounds):
        what = rng.choice(["export", "restore"]) if number % 5 else "export"
        after_kill(raced, number, what, wait=rng.random() * usual * 1.2)


def steps(raced, stride):
    """One is killed at its first operation on files, the next but `stride`, and so on."""
    for what in ("export", "restore", "repair"):
        for number in range(0, 10_000, stride):
            if what == "restore":
                raced.act("export", number)
            whole = raced.accepted()
            if what == "repair":  # of a write that replaced some of the files
                report = raced.home.parent / "report.json"
                os.waitpid(forked(lambda n=number: raced.die_half_way(n), report), 0)
            if after_kill(raced, number, what, step=number, whole=whole) == "done":
                raced.note(f"steps of {what}: {number}")
                break


def after_kill(raced, number, what, wait=None, step=None, whole=None):
    """Kill one, then look at what there is: all old or all new, once it is repaired."""
    before = raced.accepted()
    report = raced.home.parent / "report.json"
    report.unlink(missing_ok=True)

    def action():
        if step is not None:
            die_at(step)
        return raced.act(what, (number, 1))

    process = forked(action, report)
    if wait is not None:
        time.sleep(wait)
        os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    said = outcome_in(report)
    outcome = said["outcome"]
    raced.note(f"{what} {outcome}")
    mixed = raced.kind == "suite2p" and raced.accepted() != raced.accepted(raced.path / "combined")
    told = any("interrupted" in note for note in open_recording(raced.path).notes)
    if mixed and not told:
        raced.wrong.append(f"{number}: nobody is told that planes and combined disagree")
    raced.note("mixed" if mixed else "not mixed")
    repair(raced.path)
    for orphan in raced.home.parent.glob("state/**/unfinished/*.json"):
        orphan.unlink()  # of one that was killed before it began to write
    now = raced.accepted()
    if outcome == "done" and said["decisions"] not in (None, now):
        raced.wrong.append(f"{number}: reported but not there")
    if what == "repair" and now != whole:
        raced.wrong.append(f"{number}: not as it was before the interrupted write")
    if what == "export" and now not in (before, raced.decisions((number, 1))):
        raced.wrong.append(f"{number}: neither old nor new")
    for leftover in temporary_files(raced.home):
        # what a killed program staged is swept when it is older
        if "unfinished" in leftover.name:
            raced.wrong.append(f"{number}: {leftover.name} was not repaired")
        leftover.unlink()
    if outcome == "failed":
        raced.wrong.append(f"{number}: {said['sentence']}")
    raced.check_files(f"{what} {number}")
    return outcome


def die_at(step):
    """End this process at the step, as if its power were cut."""
    count = iter(range(step + 1))

    def wrapped(real):
        def dying(*given, **named):
            if next(count, None) == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*given, **named)

        return dying

    os.fsync = lambda _: None  # the disk is slow, and its power stays on
    for name in ("replace", "link", "unlink", "fsync", "open"):
        setattr(os, name, wrapped(getattr(os, name)))


def timed(action):
    began = time.monotonic()
    action()
    return time.monotonic() - began


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["race", "kill", "steps"])
    parser.add_argument("kind", choices=["suite2p", "caiman"])
    parser.add_argument("home", type=Path)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--stride", type=int, default=1)
    parser.add_argument("--kills", action="store_true")
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args(arguments)
    os.environ["XDG_STATE_HOME"] = str(given.home / "state")
    folder = given.home / "recording"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    raced = Raced(given.kind, folder)
    if given.what == "race":
        race(raced, given.processes, given.rounds, given.kills)
    elif given.what == "kill":
        kill(raced, given.rounds)
    else:
        steps(raced, given.stride)
    print(json.dumps({"wrong": raced.wrong, "counts": raced.counts}, indent=1))
    return bool(raced.wrong)


if __name__ == "__main__":
    sys.exit(main())
