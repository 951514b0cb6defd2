"""The generative gradient, on cells of which it is known how they change with what."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter1d

from napari_xcebra.attribution import AttributionStopped, attribute, auroc
from napari_xcebra.attribution.maps import generative
from napari_xcebra.attribution.maps.generative import Generative
from napari_xcebra.attribution.stream import make_stream
from napari_xcebra.learn import Factor, FitSettings, fit
from napari_xcebra.recording import Recording, Variable

FRAMES = 4000
METHOD = "generative-gradient"
UNTRAINED = FitSettings(mode="behavior", steps=1, batch_size=64, smoothing=0)
LINEAR, SATURATED, TURNED, NOTHING = range(4)


def slow(rng, columns, over=10):
    wave = gaussian_filter1d(rng.normal(size=(FRAMES, columns)), over, axis=0)
    return wave / wave.std(0)


@pytest.fixture(scope="module")
def known():
    """A cell that rises, one that rises up to the middle, one of an angle, one of nothing."""
    rng = np.random.default_rng(0)
    speed, turning, other = slow(rng, 3).T
    heading = np.cumsum(0.15 * turning) % (2 * np.pi)
    clean = np.c_[speed, np.minimum(speed, 0), np.cos(heading), other]
    traces = clean / clean.std(0) + 0.5 * rng.normal(size=clean.shape)
    behavior = {
        "speed": Variable("speed", speed),
        "heading": Variable("heading", heading, "circular"),
    }
    recording = Recording(traces, 10.0, behavior=behavior)
    factors = {"speed": ["speed"], "heading": ["heading"]}
    return recording, fit(recording, factors, UNTRAINED), speed, heading


def test_a_slope_has_the_size_and_sign_that_it_has(known):
    recording, untrained, speed, heading = known
    generative._last.clear()
    stream = make_stream(untrained, recording)
    local = np.concatenate([c.numpy() for c in generative.generative_gradient(stream)])
    spread = np.asarray(recording.traces).std(0)
    slopes = local[:, 0, :] * spread  # of a trace, by the standard deviation of the speed
    middle = np.abs(speed) < 1
    np.testing.assert_allclose(np.median(slopes[middle, LINEAR]), 1, atol=0.1)
    falling, resting = speed < -0.7, speed > 0.7
    assert slopes[falling, SATURATED].mean() > 4 * np.abs(slopes[resting, SATURATED]).mean()
    # along the circle a cell that follows the cosine changes by the sine
    around = np.hypot(*local[:, 1:3, TURNED].T)
    assert np.corrcoef(around, np.abs(np.sin(heading)))[0, 1] > 0.9


def test_a_cell_of_nothing_has_no_slope(known):
    recording, untrained, *_ = known
    scored = attribute(untrained, recording, METHOD)
    assert scored.score("speed")[NOTHING] < 0.05 * scored.score("speed")[LINEAR]
    assert scored.score("heading")[LINEAR] < 0.1 * scored.score("heading")[TURNED]


def test_noise_does_not_turn_the_map_around():
    """Cells of little noise are what a decoder reads, and not what the variable drives most."""
    rng = np.random.default_rng(1)
    speed = slow(rng, 1)[:, 0]
    carries = np.arange(40) < 20
    shared = slow(rng, 1)
    traces = np.where(carries, speed[:, None], 0) + shared + 0.3 * rng.normal(size=(FRAMES, 40))
    recording = Recording(traces, 10.0, behavior={"speed": Variable("speed", speed)})
    trained = fit(recording, {"speed": ["speed"]}, FitSettings(steps=100, batch_size=256))
    assert auroc(attribute(trained, recording, METHOD).score("speed"), carries) == 1.0


def test_it_is_fitted_once_and_to_the_whole_recording(known, monkeypatch):
    recording, untrained, *_ = known
    generative._last.clear()
    fitted = []
    original = Generative.of.__func__

    def counted(cls, stream, *others):
        fitted.append(len(stream.frames))
        return original(cls, stream, *others)

    monkeypatch.setattr(Generative, "of", classmethod(counted))
    result = attribute(untrained, recording, METHOD, frames=slice(0, 50))
    over_time = result.over_time("speed", slice(0, 50))
    assert fitted == [FRAMES]
    np.testing.assert_allclose(over_time.mean(0), result.score("speed"), rtol=1e-5)


def test_the_time_latents_of_the_box_have_slopes_too(trained, recording, simulation, unused):
    scored = attribute(trained, recording, METHOD)
    assert list(np.flatnonzero(~scored.used)) == unused
    assert auroc(scored.score("z2"), simulation.truth["z2"]) > 0.9
    assert scored.latent_scores.shape == (4, recording.n_cells)
    assert np.nanmin(scored.score("time")) > 0


def test_it_works_with_windows_and_reports_and_can_be_stopped(windowed, recording):
    generative._last.clear()
    told = []
    scored = attribute(windowed, recording, METHOD, on_progress=lambda *at: told.append(at))
    assert np.isfinite(scored.score("z2")[scored.used]).all()
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1]
    generative._last.clear()
    with pytest.raises(AttributionStopped):
        attribute(windowed, recording, METHOD, stop=lambda: True)


def test_more_latents_than_dimensions_share_what_there_is():
    rng = np.random.default_rng(2)
    speed = slow(rng, 1)[:, 0]
    traces = speed[:, None] + rng.normal(size=(FRAMES, 5))
    recording = Recording(traces, 10.0, behavior={"speed": Variable("speed", speed)})
    trained = fit(recording, {"speed": Factor(["speed"], latents=3)}, UNTRAINED)
    scored = attribute(trained, recording, METHOD)
    np.testing.assert_allclose(scored.latent("speed", 0), scored.latent("speed", 2))
    assert scored.score("speed").min() > 0.3
