"""Provisional maps tell of the encoder as it is, and leave its training alone."""

import numpy as np
import pytest

from napari_xcebra.attribution import attribute, scoring
from napari_xcebra.attribution.encoding import model
from napari_xcebra.attribution.ranks import rank_correlation
from napari_xcebra.attribution.scoring import LiveMap
from napari_xcebra.learn import FitSettings, fit

QUICK = FitSettings(
    steps=20, batch_size=128, hidden_units=32, smoothing=0, lambda_=0.05, readout=0, hide=0
)
METHODS = (
    "inverted-neuron-gradient", "neuron-gradient", "conditional-encoding", "generative-gradient"
)  # fmt: skip


@pytest.fixture
def at_every_report(monkeypatch):
    """Maps are made whenever training reports."""
    monkeypatch.setattr(scoring, "EVERY", 0)
    monkeypatch.setattr(scoring, "SHARE", np.inf)


def maps_of(simulation, method, **given):
    """Maps made while a short run is trained, and the fit."""
    live, maps = LiveMap(simulation.recording, method, **given), []
    trained = fit(
        simulation.recording, simulation.factors, QUICK, look=lambda t: maps.append(live.look(t))
    )
    return maps, trained


@pytest.fixture(scope="module")
def alone(simulation):
    """The same run without maps."""
    return fit(simulation.recording, simulation.factors, QUICK)


@pytest.mark.parametrize("method", METHODS)
def test_nothing_is_learned_otherwise_for_being_looked_at(
    simulation, method, at_every_report, alone
):
    maps, looked_at = maps_of(simulation, method)
    assert len(maps) == 2 and None not in maps
    for name, weights in alone.weights.items():
        np.testing.assert_array_equal(looked_at.weights[name], weights)


@pytest.mark.parametrize("method", METHODS[:2])
def test_the_last_one_is_the_map_of_the_trained_encoder(simulation, method, at_every_report):
    (_, last), trained = maps_of(simulation, method)
    frames = np.asarray(simulation.recording.excluded) == 0
    usable = np.flatnonzero(frames)
    kept = usable[np.linspace(0, len(usable) - 1, last.n_frames).astype(int)]
    final = attribute(trained, simulation.recording, method, frames=kept)
    assert last.n_frames == scoring.FRAMES < len(usable)
    np.testing.assert_allclose(last.latent_scores, final.latent_scores, rtol=1e-4)


@pytest.mark.parametrize("method", METHODS[2:])
def test_encoding_models_rank_cells_nearly_as_they_do_in_the_end(
    simulation, unused, at_every_report, method
):
    (_, last), trained = maps_of(simulation, method)
    final = attribute(trained, simulation.recording, method)
    assert rank_correlation(last.score("z2"), final.score("z2")) > 0.65
    np.testing.assert_array_equal(np.flatnonzero(~last.used), unused)


def test_it_says_that_there_is_no_verdict_yet(simulation):
    (first, _), _ = maps_of(simulation, METHODS[0])
    assert "No verdict yet" in first.verdicts["z2"]
    assert first.fit is None


def test_maps_are_made_only_so_often(simulation):
    (first, second), _ = maps_of(simulation, METHODS[0])
    assert first is not None
    assert second is None


def test_whoever_stops_does_not_wait_for_a_map(simulation):
    maps, _ = maps_of(simulation, "conditional-encoding", stop=lambda: True)
    assert maps == [None, None]


def test_a_map_that_cannot_be_made_does_not_end_the_training(
    simulation, at_every_report, monkeypatch
):
    monkeypatch.setattr(model, "FEWEST_FRAMES", 5000)
    maps, trained = maps_of(simulation, "conditional-encoding")
    assert maps == [None, None]
    assert trained.steps == 20
