"""What the docks call the settings that sentences of the library name."""

from __future__ import annotations

from dataclasses import fields

from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.knobs import title_of, worded
from napari_xcebra.learn.settings import FitSettings

TITLES = {
    knob.name: f"“{title_of(knob)}”"
    for settings in (OpenSettings, FitSettings)
    for knob in fields(settings)
}


def in_dock(sentence: str) -> str:
    """Sentence with every setting called by the title of its field.

    >>> in_dock("Give `rate`, such as 30.")
    'Give “Frame rate (Hz)”, such as 30.'
    """
    return worded(sentence, TITLES)
