"""Scale bar and colour bar on the canvas are true, and are in pictures of it."""

from dataclasses import replace

import numpy as np
import pytest
from qtpy.QtWidgets import QApplication

from napari_xcebra.widgets.controls.napari_window import canvas_of
from napari_xcebra.widgets.layers.camera import camera_of
from napari_xcebra.widgets.window import services_of


@pytest.mark.gui
def test_the_scale_bar_is_as_long_as_it_says_at_any_zoom_and_absent_without_a_pixel_size(
    viewer, state, small_field
):
    bar = services_of(viewer).scale_bar
    state.show(replace(small_field, pixel_size=None))
    assert bar.place.isEmpty()
    state.change_recording(replace(small_field, pixel_size=0.5))
    assert not bar.place.isEmpty() and bar.text.endswith("µm")
    camera, lengths = camera_of(viewer), set()
    for zoom in (0.7, 3.0, 40.0):
        camera.zoom = zoom
        QApplication.processEvents()
        lengths.add(bar.micrometres)
        assert bar.length == pytest.approx(bar.micrometres / 0.5 * zoom)
        assert bar.length <= 0.25 * canvas_of(viewer).width()
        assert canvas_of(viewer).rect().contains(bar.place)
    assert len(lengths) == 3


@pytest.mark.gui
def test_screenshots_of_the_canvas_alone_show_both_bars(make_napari_viewer, small_field):
    viewer = make_napari_viewer(show=True)
    services = services_of(viewer)
    services.state.show(small_field)
    for layer in viewer.layers:
        layer.visible = False
    services.color_scale.bar.show_scale("place", "by hand", "R²", "viridis", (0.0, 1.0))
    QApplication.processEvents()
    picture = viewer.screenshot(canvas_only=True, flash=False)
    ratio = canvas_of(viewer).devicePixelRatioF()

    def shown(bar):
        box = bar.place
        rows = slice(round(box.top() * ratio), round(box.bottom() * ratio))
        return picture[rows, round(box.left() * ratio) : round(box.right() * ratio), :3]

    ruler = shown(services.scale_bar)
    white = (ruler > 200).all(axis=2)
    assert white.any(axis=0).sum() == pytest.approx(services.scale_bar.length * ratio, abs=3)
    colors = shown(services.color_scale.bar).reshape(-1, 3)
    low, high = [68, 1, 84], [253, 231, 37]  # the ends of viridis
    for end in (low, high):
        assert np.abs(colors.astype(int) - end).max(axis=1).min() < 12
    services.close()
