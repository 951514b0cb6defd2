"""Many runs from the dock: asked for, run elsewhere, shown in a table, opened like any other."""

from dataclasses import replace

import pytest
from qtpy.QtCore import Qt

from napari_xcebra.batch.cluster import ClusterFound
from napari_xcebra.errors import InputError
from napari_xcebra.simulate import field
from napari_xcebra.widgets.docks.train.dock import TrainDock
from napari_xcebra.widgets.docks.train.sweep_window import _values_of
from napari_xcebra.widgets.docks.train.windows import CohortWindow
from napari_xcebra.widgets.window import services_of

pytestmark = [pytest.mark.gui, pytest.mark.usefixtures("warm_child")]

TIMEOUT = 120_000


@pytest.fixture(scope="module")
def recording():
    return field(cells=16, frames=1500, shape=(96, 96), junk=0, seed=0).recording


@pytest.fixture
def window(make_napari_viewer, recording, qtbot, tmp_path):
    viewer = make_napari_viewer()
    state = services_of(viewer).state
    state.show(recording)
    dock = TrainDock(viewer)
    viewer.window.add_dock_widget(dock, name="Train")
    dock.form.value = replace(dock.form.value, steps=10, batch_size=64, lambda_=0.05)
    window = dock.choice.sweep.open()
    window.place.folder.path = tmp_path / "sweep"
    window.place.processes.setValue(1)
    yield window
    services_of(state.viewer).close()


def test_a_sweep_runs_and_its_members_open_as_runs_and_are_compared(window, qtbot, monkeypatch):
    window.form.seed.setText("3-4")
    assert window.start_button.text() == "Start 2 runs"
    qtbot.mouseClick(window.start_button, Qt.MouseButton.LeftButton)
    assert window.sweeper.busy
    assert not window.start_button.isEnabled()
    qtbot.waitUntil(lambda: not window.sweeper.busy, timeout=TIMEOUT)
    qtbot.waitUntil(lambda: window.table._finished == [True, True], timeout=TIMEOUT)
    assert window.notice.text.startswith("2 of 2 runs are finished. Next: select a run")
    titles = [window.table.horizontalHeaderItem(i).text() for i in range(3)]
    assert titles == ["seed", "status", "position"]
    assert [window.table.item(row, 0).text() for row in range(2)] == ["3", "4"]
    assert not window.open_button.isEnabled()
    window.table.selectRow(1)
    qtbot.mouseClick(window.open_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(window.state.runs) == 1, timeout=TIMEOUT)
    (run,) = window.state.runs
    assert run.name == "seed 4"
    assert run.fit.settings.seed == 4
    assert window.state.shown.run == "seed 4"
    assert window.state.scores.shape == (16,)
    pages = []
    monkeypatch.setattr("napari_xcebra.widgets.services.run_jobs._show_page", pages.append)
    qtbot.mouseClick(window.report_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: bool(pages), timeout=TIMEOUT)
    assert pages == [window.place.folder.path / "report.html"]
    assert "seed" in pages[0].read_text("utf-8")

    qtbot.mouseClick(window.cohort_button, Qt.MouseButton.LeftButton)
    cohort = window.findChild(CohortWindow)
    cohort.pattern.setText("{mouse}")
    qtbot.mouseClick(cohort.compare_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: "use {animal}, {day}" in cohort.notice.text, timeout=TIMEOUT)
    cohort.pattern.clear()
    qtbot.mouseClick(cohort.compare_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: "1 animal, 1 session, 2 runs." in cohort.notice.text, timeout=TIMEOUT)
    assert "Up to 2 runs of one session that differ in seed were averaged." in cohort.notice.text
    assert not cohort.figure.pixmap().isNull()
    assert (window.place.folder.path / "cohort-cells.csv").exists()


def test_a_sweep_can_be_stopped(window, qtbot):
    window.form.seed.setText("0-99")
    window.start()
    qtbot.mouseClick(window.cancel_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not window.sweeper.busy, timeout=TIMEOUT)
    assert window.notice.text.startswith("Stopped.")
    assert window.start_button.isEnabled()


def test_what_cannot_be_run_says_why(window):
    window.form.shifts.setText("0, soon")
    assert not window.start_button.isEnabled()
    assert window.start_button.toolTip() == (
        "Label shifts: 'soon' is not a number; type values as 1, 2, 4 or 1-4."
    )
    window.form.shifts.setText("0, 60")
    assert window.start_button.text() == "Start 10 runs"
    window.form.seed.clear()
    assert window.start_button.text() == "Start 2 runs"
    window.form.time_latents.setText("0")
    window.start()  # what only the settings themselves know
    assert "“Time latents” is 0" in window.notice.text
    window.form.time_latents.clear()
    window.place.folder.path = None
    assert window.start_button.toolTip() == "Choose a folder to write to."


def test_every_ticked_factor_can_have_several_numbers_of_latents(window):
    assert list(window.form._latents) == ["position", "direction", "speed"]
    window.form.seed.clear()
    window.form._latents["speed"].setText("1-3")
    assert window.start_button.text() == "Start 3 runs"
    assert window._sweep().members[2].factors["speed"].latents == 3


def test_the_test_button_says_what_it_found(window, qtbot):
    place = window.place
    place.where.setCurrentIndex(1)
    assert not window.start_button.isEnabled()
    place.address.setText("carrier-pigeon://coop:1")
    qtbot.mouseClick(place.test, Qt.MouseButton.LeftButton)
    assert not place.test.isEnabled()
    qtbot.waitUntil(lambda: "No Dask scheduler answers" in place.found.text, timeout=TIMEOUT)
    qtbot.waitUntil(place.test.isEnabled, timeout=TIMEOUT)
    place._looked(ClusterFound("tcp://here:1", 4, 8, 2**34))
    assert place.found.text == (
        "4 workers, 8 threads, 16 GB of memory. Versions are the same as here."
    )
    assert place.place.address == "carrier-pigeon://coop:1"
    assert window.start_button.isEnabled()


def test_values_are_typed_as_lists_ranges_and_words():
    assert _values_of("0-2, 7", "Seeds") == [0, 1, 2, 7]
    assert _values_of("auto, 0.1", "λ") == ["auto", 0.1]
    assert _values_of("-60, 0", "Shifts") == [-60, 0]
    with pytest.raises(InputError, match="no values"):
        _values_of(" , ", "Seeds")
