"""One session a viewer: what comes into the viewer is taken up, and all docks agree on it."""

import gc
from dataclasses import replace

import numpy as np
import psutil
import pytest
from napari.layers import Layer
from napari.utils._proxies import PublicOnlyProxy
from napari.utils.notifications import notification_manager

from napari_xcebra.io import save_recording
from napari_xcebra.recording import Recording
from napari_xcebra.simulate import field
from napari_xcebra.widgets.controls.napari_window import open_dock
from napari_xcebra.widgets.layers.layers import recording_layers
from napari_xcebra.widgets.state.shown import Shown
from napari_xcebra.widgets.state.state import role_of
from napari_xcebra.widgets.window import services_of

pytestmark = pytest.mark.gui


@pytest.fixture(scope="module")
def other_field():
    return field(cells=12, frames=300, shape=(96, 96), seed=1).recording


def add_as_napari_does(viewer, layers):
    for layer in layers:
        viewer.add_layer(Layer.create(*layer))


def test_closing_a_recording_looks_for_garbage_once_not_after_each_layer(
    viewer, small_field, other_field, monkeypatch
):
    state = services_of(viewer).state
    state.show(small_field)
    second = state.show(other_field)
    assert len(state.layers.of(second)) > 1
    looked, collect = [], gc.collect
    monkeypatch.setattr(gc, "collect", lambda *args: looked.append(args) or collect(*args))

    state.forget(second)

    assert len(looked) <= 1
    assert state.layers.of(second) == []
    assert state.recording is small_field


def test_a_path_that_napari_opens_becomes_the_current_recording(viewer, small_field, tmp_path):
    state = services_of(viewer).state
    told = []
    state.recording_changed.connect(lambda: told.append(state.current.name))
    path = save_recording(small_field, tmp_path / "mouse 7.npz")
    viewer.open(str(path), plugin="napari-xcebra")
    assert state.current.opening.path == path
    assert state.recording.n_cells == small_field.n_cells
    assert told == ["mouse 7.npz"]
    assert len(state.layers.of(state.current)) == 6  # with the movie, which is saved along


def test_a_sample_becomes_the_current_recording_also_of_docks_that_open_later(viewer):
    viewer.open_sample("napari-xcebra", "box_model")
    state = services_of(viewer).state
    assert state.current.name == "Box model"
    assert state.current.opening is None


def test_a_second_recording_takes_the_place_of_the_first(viewer, small_field, other_field):
    state = services_of(viewer).state
    add_as_napari_does(viewer, recording_layers(small_field))
    add_as_napari_does(viewer, recording_layers(other_field))
    first, second = state.opened
    assert state.current is second
    names = [layer.name for layer in state.layers.of(second)]
    assert set(names) <= {layer.name for layer in state.layers.of(first)}
    assert not any("[" in name for name in names)
    assert list(viewer.layers) == state.layers.of(second)


def test_layers_are_known_by_what_they_carry_not_by_their_name(state, small_field):
    opened = state.show(small_field)
    state.viewer.layers["cells"].name = "my cells"
    assert "my cells" in [layer.name for layer in state.layers.of(opened)]
    state.viewer.add_labels(np.zeros((96, 96), int), name="cells")
    assert len(state.layers.of(opened)) == 6


def test_showing_a_recording_again_adds_nothing(state, small_field):
    opened = state.show(small_field)
    assert state.show(small_field) is opened
    assert len(state.opened) == 1
    assert len(state.viewer.layers) == 6


def test_a_changed_recording_shows_in_the_layers_that_are_there(state, small_field):
    state.show(small_field)
    accepted = np.asarray(small_field.accepted).copy()
    accepted[3] = False
    state.viewer.layers["activity"].visible = True
    changed = replace(small_field, traces=-np.asarray(small_field.traces), accepted=accepted)
    state.change_recording(changed)
    row, column = np.argwhere(state.current.labels == 1)[0]
    shown = state.viewer.layers["activity"].data[5, row, column]
    assert shown == -small_field.traces[5, 0]
    cells = state.viewer.layers["cells"]
    assert not cells.features["accepted"][4]
    assert np.ptp(np.asarray(cells.colormap.colors)[4, :3]) == 0


def test_the_time_slider_and_the_session_follow_each_other(state, small_field):
    state.show(small_field)
    seen = []
    state.frame_changed.connect(seen.append)
    state.viewer.dims.set_current_step(0, 42)
    assert (state.frame, seen) == (42, [42])
    state.frame = 77
    assert state.viewer.dims.current_step[0] == 77
    state.frame = 10_000
    assert state.frame == small_field.n_frames - 1
    assert seen == [42, 77, 599]


def test_napari_does_not_paint_its_list_of_layers_at_every_frame(state, small_field):
    """It would for each new thumbnail, which takes a third of the time of a frame."""
    opened = state.show(small_field)
    heard = []
    for layer in state.layers.of(opened, "movie", "activity"):
        layer.visible = True
        layer.events.thumbnail.connect(heard.append)
    state.frame = 300
    assert len(state.layers.of(opened, "movie", "activity")) == 2 and heard == []


def test_layers_of_a_closed_recording_are_not_drawn_while_they_are_removed(viewer, small_field):
    """Where planes go with them, napari draws between two removals, and ended the program."""
    state = services_of(viewer).state
    opened = state.show(small_field)
    drawn = []
    viewer.layers.events.removing.connect(
        lambda _: drawn.append(any(layer.visible for layer in viewer.layers))
    )
    state.forget(opened)
    assert len(viewer.layers) == 0
    assert drawn and not any(drawn)


def test_the_frame_is_where_the_slider_is_from_the_beginning(viewer, small_field):
    """napari would begin in the middle of what has frames."""
    state = services_of(viewer).state
    traces = np.random.default_rng(0).random((900, 5), np.float32)
    add_as_napari_does(viewer, recording_layers(Recording.from_arrays(traces, rate=10.0)))
    assert state.frame == viewer.dims.current_step[0] == 0
    state.frame = 800
    seen = []
    state.recording_changed.connect(lambda: seen.append(state.frame))
    state.show(small_field)
    assert seen == [0] and viewer.dims.current_step[0] == 0


def test_another_recording_starts_without_selection_and_with_nothing_painted(
    state, small_field, other_field
):
    state.show(small_field)
    state.select([1, 2])
    state.shown = Shown(run="run 1", factor="place", colormap="magma")
    state.show(other_field)
    assert state.selection.tolist() == []
    assert state.shown == Shown(colormap="magma")


def test_selecting_what_is_selected_tells_nobody(state, small_field):
    state.show(small_field)
    told = []
    state.selection_changed.connect(lambda: told.append(state.selection.tolist()))
    state.select([3, 3, 1])
    state.select([3, 1])
    state.select([1, 5], toggle=True)
    assert told == [[3, 1], [3, 5]]


def test_every_viewer_has_a_session_of_its_own_and_its_proxies_share_it(make_napari_viewer):
    one, two = make_napari_viewer(), make_napari_viewer()
    assert services_of(one).state is not services_of(two).state
    assert services_of(PublicOnlyProxy(one)).state is services_of(one).state


def test_the_background_process_ends_with_the_window(viewer, qtbot):
    state = services_of(viewer).state
    worker = services_of(state.viewer).processes.worker
    qtbot.waitUntil(lambda: worker.pid is not None, timeout=20_000)
    process = psutil.Process(worker.pid)
    viewer.close()
    qtbot.waitUntil(lambda: not process.is_running(), timeout=20_000)


def test_roles_are_told_only_of_layers_of_ours(state, small_field):
    state.show(small_field)
    stranger = state.viewer.add_image(np.zeros((9, 9)))
    roles = [role_of(layer) for layer in state.viewer.layers if layer is not stranger]
    assert roles == ["image", "image", "movie", "activity", "outlines", "cells"]
    assert role_of(stranger) is None


def test_who_opens_a_sample_without_a_dock_is_told_where_to_go_on(make_napari_viewer):
    viewer = make_napari_viewer(show=True)
    before = len(notification_manager.records)
    viewer.open_sample("napari-xcebra", "box_model")
    (told,) = notification_manager.records[before:]
    assert "Workspace" in told.message
    open_dock(viewer, "Recording")
    viewer.open_sample("napari-xcebra", "box_model")
    assert len(notification_manager.records) == before + 1
