"""What the encoder is fed is smoothed within runs and standardised, however it is read."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter1d

from napari_xcebra.errors import InputError
from napari_xcebra.learn import FitSettings, Training, fit
from napari_xcebra.learn.data import inputs, smoothing
from napari_xcebra.learn.data import inputs as room
from napari_xcebra.learn.data.inputs import ReadInputs, inputs_for
from napari_xcebra.recording import Recording
from napari_xcebra.recording.traces import NpyTraces

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
    """By the filter of scipy, run by run, then standardised over the training frames, and cut."""
    smooth = traces.astype(float)
    for trial in range(3) if sigma else []:
        own = TRIALS == trial
        smooth[own] = gaussian_filter1d(smooth[own], sigma, axis=0, mode="nearest")
    standard = (smooth - smooth[TRAINING].mean(0)) / smooth[TRAINING].std(0)
    return np.clip(standard, -inputs.CLIP, inputs.CLIP)


@pytest.fixture(params=[2**40, 4 * 50 * CELLS], ids=["all at once", "fifty frames at a time"])
def block_bytes(request, monkeypatch):
    monkeypatch.setattr(smoothing, "BLOCK_BYTES", request.param)


# 0.1 s: by products with a band of weights; 3 s: too wide for it
@pytest.mark.parametrize(("frames", "in_file"), [(49, False), (50, True)])
def test_inputs_may_take_up_to_half_of_the_free_memory(monkeypatch, frames, in_file):
    memory = SimpleNamespace(available=2 * 4 * 50 * CELLS)
    monkeypatch.setattr("psutil.virtual_memory", lambda: memory)
    assert isinstance(room._room_for(frames, CELLS), np.memmap) == in_file


@pytest.mark.parametrize("seconds", [0.0, 0.1, 3.0])
@pytest.mark.usefixtures("block_bytes")
def test_traces_are_smoothed_within_their_trial_and_standardised(traces, seconds):
    recording = recording_of(traces)
    made, found = inputs_for(recording, TRAINING, FitSettings(smoothing=seconds))
    np.testing.assert_allclose(found, expected(traces, seconds * RATE), atol=2e-4)
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


def test_a_burst_beyond_ten_standard_deviations_is_cut(traces):
    """Of a cell that is nearly silent in training."""
    traces[295, 1] += 1e5
    _, found = inputs_for(recording_of(traces), TRAINING, FitSettings(smoothing=0.0))
    assert found[295, 1] == inputs.CLIP
    untouched = np.delete(np.arange(FRAMES), 295)
    np.testing.assert_allclose(found[untouched], expected(traces, 0)[untouched], atol=2e-4)


def test_a_cell_that_hardly_moves_in_training_is_not_blown_up(traces):
    quiet = np.where(np.isin(np.arange(FRAMES), TRAINING), 1e-4, 1.0)
    traces[:, 2] = np.random.default_rng(1).normal(size=FRAMES) * quiet
    made, found = inputs_for(recording_of(traces), TRAINING, FitSettings(smoothing=0.0))
    assert made.scale[2] == pytest.approx(inputs.QUIET * np.median(made.scale), rel=1e-5)
    assert np.abs(found[TRAINING, 2]).max() < 0.1


def test_inputs_of_earlier_versions_are_not_cut(traces):
    traces[295, 1] += 1e5
    old = inputs.Inputs(np.arange(CELLS), np.zeros(CELLS), np.ones(CELLS), 0.0)
    np.testing.assert_array_equal(old.of(recording_of(traces)), traces)


def test_a_filter_is_applied_within_a_trial(traces):
    filter_ = inputs.Filter((0.2, -0.8, 1.0), 2)
    made, found = inputs_for(recording_of(traces), TRAINING, FitSettings(smoothing=0.1), filter_)
    assert made.radius == 4 + 2
    changed = traces.copy()
    changed[:305] += np.random.default_rng(1).normal(size=(305, CELLS)).astype(np.float32)
    np.testing.assert_array_equal(
        made.of(recording_of(changed))[305:], made.of(recording_of(traces))[305:]
    )
    np.testing.assert_allclose(made.of(recording_of(traces)), found, atol=1e-5)


def test_recordings_of_constant_cells_are_refused(traces):
    with pytest.raises(InputError, match="All 6 cells in use are constant"):
        inputs_for(recording_of(np.ones_like(traces)), TRAINING, FitSettings())


@pytest.fixture
def little_memory(monkeypatch):
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=0))


@pytest.fixture
def little_room(monkeypatch, little_memory):
    monkeypatch.setattr(room, "_spare_disk", lambda: 0)


def test_inputs_too_large_for_the_memory_lie_in_a_file(simulation, request):
    settings = FitSettings(steps=3, batch_size=64)
    usual = Training(simulation.recording, simulation.factors, settings)
    request.getfixturevalue("little_memory")
    short = Training(simulation.recording, simulation.factors, settings)
    list(usual.run())
    list(short.run())
    assert isinstance(room._room_for(2, 3), np.memmap)
    np.testing.assert_equal(usual.history, short.history)


@pytest.mark.parametrize("seconds", [0.0, 0.1, 3.0])
@pytest.mark.parametrize(
    "filter_", [inputs.Filter(), inputs.Filter((0.2, -0.8, 1.0), 3)], ids=["unfiltered", "filtered"]
)
@pytest.mark.parametrize("accepted", [[1, 1, 1, 1, 1, 1], [0, 1, 1, 0, 1, 0]], ids=["all", "some"])
def test_without_room_for_a_copy_frames_are_read_and_are_the_same(
    traces, tmp_path, request, seconds, accepted, filter_
):
    np.save(tmp_path / "traces.npy", traces)
    file = NpyTraces(tmp_path / "traces.npy", cells_first=False)
    recording = recording_of(file, accepted=np.array(accepted, bool))
    settings = FitSettings(smoothing=seconds)
    usual, kept = inputs_for(recording, TRAINING, settings, filter_)
    request.getfixturevalue("little_room")
    made, read = inputs_for(recording, TRAINING, settings, filter_)
    assert isinstance(kept, np.ndarray)
    assert isinstance(read, ReadInputs)
    assert isinstance(made.on(recording), ReadInputs)
    np.testing.assert_equal(vars(made), vars(usual))
    # at the ends of trials, next to each other, twice, and anywhere
    frames = np.array([304, 0, 299, 300, 699, 305, 412, 411, 412, 150])
    np.testing.assert_allclose(read[frames], kept[frames], atol=1e-5)
    assert read.shape == kept.shape


@pytest.mark.parametrize("window", [1, 5])
def test_a_fit_that_reads_its_inputs_is_the_one_that_keeps_them(simulation, request, window):
    settings = FitSettings(steps=6, batch_size=64, window=window, lambda_=0.1)
    usual = fit(simulation.recording, simulation.factors, settings)
    request.getfixturevalue("little_room")
    short = fit(simulation.recording, simulation.factors, settings)
    for name, weights in usual.weights.items():
        np.testing.assert_allclose(short.weights[name], weights, atol=1e-4)
    found, wanted = (one.embed(simulation.recording) for one in (short, usual))
    np.testing.assert_allclose(found, wanted, atol=1e-3)


@pytest.mark.usefixtures("little_room")
def test_mean_and_scale_of_traces_that_are_only_read_come_from_blocks_all_over(traces, monkeypatch):
    monkeypatch.setattr(smoothing, "BLOCK_BYTES", 4 * 10 * CELLS)
    monkeypatch.setattr(inputs, "SAMPLED_BYTES", traces.nbytes // 2)
    read = []
    usual = smoothing.smoothed
    monkeypatch.setattr(
        inputs,
        "smoothed",
        lambda *given: (read.append(here) or (here, some) for here, some in usual(*given)),
    )
    made, _ = inputs_for(recording_of(traces), TRAINING, FitSettings(smoothing=0.0))
    frames = np.concatenate([np.arange(here.start, here.stop) for here in read])
    assert len(frames) <= FRAMES // 2 + 10
    assert np.diff(frames).max() <= 11
    own = traces[np.intersect1d(frames, TRAINING)]
    np.testing.assert_allclose(made.mean, own.mean(0), rtol=1e-5)
    np.testing.assert_allclose(made.scale, own.std(0), rtol=1e-4)


@pytest.mark.usefixtures("little_room")
def test_traces_that_must_be_copied_and_cannot_are_refused_with_a_way_out(traces, tmp_path):
    np.save(tmp_path / "F.npy", np.ascontiguousarray(traces.T))
    lazy = recording_of(NpyTraces(tmp_path / "F.npy", cells_first=True))
    with pytest.raises(InputError, match=r"6 cells at 700 frames .* set TMPDIR"):
        inputs_for(lazy, TRAINING, FitSettings())


@pytest.mark.usefixtures("little_room")
def test_a_gap_in_traces_that_are_only_read_is_named(traces, tmp_path):
    traces[412, 3] = np.nan
    np.save(tmp_path / "traces.npy", traces)
    recording = recording_of(NpyTraces(tmp_path / "traces.npy", cells_first=False))
    made = inputs.Inputs(np.arange(CELLS), np.zeros(CELLS), np.ones(CELLS), 0.0)
    with pytest.raises(InputError, match="column 3 is NaN or infinite at frame 412"):
        ReadInputs(recording, made)[np.array([20, 412])]
