"""The mean of an encoder and the regressions that it began as."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from quick_settings import quick

from napari_xcebra.learn.model import make_encoder
from napari_xcebra.learn.training.start import _averaged, share_of
from napari_xcebra.learn.training.training import Training
from napari_xcebra.recording import Recording

CELLS, LATENTS = 12, 3


@pytest.fixture(scope="module")
def recording():
    """A variable that two of twelve cells follow, in noise."""
    rng = np.random.default_rng(0)
    frames = np.arange(3000)
    speed = np.sin(frames / 17) + np.sin(frames / 29)
    traces = rng.normal(size=(3000, CELLS)).astype(np.float32)
    traces[:, :2] += speed[:, None]
    return Recording.from_arrays(traces, 10.0, {"speed": speed})


@pytest.fixture
def training(recording):
    return Training(recording, {"speed": ["speed"]}, quick(lambda_="auto", steps=60))


def test_a_mean_of_an_encoder_and_linear_functions_is_an_encoder_again():
    torch.manual_seed(0)
    encoder = make_encoder(CELLS, LATENTS, (16, 16, 10), bound=1e4)
    kept, weights, bias = torch.tensor([0.25, 1.0, 0.0]), torch.randn(2, CELLS), torch.randn(2)
    both = encoder.plus_linear(kept, [0, 2], weights, bias)
    x = torch.randn(50, CELLS)
    expected = kept * encoder(x)
    expected[:, [0, 2]] += x @ weights.t() + bias
    torch.testing.assert_close(both(x), expected, rtol=1e-3, atol=1e-4)


def test_an_encoder_that_knows_nothing_leaves_the_factor_to_the_regression(training):
    with torch.no_grad():
        for parameter in training.encoder.parameters():
            parameter.normal_(0, 0.1)
    share = share_of(training, training.parts[0])
    assert share < 0.2
    mean = _averaged(training, training.regressions, {"speed": share})
    frames = training.split.held_out.anchors
    told = mean(training.data[frames])[:, 0].detach().numpy()
    assert np.corrcoef(told, training.labels["speed"].linear[frames, 0])[0, 1] ** 2 > 0.6


def test_an_encoder_that_is_left_as_it_is_stays_the_same(training):
    assert _averaged(training, training.regressions, {"speed": 1.0}) is training.encoder


def test_time_latents_are_not_averaged(training):
    mean = _averaged(training, training.regressions, {"speed": 0.5})
    x = training.data[training.split.held_out.anchors]
    time = training.parts[-1].latents
    torch.testing.assert_close(mean(x)[:, time], training.encoder(x)[:, time], rtol=1e-3, atol=1e-4)


def test_frames_set_aside_are_not_known_from_the_start(training):
    """What is averaged is chosen on them."""
    rest, aside, _ = training.split.set_aside()
    speed = training.labels["speed"].linear[:, 0]
    missed = []
    for frames in (rest.anchors, aside.anchors):
        told = training.encoder(training.data[frames])[:, 0].detach().numpy()
        missed.append(np.mean(np.square(told - speed[frames])))
    whole = training.regressions["speed"]
    again = np.mean(np.square(whole(training.rows(aside.anchors))[:, 0] - speed[aside.anchors]))
    assert again < missed[1]
