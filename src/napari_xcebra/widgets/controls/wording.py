"""Puts the titles of settings into messages that name them."""

from __future__ import annotations

from dataclasses import fields

from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.settings import title_of, worded

TITLES = {
    knob.name: f"“{title_of(knob)}”"
    for settings in (OpenSettings, FitSettings)
    for knob in fields(settings)
}


def in_dock(sentence: str) -> str:
    """Sentence in which every setting is called by the title of its field.

    >>> in_dock("Give `rate`, such as 30.")
    'Give “Frame rate (Hz)”, such as 30.'
    """
    return worded(sentence, TITLES)
