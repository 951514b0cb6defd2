"""Two recordings in one window: one is in front, and what is shown of each belongs to it."""

from dataclasses import replace

import numpy as np
import pytest
from mouse import activate, click_image, press_key
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QApplication
from scipy.ndimage import distance_transform_edt

from napari_xcebra.recording import Recording
from napari_xcebra.recording.footprints import Footprints
from napari_xcebra.runs import Run, now
from napari_xcebra.simulate import field
from napari_xcebra.widgets.app.workspace import open_workspace
from napari_xcebra.widgets.controls.napari_window import canvas_of, full_name
from napari_xcebra.widgets.docks.recording.dock import RecordingDock
from napari_xcebra.widgets.layers.camera import _field_of, _fit_into_view, camera_of
from napari_xcebra.widgets.state.state import role_of
from napari_xcebra.widgets.window import services_of
from napari_xcebra.workspace_file import load_workspace, save_workspace

pytestmark = [pytest.mark.gui, pytest.mark.usefixtures("warm_child")]
LEFT = Qt.MouseButton.LeftButton


@pytest.fixture(scope="module")
def other_field() -> Recording:
    """Another animal: fewer cells, fewer frames, a larger field."""
    made = field(cells=20, frames=400, shape=(128, 128), junk=2, seed=1).recording
    return replace(made, source="other")


@pytest.fixture(scope="module")
def two_planes() -> Recording:
    """12 cells in 2 planes, 300 frames."""
    rng = np.random.default_rng(0)
    masks = np.zeros((12, 2, 40, 60), np.float32)
    for cell, mask in enumerate(masks):
        top, left = 4 + 12 * (cell % 3), 5 + 28 * (cell // 6)
        mask[cell % 2, top : top + 6, left : left + 6] = 1
    return Recording.from_arrays(
        rng.normal(size=(300, 12)),
        rate=15.0,
        behavior={"speed": rng.random(300)},
        footprints=Footprints.from_masks(masks),
        source="planes",
    )


def a_run(recording, made_up_scores, name="run 1"):
    from napari_xcebra.learn import FitSettings, fit

    quick = FitSettings(steps=5, batch_size=64, time_latents=1, seed=0)
    trained = fit(recording, {"place": ["position"], "speed": ["speed"]}, quick)
    scores = made_up_scores(recording)
    maps = {m: replace(scores, method=m) for m in ("both-routes", "generative-gradient")}
    return Run(name, now(), {}, trained, maps)


def roles(viewer):
    return [role_of(layer) for layer in viewer.layers]


def frames_of_slider(viewer):
    return [int(r.stop) + 1 for r in viewer.dims.range][: viewer.dims.ndim - 2]


def test_the_slider_and_the_layers_are_those_of_the_recording_in_front(
    viewer, state, small_field, other_field, two_planes
):
    state.show(small_field)
    assert frames_of_slider(viewer) == [600]
    state.show(other_field)
    assert frames_of_slider(viewer) == [400]
    planes = state.show(two_planes)
    assert frames_of_slider(viewer) == [300, 2]
    state.frame = 299
    first = state.opened[0]
    state.current = first
    assert frames_of_slider(viewer) == [600] and state.frame == 0
    assert {layer.metadata["napari-xcebra"]["token"] for layer in viewer.layers} == {first.token}
    assert not any("[" in layer.name for layer in viewer.layers)
    state.frame = 500
    state.current = planes
    assert frames_of_slider(viewer) == [300, 2] and state.frame == 299


def test_layers_keep_what_the_user_did_to_them(viewer, state, small_field, other_field):
    one = state.show(small_field)
    image = next(x for x in state.layers.of(one) if role_of(x) == "image")
    image.name, image.gamma, image.visible = "my mean", 0.5, False
    order = [layer.name for layer in viewer.layers]
    viewer.add_image(np.zeros((96, 96)), name="mine")
    state.show(other_field)
    assert "mine" in viewer.layers and "my mean" not in viewer.layers
    state.current = one
    assert image in viewer.layers and (image.gamma, image.visible) == (0.5, False)
    assert [layer.name for layer in viewer.layers if layer.name != "mine"] == order


def test_a_sample_from_the_menu_comes_to_the_front_alone(viewer, state, small_field, other_field):
    from napari_xcebra.readers import _layers_to_adopt

    one = state.show(small_field)
    for data, about, kind in _layers_to_adopt(other_field):
        viewer._add_layer_from_data(data, about, kind)
    assert state.recording is other_field and len(state.opened) == 2
    assert not any("[" in layer.name for layer in viewer.layers)
    assert frames_of_slider(viewer) == [400]
    state.current = one
    assert frames_of_slider(viewer) == [600]


def test_a_map_is_painted_above_the_mean_image_though_another_recording_has_decisions(
    viewer, state, small_field, other_field, made_up_scores
):
    services = services_of(viewer)
    one = state.show(small_field)
    services.curations.act(lambda curation: curation.decide([0], "accepted"))
    assert "decisions" in roles(viewer)
    other = state.show(other_field)
    _ = services.painter
    state.add_run(a_run(other_field, made_up_scores), other)
    state.shown = replace(state.shown, run="run 1", factor="place")
    order = roles(viewer)
    assert order.index("scores") > max(i for i, role in enumerate(order) if role == "image")
    (layer,) = [x for x in viewer.layers if role_of(x) == "scores"]
    assert layer.visible
    state.shown = replace(state.shown, method="generative-gradient", over_time=True)
    _ = services.time_painter
    order = roles(viewer)
    assert order.index("scores over time") > max(i for i, r in enumerate(order) if r == "image")
    state.current = one
    assert "decisions" in roles(viewer)


def test_by_mouse_a_map_is_seen_after_a_decision_in_another_recording(
    make_napari_viewer, qtbot, small_field, other_field
):
    """A cell of one recording is accepted by its key, then another one is trained and looked at."""
    viewer = make_napari_viewer(show=True)
    viewer.window.resize(1400, 900)
    services = services_of(viewer)
    state = services.state
    one = state.show(small_field)
    open_workspace(viewer)
    activate(viewer)
    canvas = canvas_of(viewer)
    qtbot.mouseClick(services.open_dock("Curate").widget(), LEFT)
    qtbot.waitUntil(lambda: services.queue.cell is not None)
    press_key(canvas, Qt.Key.Key_A)
    qtbot.waitUntil(lambda: services.curations.of(one).status.tolist().count(1) == 1)
    state.show(other_field)
    services.open_dock("Train")
    dock = viewer.window.dock_widgets[full_name("Train")]
    dock.form.value = replace(dock.form.value, steps=20)
    qtbot.mouseClick(dock.train_button, LEFT)
    qtbot.waitUntil(lambda: state.shown_run is not None and not dock.busy, timeout=120_000)
    seen = colourful(viewer)
    (painted,) = [x for x in viewer.layers if role_of(x) == "scores" and x.visible]
    painted.visible = False
    assert seen > colourful(viewer) + 0.02
    assert frames_of_slider(viewer) == [400]
    services.close()


@pytest.fixture(scope="module")
def two_sizes():
    """58 cells and 110 cells."""
    made = {}
    for cells, side in ((58, 128), (110, 192)):
        recording = field(cells=cells, frames=300, shape=(side, side), junk=0, seed=cells).recording
        made[cells] = replace(recording, source=f"mouse of {cells}")
    return made


@pytest.mark.parametrize("first", [58, 110])
def test_by_mouse_nothing_of_one_recording_is_left_in_the_window_of_the_other(
    make_napari_viewer, qtbot, two_sizes, made_up_scores, first
):
    """58 cells, trained, and 110 without a run: opened in both orders, switched, closed."""
    viewer = make_napari_viewer(show=True)
    viewer.window.resize(1500, 950)
    services = services_of(viewer)
    state = services.state
    open_workspace(viewer)
    activate(viewer)
    docks = {name: services.open_dock(name).widget() for name in ("Attribution", "Cells", "Curate")}
    recording_dock = services.open_dock("Recording").widget()
    opened = {cells: state.show(two_sizes[cells]) for cells in (first, 168 - first)}
    small, large = opened[58], opened[110]
    state.add_run(a_run(small.recording, made_up_scores), small)

    choose(qtbot, recording_dock.opened_box, small.name)
    services.open_dock("Attribution")
    table = docks["Attribution"].scores.table
    qtbot.waitUntil(lambda: table.model.rowCount() == 58)
    recording_dock.footer.say_added(["behaviour.csv"])
    services.open_dock("Recording")
    choose(qtbot, recording_dock.opened_box, large.name)
    assert state.current is large and recording_dock.notice.text == ""
    scores = docks["Attribution"].scores
    assert table.model.rowCount() == 0 and scores.histogram._map is None and scores.isHidden()
    assert "No run yet" in docks["Attribution"].empty.sentence.text()

    QApplication.processEvents()  # docks come and go, and the canvas has another size
    _fit_into_view(state, _field_of(state))
    empty = np.argwhere((large.labels[:128, :128] == 0) & (small.labels > 0))[0]
    click_image(viewer, empty)
    assert state.current is large and not len(state.selection)
    click_cell(viewer, large, 64)
    qtbot.waitUntil(lambda: state.selection.tolist() == [64])
    assert ring(state) == [64]
    name = f"cell {np.asarray(large.recording.cell_ids)[64]}"
    qtbot.waitUntil(lambda: name in [lane.title for lane in docks["Cells"].traces.lanes])

    services.open_dock("Curate")
    qtbot.waitUntil(lambda: docks["Curate"].presence.now)
    canvas = canvas_of(viewer)
    for _ in range(3):
        before = state.selection.tolist()
        press_key(canvas, Qt.Key.Key_Right)
        qtbot.waitUntil(lambda b=before: state.selection.tolist() != b)
    press_key(canvas, Qt.Key.Key_A)
    qtbot.waitUntil(lambda: services.curations.of(large).status.any())
    assert state.layers.of(large, "decisions")

    services.open_dock("Recording")
    qtbot.mouseClick(recording_dock.close_button, LEFT)
    assert state.opened == [small] and state.current is small
    assert owners(viewer) == {small.token}
    box = recording_dock.opened_box
    assert [box.itemText(i) for i in range(box.count())] == [small.name]
    services.open_dock("Attribution")
    qtbot.waitUntil(lambda: table.model.rowCount() == 58)
    close_anyway(recording_dock)
    assert owners(viewer) == set() and state.current is None
    assert table.model.rowCount() == 0
    assert "No recording yet" in docks["Attribution"].empty.sentence.text()
    services.close()


def click_cell(viewer, opened, cell):
    """Click on the pixel of a cell that is the farthest from all others."""
    inside = distance_transform_edt(opened.labels == cell + 1)
    click_image(viewer, np.unravel_index(np.argmax(inside), inside.shape))


def ring(state):
    (layer,) = state.layers.of(state.current, "selection")
    return layer.metadata["napari-xcebra"]["cells"]


def owners(viewer):
    """Tokens of the recordings whose layers are in the viewer."""
    return {x.metadata["napari-xcebra"]["token"] for x in viewer.layers if role_of(x)}


def close_anyway(dock):
    """Close the recording in front, though its run is lost."""
    dock.footer.may_close = lambda _: True
    dock.close_button.click()


def colourful(viewer):
    """Share of the pixels on the canvas that are neither black, white nor grey."""
    picture = viewer.screenshot(canvas_only=True, flash=False)[..., :3].astype(int)
    return float((np.ptp(picture, axis=-1) > 40).mean())


def test_returning_to_a_recording_shows_what_was_shown_of_it(
    make_napari_viewer, qtbot, small_field, other_field, made_up_scores
):
    """By the mouse: another recording is chosen in the Recording dock, then the first again."""
    viewer = make_napari_viewer(show=True)
    state = services_of(viewer).state
    one = state.show(small_field)
    state.add_run(a_run(small_field, made_up_scores), one)
    open_workspace(viewer)
    wanted = replace(
        state.shown, run="run 1", factor="speed", method="generative-gradient", threshold=0.5
    )
    state.shown = wanted
    state.select([3, 7])
    state.frame = 123
    camera_of(viewer).zoom = 2.5
    state.show(other_field)
    assert state.shown.run == "" and not len(state.selection)
    dock = next(w for w in viewer.window.dock_widgets.values() if isinstance(w, RecordingDock))
    choose(qtbot, dock.opened_box, one.name)
    assert state.current is one
    assert state.shown == wanted
    assert state.selection.tolist() == [3, 7] and state.frame == 123
    assert camera_of(viewer).zoom == pytest.approx(2.5)
    (layer,) = [x for x in viewer.layers if role_of(x) == "scores" and x.visible]
    assert layer.name == "speed · generative gradient · run 1 (at chance)"
    services_of(viewer).close()


def choose(qtbot, box, text):
    """Choose an entry of a box with the mouse."""
    box.showPopup()
    view = box.view()
    where = view.visualRect(box.model().index(box.findText(text), 0)).center()
    qtbot.mouseClick(view.viewport(), LEFT, pos=where)
    box.hidePopup()


def test_the_layer_of_a_map_says_factor_method_and_run(viewer, state, small_field, made_up_scores):
    _ = services_of(viewer).painter
    one = state.show(small_field)
    state.add_run(a_run(small_field, made_up_scores), one)
    state.shown = replace(state.shown, run="run 1", factor="place")
    (layer,) = [x for x in viewer.layers if role_of(x) == "scores"]
    assert layer.name == "place · both routes · run 1"
    state.shown = replace(state.shown, method="generative-gradient")
    assert layer.name == "place · generative gradient · run 1"
    state.replace_run("run 1", replace(state.runs[0], name="best"))
    assert layer.name == "place · generative gradient · best"
    layer.name = "figure 2"
    state.shown = replace(state.shown, method="both-routes")
    assert layer.name == "figure 2"


def test_closing_a_recording_brings_the_other_back(viewer, state, small_field, two_planes):
    one = state.show(small_field)
    other = state.show(two_planes)
    state.forget(one)
    assert state.current is other and frames_of_slider(viewer) == [300, 2]
    one = state.show(small_field)
    state.forget(one)
    assert state.current is other and frames_of_slider(viewer) == [300, 2]
    assert {role_of(layer) for layer in viewer.layers} >= {"cells", "activity"}


def test_a_workspace_file_keeps_what_is_shown_of_each_recording(
    viewer, state, small_field, other_field, made_up_scores, tmp_path
):
    for recording, factor in ((small_field, "speed"), (other_field, "place")):
        opened = state.show(recording)
        state.add_run(a_run(recording, made_up_scores), opened)
        state.shown = replace(state.shown, run="run 1", factor=factor)
    saved = load_workspace(save_workspace(state.as_file(), tmp_path / "kept"))
    assert [shown["factor"] for shown in saved.shown] == ["speed", "place"]
    for opened in list(state.opened):
        state.forget(opened)
    state.restore(saved)
    assert state.shown.factor == "place"
    assert frames_of_slider(viewer) == [400]
    state.current = state.opened[0]
    assert state.shown.factor == "speed"
    assert frames_of_slider(viewer) == [600]
