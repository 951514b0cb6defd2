"""Recordings whose truth is known.

`box` is the paper's synthetic data, `arena` a navigating animal, `field` an imaged field of view,
`drifted` another day of it.
"""

from napari_xcebra.simulate.arena_model import arena
from napari_xcebra.simulate.box_model import box
from napari_xcebra.simulate.days import drifted
from napari_xcebra.simulate.field_model import field
from napari_xcebra.simulate.simulation import Simulation

__all__ = ["Simulation", "arena", "box", "drifted", "field"]
