"""Reads the log of an imaginary ball (.ball): seconds and speed in each line."""

from pathlib import Path

import numpy as np

from napari_xcebra.io.extraction import Behavior, Series
from napari_xcebra.io.settings import OpenSettings

NAME = "a log of the ball (.ball)"
SUBJECT = "behaviour file"


def sniff(path: Path) -> bool:
    """Whether it is called so."""
    return path.suffix == ".ball"


def load(path: Path, settings: OpenSettings) -> Behavior:
    """The speed on its clock."""
    seconds, speed = np.loadtxt(path).T
    return Behavior((Series("speed", speed, seconds, unit="cm/s"),), name=path.name)
