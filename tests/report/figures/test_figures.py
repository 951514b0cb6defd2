"""Pictures say what was found, and never show a map at chance as if it meant something."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from skimage.io import imread

from napari_xcebra.attribution import attribute
from napari_xcebra.learn import FitSettings, fit
from napari_xcebra.recording import Recording, Trials, Variable
from napari_xcebra.report.figures.comparisons import learning_curves
from napari_xcebra.report.figures.field import _Montage, painted_field
from napari_xcebra.report.figures.paper import PAPER, Colors
from napari_xcebra.report.figures.run import _responses_of_cells, responses_in_words
from napari_xcebra.simulate import field


@pytest.fixture(scope="module")
def result():
    simulation = field(cells=16, frames=1500, shape=(96, 96), junk=2)
    factors = {name: simulation.factors[name] for name in ("place", "speed")}
    settings = FitSettings(steps=20, batch_size=64, time_latents=1, time_offset=5)
    trained = fit(simulation.recording, factors, settings)
    attribution = attribute(trained, simulation.recording, frames=slice(0, 300))
    means_something = dict.fromkeys(attribution.factors, True)
    return simulation, trained, replace(attribution, strengths=means_something)


def words(figure):
    return "\n".join(
        text.get_text()
        for ax in figure.axes
        for text in [ax.title, *ax.texts, *([ax.get_legend()] if ax.get_legend() else [])]
        if hasattr(text, "get_text")
    )


def painted_pixels(figure, panel):
    """The layer with the cells: the last image of a panel, RGBA."""
    return np.asarray(figure.axes[panel].images[-1].get_array())


def test_every_factor_has_a_panel_with_its_numbers(result):
    simulation, trained, attribution = result
    figure = painted_field(simulation.recording, attribution, truth=simulation.truth)
    text = words(figure)
    for factor in ("place", "speed", "time"):
        assert factor in text
    assert f"R² {trained.goodness['place'].r2:.2f}".replace("-", "−") in text
    assert f"(ridge {trained.goodness['place'].ridge_r2:.2f})".replace("-", "−") in text
    assert text.count("auROC") == 2


def test_a_factor_that_could_not_be_tested_is_painted_and_says_so(result):
    simulation, trained, _ = result
    slow = replace(trained.goodness["speed"], above_chance=False, p=np.nan, untested="Too few.")
    other = replace(trained, goodness={**trained.goodness, "speed": slow})
    found = attribute(other, simulation.recording, frames=slice(0, 300))
    assert not found.at_chance("speed")
    figure = painted_field(simulation.recording, found, factors=["speed"])
    assert "speed (not tested)" in words(figure)
    assert "means nothing" not in words(figure)
    red, _, blue, _ = painted_pixels(figure, 0).astype(int).reshape(-1, 4).T
    assert (red != blue).any()


def test_cells_are_coloured_by_their_own_score(result):
    simulation, _, attribution = result
    painted = painted_pixels(painted_field(simulation.recording, attribution), 0)
    labels = simulation.recording.footprints.label_image()
    scale = painted.shape[0] // labels.shape[0]
    score = attribution.score("place")
    best, worst = np.nanargmax(score) + 1, np.nanargmin(score) + 1
    seen = {}
    for label in (best, worst):
        inside = np.kron(labels == label, np.ones((scale, scale), bool))
        colours, count = np.unique(painted[inside], axis=0, return_counts=True)
        seen[label] = colours[count.argmax()]
    np.testing.assert_array_equal(seen[best][:3], [253, 231, 36])  # the bright end of viridis
    np.testing.assert_array_equal(seen[worst][:3], [68, 1, 84])  # and the dark one


def test_cells_that_were_not_used_are_left_empty(result):
    simulation, _, attribution = result
    painted = painted_pixels(painted_field(simulation.recording, attribution), 0)
    labels = simulation.recording.footprints.label_image()
    scale = painted.shape[0] // labels.shape[0]
    junk = np.kron(labels == 18, np.ones((scale, scale), bool))
    assert np.isnan(attribution.score("place")[17])
    assert np.median(painted[junk][:, 3]) == 0


def test_a_map_at_chance_says_so_and_has_no_colour(result):
    simulation, _, attribution = result
    doubtful = replace(attribution, strengths=attribution.strengths | {"speed": "at chance"})
    figure = painted_field(simulation.recording, doubtful)
    assert words(figure).count("this map means nothing") == 1
    red, green, blue, _ = painted_pixels(figure, 1).astype(int).reshape(-1, 4).T
    assert (red == green).all() and (green == blue).all()
    assert words(painted_field(simulation.recording, attribution)).count("means nothing") == 0


def test_cells_without_footprints_lie_on_a_grid_under_their_ids(result):
    simulation, _, attribution = result
    bare = replace(simulation.recording, footprints=None, images={})
    figure = painted_field(bare, attribution)
    assert [t.get_text() for t in figure.axes[0].texts][:18] == [str(i) for i in range(18)]


def test_every_plane_is_painted_and_named(result, tmp_path):
    simulation, _, attribution = result
    flat = simulation.recording.footprints
    planes = replace(flat, shape=(3, *flat.shape), plane=flat.cell % 3)
    images = {"mean": np.repeat(simulation.recording.images["mean"][None], 3, 0)}
    stacked = replace(simulation.recording, footprints=planes, images=images)
    figure = painted_field(stacked, attribution, tmp_path / "painted.png")
    said = [text.get_text() for text in figure.axes[0].texts]
    assert [word for word in said if word.startswith("plane")] == ["plane 0", "plane 1", "plane 2"]
    labels, painted = planes.label_image(), painted_pixels(figure, 0)
    tiled = _Montage(*labels.shape).tile(labels)
    enlarged = np.kron(tiled, np.ones(np.array(painted.shape[:2]) // tiled.shape, tiled.dtype))
    for cell in np.flatnonzero(np.isfinite(attribution.score("place"))):
        assert (painted[enlarged == cell + 1][:, 3] > 0).all()
    assert (painted[enlarged == 0][:, 3] == 0).all()


def test_planes_of_any_number_lie_apart_and_keep_their_pixels():
    for planes in (1, 2, 3, 5, 7):
        stack = np.arange(1, planes * 12 + 1).reshape(planes, 3, 4)
        tiled = _Montage(*stack.shape).tile(stack)
        assert sorted(tiled[tiled > 0]) == list(range(1, planes * 12 + 1))
        for plane, (row, column) in zip(stack, _Montage(*stack.shape).corners, strict=True):
            np.testing.assert_array_equal(tiled[row : row + 3, column : column + 4], plane)


def test_pictures_are_written_and_nothing_is_cut_off(result, tmp_path):
    """Nothing but paper lies along the edges: no text, no panel runs out of the picture."""
    simulation, trained, attribution = result
    painted_field(simulation.recording, attribution, tmp_path / "painted.png", simulation.truth)
    learning_curves(trained, tmp_path / "learning.png")
    for path in tmp_path.iterdir():
        picture = imread(path)[..., :3]
        edges = (picture[0], picture[-1], picture[:, 0], picture[:, -1])
        assert all((edge == 255).all() for edge in edges)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["learning.png", "painted.png"]


def test_learning_curves_show_every_loss_and_chance(result):
    _, trained, _ = result
    above = learning_curves(trained).axes[0]
    labels = [text.get_text() for text in above.get_legend().get_texts()]
    assert labels == ["place", "speed", "time", "chance", "on held-out frames"]


@pytest.mark.parametrize("mode", ["supervised", "behavior"])
def test_learning_curves_of_other_modes(result, mode):
    simulation, _, _ = result
    settings = FitSettings(mode=mode, steps=12, batch_size=32, lambda_=0.0)
    trained = fit(simulation.recording, {"speed": ["speed"]}, settings)
    assert learning_curves(trained).axes[0].get_legend() is not None


def test_a_figure_for_a_paper_is_as_wide_as_a_column_with_units_and_a_scale_bar(result, tmp_path):
    simulation, _, attribution = result
    recording = simulation.recording
    width = recording.footprints.shape[1]
    recording = replace(recording, pixel_size=400 / width)
    path = tmp_path / "field.svg"
    figure = painted_field(recording, attribution, path, factors=["place"], look=PAPER)
    assert figure.get_size_inches()[0] == pytest.approx(85 / 25.4)
    texts = [text for ax in figure.axes for text in ax.findobj(Text) if text.get_text()]
    assert min(text.get_fontsize() for text in texts) >= 6
    bar = next(line for line in figure.axes[0].get_lines() if len(line.get_xdata()) == 2)
    assert np.ptp(bar.get_xdata()) * recording.pixel_size == pytest.approx(100)
    svg = path.read_text(encoding="utf-8")
    written = re.findall(r"<text[^>]*>([^<]*)<", svg)
    assert "100 µm" in written and any(text.startswith("score (") for text in written)


def test_without_a_pixel_size_there_is_no_scale_bar(result):
    simulation, _, attribution = result
    unknown = replace(simulation.recording, pixel_size=None)
    figure = painted_field(unknown, attribution, factors=["place"], look=PAPER)
    assert not any("µm" in text.get_text() for text in figure.findobj(Text))


def test_a_figure_of_the_canvas_has_its_colours_and_limits(result):
    simulation, _, attribution = result
    red = np.tile([1.0, 0.0, 0.0, 1.0], (256, 1))
    figure = painted_field(
        simulation.recording, attribution, factors=["place"], look=PAPER, latent=None,
        colors=Colors(0.25, 0.5, red),
    )  # fmt: skip
    image = figure.axes[0].images[-1]
    assert (image.norm.vmin, image.norm.vmax) == (0.25, 0.5)
    pixels = painted_pixels(figure, 0)
    inside = pixels[(pixels[..., 3] > 0) & (pixels[..., 3] < 255)]
    assert (inside[:, :3] == [255, 0, 0]).all() and len(inside)


FRAMES, TRIALS = 800, 16


@pytest.fixture
def recording():
    """Cell 11 is up by 1 from the choice on, if it is one to the "$right$"."""
    rng = np.random.default_rng(0)
    first = np.arange(TRIALS) * 50
    choice = np.arange(TRIALS) % 2
    chosen, known = np.zeros(FRAMES), np.full(FRAMES, np.nan)
    chosen[first + 20] = 1
    traces = rng.normal(scale=0.05, size=(FRAMES, 3))
    for start, right in zip(first, choice, strict=True):
        known[start + 20 : start + 45] = right
        traces[start + 20 : start + 45, 1] += right
    words = {"choice": ("_left", "$right$")}
    columns = {"choice": choice, "reaction_s": rng.random(TRIALS) + np.arange(TRIALS)}
    behavior = {
        "choice_time": Variable("choice_time", chosen, "event"),
        "choice": Variable("choice", known, "discrete", words=words["choice"]),
        "speed": Variable("speed", rng.random(FRAMES)),
    }
    trials = Trials(first, first + 45, columns, words)
    return Recording(traces, 10.0, behavior, cell_ids=[10, 11, 12], trials=trials)


def test_the_response_is_drawn_by_group_around_the_moment_that_makes_it_known(recording):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shown = responses_in_words(recording, "choice", ["choice"], np.array([1, 0]))
    assert "around choice_time, by choice" in shown.caption
    assert "cells 11, 10" in shown.alt
    figure = _responses_of_cells(recording, "choice_time", "choice", np.array([1, 0]))
    assert isinstance(figure, Figure)
    event, left, right = figure.axes[0].get_lines()
    assert event.get_xdata() == [0, 0]
    after = right.get_xdata() > 0.05
    np.testing.assert_allclose(right.get_ydata()[after], 1, atol=0.1)
    np.testing.assert_allclose(left.get_ydata()[after], 0, atol=0.1)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == [" _left (8)", r" \$right\$ (8)"]


def test_what_is_no_event_and_no_condition_keeps_its_tuning_curve(recording):
    cells = np.array([0])
    assert responses_in_words(recording, "speed", ["speed"], cells) is None
    event = responses_in_words(recording, "choice", ["choice_time"], cells)
    assert "around choice_time: mean" in event.caption
