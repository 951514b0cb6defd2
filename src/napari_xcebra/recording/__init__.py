"""Recordings: traces, footprints, behaviour, and summaries of them."""

from napari_xcebra.recording.footprints import Footprints
from napari_xcebra.recording.movies import Movie
from napari_xcebra.recording.recording import Recording
from napari_xcebra.recording.traces import Origin
from napari_xcebra.recording.variables import KINDS, Kind, Trials, Variable, looks_like_an_event

__all__ = [
    "KINDS",
    "Footprints",
    "Kind",
    "Movie",
    "Origin",
    "Recording",
    "Trials",
    "Variable",
    "looks_like_an_event",
]
