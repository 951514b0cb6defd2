"""Verdicts as rows: a word each, and the sentences on a click."""

import pytest
from qtpy.QtCore import Qt

from napari_xcebra.learn.quality.verdict import Goodness
from napari_xcebra.widgets.controls.notice import VerdictRows

pytestmark = pytest.mark.gui

CHANCE = 6.24


def goodness(factor, nats, r2, *, above_chance=True, **known):
    infonce = CHANCE - nats
    return Goodness(factor, infonce, CHANCE, nats, 0.02, nats, r2, above_chance, **known)


CLEAR = goodness("place", 1.2, 0.81, p=0.001, allowed=3.0, ridge_r2=0.84)
WEAK = goodness("speed", 0.1, 0.12, p=0.002, allowed=3.0, ridge_r2=0.15)
ABSENT = goodness("<b>noise</b>", 0.0, -0.01, above_chance=False, p=0.6, allowed=3.0)
UNTESTED = goodness("drift", 0.1, 0.2, above_chance=False, untested="Too few.")


@pytest.fixture
def rows(qtbot):
    rows = VerdictRows()
    qtbot.addWidget(rows)
    return rows


def test_each_factor_is_a_row_with_a_word_and_its_decoding(rows):
    assert rows.isHidden()
    rows.show_verdicts([CLEAR, WEAK, ABSENT, UNTESTED])
    assert not rows.isHidden()
    told = [(row.head.word.text(), row.head.measure.text()) for row in rows.rows.values()]
    assert told == [
        ("clearly", "R² 0.81 · ridge 0.84"),
        ("weakly", "R² 0.12 · ridge 0.15"),
        ("at chance", "R² -0.01"),
        ("not tested", "R² 0.20"),
    ]
    marks = [row.head.mark.text() for row in rows.rows.values()]
    assert len(set(marks)) == 4  # also told apart without seeing colours


def test_sentences_unfold_on_a_click_or_the_space_bar_and_are_never_markup(rows, qtbot):
    rows.show_verdicts([CLEAR, ABSENT])
    rows.show()
    place, noise = rows.rows.values()
    qtbot.mouseClick(place.head, Qt.MouseButton.LeftButton)
    assert place.sentences.isVisible() and "These cells encode place" in place.sentences.text()
    assert not noise.sentences.isVisible()
    qtbot.keyClick(noise.head, Qt.Key.Key_Space)
    assert noise.sentences.isVisible()
    assert noise.sentences.textFormat() == Qt.TextFormat.PlainText
    assert noise.head.factor.textFormat() == Qt.TextFormat.PlainText
    assert "&lt;b&gt;" in noise.head.toolTip()
    assert "at chance" in noise.head.accessibleName()


def test_a_row_stays_unfolded_while_the_run_is_judged_again(rows, qtbot):
    rows.show_verdicts([CLEAR, WEAK])
    qtbot.mouseClick(rows.rows["speed"].head, Qt.MouseButton.LeftButton)
    rows.show_verdicts([CLEAR, goodness("speed", 0.0, 0.0, above_chance=False, p=0.4)])
    assert rows.rows["speed"].head.isChecked() and not rows.rows["place"].head.isChecked()
    assert "speed is at chance" in rows.text
    rows.clear()
    assert rows.isHidden() and rows.text == ""
