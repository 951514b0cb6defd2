"""Traces of mere events are told from signals that decay, and how fast these do is measured."""

import numpy as np
import pytest
import scipy.signal

from napari_xcebra.io import open_recording
from napari_xcebra.learn.data.inputs import inputs_for
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.recording.traces import are_events, half_fall

RATE = 30.0
RNG = np.random.default_rng(0)
SPIKES = RNG.poisson(0.01 * RNG.gamma(1, 1, 40), (6000, 40)).astype(np.float32)


def calcium(seconds):
    keep = np.exp(-1 / (seconds * RATE))
    return scipy.signal.lfilter([1], [1, -keep], SPIKES, axis=0)


@pytest.mark.parametrize("traces", [SPIKES, SPIKES > 0, 0.37 * SPIKES, SPIKES.astype(int)])
def test_single_and_counted_events_are_recognised(traces):
    assert are_events(traces)


def test_signals_are_no_events():
    noise = RNG.normal(size=SPIKES.shape)
    assert not are_events(calcium(0.5) + 0.1 * noise)
    denoised = calcium(0.5)
    assert not are_events(np.where(denoised > 0.2, denoised, 0))  # as an extractor gives it
    assert not are_events(np.zeros((50, 3)))


@pytest.mark.parametrize("seconds", [0.3, 1.0])
def test_the_fall_of_transients_is_that_of_the_indicator(seconds):
    traces = calcium(seconds) + 0.02 * RNG.normal(size=SPIKES.shape)
    assert half_fall(traces, RATE) == pytest.approx(seconds * np.log(2), rel=0.5)
    assert half_fall(np.zeros((1000, 3)), RATE) is None


def test_a_file_of_events_is_opened_as_events(tmp_path):
    np.save(tmp_path / "spike_train.npy", SPIKES)
    recording = open_recording(tmp_path / "spike_train.npy", rate=RATE, layout="frames-cells")
    assert recording.origin.signal == "events"
    assert "events, as most values are 0" in " ".join(recording.notes)
    as_they_are = open_recording(
        tmp_path / "spike_train.npy", rate=RATE, layout="frames-cells", traces="raw"
    )
    assert as_they_are.origin.signal == "raw"


def test_a_cell_with_one_event_weighs_less_than_one_with_many(tmp_path):
    traces = SPIKES.copy()
    traces[:, 0] = 0
    traces[3000, 0] = 1
    np.save(tmp_path / "spikes.npy", traces)
    frames, settings = np.arange(len(traces)), FitSettings()
    peaks = {}
    for kind in ("events", "raw"):
        recording = open_recording(
            tmp_path / "spikes.npy", rate=RATE, layout="frames-cells", traces=kind
        )
        peaks[kind] = inputs_for(recording, frames, settings)[1].max(axis=0)
    assert peaks["raw"][0] == 10  # clipped
    assert peaks["events"][0] < peaks["raw"][0] / 2
