"""Tuning curves and maps find what was put into simulated cells."""

import numpy as np
import pytest

from napari_xcebra.attribution.single_cell.tuning import (
    Column,
    TuningCurve,
    _tuning_curve,
    binned,
    columns_of,
    tuning_map,
    tuning_to,
)
from napari_xcebra.errors import InputError
from napari_xcebra.recording import Recording, Variable
from napari_xcebra.simulate import arena

RNG = np.random.default_rng(0)
ALL = np.ones(4000, bool)


def wandering(frames=4000):
    """A value that moves slowly between 0 and 1."""
    return 0.5 + 0.5 * np.sin(np.cumsum(RNG.normal(0, 0.1, frames)))


def test_a_curve_recovers_a_known_response_within_its_error():
    value = RNG.uniform(0, 10, 4000)
    activity = np.stack([value**2, 5 - value], axis=1) + RNG.normal(0, 1, (4000, 2))
    curve = _tuning_curve(activity, binned(Column("v", value), ALL, bins=20))
    truth = np.stack([curve.bins.values**2 + 0.25 / 12, 5 - curve.bins.values], axis=1)
    away = np.abs(curve.mean - truth) / curve.error
    assert np.mean(away < 2) > 0.85
    assert np.abs(curve.mean - truth).max() < 0.8


def test_time_spent_in_a_bin_does_not_change_its_mean():
    value = np.r_[np.full(3900, 0.2), np.full(100, 0.8)]
    activity = np.where(value < 0.5, 1.0, 7.0)[:, None]
    curve = _tuning_curve(activity, binned(Column("v", value), ALL, bins=2))
    assert curve.mean[:, 0].tolist() == [1.0, 7.0]
    assert curve.frames.tolist() == [3900, 100]


def test_frames_that_are_excluded_or_unknown_take_no_part():
    value = RNG.uniform(0, 1, 4000)
    activity = np.ones((4000, 1))
    value[:1000] = np.nan
    activity[:1000] = 1e6
    used = ALL.copy()
    used[1000:2000] = False
    activity[1000:2000] = -1e6
    curve = _tuning_curve(activity, binned(Column("v", value), used, bins=5))
    assert curve.frames.sum() == 2000
    np.testing.assert_array_equal(curve.mean, 1)
    bins = binned(Column("v", value), used, bins=5)
    assert np.nanmax(np.abs(tuning_map(activity, bins, bins).mean - 1)) < 1e-12


def test_the_error_is_that_of_repeated_recordings_although_neighbouring_frames_go_together():
    """Taking frames for independent would give an error several times too small."""
    means, errors = [], []
    for _ in range(60):
        value = np.repeat(RNG.integers(0, 2, 200), 20).astype(float)
        noise = np.repeat(RNG.normal(0, 1, 400), 10)
        curve = _tuning_curve(noise[:, None], binned(Column("v", value, "discrete"), ALL))
        means.append(curve.mean[:, 0])
        errors.append(curve.error[:, 0])
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.2)
    assert np.mean(errors) > 2 / np.sqrt(2000)


def test_bins_visited_too_rarely_are_left_blank():
    value = np.r_[np.zeros(3997), np.full(3, 10.0)]
    curve = _tuning_curve(np.ones((4000, 1)), binned(Column("v", value), ALL, bins=10))
    assert np.flatnonzero(np.isfinite(curve.mean[:, 0])).tolist() == [0]


def test_bins_by_occupancy_are_visited_equally_often():
    value = RNG.exponential(1, 4000)
    curve = _tuning_curve(np.ones((4000, 1)), binned(Column("v", value), ALL, 10, "occupancy"))
    assert curve.frames.tolist() == [400] * 10


def test_circular_values_are_taken_by_their_turn():
    angle = RNG.uniform(-10, 10, 4000)
    column = Column("direction", angle, "circular")
    curve = _tuning_curve(np.cos(angle)[:, None], binned(column, ALL, bins=24))
    assert curve.bins.edges[0] == 0 and curve.bins.edges[-1] == pytest.approx(2 * np.pi)
    np.testing.assert_allclose(curve.mean[:, 0], np.cos(curve.bins.values), atol=0.03)


def test_discrete_values_have_a_bin_each():
    value = RNG.choice([3.0, 7.0, 40.0], 4000)
    curve = _tuning_curve(value[:, None], binned(Column("cue", value, "discrete"), ALL, bins=5))
    np.testing.assert_array_equal(curve.bins.values, [3, 7, 40])
    np.testing.assert_array_equal(curve.mean[:, 0], [3, 7, 40])


def test_too_many_discrete_values_get_a_sentence():
    with pytest.raises(InputError, match=r"trial is discrete with 4000 different values"):
        binned(Column("trial", np.arange(4000.0), "discrete"), ALL)


def test_a_variable_that_is_never_known_gets_a_sentence():
    with pytest.raises(InputError, match=r"v is known at no frame in use"):
        binned(Column("v", np.full(4000, np.nan)), ALL)


def test_two_variables_that_are_never_known_together_get_a_sentence():
    first, second = wandering(), wandering()
    first[:2000], second[2000:] = np.nan, np.nan
    with pytest.raises(InputError, match="never known at the same frame"):
        tuning_map(
            np.ones((4000, 1)), binned(Column("a", first), ALL), binned(Column("b", second), ALL)
        )


def test_a_constant_variable_has_one_level():
    for spacing in ("width", "occupancy"):
        bins = binned(Column("v", np.full(4000, 3.0)), ALL, 10, spacing)
        curve = _tuning_curve(np.full((4000, 1), 2.0), bins)
        assert np.nanmax(curve.mean) == 2.0


def test_unvisited_places_of_a_map_are_blank_and_the_others_are_not():
    x, y = RNG.uniform(0, 1, (2, 4000))
    y = np.where(x > 0.5, y / 2, y)
    bins = [binned(Column(n, v), ALL, bins=10) for n, v in (("x", x), ("y", y))]
    map_ = tuning_map(np.ones((4000, 3)), *bins)
    assert map_.mean.shape == (10, 10, 3)
    np.testing.assert_array_equal(np.isnan(map_.mean[..., 0]), map_.frames == 0)
    assert (map_.frames[6:, 6:] == 0).all()
    np.testing.assert_allclose(map_.mean[map_.frames > 0], 1)


def test_a_map_smooths_around_a_full_turn_but_not_between_categories():
    angle = np.full(4000, 0.01)
    angle[2000:] = np.linspace(0, 6.28, 2000)
    cue = np.tile([0.0, 1.0], 2000)
    activity = np.where((angle < 0.2) & (cue == 1), 1.0, 0.0)[:, None]
    across = binned(Column("direction", angle, "circular"), ALL, bins=20)
    map_ = tuning_map(activity, across, binned(Column("cue", cue, "discrete"), ALL))
    assert map_.mean[1, -1, 0] > 0.1
    assert map_.mean[1, 10, 0] == pytest.approx(0, abs=1e-6)
    assert map_.mean[0].max() == 0


def test_place_fields_of_a_simulated_arena_are_where_their_cells_fire_most():
    simulation = arena(place=6, grid=0, direction=6, speed=0, untuned=0, frames=6000, seed=1)
    recording = simulation.recording
    used = ~recording.excluded
    x, y = (binned(c, used, 15) for c in columns_of(recording, ["position"]))
    place = np.flatnonzero(simulation.cell_kinds == "place")
    rates = simulation.rates[:, place]
    map_ = tuning_map(rates, x, y)
    flat = np.nan_to_num(map_.mean, nan=-1).reshape(-1, len(place))
    row, column = np.divmod(flat.argmax(0), 15)
    fields = np.stack([x.values[column], y.values[row]], axis=1)
    peaks = recording.behavior["position"].values[rates.argmax(0)]
    assert np.linalg.norm(fields - peaks, axis=1).max() < 0.15


def test_head_direction_cells_of_a_simulated_arena_point_where_they_were_made_to():
    simulation = arena(place=0, grid=0, direction=8, speed=0, untuned=0, frames=6000, seed=1)
    (direction,) = columns_of(simulation.recording, ["direction"])
    rates = simulation.rates
    curve = _tuning_curve(rates, binned(direction, np.ones(6000, bool)))
    preferred = curve.bins.values[np.nanargmax(curve.mean, axis=0)]
    truth = direction.values[rates.argmax(0)]
    assert np.abs(np.angle(np.exp(1j * (preferred - truth)))).max() < np.deg2rad(20)


def test_columns_carry_the_kind_and_unit_of_their_variable():
    behavior = {
        "place": Variable("place", np.ones((5, 2)), unit="cm"),
        "heading": Variable("heading", np.ones(5), "circular", "°", 360.0),
    }
    recording = Recording(np.ones((5, 2)), 10.0, behavior)
    columns = columns_of(recording, ["place", "heading"])
    assert [c.title for c in columns] == ["x (cm)", "y (cm)", "heading (°)"]
    assert columns[2].kind == "circular" and columns[2].period == 360


def test_coordinates_are_called_x_and_y_unless_two_things_would_be():
    two = np.ones((5, 2))
    given = [Variable("position", two), Variable("nose", two, unit="px"), Variable("wheel", two)]
    recording = Recording(two, 10.0).with_behavior(*given)
    called = [c.name for c in columns_of(recording, list(recording.behavior))]
    assert called == ["x", "y", "nose x", "nose y", "wheel 1", "wheel 2"]
    other = recording.with_behavior(Variable("x", np.ones(5)))
    called = [c.name for c in columns_of(other, ["position", "x"])]
    assert called == ["position x", "position y", "x"]


def test_values_that_stand_for_words_are_called_by_them():
    side = Variable("side", np.array([0, 1, 1, 0, 2]), "discrete", words=("left", "right"))
    (column,) = columns_of(Recording(np.ones((5, 2)), 10.0, {"side": side}), ["side"])
    assert [column.called(value) for value in (0.0, 1.0, 2.0)] == ["left", "right", "2"]


def test_a_track_with_a_second_coordinate_that_never_changes_gives_a_curve():
    """As trackers write it; a map of it would be a line without height."""
    along = np.linspace(0, 100, 500)
    columns = [Column("position 1", along), Column("position 2", np.zeros(500))]
    tuning = tuning_to(columns, np.square(along)[:, None], np.ones(500, bool))
    assert isinstance(tuning, TuningCurve)
    assert tuning.bins.column.name == "position 1"
    still = [Column("x", np.ones(500)), Column("y", np.ones(500))]
    assert isinstance(tuning_to(still, along[:, None], np.ones(500, bool)), TuningCurve)
