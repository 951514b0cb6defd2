"""A scale bar says how long a micrometre is on the canvas."""

from dataclasses import replace

import pytest
from qtpy.QtWidgets import QApplication

from napari_xcebra.widgets.controls.napari_window import canvas_of
from napari_xcebra.widgets.layers.camera import camera_of
from napari_xcebra.widgets.work.services import services_of


@pytest.mark.gui
def test_the_scale_bar_is_as_long_as_it_says_at_any_zoom_and_absent_without_a_pixel_size(
    viewer, state, small_field
):
    bar = services_of(viewer).scale_bar
    state.show(small_field)
    assert small_field.pixel_size is None and bar.isHidden()
    state.change_recording(replace(small_field, pixel_size=0.5))
    assert not bar.isHidden() and bar.text.endswith("µm")
    camera, lengths = camera_of(viewer), set()
    for zoom in (0.7, 3.0, 40.0):
        camera.zoom = zoom
        QApplication.processEvents()
        lengths.add(bar.micrometres)
        assert bar._length == pytest.approx(bar.micrometres / 0.5 * zoom)
        assert bar._length <= 0.25 * canvas_of(viewer).width()
        assert canvas_of(viewer).rect().contains(bar.geometry())
    assert len(lengths) == 3
