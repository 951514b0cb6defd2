"""Recordings whose truth is known.

`box` is the paper's synthetic data, `arena` a navigating animal, `belt` a mouse that runs laps,
`task` one that makes choices, `field` an imaged field of view, `drifted` another day of it.
"""

from napari_xcebra.simulate.arena_model import arena
from napari_xcebra.simulate.belt_model import belt
from napari_xcebra.simulate.box_model import box
from napari_xcebra.simulate.field_model import field
from napari_xcebra.simulate.simulation import Simulation, drifted
from napari_xcebra.simulate.task_model import task

__all__ = ["Simulation", "arena", "belt", "box", "drifted", "field", "task"]
