"""A window for each test, and a small recording to show in it."""

import gc
from functools import partial

import numpy as np
import pytest
from mouse import PATIENCE
from qtpy.QtWidgets import QApplication

from napari_xcebra import jobs
from napari_xcebra.attribution import Attribution
from napari_xcebra.attribution.methods import DEFAULT
from napari_xcebra.jobs import Call, Job, Worker
from napari_xcebra.learn.data.factors import Part
from napari_xcebra.recording import Recording
from napari_xcebra.simulate import field
from napari_xcebra.widgets.state import preferences
from napari_xcebra.widgets.state.state import State
from napari_xcebra.widgets.window import services_of


@pytest.fixture
def qtbot(qtbot):
    """As pytest-qt's, which gives up after 5 seconds, or when it is told to."""
    for name in ("waitUntil", "waitSignal", "waitActive", "waitExposed"):
        setattr(qtbot, name, _with_patience(getattr(qtbot, name)))
    return qtbot


def _with_patience(wait):
    return lambda effect, timeout=0: wait(effect, timeout=max(timeout, PATIENCE))


@pytest.fixture(scope="session", autouse=True)
def modules_are_not_searched_for_garbage():
    """Closing a window looks for garbage several times, most of it in modules that stay."""
    import napari.viewer  # noqa: F401
    import torch  # noqa: F401

    gc.collect()
    gc.freeze()


class Lent:
    """A worker for one window, on a child process that all tests share.

    Starting a child takes seconds, in which it imports torch.
    """

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._jobs: list[Job] = []

    def start(self) -> None:
        pass

    def submit(self, call: Call) -> Job:
        self._jobs.append(self._worker.submit(call))
        return self._jobs[-1]

    @property
    def ready(self) -> bool:
        return True

    @property
    def pid(self) -> int | None:
        return self._worker.pid

    def close(self) -> None:
        for job in self._jobs:
            job.cancel()


@pytest.fixture(scope="session")
def shared_worker():
    with Worker() as worker:
        yield worker


@pytest.fixture(scope="session")
def shared_reader():
    with Worker(warm_up="reading") as worker:
        yield worker


@pytest.fixture
def warm_child(shared_worker, shared_reader, monkeypatch):
    """Windows of this test share child processes with those of other tests."""
    shared = {"computing": shared_worker, "reading": shared_reader}
    monkeypatch.setattr(jobs, "Worker", lambda warm_up="computing": Lent(shared[warm_up]))


@pytest.fixture(autouse=True)
def kept_in_this_test(tmp_path, monkeypatch):
    """Paths, keys and decisions are kept in files of the test, not of whoever runs it."""
    monkeypatch.setattr(preferences, "store", lambda: tmp_path / "kept.json")
    monkeypatch.setattr(preferences, "_shown_by_napari", lambda: None)
    monkeypatch.setenv("NAPARI_XCEBRA_DATA", str(tmp_path / "data"))


@pytest.fixture
def no_widget_of_ours_is_left():
    """Docks end with their window; what another test left is that one's failure alone."""
    before = _own_widgets()
    yield
    QApplication.processEvents()
    gc.collect()
    assert [widget for widget in _own_widgets() if widget not in before] == []


def _own_widgets():
    found = QApplication.topLevelWidgets()
    return [widget for widget in found if type(widget).__module__.startswith("napari_x")]


@pytest.fixture
def make_napari_viewer(no_widget_of_ours_is_left, make_napari_viewer):
    """As napari's, which also fails where a viewer outlives its test.

    It would look for widgets that are left, but find those that pyqtgraph leaves.
    """
    return partial(make_napari_viewer, strict_qt=False)


@pytest.fixture
def viewer(make_napari_viewer):
    viewer = make_napari_viewer()
    yield viewer
    services_of(viewer).close()


@pytest.fixture
def state(viewer) -> State:
    return services_of(viewer).state


@pytest.fixture(scope="session")
def small_field() -> Recording:
    """30 cells and 3 ROIs that are none, 96 × 96 pixels, 600 frames at 10 per second."""
    return field(cells=30, frames=600, shape=(96, 96), junk=3, seed=0).recording


@pytest.fixture
def made_up_scores():
    """Attribution of a recording without training: place rises from cell to cell, speed is at
    chance, and cells that are not accepted have no score."""

    def make(recording: Recording) -> Attribution:
        rising = np.linspace(0, 1, recording.n_cells, dtype=np.float32)
        scores = np.stack([rising, rising[::-1]])
        scores[:, ~np.asarray(recording.accepted)] = np.nan
        return Attribution(
            method=DEFAULT,
            aggregate="mean",
            parts=(
                Part("place", ("position",), 0, 1, "euclidean", 1.0),
                Part("speed", ("speed",), 1, 2, "euclidean", 1.0),
            ),
            cell_ids=np.asarray(recording.cell_ids),
            latent_scores=None,
            factor_scores=scores,
            n_frames=recording.n_frames,
            strengths={"place": "weak", "speed": "at chance"},
            verdicts={"place": "Place is in these cells.", "speed": "Speed is not."},
            source=recording.source,
        )

    return make
