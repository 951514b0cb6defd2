"""Theorem 1: only a variable that the cells carry is above chance on blocks never seen."""

import math
from dataclasses import replace

import numpy as np
import pytest
from quick_settings import quick

from napari_xcebra.learn import Goodness, Training, fit
from napari_xcebra.learn.goodness import is_above_chance, measure_goodness
from napari_xcebra.recording import InputError, Variable
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
    assert real.verdict.startswith("z2 is clearly in these cells")


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
    found = goodness_of(simulation, unchanged, mode="supervised", steps=200)
    assert found.above_chance
    assert found.r2 > 0.8
    assert math.isnan(found.infonce)


class Spy:
    """Inputs of the encoder that remember which frames were read."""

    def __init__(self, data):
        self.data, self.read = data, set()

    def __getitem__(self, frames):
        around = np.asarray(frames)[:, None] + self.data.lags
        self.read |= set(around.ravel().tolist())
        return self.data[frames]


@pytest.mark.parametrize("window", [1, 5])
def test_training_never_reads_a_frame_of_a_held_out_block(simulation, window):
    settings = quick(steps=40, window=window, mode="hybrid")
    training = Training(simulation.recording, simulation.factors, settings)
    training.data = spy = Spy(training.data)
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
    assert measure_goodness(first)["z2"].above_chance
    assert not measure_goodness(second)["z2"].above_chance


def a_goodness(**changes):
    values = {
        "factor": "place",
        "infonce": 5.0,
        "chance": 6.2,
        "goodness": 1.2,
        "error": 0.1,
        "training": 1.3,
        "r2": 0.8,
        "above_chance": True,
    }
    return Goodness(**(values | changes))


@pytest.mark.parametrize(
    ("goodness", "words"),
    [
        (
            a_goodness(),
            "place is clearly in these cells (1.20 ± 0.10 nats above chance on held-out data, "
            "R² 0.80).",
        ),
        (
            a_goodness(goodness=0.3, error=0.05, training=0.4),
            "place is weakly in these cells (0.30 ± 0.05 nats above chance on held-out data, "
            "R² 0.80).",
        ),
        (
            a_goodness(goodness=-0.1, above_chance=False),
            "place is at chance in these cells (-0.10 ± 0.10 nats above chance on held-out data): "
            "its map means nothing.",
        ),
        (
            a_goodness(factor="time", r2=math.nan),
            "The time latents find structure that lasts beyond chance (1.20 ± 0.10 nats above "
            "chance on held-out data).",
        ),
        (
            a_goodness(factor="time", goodness=0.0, above_chance=False, r2=math.nan),
            "The time latents find no structure that lasts beyond chance (0.00 ± 0.10 nats above "
            "chance on held-out data).",
        ),
    ],
    ids=["clear", "weak", "chance", "time", "no time"],
)
def test_the_verdict_in_words(goodness, words):
    assert goodness.verdict == words


def test_a_fit_far_better_on_its_training_frames_is_said_to_overfit():
    assert a_goodness(training=5.0).verdict.endswith("(5.00 nats): it overfits.")
    assert "overfits" not in a_goodness(training=4.5).verdict


class TestShiftedLabels:
    """Chance is what labels shifted in time reach with the same encoder."""

    def test_no_shift_of_the_real_labels_reaches_what_they_reach(self, real):
        assert real.p == pytest.approx(0.01)
        assert real.null_low < real.null_high < 0 < real.goodness
        assert "p = 0.01" in real.verdict

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
        assert "too few to test this against chance" in slow.verdict

    def test_what_is_there_but_does_not_hold_on_held_out_data_is_said_to_be_so(self):
        found = a_goodness(goodness=-0.1, above_chance=False, p=0.01)
        assert found.verdict.startswith("place leaves a trace in these cells, but")
        assert found.verdict.endswith("its map means nothing.")

    def test_a_file_written_before_there_was_a_test_is_read(self):
        values = a_goodness(p=0.02).as_dict()
        for name in ("p", "null_low", "null_high", "samples"):
            del values[name]
        old = Goodness.from_dict(values)
        assert math.isnan(old.p)
        assert old.verdict == a_goodness().verdict
        assert not old.too_slow

    def test_the_test_survives_its_file(self):
        found = a_goodness(p=0.02, null_low=-0.3, null_high=-0.1, samples=40.0)
        assert Goodness.from_dict(found.as_dict()) == found


def by(frames):
    return lambda z2: np.roll(z2, frames, axis=0)


@pytest.mark.parametrize(
    ("goodness", "error", "above"),
    [(1.0, 0.1, True), (1.0, 0.4, False), (0.019, 0.001, False), (-1.0, 0.0, False)],
)
def test_above_chance_needs_a_margin_and_a_small_error(goodness, error, above):
    assert is_above_chance(goodness, error) is above
    assert is_above_chance(math.nan, error) is False


@pytest.mark.parametrize(
    ("goodness", "p", "above"),
    [(1.0, 0.01, True), (1.0, 0.02, False), (0.01, 0.01, True), (0.001, 0.01, False)],
)
def test_shifted_labels_decide_where_they_could_be_tried(goodness, p, above):
    assert is_above_chance(goodness, 5.0, p) is above


def test_a_variable_known_in_too_few_blocks_cannot_be_judged_and_says_so(simulation):
    def known_at_first(z2):
        return np.where(np.arange(FRAMES)[:, None] < 600, z2, np.nan)

    with pytest.raises(InputError, match="known in 1 of the 8 held-out blocks: at least 2"):
        goodness_of(simulation, known_at_first, steps=2, batch_size=64)
