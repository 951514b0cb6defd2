"""Numbers of latents are tried from the Train dock, and the suggested one is taken over."""

from dataclasses import replace

import numpy as np
import pytest

from napari_xcebra.learn.quality.consistency import Dimensions, _Dimension
from napari_xcebra.recording import Recording, Variable
from napari_xcebra.widgets.docks.train.dock import TrainDock
from napari_xcebra.widgets.services.run_jobs import Trial

pytestmark = [pytest.mark.gui, pytest.mark.usefixtures("warm_child")]

SLOW = 20_000


@pytest.fixture(scope="module")
def recording():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 600))
    traces = rng.normal(size=(600, 8)) + np.arange(8) / 4 * x[:, None] + y[:, None]
    return Recording(
        traces, 10.0, behavior={"speed": Variable("speed", x), "lick": Variable("lick", y)}
    )


@pytest.fixture
def dock(viewer, state, recording, qtbot):
    dock = TrainDock(viewer)
    viewer.window.add_dock_widget(dock, name="Train")
    state.show(recording)
    dock.form.value = replace(dock.form.value, steps=10, batch_size=32, hidden_units=16)
    return dock


@pytest.fixture
def window(dock, qtbot):
    dock.factors.tick("speed")
    dock.choice.dimension.click()
    yield dock.choice.dimension.opened
    dock.choice.dimension.opened.close()


def test_what_is_tried_is_said_with_its_time(window):
    window.of_time.last.setValue(2)
    window.seeds.setValue(2)
    assert window.sentence.text() == "2 numbers of latents × 2 seeds: 4 training runs of 10 steps."
    assert window.start.text() == "Try (about 5 s)"
    assert window.reason.isHidden() and window.use.isHidden()
    window.of_factor.last.setValue(3)
    assert window.trial().factor_latents == (1, 2, 3)
    assert "12 training runs" in window.sentence.text()


def test_only_what_there_is_can_be_tried(window, dock):
    dock.factors.tick("speed", "lick")
    window._show()
    assert window.of_factor.isHidden() and window.trial().factor_latents == ()
    assert window.trial().sizes == [(2, 1), (2, 2), (2, 3), (2, 4)]
    dock.factors.tick("speed")
    dock.form.value = replace(dock.form.value, mode="behavior")
    window._show()
    assert window.of_time.isHidden() and not window.of_factor.isHidden()
    dock.factors.tick()
    window._show()
    assert "Tick at least one factor" in window.sentence.text()
    assert not window.start.isEnabled()


def test_numbers_are_tried_and_the_suggested_one_is_taken_over(window, dock, qtbot):
    window.of_time.last.setValue(2)
    window.of_factor.last.setValue(2)
    window.seeds.setValue(2)
    window.start.click()
    assert window.start.isHidden() and not window.progress.isHidden()
    qtbot.waitUntil(lambda: window.search.found is not None, timeout=SLOW)
    _, found = window.search.found
    assert [(d.factor_latents, d.time_latents) for d in found.tried] == [
        (1, 1),
        (1, 2),
        (2, 1),
        (2, 2),
    ]
    assert window.reason.text == found.reason
    assert window.use.text() == f"Use {found.suggested.words}"
    window.use.click()
    assert dock.form.value.time_latents == found.suggested.time_latents
    assert dock.factors.factors["speed"].latents == found.suggested.factor_latents


def test_what_is_stopped_can_be_tried_again(window, dock, state, qtbot):
    dock.form.value = replace(dock.form.value, steps=1_000_000)
    window.start.click()
    qtbot.waitUntil(lambda: window.jobs.progress is not None, timeout=SLOW)
    window.stop.click()
    qtbot.waitUntil(lambda: not window.jobs.busy, timeout=SLOW)
    assert not window.start.isHidden()
    assert "nothing was kept" in window.notice.text


def test_factors_keep_their_latents_unless_they_were_tried(recording):
    trial = Trial(recording, {}, None, (1, 2), (), 2)
    found = Dimensions((_Dimension(2, 1, (0.5,)), _Dimension(2, 2, (0.9,))))
    latents = trial.latents(found)
    assert latents.of_time == 2 and not latents.of_factors


def test_factors_alone_are_plotted_over_their_own_latents():
    found = Dimensions((_Dimension(1, 0, (0.9,)), _Dimension(2, 0, (0.8,))))
    assert found.axis == "latents of the factors"
    assert [found.place(d) for d in found.tried] == [1, 2]
    assert list(found.lines) == ["no others"]
