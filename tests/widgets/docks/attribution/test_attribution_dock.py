"""Scores are painted, ranked, thresholded, compared and written from the dock."""

import threading
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from qtpy.QtCore import QItemSelectionModel, Qt, QThreadPool
from qtpy.QtTest import QTest
from qtpy.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QLineEdit,
    QProgressBar,
    QTabBar,
    QTableView,
)

from napari_xcebra.attribution import METHODS, attribute
from napari_xcebra.attribution.methods import FIRST
from napari_xcebra.attribution.single_cell import STATISTICS, cell_statistics
from napari_xcebra.learn import Factor, FitSettings, fit
from napari_xcebra.recording import Recording
from napari_xcebra.runs import Run
from napari_xcebra.simulate import field
from napari_xcebra.text import brief
from napari_xcebra.widgets.controls.napari_window import docked_widget
from napari_xcebra.widgets.controls.notice import EDGES
from napari_xcebra.widgets.docks.attribution.dock import AttributionDock
from napari_xcebra.widgets.docks.attribution.panels import _ColorRow
from napari_xcebra.widgets.services import run_jobs
from napari_xcebra.widgets.services.jobs import _listen
from napari_xcebra.widgets.state.shown import shown_map
from napari_xcebra.widgets.state.state import role_of
from napari_xcebra.widgets.window import services_of

pytestmark = [pytest.mark.gui, pytest.mark.usefixtures("warm_child")]

SECONDS = 1000
FACTORS = {"place": ["position"], "speed": ["speed"]}
PLACE = "place · both routes · run 1"
SETTINGS = FitSettings(steps=60, batch_size=128, penalty_batch=16, smoothing=0, time_latents=1)


@pytest.fixture(scope="module")
def recording():
    return field(cells=30, frames=1500, shape=(96, 96), junk=3, seed=0).recording


@pytest.fixture(scope="module")
def trained(recording):
    """A short but real run; place is taken to be found and learned, speed to be at chance."""
    fitted = fit(recording, FACTORS, SETTINGS)
    place, speed = (fitted.goodness[name] for name in ("place", "speed"))
    known = {
        "place": replace(place, above_chance=True, p=0.001, untested="", learned=True),
        "speed": replace(speed, above_chance=False, p=0.5, untested=""),
        "time": replace(fitted.goodness["time"], above_chance=True),
    }
    fitted = replace(fitted, goodness=known)
    factors = {name: Factor(variables) for name, variables in FACTORS.items()}
    run = Run("run 1", "2026-11-16T09:30:00", factors, fitted)
    for method in FIRST:
        run = run.with_attribution(attribute(fitted, recording, method))
    return run


@pytest.fixture
def dock(viewer, qtbot):
    dock = AttributionDock(viewer)
    viewer.window.add_dock_widget(dock, name="Attribution")
    return dock


@pytest.fixture
def painted(dock, state, recording, trained):
    """The dock with a run in it."""
    state.show(recording)
    state.add_run(trained)
    return dock


def choose(box: QComboBox, text: str) -> None:
    """Choose an entry as a user does."""
    box.setCurrentIndex(next(i for i in range(box.count()) if text in box.itemText(i)))
    box.activated.emit(box.currentIndex())


def score_layers(viewer):
    return {layer.name: layer for layer in viewer.layers if role_of(layer) == "scores"}


def test_an_empty_dock_says_what_to_do_and_leads_there(dock, state, viewer, recording):
    assert "open one in the Recording dock" in dock.empty.sentence.text()
    assert dock.choice.isHidden() and dock.scores.isHidden()
    state.show(recording)
    assert dock.empty.sentence.text() == "No run yet: train one in the Train dock."
    dock.empty.button.click()
    assert docked_widget(viewer, "Train") is not None


def test_a_new_run_is_painted_at_once(painted, state, viewer):
    assert state.shown.run == "run 1" and state.shown.factor == "place"
    assert painted.empty.isHidden()
    assert score_layers(viewer)[PLACE].visible
    assert "place" in painted.verdict.text
    assert "run 1 · place" in painted.choice.run.currentText()


def test_factors_and_their_latents_can_be_chosen(painted, state):
    def offered():
        box = painted.choice.factor
        return [box.itemText(i).strip() for i in range(box.count())]

    lags = "place, lag of the cells in seconds"
    assert offered() == ["place", lags, "speed (at chance)", "time"]  # scored as a whole
    choose(painted.choice.factor, lags)
    assert (state.shown.factor, state.shown.latent) == ("place", "lag")
    choose(painted.choice.factor, "place")
    choose(painted.choice.method, "generative gradient")
    assert offered() == [
        "place",
        "place, latent 1 of 2",
        "place, latent 2 of 2",
        "speed (at chance)",
        "time",
    ]
    choose(painted.choice.factor, "latent 2")
    assert (state.shown.factor, state.shown.latent) == ("place", 1)
    choose(painted.choice.factor, "time")
    assert (state.shown.factor, state.shown.latent) == ("time", None)


def test_a_factor_that_could_not_be_tested_is_painted_and_marked_in_words(
    dock, state, viewer, recording, trained
):
    slow = replace(trained.fit.goodness["speed"], p=np.nan, untested="Too few.")
    fitted = replace(trained.fit, goodness={**trained.fit.goodness, "speed": slow})
    run = replace(trained, fit=fitted, attributions={})
    state.show(recording)
    state.add_run(run.with_attribution(attribute(fitted, recording)))
    choose(dock.choice.factor, "speed (not tested)")
    layer = score_layers(viewer)["speed · both routes · run 1 (not tested)"]
    assert len(np.unique(layer.colormap.colors[1:], axis=0)) > 2
    assert dock.scores.colors.isEnabled()
    assert "speed was not tested against chance" in dock.verdict.text
    assert "speed was not tested against chance" in dock.verdict.text
    assert EDGES["plain"] in dock.verdict.rows["speed"].head.styleSheet()


def test_a_factor_at_chance_is_marked_in_words(painted, viewer):
    choose(painted.choice.factor, "at chance")
    assert "(at chance)" in painted.choice.factor.currentText()
    assert "speed · both routes · run 1 (at chance)" in score_layers(viewer)
    assert not painted.scores.colors.isEnabled()
    assert not painted.scores.over_time.follow.isEnabled()


def test_the_threshold_changes_count_table_and_features(painted, state, viewer, qtbot):
    scores = shown_map(state)
    painted.scores.histogram.line.setValue(scores.score_of(1.0))
    painted.scores.histogram.line.sigDragged.emit(painted.scores.histogram.line)
    qtbot.waitUntil(lambda: state.shown.threshold == pytest.approx(1.0), timeout=SECONDS)
    count = int(scores.above(1.0).sum())
    assert painted.scores.histogram.count.text() == f"{count} of 30 cells above threshold"
    assert painted.scores.histogram.z.value() == pytest.approx(1.0)
    assert painted.scores.histogram.score.value() == pytest.approx(scores.score_of(1.0), rel=1e-2)
    selected = score_layers(viewer)[PLACE].features["selected"].to_numpy()[1:]
    assert selected.sum() == count
    painted.scores.table.above_only.setChecked(True)
    assert painted.scores.table.model.rowCount() == count
    # it can be typed as a score, and reset
    painted.scores.histogram.score.setValue(scores.score_of(0.5))
    assert state.shown.threshold == pytest.approx(0.5, abs=0.05)
    painted.scores.histogram.reset.click()
    assert state.shown.threshold == 0
    assert not painted.scores.histogram.reset.isEnabled()


def test_brushing_the_histogram_selects_those_cells(painted, state):
    scores = shown_map(state)
    low, high = scores.score_of(0.2), scores.score_of(1.5)
    painted.scores.histogram._view.brushed.emit(low, high)
    np.testing.assert_array_equal(state.selection, scores.within(low, high))
    assert painted.scores.histogram.region.isVisible()
    painted.scores.histogram._view.brushed.emit(low, low)
    assert len(state.selection) == 0
    assert not painted.scores.histogram.region.isVisible()


def test_a_click_in_the_table_selects_the_cell_and_brings_it_into_view(painted, state, viewer):
    camera = viewer.scene.camera
    camera.zoom *= 6
    camera.center = (0, 0, 0)
    viewer.window._qt_viewer.canvas.on_draw(None)
    cell = int(painted.scores.table.model.cells[4])
    row = painted.scores.table.model.index(4, 0)
    flags = QItemSelectionModel.SelectionFlag
    painted.scores.table.view.selectionModel().setCurrentIndex(
        row, flags.ClearAndSelect | flags.Rows
    )
    assert list(state.selection) == [cell]
    pixels = np.argwhere(state.current.labels == cell + 1)
    np.testing.assert_allclose(camera.center[-2:], np.median(pixels, axis=0), atol=1)


def test_a_selection_elsewhere_is_marked_in_the_table(painted, state):
    last = int(painted.scores.table.model.cells[-1])
    state.select([last])
    assert list(painted.scores.table.view.marked_cells()) == [last]
    # and stays so when the rows are arranged anew
    painted.scores.table.view.sortByColumn(1, Qt.SortOrder.DescendingOrder)
    assert list(painted.scores.table.view.marked_cells()) == [last]
    assert list(state.selection) == [last]


def test_the_table_is_sorted_by_its_titles_searched_and_copied(painted, state, recording):
    table = painted.scores.table
    titles = table.model.ranking.titles
    table.view.sortByColumn(titles.index("cell"), Qt.SortOrder.DescendingOrder)
    assert table.model.data(table.model.index(0, 1)) == "29"  # ROIs that were not used come last
    table.accepted_only.setChecked(True)
    assert table.model.rowCount() == int(np.sum(recording.accepted))
    table.search.setText("17")
    assert [table.model.data(table.model.index(0, 1))] == ["17"]
    assert table.model.rowCount() == 1
    table.search.setText("")
    state.select([3, 7])
    QTest.keyClick(table.view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = QApplication.clipboard().text().strip().splitlines()
    assert len(lines) == 3
    assert {line.split("\t")[1] for line in lines[1:]} == {"3", "7"}


def test_a_map_of_another_scale_has_its_own_limits(painted, state):
    """The boxes show fewer decimals then, which must not count as a choice of the user's."""
    run = state.shown_run
    scored = run.attributions["generative-gradient"]
    state.shown = replace(state.shown, method="generative-gradient")
    thousandfold = {
        name: 1e3 * getattr(scored, name) for name in ("latent_scores", "factor_scores")
    }
    large = replace(scored, method="conditional-encoding", **thousandfold)
    state.replace_run(run.name, run.with_attribution(large))
    small = painted.painter.limits
    state.shown = replace(state.shown, method="conditional-encoding")
    assert painted.painter.limits == pytest.approx([1e3 * limit for limit in small], rel=1e-4)
    assert not painted.painter.limits_chosen
    state.shown = replace(state.shown, method="generative-gradient")
    assert painted.painter.limits == small


def test_the_colour_bar_runs_from_the_lowest_to_the_highest_colour(qtbot):
    row = _ColorRow()
    qtbot.addWidget(row)
    row.show_colors("magma", (0.0, 1.0), chosen=False)
    row.resize(350, 60)
    row.show()
    shown = row.bar.grab().toImage()
    left, right = (shown.pixelColor(x, shown.height() // 2) for x in (1, shown.width() - 2))
    assert left.lightness() < 30 and right.lightness() > 180


def test_colours_and_limits_can_be_chosen_and_taken_back(painted, state, viewer):
    layer = score_layers(viewer)[PLACE]
    before = np.array(layer.colormap.colors)
    painted.scores.colors.colormap.setCurrentText("magma")
    assert state.shown.colormap == "magma"
    assert not np.allclose(layer.colormap.colors, before)
    high = painted.scores.colors.high.value()
    painted.scores.colors.high.setValue(10 * high)
    assert painted.painter.limits[1] == pytest.approx(10 * high)
    painted.scores.colors.automatic.click()
    assert painted.scores.colors.high.value() == pytest.approx(high)
    assert not painted.scores.colors.automatic.isEnabled()


def test_two_maps_are_compared_in_two_views_and_a_plot(painted, state, viewer):
    choose(painted.scores.side_by_side.other, "time")
    assert viewer.canvas.grid.enabled
    assert "Rank correlation" in painted.scores.side_by_side.agreement.text()
    assert len(painted.scores.side_by_side.points.getData()[0]) == 30
    point = painted.scores.side_by_side.points.points()[0]
    painted.scores.side_by_side.points.sigClicked.emit(
        painted.scores.side_by_side.points, [point], None
    )
    assert list(state.selection) == [point.data()]
    assert viewer.layers.selection.active.name == PLACE
    assert any("second view" in layer.name for layer in viewer.layers)
    choose(painted.scores.side_by_side.other, "nothing")
    assert not viewer.canvas.grid.enabled
    assert not any("second view" in layer.name for layer in viewer.layers)
    assert viewer.layers.selection.active.name == PLACE


def test_napari_speaks_of_the_map_that_is_shown(painted, state, viewer):
    """Its status line tells the score of the active layer, even of one that is hidden."""
    for factor in ("time", "place"):
        state.shown = replace(state.shown, factor=factor)
        assert viewer.layers.selection.active.metadata["napari-xcebra"]["factor"] == factor
    # a layer that the user works on is left to them
    cells = next(layer for layer in viewer.layers if role_of(layer) == "cells")
    viewer.layers.selection.active = cells
    state.shown = replace(state.shown, factor="time")
    assert viewer.layers.selection.active is cells


def test_scores_are_computed_in_the_background_and_follow_the_slider(
    painted, state, viewer, qtbot, recording, trained
):
    choose(painted.choice.method, "inverted neuron gradient (not computed yet)")
    assert "run 1 has no scores by inverted neuron gradient yet" in painted.compute.sentence.text()
    assert painted.scores.isHidden()
    painted.compute.start.click()
    assert painted.jobs.busy and not painted.compute.stop.isHidden()
    qtbot.waitUntil(lambda: not painted.jobs.busy, timeout=90 * SECONDS)
    assert painted.compute.isHidden()
    expected = attribute(trained.fit, recording, "inverted-neuron-gradient").score("place")
    np.testing.assert_allclose(state.scores, expected, rtol=1e-3)
    assert score_layers(viewer)["place · inverted neuron gradient · run 1"].visible

    state.frame = 700
    painted.scores.over_time.seconds.setValue(0)
    painted.scores.over_time.follow.setChecked(True)
    assert "Waiting" in painted.scores.over_time.status.text()
    painter = services_of(state.viewer).time_painter
    qtbot.waitUntil(lambda: painter.status == "", timeout=90 * SECONDS)
    layer = painter.layer
    assert (
        layer.visible
        and not score_layers(viewer)["place · inverted neuron gradient · run 1"].visible
    )
    local = state.attribution.over_time("place", frames=slice(700, 701))[0]
    labels, shown = state.current.labels, np.array(layer.data.frame(700))
    for cell in (0, 11):
        np.testing.assert_allclose(shown[labels == cell + 1], local[cell], rtol=1e-3)
    assert np.isnan(shown[labels == 0]).all()
    painted.scores.over_time.follow.setChecked(False)
    assert (
        not layer.visible
        and score_layers(viewer)["place · inverted neuron gradient · run 1"].visible
    )


def test_the_map_to_look_at_first_follows_the_slider_by_the_generative_gradient(
    painted, state, qtbot, trained
):
    assert state.shown.method == FIRST[0]
    assert "generative gradient" in painted.scores.over_time.follow.toolTip()
    state.frame = 700
    painted.scores.over_time.seconds.setValue(0)
    painted.scores.over_time.follow.setChecked(True)
    painter = services_of(state.viewer).time_painter
    qtbot.waitUntil(lambda: painter.status == "", timeout=90 * SECONDS)
    followed = trained.attributions["generative-gradient"].over_time("place", slice(700, 701))[0]
    labels, shown = state.current.labels, np.array(painter.layer.data.frame(700))
    for cell in (0, 11):
        np.testing.assert_allclose(shown[labels == cell + 1], followed[cell], rtol=1e-3)


def test_a_run_that_lacks_the_default_map_is_painted_by_one_it_has(
    dock, state, viewer, recording, trained
):
    """A run of an earlier version, or of a sweep by another method."""
    other = "generative-gradient"
    state.show(recording)
    state.add_run(replace(trained, attributions={other: trained.attributions[other]}))
    assert state.shown.method == other
    assert score_layers(viewer)["place · generative gradient · run 1"].visible


def test_statistics_are_computed_in_the_background_and_stand_in_the_table(
    painted, state, qtbot, recording
):
    button = painted.statistics_button
    for name in ("mutual_information", "grid_score"):
        button.entries[name].trigger()
    assert state.shown.statistics == ("mutual_information", "grid_score")
    assert painted.jobs.busy and not painted.compute.isHidden()
    assert "Computing mutual information" in painted.compute.sentence.text()
    qtbot.waitUntil(lambda: not painted.jobs.busy, timeout=90 * SECONDS)
    columns = painted.scores.table.model.ranking.columns
    assert list(columns)[-4:] == ["MI", "grid", "above", "accepted"]
    expected = cell_statistics(recording, FACTORS, ["mutual_information"]).of("place")
    np.testing.assert_allclose(columns["MI"].values, expected["mutual_information"])
    assert "shifted in time" in columns["MI"].help

    choose(painted.choice.factor, "speed")  # has no map, so no grid score
    assert "MI" in painted.scores.table.model.ranking.titles
    assert "grid" not in painted.scores.table.model.ranking.titles
    assert not button.entries["grid_score"].isEnabled()
    choose(painted.choice.factor, "time")
    assert not any(entry.isEnabled() for entry in button.entries.values())
    assert "no variable" in button.toolTip()
    choose(painted.choice.factor, "place")
    button.entries["grid_score"].trigger()
    assert "grid" not in painted.scores.table.model.ranking.titles
    assert not painted.jobs.busy


def test_all_methods_are_computed_and_stand_side_by_side(painted, state, viewer, qtbot, trained):
    painted.methods_button.click()
    window = painted.methods_button.opened
    assert window.isVisible()
    assert window.correlations.model_.rowCount() == len(FIRST)
    assert "Not computed yet: 7 methods and 7 statistics" in window.compute.sentence.text()
    window.compute.start.click()
    assert "7 more queued" in window.compute.sentence.text()
    qtbot.waitUntil(lambda: not painted.jobs.busy, timeout=120 * SECONDS)
    assert window.compute.isHidden() and painted.compute.isHidden()
    assert set(state.shown_run.attributions) == set(METHODS)
    comparison = services_of(state.viewer).statistics.comparison()
    shown = window.correlations.model_
    assert shown.names == [*METHODS, *STATISTICS]
    np.testing.assert_array_equal(shown.values, comparison.correlations("place"))
    columns = window.table.model.ranking.columns
    best = int(np.nanargmax(comparison.of("place")["neuron-gradient"]))
    assert columns["neuron gradient"].text(best) == "1"

    # a row marks its cell everywhere, and the window follows the factor
    window.table.view.selectRow(0)
    assert list(state.selection) == [window.table.model.cells[0]]
    choose(painted.choice.factor, "speed")
    assert "at chance" in window.heading.text()
    assert shown.names[-1] == "decoder_weight"
    assert "grid score" not in window.table.model.ranking.titles
    state.shown = replace(state.shown, blind=True)
    assert window.table.isHidden() and "judged blind" in window.heading.text()
    for kind in (QAbstractButton, QTableView, QLineEdit):
        for control in window.findChildren(kind):
            inner = isinstance(control.parent(), (QLineEdit, QTableView))
            assert inner or control.toolTip(), (kind, control)


def test_computing_can_be_stopped_and_what_is_done_is_kept(painted, qtbot, state):
    choose(painted.choice.method, "feature ablation")
    jobs = painted.jobs
    run = state.shown_run
    painted.services.run_jobs.score(state.current, run, "neuron-gradient", "feature-ablation")
    qtbot.waitUntil(lambda: jobs.title == "feature ablation", timeout=90 * SECONDS)
    painted.compute.stop.click()
    qtbot.waitUntil(lambda: not jobs.busy, timeout=90 * SECONDS)
    assert "neuron-gradient" in state.shown_run.attributions
    # it may be done before the stop is heard
    done = state.attribution is not None
    kept = "what was finished is kept" if done else "nothing was kept"
    assert f"Stopped feature ablation: {kept}." in painted.notice.text
    assert not painted.compute.start.isHidden()


def test_every_export_writes_a_file_and_says_where(painted, state, tmp_path, qtbot):
    state.shown = replace(state.shown, threshold=1.0)
    export = painted.export
    for write, name in (
        (export.export_nwb, "results.nwb"),
        (export.export_table, "scores.csv"),
        (export.export_scores, "scores.npz"),
        (export.export_picture, "field.png"),
        (export.export_factor, "field.svg"),
        (export.export_hue, "hue.npy"),
        (export.export_comparison, "methods.csv"),
        (export.export_agreement, "methods.png"),
        (export.export_screenshot, "canvas.png"),
    ):
        painted.notice.clear()
        write(tmp_path / name)
        qtbot.waitUntil(lambda: painted.notice.text != "", timeout=90 * SECONDS)
        assert painted.notice.text == f"Wrote {tmp_path / name}."
        assert (tmp_path / name).stat().st_size > 100
    table = pd.read_csv(tmp_path / "scores.csv")  # the other map stands beside the one shown
    other = state.shown_run.attributions[FIRST[1]].score("place")
    written = table.loc[table["factor"] == "place", "generative_gradient"]
    np.testing.assert_allclose(written, other, rtol=1e-4)
    table = pd.read_csv(tmp_path / "scores.csv")
    place = table[table.factor == "place"]
    assert place.selected.sum() == shown_map(state).above(1.0).sum()


def test_a_report_is_written_in_the_background_and_opened(painted, state, tmp_path, qtbot, shown):
    painted.export.export_report(tmp_path / "report.html")
    assert services_of(state.viewer).jobs.busy
    qtbot.waitUntil(lambda: painted.notice.text != "", timeout=90 * SECONDS)
    assert painted.notice.text == f"Wrote {tmp_path / 'report.html'}."
    assert shown == [tmp_path / "report.html"]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "speed is at chance" in page
    assert page.rstrip().endswith("</html>")


def test_a_report_that_cannot_be_written_is_a_sentence(painted, tmp_path, qtbot, shown):
    (tmp_path / "file").write_text("")
    painted.export.export_report(tmp_path / "file" / "report.html")
    qtbot.waitUntil(lambda: painted.notice.text != "", timeout=90 * SECONDS)
    assert "could not be written" in painted.notice.text
    assert shown == []


@pytest.fixture
def shown(monkeypatch):
    """Pages that would have been opened in the browser."""
    pages = []
    monkeypatch.setattr(run_jobs, "_show_page", pages.append)
    return pages


def test_files_are_written_while_many_jobs_are_listened_to(painted, state, tmp_path, qtbot):
    pool, waiting = QThreadPool.globalInstance(), threading.Event()
    before = pool.maxThreadCount()
    pool.setMaxThreadCount(2)
    try:
        for _ in range(3):
            _listen(iter(waiting.wait, True), lambda _: None)
        painted.export.export_hue(tmp_path / "hue.npy")
        qtbot.waitUntil(lambda: painted.notice.text != "", timeout=10 * SECONDS)
    finally:
        waiting.set()
        assert pool.waitForDone(10 * SECONDS)
        pool.setMaxThreadCount(before)
    assert pool.maxThreadCount() == before


def test_a_file_that_cannot_be_written_is_a_sentence(painted, tmp_path, qtbot):
    (tmp_path / "file").write_text("")
    painted.export.export_table(tmp_path / "file" / "scores.csv")
    qtbot.waitUntil(lambda: painted.notice.text != "", timeout=30 * SECONDS)
    assert "could not be written" in painted.notice.text


def test_a_closed_dock_gets_no_calls_and_the_painting_goes_on(
    painted, state, viewer, qtbot, trained
):
    gone = []
    painted.destroyed.connect(lambda *_: gone.append(True))
    viewer.window.remove_dock_widget(painted)
    qtbot.waitUntil(lambda: bool(gone), timeout=5 * SECONDS)
    state.shown = replace(state.shown, factor="time", threshold=0.3)
    state.select([1, 2])
    state.frame = 5
    viewer.theme = "light"
    state.remove_run("run 1")
    state.add_run(trained)
    state.shown = replace(state.shown, run="run 1", factor="place")
    assert score_layers(viewer)[PLACE].visible


def test_a_dock_opened_later_shows_what_is_painted(painted, state, viewer):
    state.shown = replace(state.shown, factor="time", threshold=0.4)
    other = AttributionDock(viewer)
    viewer.window.add_dock_widget(other, name="Attribution again")
    assert other.choice.factor.currentText() == "time"
    assert other.scores.histogram.z.value() == pytest.approx(0.4)


def test_every_control_fits_and_says_what_it_does(painted, viewer, qtbot):
    viewer.window._qt_window.resize(1280, 800)
    viewer.window.show()
    inside = painted._area.widget()
    qtbot.waitUntil(lambda: inside.width() <= painted._area.viewport().width(), timeout=5 * SECONDS)
    assert painted.minimumSizeHint().width() < 380
    kinds = (QAbstractButton, QComboBox, QAbstractSpinBox, QLineEdit, QProgressBar, QTableView)
    for kind in kinds:
        for control in inside.findChildren(kind):
            # Qt's own parts: arrows of a number, of tabs, corner of a table
            inner = isinstance(control.parent(), (*kinds[2:4], QTableView, QTabBar))
            assert inner or control.toolTip(), (kind, control.parent())


def test_another_recording_is_opened_in_front_of_a_map(painted, state, viewer, qtbot):
    """Its cells are other ones, which the decisions are told of before the map is taken away."""
    assert painted.scores._map is not None
    painted.presence.now = True
    fewer = Recording.from_arrays(np.random.default_rng(0).random((200, 7)), rate=10.0)
    state.show(fewer)
    assert painted.scores._map is None
    assert painted.scores.isHidden()
    state.current = state.opened[0]
    qtbot.waitUntil(lambda: painted.scores._map is not None)
    assert len(painted.scores.table.model.cells) == state.recording.n_cells


def test_dock_layer_and_colour_bar_have_the_same_limits_whoever_sets_them(
    painted, state, viewer, qtbot
):
    """The mean, playback before and after its first stretch, and napari's contrast slider."""
    row, scale = painted.scores.colors, services_of(viewer).color_scale

    def agree(limits):
        low, high = (box.value() for box in (row.low, row.high))
        assert scale.now.limits == pytest.approx(tuple(limits))
        assert (low, high) == pytest.approx(tuple(limits), rel=1e-3, abs=1e-4)
        assert scale.bar.lines[2::2] == tuple(map(brief, scale.now.limits))

    agree(painted.painter.limits)
    assert scale.bar.lines[:2] == ("place", "both routes")
    assert scale.bar.lines[3] == "share of variance, R²"
    painted.scores.over_time.follow.setChecked(True)
    painter = services_of(viewer).time_painter
    agree(painter.layer.contrast_limits)
    assert scale.bar.lines[:2] == ("place, this frame", "generative gradient")
    assert painter.layer.name == "place over time · generative gradient · run 1"
    qtbot.waitUntil(lambda: painter.status == "", timeout=90 * SECONDS)
    agree(painter.layer.contrast_limits)
    assert not row.automatic.isEnabled()
    low, high = painter.layer.contrast_limits
    painter.layer.contrast_limits = low, high / 2
    agree((low, high / 2))
    assert row.automatic.isEnabled()
    row.high.setValue(high / 4)
    agree(painter.layer.contrast_limits)
    row.automatic.click()
    agree((low, high))
    painted.scores.over_time.follow.setChecked(False)
    agree(painted.painter.limits)
    choose(painted.choice.factor, "at chance")
    assert scale.now is None and scale.bar.place.isEmpty()
