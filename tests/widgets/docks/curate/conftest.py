"""A field with scores, and the Curate dock beside it."""

import pytest
from mouse import activate
from qtpy.QtTest import QTest

from napari_xcebra.runs import Run, now
from napari_xcebra.widgets.controls.napari_window import full_name, open_dock
from napari_xcebra.widgets.state.shown import Shown
from napari_xcebra.widgets.window import services_of


@pytest.fixture
def scored(small_field, made_up_scores):
    """Shows the small field with made-up scores in a session: place rises from cell to cell."""

    def show(state, recording=small_field):
        opened = state.show(recording)
        attribution = made_up_scores(recording)
        opened.runs.append(Run("run 1", now(), {}, None, {attribution.method: attribution}))
        state.shown = Shown(run="run 1", factor="place")
        return opened

    return show


@pytest.fixture
def curate_dock():
    """Opens the Curate dock of a viewer."""

    def opened(viewer):
        open_dock(viewer, "Curate")
        QTest.qWait(30)  # what the dock puts off until there is time
        return viewer.window.dock_widgets[full_name("Curate")]

    return opened


@pytest.fixture
def dock(viewer, state, scored, curate_dock):
    scored(state)
    return curate_dock(viewer)


@pytest.fixture
def dock_in_front(make_napari_viewer, scored, curate_dock, qtbot):
    """The dock in a window that has mouse and keyboard."""
    viewer = make_napari_viewer(show=True)
    scored(services_of(viewer).state)
    dock = curate_dock(viewer)
    activate(viewer)
    qtbot.waitUntil(lambda: dock.queue.cell is not None and dock.close_up._on)
    yield dock
    services_of(viewer).close()
