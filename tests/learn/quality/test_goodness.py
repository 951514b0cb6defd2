"""Theorem 1: only a variable that the cells carry is above chance on blocks never seen."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from quick_settings import quick

from napari_xcebra.errors import InputError
from napari_xcebra.learn import Training, fit
from napari_xcebra.learn.quality import goodness
from napari_xcebra.learn.quality.goodness import measure_goodness
from napari_xcebra.recording import Variable
from napari_xcebra.simulate import box

FRAMES = 4000


@pytest.fixture(scope="module")
def simulation():
    return box(frames=FRAMES, cells=(12, 12))


def with_labels(simulation, change):
    z2 = np.array(simulation.recording.variable("z2").values)
    return replace(simulation.recording, behavior={"z2": Variable("z2", change(z2))})


def shifted(z2):
    return np.roll(z2, FRAMES // 3, axis=0)


def shuffled(z2):
    return np.random.default_rng(0).permutation(z2)


def unchanged(z2):
    return z2


def goodness_of(simulation, change, **settings):
    settings = quick(**({"steps": 100, "mode": "behavior", "batch_size": 256} | settings))
    return fit(with_labels(simulation, change), {"z2": ["z2"]}, settings).goodness["z2"]


@pytest.fixture(scope="module")
def real(simulation):
    return goodness_of(simulation, unchanged)


def test_the_real_labels_are_above_chance_and_the_verdict_says_so(real):
    assert real.above_chance
    assert real.goodness > 1
    assert real.verdict.startswith("These cells encode z2")


def test_the_real_labels_can_be_read_from_the_latents(real):
    assert real.r2 > 0.85


def test_goodness_is_chance_minus_the_held_out_loss(real):
    assert real.chance == pytest.approx(math.log(512))
    assert real.goodness == pytest.approx(real.chance - real.infonce)


@pytest.mark.parametrize("change", [shifted, shuffled], ids=["shifted", "shuffled"])
@pytest.mark.parametrize("mode", ["hybrid", "behavior", "supervised"])
def test_labels_that_do_not_belong_to_the_cells_are_at_chance(simulation, change, mode):
    false = goodness_of(simulation, change, mode=mode)
    assert not false.above_chance
    assert false.r2 < 0.1
    assert "z2 is at chance" in false.verdict
    assert "its map means nothing" in false.verdict


def test_a_supervised_fit_of_the_real_labels_is_above_chance(simulation):
    knobs = {"steps": 250, "hide": 0.0, "learning_rate": 0.003, "stop_when_settled": False}
    found = goodness_of(simulation, unchanged, mode="supervised", **knobs)
    assert found.above_chance
    # read by a regression, which from the cells themselves has 0.86
    assert found.r2 > found.ridge_r2 - 0.1
    assert found.r2 > 0.7
    assert math.isnan(found.infonce)


class Spy:
    """Inputs of the encoder that remember which frames were read."""

    def __init__(self, data):
        self.data, self.read = data, set()

    def __getitem__(self, frames):
        around = np.asarray(frames)[:, None] + self.data.lags
        self.read |= set(around.ravel().tolist())
        return self.data[frames]

    def seen(self, frames, hide, seed):
        self[np.asarray(frames)]
        return self.data.seen(frames, hide, seed)


@pytest.mark.parametrize("window", [1, 5])
def test_training_never_reads_a_frame_of_a_held_out_block(simulation, window):
    settings = quick(steps=40, window=window, mode="hybrid")
    training = Training(simulation.recording, simulation.factors, settings)
    training.data = training.objective.data = spy = Spy(training.data)
    list(training.run())
    held_out = set(np.flatnonzero(training.split.block >= 0).tolist())
    assert len(spy.read) > FRAMES / 3
    assert len(held_out) == pytest.approx(0.2 * FRAMES, rel=0.05)
    assert spy.read.isdisjoint(held_out)


def test_what_happens_in_held_out_blocks_changes_the_goodness_and_not_the_training(simulation):
    settings = quick(steps=40, mode="behavior")
    first = Training(simulation.recording, simulation.factors, settings)
    traces = np.array(simulation.recording.traces)
    held_out = np.flatnonzero(first.split.block >= 0)
    # larger as well: not even the standardisation may know of these frames
    traces[held_out] = 1 + 2 * np.random.default_rng(0).permutation(traces[held_out])
    second = Training(replace(simulation.recording, traces=traces), simulation.factors, settings)
    for training in (first, second):
        list(training.run())
    for a, b in zip(first.encoder.parameters(), second.encoder.parameters(), strict=True):
        np.testing.assert_array_equal(a.detach(), b.detach())
    assert measure_goodness(first)["z2"].learned
    assert not measure_goodness(second)["z2"].learned


class TestShiftedLabels:
    """Chance is what labels shifted in time reach with the same encoder."""

    def test_no_shift_of_the_real_labels_reaches_what_they_reach(self, real):
        assert real.p < 0.01
        assert real.null_low < real.null_high < real.goodness
        assert f"p = {real.p:.2g}" in real.measured

    def test_labels_that_mean_nothing_reach_no_more_than_their_shifts(self, simulation):
        """p is not small; on several recordings it is spread over all values."""
        found = [goodness_of(simulation, by(k), steps=30).p for k in (700, 1100, 1900, 2600)]
        assert min(found) > 0.01
        assert np.mean(found) > 0.15

    def test_a_supervised_fit_is_tested_as_well(self, simulation):
        assert goodness_of(simulation, shifted, mode="supervised").p > 0.01

    def test_a_variable_too_slow_for_its_recording_gets_a_sentence_and_no_p(self, simulation):
        def drift(z2):
            return np.linspace(-1, 1, len(z2))[:, None]

        slow = goodness_of(simulation, drift, steps=5)
        assert math.isnan(slow.p)
        assert slow.samples < 10
        assert slow.strength == "not tested"
        assert "too few to test this against chance" in slow.verdict


def by(frames):
    return lambda z2: np.roll(z2, frames, axis=0)


def test_a_variable_known_in_too_few_blocks_cannot_be_judged_and_says_so(simulation):
    def known_at_first(z2):
        return np.where(np.arange(FRAMES)[:, None] < 600, z2, np.nan)

    with pytest.raises(InputError, match="known in 1 of the 8 held-out blocks: at least 2"):
        goodness_of(simulation, known_at_first, steps=2, batch_size=64)


def test_the_label_allows_more_than_is_found_and_little_less(real):
    assert real.goodness < real.allowed < real.chance
    assert real.share > 0.25


def test_a_regression_from_the_cells_stands_beside_it(real):
    assert real.ridge_r2 > 0.8
    assert math.isnan(real.accuracy) and math.isnan(real.ridge_accuracy)


def test_values_are_read_with_an_accuracy(simulation):
    side = np.array(simulation.recording.variable("z2").values)[:, 0] > 0
    recording = replace(simulation.recording, behavior={"z2": Variable("z2", side, "discrete")})
    settings = quick(steps=100, mode="behavior", batch_size=256)
    found = fit(recording, {"z2": ["z2"]}, settings).goodness["z2"]
    assert found.accuracy > 0.7
    assert found.ridge_accuracy > 0.8
    assert 0.3 < found.goodness < found.allowed <= math.log(2) + 0.01  # two values
    assert found.learned


def test_a_temperature_that_does_not_fit_costs_no_goodness(simulation):
    """One number for all of the encoder, never chosen on the block that it is used in."""
    labels = with_labels(simulation, unchanged)
    training = Training(labels, {"z2": ["z2"]}, quick(steps=60, mode="behavior"))
    list(training.run())
    before = measure_goodness(training)["z2"]
    with torch.no_grad():
        training.psi.log_temperature.sub_(math.log(8))
    after = measure_goodness(training)["z2"]
    assert after.scale < before.scale
    assert after.goodness == pytest.approx(before.goodness, abs=0.1)


def test_many_frames_are_embedded_as_they_are_needed_and_measured_the_same(simulation, monkeypatch):
    labels = with_labels(simulation, unchanged)
    training = Training(labels, {"z2": ["z2"]}, quick(steps=20, mode="behavior"))
    list(training.run())
    usual = measure_goodness(training)["z2"]
    monkeypatch.setattr(goodness, "EMBEDDED", 100)
    few = measure_goodness(training)["z2"]
    assert few.goodness == pytest.approx(usual.goodness, abs=1e-3)
    assert few.r2 == pytest.approx(usual.r2, abs=0.02)
    assert few.p == pytest.approx(usual.p, abs=0.01)


def test_labels_missing_for_one_factor_leave_the_other_as_it_was(simulation):
    z2 = np.array(simulation.recording.variable("z2").values)
    gaps = np.where(np.arange(FRAMES)[:, None] // 50 % 3 == 0, np.nan, z2)
    both = {"z2": Variable("z2", z2), "gaps": Variable("gaps", gaps)}
    recording = replace(simulation.recording, behavior=both)
    for mode in ("hybrid", "supervised"):
        settings = quick(steps=60, mode=mode)
        found = fit(recording, {"z2": ["z2"], "gaps": ["gaps"]}, settings).goodness
        assert found["z2"].r2 > 0.4
        assert found["gaps"].r2 > 0.4
        assert np.isnan(found["gaps"].allowed) == (mode == "supervised")


def test_an_encoder_that_was_never_trained_has_learned_nothing_though_the_variable_is_there(
    simulation,
):
    found = goodness_of(simulation, unchanged, steps=1)
    assert found.strength in ("clear", "weak")
    assert not found.learned
    assert "The encoder did not learn it" in found.verdict
