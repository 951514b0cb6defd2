"""Which frames are used, and how much of them is in memory."""

import threading
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import torch

from napari_xcebra.attribution import AttributionStopped, attribute
from napari_xcebra.attribution import stream as streaming
from napari_xcebra.attribution.stream import make_stream
from napari_xcebra.errors import InputError


def test_a_frame_whose_window_leaves_its_trial_is_not_used(windowed, recording):
    used = make_stream(windowed, recording).frames
    for boundary in (0, 1000, 2010):
        first = used[used >= boundary][0]
        assert first == boundary + 3  # of a window of 6, three frames come before
    assert not np.isin(np.arange(998, 1003), used).any()
    assert not np.isin(np.arange(1998, 2013), used).any()


@pytest.mark.parametrize("name", ["trained", "windowed"])
def test_inputs_read_in_stretches_are_those_of_the_training(name, request, recording, monkeypatch):
    fit = request.getfixturevalue(name)
    monkeypatch.setattr(streaming, "ROW_BYTES", 4 * recording.n_cells * 50)
    stream = make_stream(fit, recording)
    chunks = list(stream.chunks())
    assert len(chunks) > 3000 // 60
    expected = fit.frame_data(recording)[stream.frames]
    torch.testing.assert_close(torch.cat(chunks), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("aggregate", ["mean", "median", "max"])
def test_chunking_does_not_change_the_scores(trained, recording, aggregate, monkeypatch):
    whole = attribute(trained, recording, "inverted-neuron-gradient", aggregate=aggregate)
    monkeypatch.setattr(streaming, "CHUNK_BYTES", streaming.CHUNK_BYTES // 60)
    chunks = []
    parts = attribute(
        trained,
        recording,
        "inverted-neuron-gradient",
        aggregate=aggregate,
        on_progress=lambda *done: chunks.append(done),
    )
    assert len(chunks) > 10
    assert chunks[-1] == (2990, 2990)
    np.testing.assert_allclose(parts.latent_scores, whole.latent_scores, rtol=1e-4)


@pytest.mark.parametrize("method", ["inverted-neuron-gradient", "neuron-gradient"])
def test_several_chunks_at_a_time_give_the_same_scores(trained, recording, method, monkeypatch):
    monkeypatch.setattr(streaming, "CHUNK_BYTES", streaming.CHUNK_BYTES // 60)
    alone, together = (attribute(trained, recording, method, workers=n) for n in (1, 3))
    np.testing.assert_array_equal(together.latent_scores, alone.latent_scores)


def test_stopping_ends_all_that_is_under_way(trained, recording, monkeypatch):
    monkeypatch.setattr(streaming, "CHUNK_BYTES", streaming.CHUNK_BYTES // 60)
    before = threading.active_count()
    with pytest.raises(AttributionStopped):
        attribute(trained, recording, workers=3, stop=lambda: True)
    assert threading.active_count() == before


def test_a_subset_of_frames_uses_those_only(trained, recording):
    """Traces outside of the trial may be anything."""
    trial = slice(1000, 2000)
    expected = attribute(trained, recording, frames=trial)
    traces = np.array(recording.traces)
    traces[:1000] = traces[2000:] = 77.0
    elsewhere = replace(recording, traces=traces)
    mask = np.zeros(recording.n_frames, bool)
    mask[trial] = True
    for frames in (trial, mask, np.arange(1000, 2000)[::-1]):
        result = attribute(trained, elsewhere, frames=frames)
        assert result.n_frames == 1000
        np.testing.assert_array_equal(result.latent_scores, expected.latent_scores)
    other = attribute(trained, recording, frames=slice(0, 1000))
    assert not np.allclose(other.score("z2"), expected.score("z2"), equal_nan=True, rtol=1e-3)


@pytest.mark.parametrize(
    ("frames", "sentence"),
    [
        (slice(0, 0), "None of the 0 requested frames"),
        ([2001, 2002], "None of the 2 requested frames can be used"),
        ([5000], "0 to 2999"),
        ([0.5], "whole numbers"),
        (np.ones(5, bool), "the recording has 3000 frames"),
    ],
)
def test_frames_that_cannot_be_used_get_a_sentence(trained, recording, frames, sentence):
    with pytest.raises(InputError, match=sentence):
        attribute(trained, recording, frames=frames)


def test_memory_does_not_grow_with_the_length_of_the_recording(trained, recording, monkeypatch):
    """Inputs, Jacobians and scores of one chunk at a time; numpy's share is seen by tracemalloc,
    torch's by the largest chunk."""
    monkeypatch.setattr(streaming, "CHUNK_BYTES", 16 * 2**20)
    monkeypatch.setattr(streaming, "ROW_BYTES", 2**18)

    def peak(repeats):
        longer = replace(
            recording,
            traces=np.tile(recording.traces, (repeats, 1)),
            behavior={},
            excluded=None,
            times=None,
        )
        done = [0]
        tracemalloc.start()
        attribute(
            trained, longer, "neuron-gradient", on_progress=lambda frames, _: done.append(frames)
        )
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        # the list of frames and of their trials grows by some bytes a frame, whatever the cells
        return max(np.diff(done)), most - longer.n_frames * 60

    (size_short, peak_short), (size_long, peak_long) = peak(2), peak(16)
    assert size_short == size_long
    assert peak_long < 1.2 * peak_short + 2**20
