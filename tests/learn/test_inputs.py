"""What the encoder is fed is smoothed within runs and standardised, however it is read."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter1d

from napari_xcebra.learn import FitSettings, Training, inputs
from napari_xcebra.learn.inputs import inputs_for
from napari_xcebra.recording import InputError, Recording
from napari_xcebra.traces import NpyTraces

FRAMES, CELLS, RATE = 700, 6, 10.0
TRIALS = np.repeat([0, 1, 2], [300, 5, 395])
TRAINING = np.r_[20:290, 310:650]


@pytest.fixture
def traces():
    rng = np.random.default_rng(0)
    return (rng.normal(size=(FRAMES, CELLS)) * 3 + 40).astype(np.float32)


def recording_of(traces, **more):
    return Recording.from_arrays(traces, RATE, trials=TRIALS, **more)


def expected(traces, sigma):
    """By the filter of scipy, run by run, then standardised over the training frames."""
    smooth = traces.astype(float)
    for trial in range(3) if sigma else []:
        own = TRIALS == trial
        smooth[own] = gaussian_filter1d(smooth[own], sigma, axis=0, mode="nearest")
    return (smooth - smooth[TRAINING].mean(0)) / smooth[TRAINING].std(0)


@pytest.fixture(params=[2**40, 4 * 50 * CELLS], ids=["all at once", "fifty frames at a time"])
def block_bytes(request, monkeypatch):
    monkeypatch.setattr(inputs, "BLOCK_BYTES", request.param)


# 0.1 s: by products with a band of weights; 3 s: too wide for it
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 3.0])
@pytest.mark.usefixtures("block_bytes")
def test_traces_are_smoothed_within_their_trial_and_standardised(traces, smoothing):
    recording = recording_of(traces)
    made, found = inputs_for(recording, TRAINING, FitSettings(smoothing=smoothing))
    np.testing.assert_allclose(found, expected(traces, smoothing * RATE), atol=2e-4)
    assert found.flags.c_contiguous
    np.testing.assert_allclose(made.of(recording), found, atol=1e-6)


@pytest.mark.usefixtures("block_bytes")
def test_traces_on_disk_give_the_same_inputs(traces, tmp_path):
    np.save(tmp_path / "F.npy", traces.T)
    accepted = np.array([True, False, True, True, False, True])
    lazy = recording_of(NpyTraces(tmp_path / "F.npy", cells_first=True), accepted=accepted)
    _, found = inputs_for(lazy, TRAINING, FitSettings())
    _, plain = inputs_for(recording_of(traces, accepted=accepted), TRAINING, FitSettings())
    np.testing.assert_allclose(found, plain, atol=1e-5)
    np.testing.assert_allclose(found, expected(traces, 2.5)[:, accepted], atol=2e-4)


def test_a_cell_that_never_moves_takes_no_part(traces):
    traces[:, 2] = 1234.5
    made, found = inputs_for(recording_of(traces), TRAINING, FitSettings())
    assert made.cell_ids.tolist() == [0, 1, 3, 4, 5]
    np.testing.assert_allclose(found, expected(np.delete(traces, 2, 1), 2.5), atol=2e-4)


def test_a_bright_cell_that_moves_little_keeps_its_scale(traces):
    traces[:, 0] = 30_000 + np.arange(FRAMES) % 2
    made, _ = inputs_for(recording_of(traces), TRAINING, FitSettings(smoothing=0.0))
    assert made.scale[0] == pytest.approx(0.5, rel=1e-3)
    assert made.mean[0] == pytest.approx(30_000.5)


def test_recordings_of_constant_cells_are_refused(traces):
    with pytest.raises(InputError, match="All 6 cells in use are constant"):
        inputs_for(recording_of(np.ones_like(traces)), TRAINING, FitSettings())


def test_inputs_too_large_for_the_memory_lie_in_a_file(simulation, monkeypatch):
    settings = FitSettings(steps=3, batch_size=64)
    usual = Training(simulation.recording, simulation.factors, settings)
    monkeypatch.setattr(inputs, "_spare_memory", lambda: 0)
    short = Training(simulation.recording, simulation.factors, settings)
    list(usual.run())
    list(short.run())
    assert isinstance(inputs.room_for(2, 3), np.memmap)
    np.testing.assert_equal(usual.history, short.history)
