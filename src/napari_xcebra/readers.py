"""Gives napari what its File menu opens: recordings that are dropped on it, and simulated ones.

Where two readers accept a kind of file, napari asks the user to choose before either can look into
it. So the manifest names only files that extractors write, and folders; plain arrays and tables,
which are mostly something else, are opened in the Recording dock. Once that is open, its
`canvas_drops` takes what belongs there before napari asks. Simulators are imported only when a
sample is made: the Recording dock lists them all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_xcebra.errors import InputError, Stopped
from napari_xcebra.io.guard import open_task
from napari_xcebra.io.opening import Opening
from napari_xcebra.recording.recording import Recording
from napari_xcebra.widgets.controls.napari_window import main_window, real_viewer
from napari_xcebra.widgets.layers.layers import recording_layers
from napari_xcebra.widgets.services.reading import add_kept_size, make_now, read_now, recognised
from napari_xcebra.widgets.state.state import KEY, LayerTuple

if TYPE_CHECKING:
    from napari_xcebra.simulate.simulation import Simulation


Paths = str | PathLike[str] | Sequence[str]
Reader = Callable[[Paths], list[LayerTuple]]


def get_reader(path: Paths) -> Reader | None:
    """Reader of this path; None if it is not recognised as a recording."""
    single = _single(path)
    if single is None or not recognised(single, _current_viewer()):
        return None
    return read


def read(path: Paths) -> list[LayerTuple]:
    """Layers of the recording at a path."""
    single = _single(path)
    assert single is not None, "get_reader refuses stacks"
    opening = add_kept_size(Opening(single))
    try:
        return _layers_to_adopt(read_now(open_task(opening), _current_viewer()), opening)
    except Stopped:
        raise InputError(f"Reading {single} was cancelled.") from None
    except InputError as error:
        _ask_in_dock(opening, error)
        raise


def _layers_to_adopt(recording: Any, opening: Opening | None = None) -> list[LayerTuple]:
    """Layers of a recording, which carry how it was opened."""
    layers = recording_layers(recording)
    _point_to_docks()
    for _, arguments, _ in layers:
        if "value" in arguments["metadata"][KEY]:
            arguments["metadata"][KEY]["opening"] = opening
    return layers


def _ask_in_dock(opening: Opening, error: InputError) -> None:
    """Ask for what is missing, such as a frame rate, in the Recording dock.

    napari's own message does not say what was wrong.
    """
    viewer = _viewer_in_sight()
    if viewer is None:
        return
    from napari_xcebra.widgets.controls.napari_window import open_dock

    dock: Any = open_dock(viewer, "Recording").widget()
    dock.ask(opening, error)


def _point_to_docks() -> None:
    """Point users who open a recording without any dock to the next step."""
    viewer = _viewer_in_sight()
    if viewer is None or any("napari-xcebra" in name for name in viewer.window.dock_widgets):
        return
    from napari.utils.notifications import show_info

    show_info("Next: choose Plugins ▸ napari-xcebra ▸ Workspace to train on this recording.")


def _current_viewer() -> Any:
    """The viewer that files are opened in; None if there is none."""
    import napari

    return real_viewer(napari.current_viewer())


def _viewer_in_sight() -> Any:
    """The viewer on screen; None if napari runs without a window."""
    viewer = _current_viewer()
    window = main_window(viewer)
    return viewer if window is not None and window.isVisible() else None


def _single(path: Paths) -> Path | None:
    """The one path; None for a stack of several."""
    if isinstance(path, str | PathLike):
        return Path(path)
    return Path(path[0]) if len(path) == 1 else None


FRAMES = 12_000
"""Enough to train well, and quick to simulate: napari waits for it."""


@dataclass(frozen=True)
class _SampleRecording:
    """A simulated recording to try things on.

    Parameters
    ----------
    title : str
        In menus.
    help : str
        What it is good for.
    make : function that gives a Recording
    """

    title: str
    help: str
    make: Callable[[], Recording]


def _navigating_animal() -> Recording:
    from napari_xcebra.simulate import field

    return _told(field(cells=200, frames=FRAMES, junk=20, seed=0), "Navigating animal")


def _hard_case() -> Recording:
    from napari_xcebra.simulate import arena, field

    population = arena(
        place=30,
        grid=0,
        direction=30,
        speed=30,
        mixed=30,
        untuned=60,
        frames=FRAMES,
        confound=1.0,
        arousal=1.0,
        seed=0,
    )
    return _told(field(population, seed=0), "Variables that go together")


def _belt_task() -> Recording:
    from napari_xcebra.simulate import belt, field

    return _told(field(belt(frames=FRAMES, seed=0), seed=0), "Belt task")


def _choice_task() -> Recording:
    from napari_xcebra.simulate import field, task

    return _told(field(task(frames=FRAMES, seed=0), seed=0), "Choice task")


def _box_model() -> Recording:
    from napari_xcebra.simulate import box

    note = "This recording has no noise: set λ to 0.1 before training."
    recording = _told(box(seed=0), "Box model")
    return replace(recording, notes=(note, *recording.notes))


def _told(simulation: Simulation, name: str) -> Recording:
    """The recording under a name, with what each cell carries in the simulation."""
    carried = [factor for factor in simulation.truth if factor in simulation.factors]
    carries = [
        " and ".join(f for f in carried if simulation.truth[f][cell]) or "nothing"
        for cell in range(simulation.recording.n_cells)
    ]
    return replace(simulation.recording, source=name, cells={"carries": np.array(carries, np.str_)})


SAMPLES = {
    "navigating_animal": _SampleRecording(
        "Navigating animal, imaged field",
        "200 cells that carry place, speed, direction or nothing, and 20 ROIs that are not cells.",
        _navigating_animal,
    ),
    "hard_case": _SampleRecording(
        "Hard case: variables that go together",
        "Speed is correlated with place and with an unobserved state; cells carry two variables.",
        _hard_case,
    ),
    "belt_task": _SampleRecording(
        "Belt task, imaged field",
        "120 cells of a mouse that runs laps: place, speed, licking and an unobserved state.",
        _belt_task,
    ),
    "choice_task": _SampleRecording(
        "Choice task, imaged field",
        "110 cells of a mouse that chooses left or right: stimulus, choice, outcome, running.",
        _choice_task,
    ),
    "box_model": _SampleRecording(
        "Box model of the paper (no footprints)",
        "50 cells without footprints, drawn on a grid.",
        _box_model,
    ),
}


def _layers_of(name: str) -> list[LayerTuple]:
    sample = SAMPLES[name]
    recording = make_now(sample.make, f"Simulating: {sample.title}", _current_viewer())
    return _layers_to_adopt(recording)


# the manifest names each of them
navigating_animal = partial(_layers_of, "navigating_animal")
hard_case = partial(_layers_of, "hard_case")
belt_task = partial(_layers_of, "belt_task")
choice_task = partial(_layers_of, "choice_task")
box_model = partial(_layers_of, "box_model")
