"""Parts of the window are found, also once napari hides its private attributes."""

from types import SimpleNamespace

import pytest
from napari.utils._proxies import PublicOnlyProxy
from qtpy.QtWidgets import QWidget

from napari_xcebra.widgets.controls.napari_window import canvas_of, main_window, real_viewer

pytestmark = pytest.mark.gui


@pytest.fixture
def docked(make_napari_viewer):
    viewer = make_napari_viewer()
    viewer.window.add_dock_widget(QWidget(), name="ours")
    return viewer


def without_private_parts(viewer):
    """A viewer as napari may hand it out one day: its window has public attributes alone."""
    return SimpleNamespace(window=SimpleNamespace(dock_widgets=viewer.window.dock_widgets))


def test_the_viewer_behind_a_proxy_is_found(docked):
    assert real_viewer(PublicOnlyProxy(docked)) is docked
    assert real_viewer(docked) is docked


def test_the_window_is_found_with_and_without_private_attributes(docked):
    assert main_window(docked) is docked.window._qt_window
    assert main_window(PublicOnlyProxy(docked)) is docked.window._qt_window
    assert main_window(without_private_parts(docked)) is docked.window._qt_window


def test_a_viewer_without_a_window_has_neither_window_nor_canvas():
    assert main_window(SimpleNamespace()) is None
    assert canvas_of(SimpleNamespace()) is None


def test_the_canvas_lies_in_the_window(docked):
    canvas = canvas_of(docked)
    assert canvas.window() is docked.window._qt_window
    assert canvas is docked.window._qt_viewer.canvas.native
