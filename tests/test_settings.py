"""Knobs: what each place calls them."""

from dataclasses import fields

import pytest

from napari_xcebra.cli.flags import FLAGS
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.settings import worded
from napari_xcebra.widgets.controls.forms import TITLES, in_dock

KNOBS = [knob.name for settings in (OpenSettings, FitSettings) for knob in fields(settings)]


@pytest.mark.parametrize("knob", KNOBS)
def test_every_knob_has_a_name_on_the_command_line_and_one_in_the_dock(knob):
    assert worded(f"Set `{knob}` lower.", FLAGS) == f"Set {FLAGS[knob]} lower."
    assert in_dock(f"Set `{knob}` lower.") == f"Set {TITLES[knob]} lower."
    assert "`" not in FLAGS[knob] + TITLES[knob] and "_" not in FLAGS[knob] + TITLES[knob]


def test_only_what_stands_in_backticks_is_taken_for_a_knob():
    sentence = "The rate of `about` is `3`."
    assert worded(sentence, FLAGS) == sentence == in_dock(sentence)


def test_no_two_fields_of_a_form_share_a_title():
    for settings in (OpenSettings, FitSettings):
        titles = [TITLES[knob.name] for knob in fields(settings)]
        assert len(set(titles)) == len(titles)
