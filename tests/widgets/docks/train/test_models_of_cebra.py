"""A model that was trained with `cebra` is opened in the window, beside its recording."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from qtpy.QtCore import QMimeData, QPointF, Qt, QUrl
from qtpy.QtGui import QDropEvent

from napari_xcebra.attribution.methods import FIRST
from napari_xcebra.recording import Recording
from napari_xcebra.widgets.docks.recording.dock import RecordingDock
from napari_xcebra.widgets.docks.recording.opener import belong
from napari_xcebra.widgets.docks.train.dock import TrainDock
from napari_xcebra.widgets.window import services_of

pytestmark = [pytest.mark.gui, pytest.mark.usefixtures("warm_child")]

MODEL = Path(__file__).parents[3] / "interop" / "saved" / "window.pt"


@pytest.fixture
def dock(make_napari_viewer, monkeypatch):
    monkeypatch.syspath_prepend(str(MODEL.parents[1]))
    from cebra_recordings import session

    traces, label = session(8, 0)
    viewer = make_napari_viewer()
    services_of(viewer).state.show(Recording.from_arrays(traces, 10.0, {"speed": label}))
    dock = TrainDock(viewer)
    viewer.window.add_dock_widget(dock, name="Train")
    yield dock
    services_of(viewer).close()


def dropped(path: Path) -> QDropEvent:
    files = QMimeData()
    files.setUrls([QUrl.fromLocalFile(str(path))])
    button, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    event = QDropEvent(QPointF(5, 5), Qt.DropAction.CopyAction, files, button, keys)
    event.kept = files  # Qt does not
    return event


def wait_idle(dock, qtbot):
    qtbot.waitUntil(lambda: not dock.busy and not dock.training._unscored, timeout=120_000)


def test_a_dropped_model_becomes_a_run_with_its_maps(dock, qtbot):
    dock.dropEvent(dropped(MODEL))
    assert dock.busy
    wait_idle(dock, qtbot)
    (run,) = dock.state.runs
    assert run.name == "window"
    assert run.fit.architecture == "offset5-model"
    assert set(run.attributions) == set(FIRST)
    assert dock.state.shown.run == run.name
    assert "nothing was trained here" in dock.notice.text
    carried = np.arange(8) % 2 == 0
    scores = np.asarray(run.attributions["generative-gradient"].score("speed"))
    assert scores[carried].min() > scores[~carried].max()


def test_a_file_that_is_no_model_is_a_sentence(dock, qtbot, tmp_path):
    path = tmp_path / "odd.pt"
    path.write_bytes(b"nothing")
    dock.open_model(path)
    wait_idle(dock, qtbot)
    assert "odd.pt is not a model that cebra saved" in dock.notice.text
    assert not dock.state.runs


def test_a_model_dropped_on_the_image_goes_to_the_train_dock(dock, monkeypatch):
    taken = []
    train = SimpleNamespace(widget=lambda: SimpleNamespace(open_model=taken.append))
    viewer = dock.state.viewer
    recording = RecordingDock(viewer)
    viewer.window.add_dock_widget(recording, name="Recording")
    monkeypatch.setattr(recording.services, "open_dock", lambda name: train)
    assert belong([MODEL], dock.state.recording, viewer)
    recording.take_and_open([str(MODEL)])
    assert taken == [str(MODEL)]
