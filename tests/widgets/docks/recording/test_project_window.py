"""A folder of animals opens in the window: found, run, drawn, and one of them opened."""

import pytest
from qtpy.QtCore import Qt

from napari_xcebra.io import save_recording
from napari_xcebra.learn import FitSettings
from napari_xcebra.simulate import field
from napari_xcebra.widgets.docks.recording import opener
from napari_xcebra.widgets.docks.recording.dock import RecordingDock

pytestmark = pytest.mark.gui


def test_animals_are_found_run_drawn_and_opened(make_napari_viewer, qtbot, tmp_path, monkeypatch):
    few = FitSettings(steps=15, batch_size=64, time_offset=5, time_latents=1)
    monkeypatch.setattr(opener, "preferred_settings", lambda: few)
    for seed, name in enumerate(("m1", "m2")):
        recording = field(cells=10, frames=900, shape=(96, 96), seed=seed).recording
        (tmp_path / name).mkdir()
        save_recording(recording, tmp_path / name / "recording.npz")
    viewer = make_napari_viewer()
    dock = RecordingDock(viewer)
    viewer.window.add_dock_widget(dock)
    window = dock.open_project()
    qtbot.addWidget(window)
    assert not window.run_button.isEnabled()
    window.where.path = tmp_path / "*" / "recording.npz"
    qtbot.waitUntil(lambda: window.found.rowCount() == 2, timeout=20_000)
    assert window.folder.path == tmp_path / "napari-xcebra-project"
    assert window.run_button.text() == "Run 2 recordings"
    qtbot.mouseClick(window.run_button, Qt.MouseButton.LeftButton)
    assert not window.run_button.isEnabled() and window.cancel_button.isEnabled()
    qtbot.waitUntil(lambda: not window.sweeper.busy, timeout=200_000)
    assert (window.folder.path / "report.html").exists()

    def drawn():
        return window.grid.count() == 2 and not window.grid.item(1).icon().isNull()

    qtbot.waitUntil(drawn, timeout=30_000)
    assert window.grid.item(1).text().startswith("m2\n")
    window.open(1)
    state = dock.state
    qtbot.waitUntil(lambda: bool(state.current and state.runs), timeout=60_000)
    assert state.current.opening.path == tmp_path / "m2/recording.npz"
