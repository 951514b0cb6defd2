"""The Video dock follows the slider, and opens with a recording that has a video."""

from dataclasses import replace

import numpy as np
import pytest
from short_video import number_in, write_video

from napari_xcebra.io import save_recording
from napari_xcebra.recording.movies import Video
from napari_xcebra.widgets.controls.napari_window import docked_widget, open_dock

pytestmark = [pytest.mark.gui, pytest.mark.usefixtures("warm_child")]


def shown(dock):
    """Number of the frame that is seen."""
    image = dock.picture.image
    return image and number_in([image.pixelColor(x, 24).red() for x in range(image.width())])


def test_a_video_opens_beside_the_traces_and_follows_the_slider(
    viewer, qtbot, tmp_path, small_field
):
    recording = open_dock(viewer, "Recording").widget()
    recording.form.path.path = save_recording(small_field, tmp_path / "mouse.npz")
    settings = recording.form.settings
    video = write_video(tmp_path / "camera.mp4")
    settings.value = replace(settings.value, video=str(video), video_offset=1.0)
    recording.open()
    qtbot.waitUntil(lambda: not recording.is_busy, timeout=20_000)
    dock = docked_widget(viewer, "Video").widget()
    assert dock.caption.text() == "camera.mp4 has no frame at 0.0 s."
    assert shown(dock) is None
    state = dock.state
    # 10 frames of the recording a second, 20 of the video; many at once, of which the last counts
    for frame in (20, 55, 12, 30, 31, 60):
        state.frame = frame
    qtbot.waitUntil(lambda: dock.caption.text().startswith("camera.mp4 · 6.00 s · frame 100"))
    assert shown(dock) == 100
    video.unlink()
    state.forget(state.current)
    assert shown(dock) is None
    assert dock.caption.text().startswith("No video")
    state.show(replace(small_field, video=recording_video(video)))
    state.frame = 20
    qtbot.waitUntil(lambda: "is not a video" in dock.caption.text())


def recording_video(path):
    return Video(path, np.arange(120) / 20, (48, 64), np.arange(120) / 20)
