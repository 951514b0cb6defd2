"""The Cells dock shows the selected cells, and moves with the time slider."""

from dataclasses import replace

import numpy as np
import pytest
from napari.utils.colormaps.standardize_color import transform_color
from qtpy.compat import isalive
from qtpy.QtCore import QPoint, QPointF, Qt
from qtpy.QtGui import QImage, QPainter
from qtpy.QtWidgets import QApplication

from napari_xcebra.attribution import attribute
from napari_xcebra.attribution.single_cell.tuning import Column, TuningCurve, TuningMap, tuning_to
from napari_xcebra.jobs import Worker
from napari_xcebra.learn import Factor, FitSettings, fit
from napari_xcebra.recording import Origin, Recording, Trials, Variable
from napari_xcebra.recording.traces import NpyTraces
from napari_xcebra.runs import Run, now
from napari_xcebra.widgets.docks.cells.dock import CellsDock
from napari_xcebra.widgets.docks.cells.panel import _moment
from napari_xcebra.widgets.layers.layers import _segments
from napari_xcebra.widgets.plots.plot_style import style_of
from napari_xcebra.widgets.plots.tuning_plot import TuningPlot
from napari_xcebra.widgets.state.shown import Shown
from napari_xcebra.widgets.window import services_of

pytestmark = pytest.mark.gui
LEFT = Qt.MouseButton.LeftButton
PATIENCE = 60_000
"""Milliseconds for what the background process does; it imports torch first."""


@pytest.fixture
def dock(viewer):
    dock = CellsDock(viewer)
    viewer.window._qt_window.resize(1000, 640)
    viewer.window._qt_window.show()
    viewer.window.add_dock_widget(dock, name="Cells", area="bottom")
    return dock


@pytest.fixture(scope="session")
def in_trials(small_field) -> Recording:
    """The small field with trials, excluded frames, and a discrete variable."""
    cue = Variable("cue", np.arange(600) // 100 % 3, "discrete")
    excluded = np.zeros(600, bool)
    excluded[220:240] = True
    starts = np.arange(0, 600, 150)
    return replace(small_field.with_behavior(cue), starts=starts, excluded=excluded)


@pytest.fixture(scope="session")
def run(in_trials) -> Run:
    factors = {"place": Factor(["position"]), "heading": Factor(["direction"])}
    settings = FitSettings(steps=20, batch_size=64, blocks=2)
    trained = fit(in_trials, factors, settings)
    scores = attribute(trained, in_trials)
    return Run("run 1", now(), factors, trained, {scores.method: scores})


@pytest.fixture(scope="module")
def one_worker():
    """A background process for all tests: most of its time goes into importing torch."""
    with Worker() as worker:
        yield worker


@pytest.fixture
def worker(state, one_worker):
    processes = services_of(state.viewer).processes
    processes.__dict__["worker"] = one_worker
    yield
    del processes.__dict__["worker"]


@pytest.fixture
def shown(state, worker, dock, in_trials, run, settled):
    """A recording with a run that is painted."""
    state.show(in_trials)
    state.add_run(run)
    state.shown = Shown(run="run 1", factor="place")
    settled()


@pytest.fixture
def settled(dock, qtbot):
    """Let the dock catch up."""

    def wait():
        qtbot.waitUntil(lambda: not dock._stale, timeout=5000)

    return wait


def titles(dock):
    return [lane.title for lane in dock.traces.lanes]


# ------------------------------------------------------------ what to do first


def test_showing_the_controls_opens_no_list_of_entries(dock, state, small_field):
    state.show(small_field)
    QApplication.processEvents()
    open_windows = [w for w in QApplication.topLevelWidgets() if w.isVisible()]
    assert open_windows == [state.viewer.window._qt_window]


def test_an_empty_dock_says_what_to_do(dock, state, small_field, settled):
    settled()
    assert "Open a recording" in dock.traces.message
    state.show(small_field)
    settled()
    assert dock.traces.title.text() == "Click a cell to see its trace."
    assert dock.tuning.message == "Click a cell in the image to see its tuning."
    assert not dock.traces.score_box.isVisible()
    assert not dock.embedding.isVisible()  # its room goes to the traces


def test_a_recording_without_behaviour_says_so(dock, state, settled):
    state.show(Recording.from_arrays(np.random.default_rng(0).normal(size=(50, 4)), 10.0))
    state.select([1])
    settled()
    assert titles(dock) == ["cell 1"]
    assert "add a behaviour file" in dock.tuning.message
    assert not dock.traces.behavior_button.isEnabled()


# ------------------------------------------------------------ traces


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_each_trace_has_a_colour_of_its_own_which_outlines_its_cell(
    dock, state, small_field, settled, theme
):
    state.viewer.theme = theme
    state.show(small_field)
    cells = list(range(12))
    state.select(cells)
    settled()
    drawn = [lane.color for lane in dock.traces.lanes if lane.title.startswith("cell")]
    assert len(set(drawn)) == len(drawn) == 10
    layer = state.layers.one(state.current, "selection")
    _, owner = _segments(state.current.shapes, cells)
    for cell, color in zip(cells, [*drawn, "white", "white"], strict=True):
        np.testing.assert_allclose(layer.edge_color[owner == cell][0], transform_color(color)[0])


def test_selected_cells_are_shown_under_the_ids_of_their_source(dock, state, settled):
    traces = np.random.default_rng(0).normal(size=(50, 4))
    recording = Recording.from_arrays(traces, 10.0, cell_ids=[11, 22, 33, 44])
    state.show(recording)
    state.select([2, 0])
    settled()
    assert titles(dock) == ["cell 33", "cell 11"]
    np.testing.assert_allclose(dock.traces.lanes[0].lines[0].values, traces[:, 2], rtol=1e-6)


def test_of_many_selected_cells_the_first_ten_are_shown(dock, state, small_field, settled):
    state.show(small_field)
    state.select(range(5, 30))
    settled()
    assert dock.traces.title.text() == "10 of 25 cells"
    assert titles(dock)[:10] == [f"cell {i}" for i in range(5, 15)]


def test_variables_of_the_factor_are_shown_until_others_are_chosen(dock, state, shown, settled):
    assert titles(dock) == ["x (m)", "y (m)"]
    state.shown = replace(state.shown, factor="heading")
    settled()
    assert titles(dock) == ["direction (rad)"]
    (cue,) = [a for a in dock.behavior.menu.actions() if a.text() == "cue"]
    cue.trigger()
    QApplication.processEvents()
    assert titles(dock) == ["direction (rad)", "cue"]
    state.shown = replace(state.shown, factor="place")
    settled()
    assert titles(dock) == ["direction (rad)", "cue"]


def test_angles_are_drawn_without_lines_across_the_wrap(dock, state, shown, settled):
    state.shown = replace(state.shown, factor="heading")
    settled()
    curve = dock.traces.plot._curves[0]
    jumps = np.abs(np.diff(curve.yData)) > 0.5
    assert jumps.any()
    assert not curve.opts["connect"][:-1][jumps].any()


def test_a_click_in_the_plot_moves_the_time_slider_of_napari(dock, state, shown, viewer, qtbot):
    plot = dock.traces.plot
    at = plot.getViewBox().mapViewToScene(QPointF(42.0, -0.5))
    qtbot.mouseClick(plot.viewport(), LEFT, pos=plot.mapFromScene(at))
    assert state.frame == pytest.approx(420, abs=3)
    assert viewer.dims.current_step[0] == state.frame
    assert plot.frame == state.frame


def test_the_time_slider_moves_the_cursor_and_turns_the_page(dock, state, shown, viewer):
    plot = dock.traces.plot
    plot.show_seconds(0, 10)
    viewer.dims.set_current_step(0, 50)
    assert plot.frame == 50
    assert plot.frames[0] == 0
    viewer.dims.set_current_step(0, 333)
    assert plot.frame == 333
    first, last = plot.frames
    assert first < 333 < last and last - first < 110
    assert dock.traces.time.readout.text() == "33.3 s · frame 333 · segment 3 of 4"
    state.frame = 230
    assert dock.traces.time.readout.text().endswith("segment 2 of 4 · excluded")


def test_trials_and_excluded_frames_are_shaded(dock, shown):
    plot = dock.traces.plot
    np.testing.assert_allclose(plot._trials._starts, [15, 45])
    np.testing.assert_allclose(plot._trials._stops, [30, 60])
    np.testing.assert_allclose(plot._excluded._starts, [22])
    np.testing.assert_allclose(plot._excluded._stops, [24])


def long_recording(frames=6000, cells=5, **others) -> Recording:
    traces = np.random.default_rng(0).normal(size=(frames, cells)).astype(np.float32)
    return Recording.from_arrays(traces, 10.0, **others)


def test_traces_open_on_a_minute_around_the_cursor_and_pages_turn_with_it(dock, state, settled):
    state.show(long_recording(origin=Origin(signal="dff")))
    state.frame = 3000
    state.select([1, 2])
    settled()
    plot, spans = dock.traces.plot, dock.traces.time.spans
    assert plot.seconds == pytest.approx((270, 330))
    state.frame = 3299
    assert plot.seconds == pytest.approx((270, 330))  # still in view: nothing moves
    state.frame = 3301
    assert plot.seconds == pytest.approx((327.1, 387.1))  # the next page
    state.frame = 3270
    assert plot.seconds == pytest.approx((270, 330))  # and the one before
    spans["10 s"].click()
    assert plot.seconds == pytest.approx((322, 332))
    spans["All"].click()
    assert plot.frames == (0, 6000)
    spans["60 s"].click()
    assert plot.seconds == pytest.approx((297, 357))
    # a changed copy of the recording stays where it was
    state.change_recording(replace(state.recording, accepted=np.arange(5) < 3))
    settled()
    assert plot.seconds == pytest.approx((297, 357))


def test_each_trace_has_a_scale_bar_in_its_true_unit(dock, state, settled):
    for signal, unit in {"dff": " ΔF/F", "raw": " a.u.", "zscored": " SD", "": ""}.items():
        state.show(long_recording(100, origin=Origin(signal=signal)))
        state.select([1])
        settled()
        (lane,) = dock.traces.lanes
        size, text = lane.bar
        assert text == f"{size:g}{unit}"
        assert 0.1 < size / (lane.high - lane.low) <= 0.5


def test_values_of_traces_and_tuning_can_be_copied(dock, state, settled, qtbot):
    speed = np.tile(np.arange(20.0), 5)
    recording = long_recording(100, behavior={"speed": speed})
    state.show(recording)
    state.select([3, 1])
    settled()

    def copied(plot):
        (action,) = [a for a in plot.figure_menu.menu.actions() if a.text() == "Copy values"]
        action.trigger()
        titles, *rows = [row.split("\t") for row in QApplication.clipboard().text().split("\n")]
        return titles, np.array(rows, float)

    names, rows = copied(dock.traces.plot)
    assert names == ["frame", "time (s)", "cell 3", "cell 1", "speed"]
    np.testing.assert_allclose(rows[:, 1], np.arange(100) / 10)
    np.testing.assert_allclose(rows[:, 2:4], np.asarray(recording.traces)[:, [3, 1]], rtol=1e-4)
    np.testing.assert_array_equal(rows[:, 4], speed)
    qtbot.waitUntil(lambda: dock.tuning.tuning is not None, timeout=5000)
    box = dock.tuning.to
    box.setCurrentIndex(box.findData("variable speed"))
    dock.tuning.cut(resolution=0.5)
    qtbot.waitUntil(lambda: len(dock.tuning.tuning.bins) == 12, timeout=5000)
    names, rows = copied(dock.tuning.plot)
    assert names == ["speed", "cell 3", "cell 3 SE", "cell 1", "cell 1 SE"]
    np.testing.assert_allclose(rows[:, 3], dock.tuning.tuning.mean[:, 1], rtol=1e-4)


def test_a_slider_beyond_the_end_of_a_shorter_recording_does_no_harm(dock, state, settled):
    long, short = long_recording(), long_recording(200)
    state.show(long)
    state.select([1])
    settled()
    state.show(short)
    state.select([1])
    settled()
    # the slider of the long one moves while the short one is still drawn
    state.show(long)
    state.frame = 5000
    settled()
    assert dock.traces.time.readout.text() == "500.0 s · frame 5000"
    assert _moment(short, 5000) == "19.9 s · frame 199"
    dock.traces.plot.move_cursor(10**6)
    assert dock.traces.plot.frame == 5999


def test_trials_are_counted_without_the_time_between_them_and_segments_are_no_trials():
    traces = np.random.default_rng(0).random((100, 3))
    trials = Trials([10, 50], [30, 70])
    in_trials = Recording.from_arrays(traces, rate=10.0, trials=trials)
    told = [_moment(in_trials, frame).split(" · ")[2] for frame in (0, 10, 29, 30, 69, 70)]
    between = "between trials"
    assert told == [between, "trial 1 of 2", "trial 1 of 2", between, "trial 2 of 2", between]
    in_segments = Recording.from_arrays(traces, rate=10.0, starts=[0, 60])
    assert _moment(in_segments, 60) == "6.0 s · frame 60 · segment 2 of 2"


def test_100_000_frames_are_drawn_with_as_many_points_as_the_screen_has(dock, state, settled):
    traces = np.random.default_rng(0).normal(size=(100_000, 10)).astype(np.float32)
    speed = np.cumsum(traces[:, 0])
    state.show(Recording.from_arrays(traces, 30.0, {"speed": speed}))
    state.select(range(10))
    settled()
    dock.traces.time.spans["All"].click()
    width = dock.traces.plot.getViewBox().width()
    assert len(dock.traces.plot._curves) == 11
    assert all(len(curve.xData) <= 2 * width + 4 for curve in dock.traces.plot._curves)


def test_traces_on_disk_are_read_in_the_background(dock, state, settled, qtbot, tmp_path):
    traces = np.random.default_rng(0).normal(size=(200, 6)).astype(np.float32)
    np.save(tmp_path / "F.npy", traces.T)
    state.show(Recording(NpyTraces(tmp_path / "F.npy", cells_first=True), 10.0))
    state.select([4])
    settled()
    qtbot.waitUntil(lambda: titles(dock) == ["cell 4"], timeout=5000)
    np.testing.assert_array_equal(dock.traces.lanes[0].lines[0].values, traces[:, 4])


def test_a_trace_that_cannot_be_read_gets_a_sentence(dock, state, settled, qtbot, tmp_path):
    traces = np.random.default_rng(0).normal(size=(200, 6)).astype(np.float32)
    traces[150, 4] = np.nan
    np.save(tmp_path / "F.npy", traces.T)
    state.show(Recording(NpyTraces(tmp_path / "F.npy", cells_first=True), 10.0))
    state.select([3, 4])
    qtbot.waitUntil(lambda: "column 4 is NaN" in dock.notice.text, timeout=5000)
    assert titles(dock) == ["cell 3"]
    state.select([3])
    settled()
    assert dock.notice.text == ""


# ------------------------------------------------------------ tuning


def test_two_columns_are_drawn_as_a_map_and_an_angle_as_a_curve(dock, state, shown, settled, qtbot):
    state.select([2])
    settled()
    qtbot.waitUntil(lambda: isinstance(dock.tuning.tuning, TuningMap), timeout=5000)
    assert dock.tuning.message == ""
    state.shown = replace(state.shown, factor="heading")
    settled()
    qtbot.waitUntil(lambda: isinstance(dock.tuning.tuning, TuningCurve), timeout=5000)
    assert dock.tuning.tuning.bins.column.kind == "circular"


def test_a_variable_chosen_by_hand_stays_when_another_factor_is_painted(
    dock, state, shown, settled, qtbot
):
    state.select([2, 5])
    settled()
    box = dock.tuning.to
    box.setCurrentIndex(box.findData("variable cue"))
    box.activated.emit(box.currentIndex())
    qtbot.waitUntil(lambda: isinstance(dock.tuning.tuning, TuningCurve), timeout=5000)
    state.shown = replace(state.shown, factor="heading")
    settled()
    assert dock.tuning.variables == ("cue",)
    tuning = dock.tuning.tuning
    np.testing.assert_array_equal(tuning.bins.values, [0, 1, 2])
    assert tuning.mean.shape == (3, 2)
    assert tuning.frames.sum() == 600 - 20


def test_the_time_factor_has_no_tuning_and_the_dock_says_so(dock, state, shown, settled):
    state.select([2])
    state.shown = replace(state.shown, factor="time")
    settled()
    assert dock.tuning.message == "The time factor has no variable: choose one above."


def numbers_on(axis):
    """What is written on an axis, as numbers."""
    image = QImage(10, 10, QImage.Format.Format_ARGB32)
    painter = QPainter(image)
    texts = axis.generateDrawSpecs(painter)[2]
    painter.end()
    return [float(text) for _, _, text in texts]


@pytest.mark.parametrize("scale", [0.001, 0.3, 40.0, 20_000.0])
def test_numbers_on_the_axes_are_the_values_of_the_variable(qtbot, scale):
    """Whatever was drawn before, and however small or large the values are."""
    value = np.tile(np.linspace(0, 1, 100), 40)
    used = np.ones(4000, bool)
    columns = [Column("x", value), Column("y", np.roll(value, 17))]
    plot = TuningPlot()
    qtbot.addWidget(plot)
    plot.resize(400, 300)
    plot.show()
    style = style_of("dark")
    activity = np.square(value)[:, None]
    plot.show_tuning(tuning_to(columns, activity, used), ["cell 1"], style)
    speed = Column("speed", scale * value)
    for _ in range(2):
        plot.show_tuning(tuning_to([speed], scale * activity, used), ["cell 1"], style)
        QApplication.processEvents()
    for side in ("bottom", "left"):
        numbers = numbers_on(plot._plot.getAxis(side))
        assert len(numbers) > 2
        assert scale / 2 < max(numbers) < 1.2 * scale
        assert min(numbers) > -0.2 * scale


def test_the_axes_of_a_single_map_end_with_it_in_true_proportions(qtbot):
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0, 2, 5000), rng.uniform(0, 1, 5000)
    columns = [Column("x", x, unit="m"), Column("y", y, unit="m")]
    plot = TuningPlot()
    qtbot.addWidget(plot)
    plot.show()
    for size in ((900, 200), (300, 500)):
        plot.resize(*size)
        field = np.exp(-np.square(x - 0.5) - np.square(y - 0.5))[:, None]
        tuning = tuning_to(columns, field, np.ones(5000, bool))
        plot.show_tuning(tuning, ["cell 1"], style_of("dark"), "ΔF/F")
        QApplication.processEvents()
        view = plot._plot.vb
        (left, right), (low, high) = view.viewRange()
        assert (left, right) == pytest.approx((0, 2), abs=0.01)
        assert (low, high) == pytest.approx((0, 1), abs=0.01)
        assert view.width() / view.height() == pytest.approx(2, rel=0.1)


# ------------------------------------------------------------ embedding and scores over time


@pytest.fixture
def embedded(dock, shown, qtbot):
    qtbot.waitUntil(lambda: dock.embedding._fresh() is not None, timeout=PATIENCE)
    return dock.embedding._fresh()


def test_the_embedding_is_shown_and_a_click_goes_to_its_frame(
    dock, state, embedded, in_trials, run, qtbot
):
    np.testing.assert_allclose(embedded.latents, run.fit.embed(in_trials), rtol=1e-3, atol=1e-4)
    assert dock.embedding.message == ""
    axes = [box.currentText() for box in dock.embedding.axes]
    assert axes == ["place 1", "place 2", "2-D"]
    plot = dock.embedding.plot
    assert plot._names == ("latent 1 of place", "latent 2 of place")
    places = plot.places
    # a point that has no neighbour which could be meant as well
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    point = int(np.nan_to_num(apart, nan=0).min(1).argmax())
    qtbot.mouseClick(plot, LEFT, pos=QPoint(*np.round(places[point]).astype(int).tolist()))
    assert state.frame == point
    assert plot._marked == point

    # the colours say what they mean
    box = dock.embedding.color
    for name, labels in {"column direction": ("0°", "180°", "360°"), "time": ("0", "59.9")}.items():
        box.setCurrentIndex(box.findData(name))
        box.activated.emit(box.currentIndex())
        assert dock.embedding.key.labels == labels
    box.setCurrentIndex(box.findData("column cue"))
    box.activated.emit(box.currentIndex())
    assert dock.embedding.key.labels == ("0", "1", "2")
    assert len(np.unique(plot._colors, axis=0)) == 3

    # in three dimensions the cloud turns with the mouse
    third = dock.embedding.axes[2]
    third.setCurrentIndex(third.findText("heading 1"))
    third.activated.emit(third.currentIndex())
    assert plot.in_three
    before = plot.places.copy()
    qtbot.mousePress(plot, LEFT, pos=QPoint(50, 50))
    qtbot.mouseMove(plot, QPoint(90, 60))
    qtbot.mouseRelease(plot, LEFT, pos=QPoint(90, 60))
    frame = state.frame
    assert np.nanmax(np.abs(plot.places - before)) > 5
    assert state.frame == frame


def test_scores_over_time_are_those_of_the_attribution(
    dock, state, shown, in_trials, run, qtbot, settled
):
    state.shown = replace(state.shown, smoothing=0.0)
    state.select([7, 3])
    settled()
    dock.traces.score_box.setChecked(True)
    qtbot.waitUntil(lambda: len(dock.traces.lanes[2].lines) == 2, timeout=PATIENCE)
    lane = dock.traces.lanes[2]
    assert lane.title == "score place"
    expected = run.attributions[state.shown.method].over_time("place", slice(0, 600))
    for line, cell in zip(lane.lines, (7, 3), strict=True):
        np.testing.assert_allclose(line.values, expected[:, cell], rtol=1e-3, atol=1e-5)

    # other cells of the same stretch come from what is at hand
    state.select([9])
    settled()
    (line,) = dock.traces.lanes[1].lines
    np.testing.assert_allclose(line.values, expected[:, 9], rtol=1e-3, atol=1e-5)
    dock.traces.score_box.setChecked(False)
    assert not any("score" in title for title in titles(dock))


def test_the_score_drawn_at_a_frame_is_the_one_painted_there(dock, state, shown, qtbot, settled):
    painter = services_of(state.viewer).time_painter
    state.shown = replace(state.shown, smoothing=1.5, over_time=True)
    state.select([7, 3])
    settled()
    dock.traces.score_box.setChecked(True)
    qtbot.waitUntil(lambda: len(dock.traces.lanes[2].lines) == 2, timeout=PATIENCE)
    qtbot.waitUntil(lambda: painter.status == "", timeout=PATIENCE)
    labels = state.current.labels
    for frame in (75, 149, 150, 310):  # the second and third are on either side of a trial's edge
        painted = np.array(painter.layer.data.frame(frame))
        for line, cell in zip(dock.traces.lanes[2].lines, (7, 3), strict=True):
            (at,) = np.flatnonzero(line.frames == frame)
            np.testing.assert_allclose(painted[labels == cell + 1], line.values[at], rtol=1e-5)


def test_a_failure_in_the_background_is_said_in_the_panel(
    dock, state, worker, in_trials, run, qtbot, settled
):
    other = replace(in_trials, cell_ids=np.arange(in_trials.n_cells) + 1000)
    state.show(other)
    state.add_run(run)
    state.shown = Shown(run="run 1", factor="place")
    settled()
    assert "Waiting" in dock.embedding.message
    qtbot.waitUntil(lambda: not dock.embedding._jobs.busy, timeout=PATIENCE)
    assert "the fit belongs to another recording" in dock.embedding.message


# ------------------------------------------------------------ window


def test_a_dock_that_is_gone_is_not_called_any_more(viewer, state, small_field, qtbot):
    viewer.window._qt_window.show()
    dock = CellsDock(viewer)
    viewer.window.add_dock_widget(dock, name="Cells", area="bottom")
    state.show(small_field)
    state.select([1])
    viewer.window.remove_dock_widget(dock)
    dock.deleteLater()
    qtbot.waitUntil(lambda: not isalive(dock), timeout=5000)
    state.select([2])
    state.frame = 17
    viewer.theme = "light"
    again = CellsDock(viewer)
    viewer.window.add_dock_widget(again, name="Cells again", area="bottom")
    qtbot.waitUntil(lambda: not again._stale, timeout=5000)


def test_each_viewer_has_its_own_cells(make_napari_viewer, small_field, qtbot):
    docks = []
    for cell in (1, 2):
        viewer = make_napari_viewer(show=True)
        docks.append(CellsDock(viewer))
        viewer.window.add_dock_widget(docks[-1], name="Cells", area="bottom")
        services_of(viewer).state.show(small_field)
        services_of(viewer).state.select([cell])
    for dock, title in zip(docks, ("cell 1", "cell 2"), strict=True):
        qtbot.waitUntil(lambda dock=dock: bool(titles(dock)), timeout=5000)
        assert titles(dock)[0] == title


def test_the_plots_follow_the_theme(dock, state, shown, viewer, settled):
    state.select([1])
    settled()
    dark = dock.traces.plot.backgroundBrush().color().lightnessF()
    viewer.theme = "light"
    settled()
    light = dock.traces.plot.backgroundBrush().color().lightnessF()
    assert dark < 0.3 < 0.7 < light
    assert dock.traces.lanes[0].color == "#0072B2"


def test_at_the_side_of_the_window_the_panels_lie_below_each_other(dock, settled):
    settled()
    dock.resize(1200, 260)
    assert dock.splitter.orientation() == Qt.Orientation.Horizontal
    dock.resize(400, 700)
    assert dock.splitter.orientation() == Qt.Orientation.Vertical


def test_a_changed_recording_is_taken_up(dock, state, shown, in_trials, settled):
    state.select([1])
    settled()
    doubled = replace(in_trials, traces=2 * np.asarray(in_trials.traces))
    state.change_recording(doubled)
    settled()
    line = dock.traces.lanes[0].lines[0]
    np.testing.assert_allclose(line.values, 2 * np.asarray(in_trials.traces)[:, 1])
