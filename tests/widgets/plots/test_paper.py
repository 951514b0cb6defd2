"""A right click on a plot offers it as a figure: what is shown, as vectors, on white."""

import re

import numpy as np
import pytest
from matplotlib.image import imread
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication
from scored import METHOD, scored_run

from napari_xcebra.attribution.score_map import ScoreMap
from napari_xcebra.attribution.single_cell.tuning import columns_of, tuning_to
from napari_xcebra.errors import InputError
from napari_xcebra.recording import Recording, Variable
from napari_xcebra.report.figures.paper import save_figure
from napari_xcebra.widgets.plots.embedding_plot import EmbeddingPlot
from napari_xcebra.widgets.plots.paper import _figure_of
from napari_xcebra.widgets.plots.plot_style import ColorKey, style_of
from napari_xcebra.widgets.plots.score_plots import ScoreHistogram
from napari_xcebra.widgets.plots.trace_plot import TracePlot, behavior_lane, cell_lane
from napari_xcebra.widgets.plots.tuning_plot import TuningPlot

pytestmark = pytest.mark.gui
RNG = np.random.default_rng(0)
DARK = style_of("dark")


@pytest.fixture
def recording():
    place = Variable("place", RNG.random((600, 2)), unit="cm")
    speed = Variable("speed", RNG.random(600), unit="cm/s")
    traces = RNG.random((600, 3))
    return Recording(traces, 10.0, {"place": place, "speed": speed}, starts=[0, 200, 400])


def shown(qtbot, plot, size=(360, 260)):
    qtbot.addWidget(plot)
    plot.resize(*size)
    with qtbot.waitExposed(plot):
        plot.show()
    return plot


@pytest.fixture
def tuning(qtbot, recording):
    plot = shown(qtbot, TuningPlot())
    used = np.ones(600, bool)
    found = tuning_to(columns_of(recording, ["speed"]), np.asarray(recording.traces), used)
    plot.show_tuning(found, ["cell 7", "cell 8", "cell 9"], DARK)
    return plot


def texts(svg):
    return " ".join(re.findall(r"<text[^>]*>([^<]*)<", svg))


def test_a_right_click_opens_the_menu_and_a_drag_does_not(tuning, qtbot):
    menu, view = tuning.figure_menu.menu, tuning.viewport()
    QTest.mousePress(view, Qt.MouseButton.RightButton, pos=QPoint(150, 100))
    QTest.mouseMove(view, QPoint(220, 100))
    QTest.mouseRelease(view, Qt.MouseButton.RightButton, pos=QPoint(220, 100))
    assert not menu.isVisible()
    QTest.mouseClick(view, Qt.MouseButton.RightButton, pos=QPoint(150, 100))
    qtbot.waitUntil(menu.isVisible)
    offered = [action.text() for action in menu.actions()]
    assert offered == ["Copy as figure", "Save figure …", "Copy values"]
    menu.actions()[0].trigger()
    menu.close()
    copied = QApplication.clipboard().mimeData()
    assert copied.hasImage()
    assert b"<text" in bytes(copied.data("image/svg+xml").data())
    assert bytes(copied.data("application/pdf").data()).startswith(b"%PDF")


def test_a_saved_figure_has_text_as_text_and_a_white_ground(tuning, tmp_path):
    for name in ("a.svg", "a.pdf", "a.png"):
        tuning.figure_menu.save(tmp_path / name)
    svg = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert "speed (cm/s)" in texts(svg) and "mean activity" in texts(svg)
    pdf = (tmp_path / "a.pdf").read_bytes()
    assert b"/Type0" in pdf and b"/Type3" not in pdf  # fonts whose text can be changed
    pixels = imread(tmp_path / "a.png")
    assert (pixels[0, 0, :3] == 1).all()
    assert pixels[..., :3].min() < 0.2  # ink that is seen on it
    sizes = [float(size) for size in re.findall(r"font-size: ([\d.]+)px", svg)]
    assert sizes and min(sizes) >= 6


def test_a_figure_in_another_format_is_a_sentence(tuning, tmp_path):
    with pytest.raises(InputError, match=r"ends in \.pdf, \.svg, \.png"):
        save_figure(_figure_of(tuning), tmp_path / "a.docx")
    assert list(tmp_path.iterdir()) == []


def test_traces_are_drawn_lane_by_lane_without_the_cursor(qtbot, recording):
    plot = shown(qtbot, TracePlot(), (700, 300))
    plot.show_recording(recording)
    plot.follow_style(DARK)
    lanes = [cell_lane(f"cell {i}", np.asarray(recording.traces)[:, i], "ΔF/F", DARK.pen(i),
                       DARK.line(i)) for i in range(2)]  # fmt: skip
    lanes += [behavior_lane(columns_of(recording, ["speed"])[0], DARK.ink, DARK.ink)]
    plot.show_lanes(lanes)
    figure = _figure_of(plot)
    first = figure.axes[0]
    assert len(first.get_lines()) == 3
    assert all(line.get_color()[:3] != (1, 1, 1) for line in first.get_lines())
    assert [text.get_text() for text in first.get_yticklabels()] == ["cell 0", "cell 1",
                                                                     "speed (cm/s)"]  # fmt: skip
    assert first.get_xlim() == pytest.approx(plot.getViewBox().viewRange()[0])
    assert len(first.patches) == 1  # every second trial is shaded


def test_bars_and_threshold_of_the_histogram_are_drawn_where_they_are(qtbot):
    histogram = shown(qtbot, ScoreHistogram())
    histogram.follow_theme(DARK)
    scores = ScoreMap(scored_run().attributions[METHOD], "place")
    histogram.show_map(scores)
    histogram.show_colors("viridis", (0.0, 1.0))
    histogram.show_threshold(0.5, dim=False)
    figure = _figure_of(histogram.plot)
    bars = figure.axes[0].patches
    assert sum(bar.get_height() for bar in bars) == np.isfinite(scores.scores).sum()
    lines = [line.get_xdata()[0] for line in figure.axes[0].get_lines()]
    assert scores.score_of(0.5) == pytest.approx(lines[0])


def test_the_embedding_is_drawn_as_it_is_turned_with_its_key(qtbot):
    plot = shown(qtbot, EmbeddingPlot())
    plot.follow_style(DARK)
    plot.show_points(RNG.uniform(-1, 1, (50, 3)).astype("f4"), ("1", "2", "3"))
    plot.show_colors(np.full((50, 3), 90, np.uint8))
    plot.key = ColorKey()
    plot.key.show_key("speed (cm/s)", np.zeros((9, 3), np.uint8), ("0", "30"), DARK)
    figure = plot.figure()
    np.testing.assert_allclose(figure.axes[0].collections[0].get_offsets(), plot.places)
    assert figure.axes[1].get_xlabel() == "speed (cm/s)"
