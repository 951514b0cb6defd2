"""Names that look like markup are shown as they are: nothing from a file is obeyed or opened."""

from dataclasses import replace

import numpy as np
import pytest
from qtpy.QtCore import QAbstractListModel, Qt
from qtpy.QtGui import QTextDocument
from qtpy.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QComboBox,
    QGraphicsTextItem,
    QGraphicsView,
    QLabel,
    QWidget,
)
from scored import METHOD, scored_recording, scored_run

from napari_xcebra.learn.data.factors import Factor
from napari_xcebra.recording import Variable
from napari_xcebra.widgets.app.workspace import open_workspace
from napari_xcebra.widgets.controls.napari_window import DOCKS, open_dock
from napari_xcebra.widgets.window import services_of

pytestmark = [pytest.mark.gui, pytest.mark.usefixtures("warm_child")]

PICTURE = "\ufffc"
"""Stands for a picture in a text that was taken for markup."""


@pytest.fixture
def opened_by_qt(monkeypatch):
    """What text asks Qt to load."""
    asked, load = [], QTextDocument.loadResource

    def loads(self, kind, url):
        asked.append(url.toString())
        return load(self, kind, url)

    monkeypatch.setattr(QTextDocument, "loadResource", loads)
    return asked


@pytest.fixture
def evil(tmp_path):
    """A name that has a picture shown wherever it is taken for markup."""
    probe = tmp_path / "probe.png"
    probe.write_bytes(b"")
    return lambda word: f'{word}<img src="file://{probe}"><b>'


@pytest.fixture
def window(make_napari_viewer, evil, tmp_path, opened_by_qt):
    """All docks, with a recording and runs whose every name is markup."""
    viewer = make_napari_viewer(show=True)
    services = services_of(viewer)
    state = services.state
    rng = np.random.default_rng(0)
    names = [evil(name) for name in "xyv"]
    behavior = {name: Variable(name, rng.random((200, 1))) for name in names}
    behavior[evil("kind")] = Variable(evil("kind"), rng.integers(0, 3, (200, 1)), "discrete")
    recording = scored_recording(
        behavior=behavior, source=evil("mouse"), notes=(evil("a note"),),
        cells={evil("quality"): rng.random(12)},
    )  # fmt: skip
    state.show(recording)
    open_workspace(viewer)
    for name in (evil("run 1"), evil("run 2")):
        state.add_run(renamed(scored_run(name), evil))
    state.shown = replace(state.shown, run=evil("run 2"), factor=evil("place"), method=METHOD)
    for name in DOCKS:
        open_dock(viewer, name)
    for _ in range(20):
        QApplication.processEvents()
    yield viewer
    services.close()


def renamed(run, evil):
    """The run with other names of factors and variables."""
    parts = tuple(
        replace(part, name=evil(part.name), variables=tuple(map(evil, part.variables)))
        for part in run.fit.parts
    )
    goodness = {
        evil(name): replace(each, factor=evil(name)) for name, each in run.fit.goodness.items()
    }
    history = {"step": np.arange(3), "penalty": np.ones(3)}
    fit = replace(run.fit, parts=parts, goodness=goodness, history=history)
    found = run.attributions[METHOD]
    attribution = replace(
        found, parts=parts, fit=fit,
        strengths={evil(name): strength for name, strength in found.strengths.items()},
        verdicts={evil(name): evil(verdict) for name, verdict in found.verdicts.items()},
    )  # fmt: skip
    factors = {
        evil(n): Factor([evil(v) for v in factor.variables]) for n, factor in run.factors.items()
    }
    return replace(run, factors=factors, fit=fit, attributions={METHOD: attribution})


def texts_of(widget):
    """Texts of a widget that Qt might take for markup: its own, and those shown over it."""
    if isinstance(widget, QLabel) and widget.textFormat() != Qt.TextFormat.PlainText:
        yield "label", widget.text()
    yield "tooltip", widget.toolTip()
    yield "status", widget.statusTip()
    yield "help", widget.whatsThis()
    model = widget.model() if isinstance(widget, QAbstractItemView | QComboBox) else None
    if model is None:
        return
    role = Qt.ItemDataRole.ToolTipRole
    columns = 1 if isinstance(model, QAbstractListModel) else min(model.columnCount(), 30)
    for row in range(min(model.rowCount(), 30)):
        yield "header", model.headerData(row, Qt.Orientation.Vertical, role)
        for column in range(columns):
            yield "cell", model.data(model.index(row, column), role)
    for column in range(columns):
        yield "header", model.headerData(column, Qt.Orientation.Horizontal, role)


def test_no_name_is_taken_for_markup(window, opened_by_qt):
    taken = [
        (type(widget).__name__, widget.parent() and type(widget.parent()).__name__, kind, text)
        for widget in QApplication.allWidgets()
        if isinstance(widget, QWidget)
        for kind, text in texts_of(widget)
        if text and "<img" in text and Qt.mightBeRichText(text)
    ]
    assert taken == []
    drawn = [
        (type(item).__name__, item.toPlainText())
        for view in QApplication.allWidgets()
        if isinstance(view, QGraphicsView) and view.scene() is not None
        for item in view.scene().items()
        if isinstance(item, QGraphicsTextItem) and PICTURE in item.toPlainText()
    ]
    assert drawn == []
    assert [each for each in opened_by_qt if "probe" in each] == []
