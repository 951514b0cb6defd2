"""Members that do what they should not. In a module of its own, so that children find it."""

import time
from pathlib import Path

from napari_xcebra.recording import InputError
from napari_xcebra.sweeps.member import run_member


def odd_seeds_fail(recording, each):
    if each.settings.seed % 2:
        raise InputError(f"Seed {each.settings.seed} is odd: give an even one.")
    return run_member(recording, each)


def note_each_run(folder, recording, each):
    """Run it, and leave a file for every time it was begun."""
    (Path(folder) / f"{each.id}-{time.time_ns()}").touch()
    return run_member(recording, each)
