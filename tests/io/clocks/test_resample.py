"""Samples come to the frames by kind, and nothing is made up between them."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from napari_xcebra.io import open_recording
from napari_xcebra.io.clocks.resample import _at_frames, _clock_of
from napari_xcebra.simulate import arena, field

TICK = 1 / 64
"""Times are whole numbers of ticks, so that shifting them is exact."""


@st.composite
def clocks(draw):
    """Times of samples and of frames, at any rate, with gaps."""
    steps = draw(st.lists(st.integers(1, 4) | st.integers(20, 90), min_size=0, max_size=60))
    times = np.cumsum([0, *steps]) * TICK
    every = draw(st.integers(1, 30))
    first = draw(st.integers(-60, 60))
    frames = (first + every * np.arange(draw(st.integers(1, 40)))) * TICK
    return times, frames


def values_for(n, low=-100, high=100):
    return arrays(np.float64, n, elements=st.floats(low, high, width=32))


@given(
    clocks(),
    st.integers(-10_000, 10_000),
    st.sampled_from(["continuous", "circular", "discrete"]),
    st.data(),
)
def test_only_the_difference_between_the_clocks_matters(both, shift, kind, data):
    times, frames = both
    values = data.draw(values_for(len(times), 0, 6.25))[:, None]
    here = _at_frames(values, _clock_of(times, frames), kind)
    there = _at_frames(values, _clock_of(times + shift * TICK, frames + shift * TICK), kind)
    np.testing.assert_allclose(there, here, atol=1e-7)


@given(clocks(), st.data())
def test_a_value_lies_within_those_of_the_samples_around_it(both, data):
    times, frames = both
    values = data.draw(values_for(len(times)))
    clock = _clock_of(times, frames)
    found = _at_frames(values[:, None], clock)[:, 0]
    for frame, value in zip(frames, found, strict=True):
        if np.isnan(value):
            continue
        low = np.searchsorted(times, frame - clock.frame / 2, side="right") - 1
        high = np.searchsorted(times, frame + clock.frame / 2, side="left") + 1
        near = values[max(low, 0) : max(high, 1)]
        assert near.min() - 1e-6 <= value <= near.max() + 1e-6


@given(clocks(), st.sampled_from(["continuous", "circular", "discrete"]))
def test_gaps_are_never_filled(both, kind):
    times, frames = both
    clock = _clock_of(times, frames)
    found = _at_frames(np.ones((len(times), 1)), clock, kind)[:, 0]
    apart = np.abs(frames[:, None] - times).min(axis=1)
    before = times[np.clip(np.searchsorted(times, frames, side="right") - 1, 0, None)]
    after = times[np.clip(np.searchsorted(times, frames, side="left"), None, len(times) - 1)]
    outside = (frames < times[0]) | (frames > times[-1])
    in_gap = outside | (after - before > clock.gap)
    far = apart > min(clock.interval, clock.frame) / 2
    np.testing.assert_array_equal(np.isnan(found), in_gap & far)


@given(clocks(), st.floats(-5, 5), st.floats(-5, 5))
def test_a_straight_line_stays_one(both, slope, height):
    times, frames = both
    clock = _clock_of(times, frames)
    found = _at_frames((height + slope * times)[:, None], clock)[:, 0]
    kept = clock.between
    np.testing.assert_allclose(found[kept], height + slope * frames[kept], atol=1e-6)


@given(clocks(), st.data())
def test_a_discrete_variable_has_no_other_values_than_its_samples(both, data):
    times, frames = both
    values = data.draw(
        st.lists(st.sampled_from([0, 3, 7, np.nan]), min_size=len(times), max_size=len(times))
    )
    found = _at_frames(np.array(values, float)[:, None], _clock_of(times, frames), "discrete")
    assert set(found[~np.isnan(found)]) <= {value for value in values if value == value}


@pytest.mark.parametrize("period", [1.0, 2 * np.pi, 360.0])
@pytest.mark.parametrize("rate", [5.0, 14.0, 200.0])
@pytest.mark.parametrize("low", [0.0, -0.5])
def test_an_angle_that_crosses_the_cut_takes_no_value_in_between(period, rate, low):
    times, frames = np.arange(0, 60, 1 / rate), np.arange(0, 59, 0.1)

    # swings to and fro across the cut, within a tenth of a turn to either side of it
    def swing(at):
        return 0.1 * np.sin(at) * period

    wrapped = (swing(times) - low * period) % period + low * period
    found = _at_frames(wrapped[:, None], _clock_of(times, frames), "circular", period)[:, 0]
    apart = (found - swing(frames) + period / 2) % period - period / 2
    assert np.abs(apart).max() < 0.003 * period
    assert wrapped.min() - 1e-9 <= found.min() and found.max() <= wrapped.max() + 1e-9
    assert not ((found > 0.11 * period) & (found < 0.89 * period)).any()


def test_a_fast_signal_is_averaged_over_the_frame_and_a_slow_one_is_not():
    noise = np.random.default_rng(0).standard_normal(10_000)
    frames = np.arange(1, 99) / 10
    fast = _at_frames(noise[:, None], _clock_of(np.arange(10_000) / 1000, frames))
    assert fast.std() == pytest.approx(0.1, rel=0.2)
    slow = _at_frames(noise[:100, None], _clock_of(np.arange(100) / 10, frames))
    np.testing.assert_allclose(slow[:, 0], noise[1:99])


def test_of_many_discrete_samples_the_longest_lasting_wins_and_the_nearest_breaks_ties():
    times = np.arange(40) / 40
    values = np.zeros((40, 1))
    values[8:15] = 1  # most of the frame around 0.3, nearly none of that around 0.1
    values[27] = 1  # once
    found = _at_frames(values, _clock_of(times, np.array([0.1, 0.3, 0.5, 0.7, 0.9])), "discrete")
    np.testing.assert_array_equal(found[:, 0], [0, 1, 0, 0, 0])
    even = _at_frames(
        np.array([[0.0], [1.0]] * 4),
        _clock_of(np.arange(8) / 8, np.array([0.26, 0.52])),
        "discrete",
    )
    np.testing.assert_array_equal(even[:, 0], [0, 0])


def test_single_missing_samples_are_bridged_and_longer_runs_are_not():
    times = np.arange(0, 10, 0.1)
    values = times[:, None].copy()
    values[20] = np.nan
    values[50:60] = np.nan
    found = _at_frames(values, _clock_of(times, times))[:, 0]
    assert found[20] == pytest.approx(2.0)
    assert np.isnan(found[50:60]).all() and np.isfinite(np.delete(found, np.s_[50:60])).all()
    bridged = _at_frames(values, _clock_of(times, times, gap=2.0))[:, 0]
    np.testing.assert_allclose(bridged, times)


def test_samples_at_the_same_time_are_taken_together():
    times = np.array([0.0, 1, 1, 1, 2])
    frames = np.array([0.0, 1, 2])
    values = np.array([0.0, 1, 2, 6, 0])[:, None]
    np.testing.assert_allclose(_at_frames(values, _clock_of(times, frames))[:, 0], [0, 3, 0])
    assert _at_frames(values, _clock_of(times, frames), "discrete")[1, 0] == 1


@given(st.integers(0, 5), st.integers(1, 5))
def test_very_few_samples_or_frames_are_no_special_case(n_samples, n_frames):
    assume(n_samples)
    times, frames = np.arange(n_samples) * 0.5, np.arange(n_frames) * 1.0
    for kind in ("continuous", "circular", "discrete"):
        found = _at_frames(np.ones((n_samples, 2)), _clock_of(times, frames), kind)
        assert found.shape == (n_frames, 2) and found[0, 0] == 1


def test_a_real_table_at_40_hz_agrees_with_its_interpolation_at_15_hz(shared_data):
    folder = shared_data / "suite2p-1.1-two-planes"
    table = np.genfromtxt(folder / "behaviour_40hz.csv", delimiter=",", names=True)
    np_frames = np.load(folder / "plane0" / "F.npy").shape[1]
    opened = open_recording(
        folder / "plane0" / "F.npy", folder / "behaviour_40hz.csv", rate=15.0, layout="cells-frames"
    )
    for name in ("position_cm", "speed_cm_s"):
        direct = np.interp(np.arange(np_frames) / 15, table["timestamp_s"], table[name])
        known = opened.behavior[name].known
        assert known.mean() > 0.999
        error = opened.behavior[name].values[known, 0] - direct[known]
        assert np.sqrt(np.mean(error**2)) < 0.003 * direct.std()


def test_simulated_behaviour_on_its_own_clock_is_recovered(tmp_path):
    animal = arena(place=4, grid=0, direction=4, speed=4, frames=600, seed=3)
    np.save(tmp_path / "traces.npy", field(animal, seed=3).recording.traces)
    behavior, frames = animal.recording.behavior, np.asarray(animal.recording.times)
    time = np.arange(int(np.ceil(frames[-1] * 33.0)) + 1) / 33.0
    measured = {}
    for name, variable in behavior.items():
        circular = variable.kind == "circular"
        values = np.unwrap(variable.values, axis=0) if circular else variable.values
        values = np.stack([np.interp(time, frames, column) for column in values.T], axis=1)
        measured[name] = values % variable.period if circular else values
    np.savez(tmp_path / "behaviour.npz", time=time, **measured)
    kinds = {name: v.kind for name, v in behavior.items()}
    opened = open_recording(
        tmp_path / "traces.npy", tmp_path / "behaviour.npz", rate=10.0, kinds=kinds,
        layout="frames-cells",
    )  # fmt: skip
    for name, truth in animal.recording.behavior.items():
        found = opened.behavior[name]
        assert found.known.mean() > 0.99
        apart = (found.values - truth.values)[found.known]
        if truth.kind == "circular":
            apart = (apart + truth.period / 2) % truth.period - truth.period / 2
            assert np.sqrt(np.mean(apart**2)) < 0.03 * truth.period
        else:
            # the speed changes from frame to frame, and a mean over a frame smooths that
            assert np.sqrt(np.mean(apart**2)) < 0.15 * truth.values.std()
