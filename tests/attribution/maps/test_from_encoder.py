"""The map from the encoder, on cells of which it is known how they change with what."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter1d

from napari_xcebra.attribution import AttributionStopped, attribute, auroc
from napari_xcebra.attribution.maps import from_encoder
from napari_xcebra.attribution.maps.from_encoder import EncoderMap, _make_decoding
from napari_xcebra.attribution.stream import make_stream
from napari_xcebra.attribution.watching import Watch
from napari_xcebra.learn import FitSettings, fit
from napari_xcebra.recording import Recording, Variable
from napari_xcebra.simulate import arena, field

FRAMES = 4000
METHOD = "generative-gradient"


def slow(rng, columns, over=10):
    wave = gaussian_filter1d(rng.normal(size=(FRAMES, columns)), over, axis=0)
    return wave / wave.std(0)


@pytest.fixture(autouse=True)
def nothing_remembered():
    from_encoder._last.clear()


@pytest.fixture(scope="module")
def carriers():
    """Half of the cells rise or fall with the speed, a quarter share something else."""
    rng = np.random.default_rng(1)
    speed, shared = slow(rng, 2).T
    sign = np.where(np.arange(40) % 2, -1, 1)
    carries = np.arange(40) < 20
    traces = np.outer(speed, sign * carries) + np.outer(shared, np.arange(40) >= 30)
    traces = traces + 0.5 * rng.normal(size=traces.shape)
    recording = Recording(traces, 10.0, behavior={"speed": Variable("speed", speed)})
    trained = fit(recording, {"speed": ["speed"]}, FitSettings(steps=150, batch_size=256))
    return recording, trained, carries


def test_cells_that_carry_a_variable_are_told_from_those_that_share_something_else(carriers):
    recording, trained, carries = carriers
    scores = attribute(trained, recording, METHOD).score("speed")
    assert auroc(scores, carries) == 1.0
    assert scores[carries].min() > 0.3
    assert scores[~carries].max() < 0.05


def test_no_variable_is_used_after_training(carriers):
    recording, trained, _ = carriers
    noise = Variable("speed", np.random.default_rng(0).normal(size=FRAMES))
    other = replace(recording, behavior={"speed": noise})
    ours, theirs = (attribute(trained, each, METHOD) for each in (recording, other))
    np.testing.assert_array_equal(ours.score("speed"), theirs.score("speed"))


def test_a_cell_has_no_part_in_the_latents_that_explain_it(carriers):
    recording, trained, _ = carriers
    changed = np.array(recording.traces)
    changed[:, 3] = np.random.default_rng(0).normal(size=FRAMES)
    streams = [make_stream(trained, r) for r in (recording, replace(recording, traces=changed))]
    ours, theirs = (_make_decoding(s, Watch(FRAMES, None, None)) for s in streams)
    number = next(i for i, cells in enumerate(ours.groups) if 3 in cells)
    np.testing.assert_allclose(ours.latents[number], theirs.latents[number], atol=1e-4)
    assert np.abs(ours.latents[number - 1] - theirs.latents[number - 1]).max() > 0.1


def test_slopes_have_the_sign_and_the_size_that_they_have(carriers):
    recording, trained, carries = carriers
    stream = make_stream(trained, recording)
    fitted = EncoderMap.of(stream, Watch(FRAMES, None, None))
    local = np.concatenate([chunk.numpy() for chunk in fitted.local(stream)])
    speed = local[:, trained.part("speed").start].mean(0)
    signs = np.sign(speed[carries])
    assert (signs[::2] == signs[0]).all() and (signs[1::2] == -signs[0]).all()
    middle = np.abs(recording.variable("speed").values[:, 0]) < 1
    spread = local[middle][:, trained.part("speed").start, carries].std(0)
    assert spread.max() < 0.35 * np.abs(speed[carries]).min()
    assert np.abs(speed[~carries]).max() < 0.1 * np.abs(speed[carries]).min()


def test_scores_over_time_are_the_slopes_at_those_frames(carriers):
    recording, trained, carries = carriers
    result = attribute(trained, recording, METHOD)
    over_time = result.over_time("speed", slice(0, 200))
    assert over_time.shape == (200, 40)
    assert over_time[:, carries].mean() > 10 * over_time[:, ~carries].mean()


def test_it_is_fitted_once_and_to_the_whole_recording(carriers, monkeypatch):
    recording, trained, _ = carriers
    fitted, original = [], EncoderMap.of.__func__

    def counted(cls, stream, *others, **more):
        fitted.append(len(stream.frames))
        return original(cls, stream, *others, **more)

    monkeypatch.setattr(EncoderMap, "of", classmethod(counted))
    result = attribute(trained, recording, METHOD)
    result.over_time("speed", slice(0, 50))
    attribute(trained, recording, "both-routes")
    assert fitted == [FRAMES]


def test_with_random_weights_the_map_is_lost():
    """What it tells is what the encoder learned."""
    rng = np.random.default_rng(0)
    simulation = field(arena(frames=4000, seed=2), seed=2)
    trained = fit(simulation.recording, simulation.factors, FitSettings(steps=150))
    weights = {
        name: (rng.normal(size=w.shape) * w.std()).astype(w.dtype)
        for name, w in trained.weights.items()
    }
    random = replace(trained, weights=weights)
    scores = [attribute(each, simulation.recording, METHOD) for each in (trained, random)]
    learned, lost = (
        np.mean([auroc(s.score(f), simulation.truth[f]) for f in simulation.factors])
        for s in scores
    )
    assert learned > 0.93
    assert lost < 0.75


def test_cells_that_lead_or_follow_are_found_with_their_lag():
    rng = np.random.default_rng(3)
    speed = slow(rng, 1, over=4)[:, 0]
    lags = np.array([0, 0, 0, 0, 0, 0, 5, 5, -5, -5])
    traces = np.stack([np.roll(speed, lag) for lag in lags], 1)
    recording = Recording(
        traces + 0.5 * rng.normal(size=traces.shape), 10.0, {"speed": Variable("speed", speed)}
    )
    trained = fit(recording, {"speed": ["speed"]}, FitSettings(steps=100, mode="behavior"))
    decoding = _make_decoding(make_stream(trained, recording), Watch(FRAMES, None, None))
    assert (decoding.lags[:6] == 0).all()
    assert (decoding.lags[6:8] < 0).all() and (decoding.lags[8:] > 0).all()


def test_the_time_latents_of_the_box_have_scores_and_slopes_too(
    trained, recording, simulation, unused
):
    scored = attribute(trained, recording, METHOD)
    assert list(np.flatnonzero(~scored.used)) == unused
    # after 150 steps, 0.82 to 0.99 over eight seeds
    assert auroc(scored.score("z2"), simulation.truth["z2"]) > 0.75
    assert scored.latent_scores.shape == (4, recording.n_cells)


def test_it_works_with_windows_and_reports_and_can_be_stopped(windowed, recording):
    told = []
    scored = attribute(windowed, recording, METHOD, on_progress=lambda *at: told.append(at))
    assert np.isfinite(scored.score("z2")[scored.used]).all()
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1]
    from_encoder._last.clear()
    with pytest.raises(AttributionStopped):
        attribute(windowed, recording, METHOD, stop=lambda: True)


def test_a_long_recording_is_read_in_stretches(carriers, monkeypatch):
    recording, trained, carries = carriers
    monkeypatch.setattr(from_encoder, "MOST_LATENTS", 8 * 3 * 2000)
    monkeypatch.setattr(from_encoder, "STRETCH", 100)
    decoding = _make_decoding(make_stream(trained, recording), Watch(FRAMES, None, None))
    assert 1500 < len(decoding.stream.frames) <= 2100
    assert auroc(attribute(trained, recording, METHOD).score("speed"), carries) == 1.0
