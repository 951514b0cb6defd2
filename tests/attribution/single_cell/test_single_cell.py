"""Single-cell statistics equal their formulas, and find what was put into simulated cells."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import f_oneway, pearsonr, spearmanr
from sklearn.linear_model import Ridge

from napari_xcebra.attribution.ranks import auroc
from napari_xcebra.attribution.single_cell import STATISTICS, cell_statistics
from napari_xcebra.attribution.single_cell.measures import (
    correlation,
    decoder_weight,
    information_rate,
    mutual_information,
    rank_correlation,
    spatial_information,
)
from napari_xcebra.attribution.single_cell.tuning import Column
from napari_xcebra.errors import InputError, Stopped
from napari_xcebra.recording import Recording, Variable
from napari_xcebra.recording.traces import NpyTraces
from napari_xcebra.simulate import arena

FRAMES = 4000


def every(frames=FRAMES):
    return np.ones(frames, bool)


@pytest.fixture(scope="module")
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def slow(rng):
    """A variable and cells that change slowly, and have nothing to do with each other."""
    steps = rng.normal(size=(FRAMES, 41))
    for frame in range(1, FRAMES):
        steps[frame] += 0.98 * steps[frame - 1]
    return Column("slow", steps[:, 0]), steps[:, 1:]


@pytest.fixture(scope="module")
def navigating():
    """Cells of every kind, and all their statistics."""
    kinds = {"place": 15, "grid": 15, "direction": 15, "speed": 15, "untuned": 15}
    simulation = arena(**kinds, frames=6000, noise=0.5)
    return simulation, cell_statistics(simulation.recording, simulation.factors)


# ---------------------------------------------------------------- formulas


def test_spatial_information_is_the_formula_of_skaggs():
    """Three quarters of the time at rate 1, one quarter at rate 5: on average 2."""
    place = Column("place", np.repeat([0.0, 1.0], [3000, 1000]), "discrete")
    rates = np.where(place.values == 0, 1.0, 5.0)[:, None]
    bits = 0.75 * 0.5 * np.log2(0.5) + 0.25 * 2.5 * np.log2(2.5)
    assert spatial_information(rates, [place], every(), None) == pytest.approx(bits)
    assert information_rate(rates, [place], every(), None) == pytest.approx(2 * bits)


def test_the_baseline_of_a_trace_is_no_activity_so_that_brightness_does_not_matter():
    place = Column("place", np.repeat([0.0, 1.0], [3000, 1000]), "discrete")
    events = np.where(place.values == 0, 0.0, 1.0)[:, None]
    assert spatial_information(events, [place], every()) == pytest.approx(2)
    assert spatial_information(700 + 30 * events, [place], every()) == pytest.approx(2)


def test_a_cell_that_says_which_of_two_values_it_is_shares_one_bit(rng):
    which = rng.integers(0, 2, FRAMES).astype(float)
    told = mutual_information(which[:, None], [Column("which", which, "discrete")], every())
    assert told == pytest.approx(1, abs=0.01)


def test_slow_cells_share_no_information_with_a_variable_they_have_nothing_to_do_with(slow):
    variable, cells = slow
    corrected = mutual_information(cells, [variable], every())
    raw = mutual_information(cells, [variable], every(), shifts=0)
    error = corrected.std() / np.sqrt(len(corrected))
    assert abs(corrected.mean()) < 3 * error
    assert raw.mean() > 10 * error


def test_correlation_is_that_of_pearson_and_spearman(rng):
    speed = rng.gamma(2, size=FRAMES)
    cells = np.stack([speed, -np.exp(speed), rng.normal(size=FRAMES)], 1) + rng.normal(
        size=(FRAMES, 3)
    )
    columns = [Column("speed", speed)]
    for ours, theirs in ((correlation, pearsonr), (rank_correlation, spearmanr)):
        expected = [theirs(speed, cell).statistic for cell in cells.T]
        np.testing.assert_allclose(ours(cells, columns, every()), expected, atol=1e-12)


def test_correlation_with_an_angle_does_not_depend_on_where_it_starts(rng):
    angle = rng.uniform(0, 360, FRAMES)
    cell = np.cos(np.deg2rad(angle - 77))[:, None] + rng.normal(size=(FRAMES, 1))
    rx, ry = (pearsonr(f(np.deg2rad(angle)), cell[:, 0]).statistic for f in (np.cos, np.sin))
    both = pearsonr(np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))).statistic
    mardia = np.sqrt((rx**2 + ry**2 - 2 * rx * ry * both) / (1 - both**2))
    for start in (0, 77, 200):
        column = Column("angle", (angle - start) % 360, "circular", period=360.0)
        assert correlation(cell, [column], every()) == pytest.approx(mardia)


def test_correlation_with_a_discrete_variable_is_the_share_of_variance_between_its_values(rng):
    odour = rng.integers(0, 3, FRAMES).astype(float)
    cell = (odour == 1)[:, None] + rng.normal(size=(FRAMES, 1))
    eta = correlation(cell, [Column("odour", odour, "discrete")], every())[0]
    f = f_oneway(*(cell[odour == value, 0] for value in range(3))).statistic
    assert eta**2 == pytest.approx(2 * f / (2 * f + FRAMES - 3))


def test_the_decoder_is_a_ridge_regression_on_all_cells(rng):
    cells = rng.normal(size=(FRAMES, 6))
    target = cells @ [3.0, 0, 0, -2, 0, 0] + rng.normal(size=FRAMES)
    weight = decoder_weight(cells, [Column("target", target)], every())
    x = (cells - cells.mean(0)) / cells.std(0)
    ridge = Ridge(alpha=0).fit(x, (target - target.mean()) / target.std())
    np.testing.assert_allclose(weight, np.abs(ridge.coef_), atol=0.01)


# ---------------------------------------------------------------- simulated cells


def test_grid_cells_have_a_high_grid_score_and_others_do_not(navigating):
    simulation, found = navigating
    grid = simulation.cell_kinds == "grid"
    score = found.of("place")["grid_score"]
    assert score[grid].min() > 1
    assert np.median(score[~grid]) < 0.3
    assert auroc(score, grid) > 0.99


def test_cells_of_a_variable_rank_first_by_information_about_it(navigating):
    simulation, found = navigating
    for factor in ("place", "direction", "speed"):
        for name in ("spatial_information", "mutual_information"):
            assert auroc(found.of(factor)[name], simulation.truth[factor]) > 0.97, (factor, name)


def test_head_direction_cells_rank_first_by_every_statistic_of_an_angle(navigating):
    simulation, found = navigating
    table = found.table("direction")
    assert "grid_score" not in table
    for name in table.columns[1:]:
        assert auroc(np.abs(table[name]), simulation.truth["direction"]) > 0.97, name


# ---------------------------------------------------------------- borders


@pytest.mark.parametrize("name", STATISTICS)
def test_frames_that_are_excluded_or_unknown_take_no_part(name):
    simulation = arena(place=3, grid=3, direction=0, speed=0, frames=1000)
    recording = simulation.recording
    traces = np.array(recording.traces)
    position = np.array(recording.variable("position").values)
    excluded = np.zeros(1000, bool)
    excluded[300:500] = True
    position[700:800, 1] = np.nan
    behavior = {"position": Variable("position", position, unit="m")}
    clean = replace(recording, behavior=behavior, excluded=excluded)
    traces[300:500], traces[700:800] = 1e3, -1e3
    soiled = replace(clean, traces=traces)
    before, after = (
        cell_statistics(r, {"place": ["position"]}, [name]).of("place")[name]
        for r in (clean, soiled)
    )
    assert np.isfinite(before).all()
    np.testing.assert_allclose(after, before, rtol=1e-6)


def test_constant_cells_and_those_not_accepted_have_no_statistics():
    simulation = arena(place=4, grid=4, direction=2, speed=2, frames=800)
    traces = np.array(simulation.recording.traces)
    traces[:, 1] = 4.2
    accepted = np.arange(12) != 2
    recording = replace(simulation.recording, traces=traces, accepted=accepted)
    found = cell_statistics(recording, simulation.factors)
    for factor in found.factors:
        table = found.table(factor)
        assert table["cell"].tolist() == list(range(12))
        assert table.iloc[[1, 2], 1:].isna().all(axis=None), factor
        assert table.iloc[[0, 3, 4], 1:].notna().all(axis=None), factor


def test_traces_on_disk_have_the_same_statistics(tmp_path, monkeypatch, navigating):
    simulation, found = navigating
    np.save(tmp_path / "F.npy", np.asarray(simulation.recording.traces).T)
    on_disk = replace(simulation.recording, traces=NpyTraces(tmp_path / "F.npy", cells_first=True))
    monkeypatch.setattr("napari_xcebra.attribution.single_cell.statistics.CHUNK_BYTES", 500_000)
    again = cell_statistics(on_disk, {"speed": ["speed"]})
    for name, values in again.of("speed").items():
        np.testing.assert_allclose(values, found.of("speed")[name], rtol=1e-6, err_msg=name)


def test_the_time_factor_has_no_statistics(navigating):
    simulation, _ = navigating
    found = cell_statistics(simulation.recording, {"time": [], "speed": ["speed"]}, ["correlation"])
    assert found.factors == ("speed",)
    assert found.of("time") == {}
    with pytest.raises(InputError, match="no statistics for 'time'; there are for: speed"):
        found.table("time")


def test_a_statistic_that_cannot_be_had_is_left_out_with_a_sentence(rng):
    recording = Recording(
        rng.normal(size=(60, 2001)),
        10.0,
        {"tag": Variable("tag", np.arange(60), "discrete"), "x": Variable("x", np.arange(60.0))},
    )
    names = ["correlation", "decoder_weight"]
    found = cell_statistics(recording, {"x": ["x"]}, names)
    assert list(found.of("x")) == ["correlation"]
    assert found.notes == ("No decoder weight for x: 2001 cells are more than 2000.",)
    with pytest.raises(InputError, match="no statistic 'pearson'; there are: spatial_information"):
        cell_statistics(recording, {"x": ["x"]}, ["pearson"])


def test_more_than_two_columns_count_by_the_one_a_cell_tells_most_about(rng):
    pose = rng.normal(size=(FRAMES, 3))
    cell = pose[:, 2:] + 0.1 * rng.normal(size=(FRAMES, 1))
    columns = [Column(f"pose {i}", values) for i, values in enumerate(pose.T)]
    for statistic in (spatial_information, mutual_information):
        alone = statistic(cell, columns[2:], every())
        assert statistic(cell, columns, every()) == pytest.approx(alone)


def test_statistics_tell_how_far_they_are_and_can_be_stopped(navigating):
    simulation, _ = navigating
    told = []
    cell_statistics(
        simulation.recording,
        {"speed": ["speed"]},
        ["correlation", "decoder_weight"],
        on_progress=lambda done, total: told.append((done, total)),
    )
    assert told == [(75, 150), (150, 150)]
    with pytest.raises(Stopped):
        cell_statistics(simulation.recording, {"speed": ["speed"]}, stop=lambda: True)


def test_statistics_are_written_with_one_row_a_cell_and_factor(tmp_path, navigating):
    import pandas as pd

    _, found = navigating
    table = pd.read_csv(found.to_csv(tmp_path / "statistics.csv"))
    assert table.columns[:2].tolist() == ["cell", "factor"]
    assert len(table) == 3 * 75
    assert table.loc[table["factor"] == "speed", "grid_score"].isna().all()
