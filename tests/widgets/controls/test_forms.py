"""A form has a fitting control for every knob."""

from dataclasses import replace

import pytest
from qtpy.QtCore import Qt

from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.widgets.controls.forms import SettingsForm


@pytest.fixture
def form(qtbot):
    made = SettingsForm(FitSettings(lambda_="auto"))
    qtbot.addWidget(made)
    return made


def test_a_number_that_may_be_found_has_a_box_to_tick_and_a_number_beside_it(form, qtbot):
    row = form.widget("lambda_")
    assert row.tick.isChecked()
    assert row.number.native.isHidden()
    with qtbot.waitSignal(form.changed):
        row.tick.click()
    assert not row.number.native.isHidden()
    assert form.value.lambda_ == 1.0
    row.number.value = 0.25
    assert form.value.lambda_ == 0.25
    row.tick.click()
    assert form.value.lambda_ == "auto"


@pytest.mark.parametrize("lambda_", ["auto", 0.0, 0.003, 100.0])
def test_the_form_shows_the_settings_it_is_given(form, lambda_):
    settings = replace(form.value, lambda_=lambda_)
    form.value = settings
    assert form.value == settings


@pytest.mark.parametrize(
    ("typed", "rate"),
    [("7,5", 7.5), ("7.5", 7.5), ("1,234", 30.0), ("7,5x", 30.0), ("1.234,5", 1234.5)],
)
def test_a_decimal_comma_is_taken_or_the_number_before_stays(qtbot, typed, rate):
    form = SettingsForm(OpenSettings(rate=30))
    qtbot.addWidget(form)
    form.show()
    box = form.widget("rate")
    box.setFocus()
    box.selectAll()
    qtbot.keyClicks(box, typed)
    qtbot.keyClick(box, Qt.Key.Key_Return)
    assert form.value.rate == rate
