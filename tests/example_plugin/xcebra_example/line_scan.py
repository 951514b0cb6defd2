"""Reads traces of an imaginary line scanner (.scan): a text file with a line for each cell."""

from pathlib import Path

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.extraction import Extraction
from napari_xcebra.io.settings import OpenSettings

NAME = "a line scan (.scan)"
SUBJECT = "recording"
FIRST = "line scan at "


def sniff(path: Path) -> bool:
    """Whether the file begins as the scanner writes it."""
    return path.suffix == ".scan" and path.read_text().startswith(FIRST)


def load(path: Path, settings: OpenSettings) -> Extraction:
    """Traces, a line for each cell, and the rate in the first line."""
    first, *lines = path.read_text().splitlines()
    if not lines:
        raise InputError(f"{path} has no line of traces.")
    traces = np.array([line.split() for line in lines], np.float32).T
    return Extraction({"dff": traces}, rate=float(first.removeprefix(FIRST).removesuffix(" Hz")))
