"""Small box models, trained once."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter1d

from napari_xcebra.learn import FitSettings, fit
from napari_xcebra.recording import Recording, Variable
from napari_xcebra.simulate import box

NOT_ACCEPTED, CONSTANT = 3, 7


@pytest.fixture(scope="session")
def simulation():
    """Box model with ids of its own, one ROI not accepted, one constant, in two trials."""
    made = box(frames=3000)
    recording = made.recording
    traces = np.array(recording.traces)
    traces[:, CONSTANT] = 2.5
    accepted = np.arange(recording.n_cells) != NOT_ACCEPTED
    excluded = np.zeros(len(traces), bool)
    excluded[2000:2010] = True
    recording = replace(
        recording,
        traces=traces,
        accepted=accepted,
        cell_ids=np.arange(recording.n_cells) * 3 + 100,
        starts=[0, 1000],
        excluded=excluded,
    )
    return replace(made, recording=recording)


@pytest.fixture(scope="session")
def unused():
    """Positions of the cells that cannot be scored."""
    return [NOT_ACCEPTED, CONSTANT]


@pytest.fixture(scope="session")
def recording(simulation):
    return simulation.recording


@pytest.fixture(scope="session")
def trained(simulation):
    """One frame at a time, not smoothed; as many latents as there are: J is well conditioned."""
    settings = FitSettings(
        steps=150, time_latents=2, batch_size=256, hidden_units=64, smoothing=0, lambda_=0.05
    )
    return fit(simulation.recording, simulation.factors, settings)


@pytest.fixture(scope="session")
def windowed(simulation):
    """Six frames at a time, smoothed; far from its bound, so that J is well conditioned."""
    settings = FitSettings(
        steps=20,
        time_latents=2,
        batch_size=64,
        window=6,
        smoothing=0.15,
        lambda_=0.05,
        bound=100,
        learning_rate=0.002,
    )
    return fit(simulation.recording, simulation.factors, settings)


@pytest.fixture(scope="session")
def meaningless():
    """A recording whose variable has nothing to do with its cells, and its fit."""
    rng = np.random.default_rng(0)
    recording = Recording(
        traces=rng.normal(size=(2000, 12)),
        rate=10.0,
        behavior={"mood": Variable("mood", gaussian_filter1d(rng.normal(size=2000), 5))},
    )
    settings = FitSettings(steps=20, time_latents=1, batch_size=64, mode="behavior")
    return recording, fit(recording, {"mood": ["mood"]}, settings)
