"""Pairs are what the paper says they are, and none crosses a boundary."""

import numpy as np
import pytest

from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.labels import Labels
from napari_xcebra.learn.data.sampling import LabelNeighbours, Sampler
from napari_xcebra.learn.data.split import UsableFrames
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.learn.training.training import Training
from napari_xcebra.recording import Recording, Variable

FRAMES, TRIAL = 2000, 100
TRIALS = np.arange(FRAMES) // TRIAL


def a_recording(frames=FRAMES, cells=8, seed=0, **others):
    """Noise traces with a label on a random walk, unless told otherwise."""
    rng = np.random.default_rng(seed)
    behavior = {"x": np.cumsum(rng.normal(size=(frames, 2)), axis=0)}
    others = {"traces": rng.normal(size=(frames, cells)), "behavior": behavior, **others}
    return Recording.from_arrays(rate=10.0, **others)


def a_sampler(recording, *, factors=None, window=1, offset=3):
    factors = factors or {"x": ["x"]}
    labels = {name: Labels.of(recording, names, name) for name, names in factors.items()}
    frames = UsableFrames.within(~recording.excluded, recording.segment, window)
    return Sampler(frames, labels, offset)


def drawn(sampler, size=20_000, seed=0):
    return sampler.draw(size, np.random.default_rng(seed))


@pytest.mark.parametrize("window", [4, 5])
def test_a_window_never_crosses_a_trial_boundary(window):
    # every cell shows the number of the trial, so a window must show one number only
    traces = np.repeat(TRIALS[:, None], 8, axis=1).astype(float)
    recording = a_recording(traces=traces, trials=TRIALS)
    settings = FitSettings(window=window, batch_size=64, blocks=2, time_latents=2, device="cpu")
    training = Training(recording, {"x": ["x"]}, settings)
    batch = drawn(training.sampler)
    for frames in (batch.reference, batch.time, batch.label["x"]):
        shown = training.data[frames].numpy()
        assert shown.shape == (20_000, 8, window)
        # trials are 0.17 apart at least; rounding is not the same on every processor
        assert np.ptp(shown, axis=2).max() < 1e-5
        # ... and the number of its own trial
        mean, scale = training.inputs.mean, training.inputs.scale
        found = shown[:, :, 0] * scale + mean
        np.testing.assert_allclose(found[:, 0], TRIALS[frames], atol=1e-3)


@pytest.mark.parametrize("window", [1, 6])
def test_a_time_pair_never_crosses_a_boundary_or_the_end(window):
    recording = a_recording(trials=TRIALS)
    batch = drawn(a_sampler(recording, window=window, offset=30))
    assert (batch.time == batch.reference + 30).all()
    assert batch.time.max() < FRAMES
    assert (TRIALS[batch.time] == TRIALS[batch.reference]).all()
    # every trial is used up to its last possible pair
    room = TRIAL - 30 - (window - 1)
    assert len(np.unique(batch.reference)) == (FRAMES // TRIAL) * room


def test_label_steps_come_from_within_trials():
    # trials lie 100 apart, the label moves by 0.01 a frame: only a step across a boundary is long
    x = 100.0 * TRIALS + 0.01 * np.arange(FRAMES)
    recording = a_recording(behavior={"x": x}, trials=TRIALS)
    batch = drawn(a_sampler(recording, offset=5))
    assert np.abs(x[batch.label["x"]] - x[batch.reference]).max() < 1.0


def test_excluded_and_missing_frames_enter_no_pair():
    rng = np.random.default_rng(1)
    excluded, missing = rng.random(FRAMES) < 0.1, rng.random(FRAMES) < 0.1
    x = np.cumsum(rng.normal(size=FRAMES))
    x[missing] = np.nan
    recording = a_recording(behavior={"x": x}, excluded=excluded)
    sampler = a_sampler(recording, offset=2)
    batch = drawn(sampler)
    for frames in (batch.reference, batch.time, batch.label["x"]):
        assert not excluded[frames].any()
    assert not excluded[batch.reference + 1].any()  # a pair does not step over a gap either
    assert not missing[batch.reference].any()
    assert not missing[batch.label["x"]].any()
    starts = sampler.neighbours["x"].starts
    assert np.isfinite(x[starts + 2] - x[starts]).all()


def test_a_missing_label_of_one_factor_leaves_the_frame_to_the_others_and_to_time():
    x, y = np.random.default_rng(0).normal(size=(2, FRAMES))
    x[:500], y[1500:] = np.nan, np.nan
    recording = a_recording(behavior={"x": x, "y": y})
    batch = drawn(a_sampler(recording, factors={"x": ["x"], "y": ["y"]}))
    assert batch.reference.min() < 500
    assert batch.reference.max() >= 1500
    for name, values in {"x": x, "y": y}.items():
        known = ~np.isnan(values)
        np.testing.assert_array_equal(batch.label[name] >= 0, known[batch.reference])
        np.testing.assert_array_equal(batch.rows(name), np.flatnonzero(known[batch.reference]))
        assert known[batch.label[name][batch.rows(name)]].all()


def test_a_frame_at_which_no_label_is_known_is_no_reference():
    x, y = np.random.default_rng(0).normal(size=(2, FRAMES))
    x[:800], y[600:] = np.nan, np.nan
    recording = a_recording(behavior={"x": x, "y": y})
    reference = drawn(a_sampler(recording, factors={"x": ["x"], "y": ["y"]})).reference
    assert not ((reference >= 600) & (reference < 800)).any()
    assert (reference < 600).any() and (reference >= 800).any()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("columns", [1, 3])
def test_the_positive_is_the_frame_nearest_to_label_plus_step(seed, columns):
    rng = np.random.default_rng(seed)
    recording = a_recording(behavior={"x": rng.normal(size=(FRAMES, columns))})
    labels = Labels.of(recording, ["x"], "x")
    candidates = np.sort(rng.choice(FRAMES, 1500, replace=False))
    start, offset = int(rng.integers(FRAMES - 7)), 7
    # with one start there is one step, so that brute force can know it
    neighbours = LabelNeighbours(labels, candidates, np.array([start]), offset)
    reference = rng.integers(FRAMES, size=300)
    positive = neighbours.draw(reference, rng)
    assert np.isin(positive, candidates).all()
    c = labels.points(np.arange(FRAMES))
    target = c[reference] + c[start + offset] - c[start]
    distance = np.linalg.norm(target[:, None] - c[candidates][None], axis=2)
    chosen = np.linalg.norm(target - c[positive], axis=1)
    # where two frames are as near as the noise that breaks ties, either may be taken
    assert (chosen - distance.min(1)).max() < 2e-3
    nearest, second = np.sort(distance, axis=1)[:, :2].T
    clear = second - nearest > 2e-3
    assert clear.sum() > 50
    np.testing.assert_array_equal(positive[clear], candidates[distance.argmin(1)][clear])


def test_all_steps_of_the_recording_are_drawn():
    walk = np.cumsum(np.random.default_rng(0).choice([-1.0, 0.0, 0.0, 1.0], FRAMES))
    x = np.abs(walk % 20 - 10)  # to and fro between 0 and 10
    recording = a_recording(behavior={"x": x})
    batch = drawn(a_sampler(recording, offset=1))
    steps = x[batch.label["x"]] - x[batch.reference]
    inside = (x[batch.reference] > 0) & (x[batch.reference] < 10)
    values, counts = np.unique(np.diff(x), return_counts=True)
    for value, count in zip(values, counts, strict=True):
        assert np.isclose(steps[inside], value).mean() == pytest.approx(
            count / (FRAMES - 1), abs=0.03
        )


def test_equal_labels_are_partners_of_each_other_at_random():
    # an animal that rests: the same frame must not be everyone's partner
    x = np.repeat([0.0, 1.0], FRAMES // 2)
    batch = drawn(a_sampler(a_recording(behavior={"x": x}), offset=1))
    _, counts = np.unique(batch.label["x"], return_counts=True)
    assert len(counts) > 0.9 * FRAMES
    assert counts.max() < 100


def test_the_circle_closes():
    angle = np.linspace(0, 4 * np.pi, FRAMES, endpoint=False) % (2 * np.pi)
    recording = a_recording(behavior={"x": Variable("x", angle, "circular")})
    batch = drawn(a_sampler(recording, offset=10))
    turned = angle[batch.label["x"]] - angle[batch.reference]
    step = 10 * 4 * np.pi / FRAMES
    # the animal turns steadily, so every partner is one step on, also past 2π
    np.testing.assert_allclose(np.angle(np.exp(1j * (turned - step))), 0, atol=5e-3)
    wrapped = np.abs(turned) > np.pi
    assert wrapped.any()


def test_discrete_partners_share_the_value_and_are_any_of_those():
    odour = np.random.default_rng(0).integers(0, 4, FRAMES)
    recording = a_recording(behavior={"x": odour}, trials=TRIALS)
    batch = drawn(a_sampler(recording))
    partner = batch.label["x"]
    assert (odour[partner] == odour[batch.reference]).all()
    assert len(np.unique(partner)) > 0.95 * FRAMES
    assert (TRIALS[partner] != TRIALS[batch.reference]).mean() > 0.9


def test_mixed_partners_share_the_value_and_are_nearest_within_it():
    rng = np.random.default_rng(0)
    behavior = {"position": rng.uniform(size=FRAMES), "odour": rng.integers(0, 3, FRAMES)}
    recording = a_recording(behavior=behavior)
    labels = Labels.of(recording, ["position", "odour"], "x")
    candidates, start, offset = np.arange(FRAMES), 17, 3
    neighbours = LabelNeighbours(labels, candidates, np.array([start]), offset)
    reference = rng.integers(FRAMES, size=1000)
    positive = neighbours.draw(reference, rng)
    odour = behavior["odour"]
    assert (odour[positive] == odour[reference]).all()
    c = labels.points(candidates)[:, 0]
    target = c[reference] + c[start + offset] - c[start]
    distance = np.abs(target[:, None] - c[None])
    distance[odour[None] != odour[reference][:, None]] = np.inf
    assert (np.abs(target - c[positive]) - distance.min(1)).max() < 2e-3


def test_the_same_seed_draws_the_same_batch():
    sampler = a_sampler(a_recording())
    first, again, other = drawn(sampler), drawn(sampler), drawn(sampler, seed=1)
    np.testing.assert_array_equal(first.reference, again.reference)
    np.testing.assert_array_equal(first.label["x"], again.label["x"])
    assert not np.array_equal(first.reference, other.reference)


@pytest.mark.parametrize(
    ("behavior", "factors", "words"),
    [
        (
            {"x": np.where(np.arange(FRAMES) % 2, np.arange(FRAMES), np.nan)},
            {"place": ["x"]},
            ["'place'", "no two frames 3 apart", "known"],
        ),
    ],
    ids=["no step"],
)
def test_labels_that_leave_no_pair_get_one_sentence(behavior, factors, words):
    with pytest.raises(InputError) as caught:
        a_sampler(a_recording(behavior=behavior), factors=factors)
    message = str(caught.value)
    assert all(word in message for word in words)
    assert message.endswith(".")
    assert ". " not in message
