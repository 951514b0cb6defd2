"""Offers simulated recordings in napari's File menu, with behaviour to train on.

Simulators are imported only when a sample is made: the Recording dock lists them all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.readers import current_viewer, layers_to_adopt
from napari_xcebra.recording.recording import Recording
from napari_xcebra.widgets.services.reading import made_now
from napari_xcebra.widgets.state.own_layers import LayerTuple

if TYPE_CHECKING:
    from napari_xcebra.simulate.simulation import Simulation

FRAMES = 12_000
"""Enough to train well, and quick to simulate: napari waits for it."""


@dataclass(frozen=True)
class SampleRecording:
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
    "navigating_animal": SampleRecording(
        "Navigating animal, imaged field",
        "200 cells that carry place, speed, direction or nothing, and 20 ROIs that are not cells.",
        _navigating_animal,
    ),
    "hard_case": SampleRecording(
        "Hard case: variables that go together",
        "Speed is correlated with place and with an unobserved state; cells carry two variables.",
        _hard_case,
    ),
    "belt_task": SampleRecording(
        "Belt task, imaged field",
        "120 cells of a mouse that runs laps: place, speed, licking and an unobserved state.",
        _belt_task,
    ),
    "choice_task": SampleRecording(
        "Choice task, imaged field",
        "110 cells of a mouse that chooses left or right: stimulus, choice, outcome, running.",
        _choice_task,
    ),
    "box_model": SampleRecording(
        "Box model of the paper (no footprints)",
        "50 cells without footprints, drawn on a grid.",
        _box_model,
    ),
}


def _layers_of(name: str) -> list[LayerTuple]:
    sample = SAMPLES[name]
    recording = made_now(sample.make, f"Simulating: {sample.title}", current_viewer())
    return layers_to_adopt(recording)


# the manifest names each of them
navigating_animal = partial(_layers_of, "navigating_animal")
hard_case = partial(_layers_of, "hard_case")
belt_task = partial(_layers_of, "belt_task")
choice_task = partial(_layers_of, "choice_task")
box_model = partial(_layers_of, "box_model")
