"""Members that do what they should not. In a module of its own, so that children find it."""

import os
import pickle
import time
from pathlib import Path

from napari_xcebra.batch.running import _run_member
from napari_xcebra.errors import InputError
from napari_xcebra.jobs.calls import current_report


def odd_seeds_fail(recording, each):
    if each.settings.seed % 2:
        raise InputError(f"Seed {each.settings.seed} is odd: give an even one.")
    return _run_member(recording, each)


def note_each_run(folder, recording, each):
    """Run it, and leave a file for every time it was begun."""
    (Path(folder) / f"{each.id}-{time.time_ns()}").touch()
    return _run_member(recording, each)


def light(folder, result, recording, each):
    """Stands for a run: leaves a file when it begins, takes its time, and needs no torch.

    Parameters
    ----------
    result : Path
        Pickled `MemberResult`.
    """
    (Path(folder) / f"{each.id}-{time.time_ns()}").touch()
    time.sleep(0.4)
    return pickle.loads(Path(result).read_bytes())


def seen(recording):
    return os.getpid(), id(recording)


def begun_and_ended():
    begun = time.monotonic()
    time.sleep(0.3)
    return begun, time.monotonic()


def refuse():
    raise InputError("This cannot be done: do something else.")


def until_stopped(folder):
    """Goes on for minutes unless it is stopped, and leaves a file when it is."""
    report = current_report()
    (Path(folder) / "begun").touch()
    for _ in range(6000):
        time.sleep(0.1)
        if report.stop():
            (Path(folder) / "stopped").touch()
            return
