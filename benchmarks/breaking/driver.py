"""Opens recordings as the window does, one after the other: this process stands for the window.

Reads one JSON object a line (path, behavior, footprints) and answers with a line: "ready" at the
start, then a word and a sentence for each. Whatever happens to this process happens to the window.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from napari_xcebra.errors import InputError
from napari_xcebra.io import OpenSettings
from napari_xcebra.io.opening import Opening
from napari_xcebra.recording import Recording
from napari_xcebra.widgets.layers.layers import recording_layers

try:
    from napari_xcebra.jobs import JobFailed, Worker, open_task
    from napari_xcebra.jobs.limits import COMPUTING as GUARD_SECONDS
except ImportError:  # before files were opened in a process of their own
    GUARD_SECONDS = 0.0
    open_task = None
"""GUARD_SECONDS: computing after which the program itself gives up on a small file."""


def opening_of(wanted: Mapping[str, Any]) -> Opening:
    footprints = wanted.get("footprints")
    return Opening(
        Path(wanted["path"]),
        tuple(map(Path, wanted.get("behavior", ()))),
        Path(footprints) if footprints else None,
        settings=OpenSettings(rate=10.0),
    )


def shown(recording: Recording) -> str:
    """What the window makes of a recording at once: layers, notes, and one trace."""
    recording_layers(recording)
    recording.traces[:, 0]
    return f"{recording.n_cells} cells, {recording.n_frames} frames, {len(recording.notes)} notes"


def guarded() -> Callable[[Opening], Recording]:
    """Opens recordings with the program's own guard, as the window does."""
    if open_task is None:
        return Opening.open
    worker = Worker(warm_up="reading")
    worker.start()

    def opened(opening: Opening) -> Recording:
        try:
            return worker.submit(open_task(opening)).result()
        except JobFailed as failed:
            # a sentence about an exception that nobody thought of is none
            if "Traceback" in failed.details:
                raise RuntimeError(failed.details.strip().splitlines()[-1]) from failed
            raise

    return opened


def serve(opened: Callable[[Opening], Recording]) -> None:
    """Answer until there is nothing more to open."""
    answers, sys.stdout = sys.stdout, sys.stderr
    print("ready", flush=True, file=answers)
    for line in sys.stdin:
        try:
            word, said = "recording", shown(opened(opening_of(json.loads(line))))
        except InputError as error:
            word, said = "sentence", str(error)
        except Exception as error:
            word, said = type(error).__name__, str(error)
        print(word, " ".join(said.split())[:300], flush=True, file=answers)


if __name__ == "__main__":
    serve(guarded())
