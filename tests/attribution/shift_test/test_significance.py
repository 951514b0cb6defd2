"""p and q, on cells of which it is known what they follow."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.ndimage import gaussian_filter1d
from scipy.stats import kstest

from napari_xcebra.attribution import (
    Attribution,
    AttributionStopped,
    attribute,
    seconds_to_test,
    significance,
)
from napari_xcebra.attribution.shift_test.result import Significance
from napari_xcebra.errors import InputError
from napari_xcebra.learn import FitSettings, fit
from napari_xcebra.recording import Recording, Variable

FRAMES = 4000
UNTRAINED = FitSettings(mode="behavior", steps=1, batch_size=64)
TUNED, UNTUNED = 10, 60


def slow(rng, columns, over=15, frames=FRAMES):
    wave = gaussian_filter1d(rng.normal(size=(frames, columns)), over, axis=0)
    return wave / wave.std(0)


@pytest.fixture(scope="module")
def tested():
    """Cells of place; and slow cells of nothing, which correlate with it by chance."""
    rng = np.random.default_rng(0)
    place, other = slow(rng, 2).T
    speed = 0.7 * place + 0.7 * other
    tuned = place[:, None] * rng.uniform(0.5, 1, TUNED)
    traces = np.hstack([tuned, slow(rng, UNTUNED)]) + 0.5 * rng.normal(size=(FRAMES, 70))
    behavior = {"x": Variable("x", place), "speed": Variable("speed", speed)}
    recording = Recording(traces, 10.0, behavior=behavior)
    untrained = fit(recording, {"place": ["x"], "speed": ["speed"]}, UNTRAINED)
    return recording, untrained, significance(untrained, recording, shifts=400)


def test_cells_that_carry_a_factor_are_found_and_others_mostly_not(tested):
    *_, test = tested
    assert (test.q("place")[:TUNED] <= 0.1).all()
    assert (test.q("place")[TUNED:] <= 0.1).mean() < 0.1


def test_p_of_slow_cells_that_follow_nothing_is_uniform(tested):
    *_, test = tested
    p = np.r_[test.p("place")[TUNED:], test.p("speed")[TUNED:]]
    assert kstest(p, "uniform").pvalue > 0.001
    assert (p < 0.05).mean() < 0.15


def test_a_test_that_forgets_time_scales_would_find_cells_that_follow_nothing(tested):
    """So that the tests above can fail: frame by frame the same cells are correlated."""
    recording, *_ = tested
    speed = recording.behavior["speed"].values[:, 0]
    correlation = np.array([np.corrcoef(speed, y)[0, 1] for y in recording.traces[:, TUNED:].T])
    assert (np.abs(correlation) > 3 / np.sqrt(FRAMES)).mean() > 0.3


def test_cells_are_not_found_for_a_variable_that_goes_with_theirs(tested):
    recording, _, test = tested
    speed = recording.behavior["speed"].values[:, 0]
    assert abs(np.corrcoef(speed, recording.traces[:, 0])[0, 1]) > 0.4
    assert (test.q("speed")[:TUNED] > 0.1).all()


def test_events_with_heavy_tails_are_found_and_others_are_not():
    """A few events many times as large as the others are most of the variance of a trace."""
    rng = np.random.default_rng(8)
    speed, own = slow(rng, 1)[:, 0], slow(rng, 60)
    drive = np.where(np.arange(60) < 20, speed[:, None], own)
    events = rng.poisson(0.03 * np.exp(0.8 * drive)) * rng.lognormal(0, 1.8, size=drive.shape)
    recording = Recording(events, 10.0, behavior={"speed": Variable("speed", speed)})
    q = significance(fit(recording, {"speed": ["speed"]}, UNTRAINED), recording).q("speed")
    assert (q[:20] <= 0.1).mean() > 0.9
    assert (q[20:] <= 0.1).mean() < 0.1


def test_cells_that_follow_a_place_rarely_and_much_are_found():
    """Most of their frames hold noise, in whose ranks a field is lost."""
    rng = np.random.default_rng(9)
    place = np.mod(np.cumsum(rng.uniform(0.5, 2.5, 2 * FRAMES)), 200)
    lap = np.cumsum(np.r_[0, np.diff(place) < -100])
    fields = rng.uniform(0, 200, 20)
    away = np.abs(place[:, None] - fields)
    field = np.exp(-0.5 * np.square(np.minimum(away, 200 - away) / 8))
    active = (rng.random((lap.max() + 1, 20)) < 0.25)[lap]
    traces = np.hstack([4 * field * active, slow(rng, 30, frames=2 * FRAMES)])
    traces += 0.6 * rng.normal(size=traces.shape)
    behavior = {"place": Variable("place", place * np.pi / 100, "circular", "rad")}
    recording = Recording(traces, 10.0, behavior=behavior)
    q = significance(fit(recording, {"place": ["place"]}, UNTRAINED), recording).q("place")
    assert (q[:20] <= 0.1).mean() > 0.9
    assert (q[20:] <= 0.1).mean() < 0.1


def test_the_table_and_the_files_have_p_and_q(tested, tmp_path):
    recording, untrained, test = tested
    plain = attribute(untrained, recording, "neuron-gradient", frames=slice(0, None, 50))
    assert "q" not in plain.table("place")
    result = plain.with_significance(test)
    table = result.table("place")
    assert list(table.columns[-3:]) == ["p", "q", "q_beside_variables"]
    np.testing.assert_array_equal(table["q_beside_variables"], table["q"])  # there is no state
    assert "other labels, about 53 of them truly different" in table.attrs["significance"]
    np.testing.assert_array_equal(table["q"], test.q("place"))
    file = pd.read_csv(result.to_csv(tmp_path / "attribution.csv"))
    np.testing.assert_allclose(file["q"][file["factor"] == "place"], test.q("place"), rtol=1e-6)
    back = Attribution.load(result.to_npz(tmp_path / "attribution.npz"))
    pd.testing.assert_frame_equal(back.table("speed"), result.table("speed"))
    assert back.significance.how("speed") == test.how("speed")


def test_a_test_of_other_cells_is_not_taken(tested, trained, recording):
    *_, test = tested
    with pytest.raises(InputError, match="70 cells and place, speed, but this attribution has 50"):
        attribute(trained, recording, "neuron-gradient").with_significance(test)


def test_cells_that_were_not_used_have_no_p(trained, recording, unused):
    test = significance(trained, recording, factors=["z2"], shifts=100)
    assert list(np.flatnonzero(np.isnan(test.p("z2")))) == unused
    assert np.isnan(test.q("time")).all()
    assert test.how("time") == "time was not tested."


def test_too_slow_a_variable_gets_a_sentence_and_no_q(tested):
    recording, untrained, _ = tested
    ramp = recording.with_behavior(Variable("speed", np.linspace(0, 1, FRAMES)))
    with pytest.raises(InputError, match=r"Factor 'speed' has about 3 independent samples"):
        significance(untrained, ramp, factors=["speed"])
    # unless it is asked for, it does not keep the others from being tested
    some = significance(untrained, ramp, shifts=100)
    assert np.isfinite(some.q("place")).all() and np.isnan(some.q("speed")).all()
    assert "Factor 'speed' has about 3 independent" in some.how("speed")
    assert some.in_short("speed") == ""
    assert "100 other labels" in some.in_short("place")


def test_too_few_shifts_get_a_sentence(tested):
    recording, untrained, _ = tested
    with pytest.raises(InputError, match="shifts is 5: a whole number of at least 19"):
        significance(untrained, recording, shifts=5)


def test_constant_cells_are_not_tested(tested):
    recording, untrained, _ = tested
    traces = np.array(recording.traces)
    traces[:, 3] = 1
    some = significance(untrained, replace(recording, traces=traces), shifts=100)
    assert list(np.flatnonzero(np.isnan(some.q("place")))) == [3]
    with pytest.raises(InputError, match="All cells are constant over these frames"):
        significance(untrained, replace(recording, traces=np.ones_like(traces)), shifts=100)


def test_it_reports_can_be_stopped_and_says_beforehand_how_long_it_takes(tested):
    recording, untrained, _ = tested
    told = []
    significance(untrained, recording, shifts=100, on_progress=lambda *at: told.append(at))
    assert told == sorted(told)
    assert told[-1] == (FRAMES, FRAMES)
    with pytest.raises(AttributionStopped):
        significance(untrained, recording, stop=lambda: True)
    assert 0 < seconds_to_test(untrained, recording) < 60


def test_copies_are_said_to_leave_nothing_to_test():
    p = np.ones((1, 3), np.float32)
    found = Significance(
        ("speed",), p, p, 100, {"speed": 5.0}, confounded={"speed": ("wheel",)}, nulls={}
    )
    assert "goes with wheel so closely that hardly anything is left to test" in found.how("speed")
    assert "train without one of them" in found.how("speed")
