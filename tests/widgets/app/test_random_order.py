"""Two recordings of different size, opened, switched, trained, curated and closed in any order.

After each action every dock must show what a new dock would show: nothing of another recording is
left in it.
"""

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pyqtgraph
import pytest
from qtpy.QtCore import QEvent
from qtpy.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QTableView,
    QWidget,
)

from napari_xcebra.learn import FitSettings, fit
from napari_xcebra.runs import Run, now
from napari_xcebra.simulate import field
from napari_xcebra.widgets.controls.layouts import Fold
from napari_xcebra.widgets.controls.notice import Notice
from napari_xcebra.widgets.docks.attribution.dock import AttributionDock
from napari_xcebra.widgets.docks.cells.dock import CellsDock
from napari_xcebra.widgets.docks.curate.dock import CurateDock
from napari_xcebra.widgets.docks.recording.dock import RecordingDock
from napari_xcebra.widgets.docks.train.dock import TrainDock
from napari_xcebra.widgets.state.state import KEY, role_of
from napari_xcebra.widgets.window import services_of

pytestmark = [pytest.mark.gui, pytest.mark.usefixtures("warm_child")]
DOCKS = (AttributionDock, CellsDock, CurateDock, RecordingDock, TrainDock)
STEPS = 15


@pytest.fixture(scope="module")
def recordings():
    """One of 20 cells and one of 40, each in its field, with a short run."""
    made = []
    for name, cells, frames, side in (("small", 18, 300, 64), ("large", 36, 400, 96)):
        recording = field(cells=cells, frames=frames, shape=(side, side), junk=2, seed=cells)
        recording = replace(recording.recording, source=name)
        quick = FitSettings(steps=3, batch_size=32, time_latents=1, seed=0)
        trained = fit(recording, {"place": ["position"], "speed": ["speed"]}, quick)
        made.append((recording, trained))
    return made


class Actions:
    """What a user does, at random."""

    def __init__(self, viewer, recordings, scores, seed):
        self.services = services_of(viewer)
        self.state, self.recordings, self.scores = self.services.state, recordings, scores
        self.choose = random.Random(seed)
        self.done = []

    def next(self):
        name = self.choose.choice([n for n in dir(self) if n.startswith("do_")])
        self.done.append(name.removeprefix("do_"))
        getattr(self, name)()

    def do_open(self):
        self.state.show(self.choose.choice(self.recordings)[0])

    do_open_again = do_open

    def do_switch(self):
        if self.state.opened:
            self.state.current = self.choose.choice(self.state.opened)

    do_switch_back = do_switch

    def do_close(self):
        if self.state.opened:
            self.state.forget(self.choose.choice(self.state.opened))

    def do_train(self):
        """A job that ends for any of the recordings, in front or not."""
        if self.state.opened:
            opened = self.choose.choice(self.state.opened)
            trained = next(fit for made, fit in self.recordings if made is opened.recording)
            scores = self.scores(opened.recording)
            maps = {m: replace(scores, method=m) for m in ("conditional-encoding",)}
            self.state.add_run(Run("run 1", now(), {}, trained, maps), opened)

    def do_rename(self):
        if self.state.runs:
            run = self.choose.choice(self.state.runs)
            self.state.replace_run(run.name, replace(run, name=f"{run.name}!"))

    def do_delete_run(self):
        if self.state.runs:
            self.state.remove_run(self.choose.choice(self.state.runs).name)

    def do_select(self):
        if self.state.recording is not None:
            self.state.select([self.choose.randrange(self.state.recording.n_cells)])

    do_select_last = do_select

    def do_decide(self):
        if self.state.recording is not None:
            cell = self.choose.randrange(self.state.recording.n_cells)
            self.services.curations.act(lambda c: c.decide([cell], "accepted"))

    def do_undo(self):
        self.services.deciding.step_in_time("undo")

    def do_step(self):
        self.services.queue.step(1)

    def do_say(self):
        """Something about the recording in front is said in a dock."""
        if self.state.current is not None:
            told = f"Something about {self.state.current.name}."
            self.services.jobs.said.emit(told, "good", "")
            self.services.curations.said.emit(told, "good", "")

    def do_compare(self):
        if len(self.state.runs) > 1:
            self.services.painter.beside = (self.state.runs[0].name, "speed")


def contents(dock):
    """Everything that can be read in a dock, apart from notices, which a new one has not heard."""
    QApplication.processEvents()
    seen = []
    for part in dock.findChildren(QWidget):
        if not part.isVisibleTo(dock) or is_inside(part, Notice, QTableView):
            continue
        if isinstance(part.parentWidget(), Fold) and isinstance(part, QAbstractButton):
            continue  # its title sums up what is folded away
        if isinstance(part, QLabel | QLineEdit):
            seen.append(part.text())
        elif isinstance(part, QAbstractButton):
            seen.append((part.text(), part.isEnabled()))
        elif isinstance(part, QComboBox):
            seen.append([part.itemText(i) for i in range(part.count())] + [part.currentText()])
        elif isinstance(part, QTableView):
            model = part.model()
            rows, columns = range(model.rowCount()), range(model.columnCount())
            seen.append([[model.index(r, c).data() for c in columns] for r in rows])
        elif isinstance(part, pyqtgraph.PlotWidget):
            seen.append(drawn_in(part))
    # a table that was filled again has its parts in another order
    return Counter(map(repr, seen))


def is_inside(part, *kinds):
    """Whether a widget of these kinds is around it."""
    above = part.parentWidget()
    return above is not None and (isinstance(above, kinds) or is_inside(above, *kinds))


def drawn_in(plot):
    numbers = []
    for item in plot.getPlotItem().items:
        if hasattr(item, "getData") and item.isVisible():
            numbers += [np.round(np.nan_to_num(np.asarray(a, float)), 4).tolist()
                        for a in item.getData() if a is not None and len(a)]  # fmt: skip
        elif isinstance(item, pyqtgraph.BarGraphItem):
            numbers.append(np.round(np.asarray(item.opts["height"], float), 4).tolist())
    return numbers


@pytest.mark.parametrize("seed", range(3))
def test_every_dock_shows_what_a_new_one_would_show(
    make_napari_viewer, qtbot, recordings, made_up_scores, seed
):
    viewer = make_napari_viewer()
    actions = Actions(viewer, recordings, made_up_scores, seed)
    state = actions.state
    docks = {kind: kind(viewer) for kind in DOCKS}
    for kind, dock in docks.items():
        viewer.window.add_dock_widget(dock, name=kind.__name__)
    actions.do_open()
    for step in range(STEPS):
        actions.next()
        settle(docks.values())
        assert layers_are_of_the_recording_in_front(viewer, state), actions.done
        names = [opened.name for opened in state.opened if opened is not state.current]
        for notice in viewer.window._qt_window.findChildren(Notice):
            assert not any(f"about {name}." in notice.text for name in names), actions.done
        # one dock in turn, as making a new one takes long; all of them in the end
        for kind in DOCKS if step == STEPS - 1 else [DOCKS[step % len(DOCKS)]]:
            expected, there = contents_of_a_new(kind, viewer), contents(docks[kind])
            differ = dict(there - expected), dict(expected - there)
            assert there == expected, (kind.__name__, actions.done, differ)
    services_of(viewer).close()


def contents_of_a_new(kind, viewer):
    fresh = kind(viewer)
    viewer.window.add_dock_widget(fresh, name="fresh")
    settle([fresh])
    found = contents(fresh)
    viewer.window.remove_dock_widget(fresh)
    return found


def settle(docks):
    """Let everything be drawn and deleted that was put off, and unfold what can be folded."""
    for dock in docks:
        for fold in dock.findChildren(Fold):
            fold.unfolded = True
    for _ in range(5):
        QApplication.processEvents()
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def layers_are_of_the_recording_in_front(viewer, state):
    tokens = {x.metadata[KEY]["token"] for x in viewer.layers if role_of(x)}
    return tokens <= ({state.current.token} if state.current else set())
