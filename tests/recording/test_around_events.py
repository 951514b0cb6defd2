"""Traces around an event: right means, honest errors, nothing from beyond the recording."""

from dataclasses import replace

import numpy as np
import pytest

from napari_xcebra import Recording, Trials, Variable, peri_event
from napari_xcebra.errors import InputError
from napari_xcebra.recording import events as around_events
from napari_xcebra.recording.events import (
    Moments,
    moments_in,
    responses,
    splits_in,
    usual_view,
    window_of,
)

FRAMES = 400


@pytest.fixture
def recording():
    """Cell 7 answers to the cue on the right, cell 3 to every cue."""
    rng = np.random.default_rng(0)
    first = np.arange(10, 380, 40)
    side = np.arange(len(first)) % 2
    cue = np.zeros(FRAMES)
    cue[first + 5] = 1
    traces = rng.normal(scale=0.01, size=(FRAMES, 2)).astype(np.float32)
    for start, right in zip(first, side, strict=True):
        traces[start + 5 : start + 10, 0] += right
        traces[start + 5 : start + 10, 1] += 1
    return Recording(
        traces,
        10.0,
        {"cue": Variable("cue", cue, "event", window=(1, 2))},
        cell_ids=[7, 3],
        trials=Trials(first, first + 20, {"side": side}, {"side": ("left", "right")}),
    )


def test_means_are_split_by_what_is_known_of_the_trial(recording):
    around = peri_event(recording, "cue", by="side")
    assert around.groups == ("left", "right")
    at = (around.seconds >= 0) & (around.seconds < 0.5)
    mean = around.mean()[:, at].mean(1)
    np.testing.assert_allclose(mean, [[0, 1], [1, 1]], atol=0.02)
    np.testing.assert_allclose(around.mean()[:, around.seconds < -0.2].mean(1), 0, atol=0.02)
    assert (around.sem()[:, at] < 0.02).all()


def test_cells_are_named_by_their_ids(recording):
    around = peri_event(recording, "cue", cells=[3])
    assert around.cell_ids.tolist() == [3]
    np.testing.assert_array_equal(around.values, peri_event(recording, "cue").values[:, :, 1:])
    with pytest.raises(InputError, match="no cell 5"):
        peri_event(recording, "cue", cells=[5])


def test_nothing_comes_from_beyond_the_recording_or_frames_left_out(recording):
    wide = peri_event(recording, "cue", window=(5, 5))
    assert np.isnan(wide.values[0, 0]).all() and np.isnan(wide.values[-1, -1]).all()
    assert np.isfinite(wide.mean()).all()
    excluded = np.zeros(FRAMES, bool)
    excluded[15:18] = True
    left_out = peri_event(
        Recording(recording.traces, 10.0, recording.behavior, excluded=excluded), "cue"
    )
    assert np.isnan(left_out.values[0, 10:13]).all()


def test_bins_average_frames(recording):
    around = peri_event(recording, "cue", window=(1, 1), bin=0.5)
    assert around.values.shape == (10, 4, 2)
    np.testing.assert_allclose(around.seconds, [-0.8, -0.3, 0.2, 0.7])


def test_trials_can_be_aligned_to_without_any_event(recording):
    assert moments_in(recording) == ["trial start", "trial end", "cue"]
    assert splits_in(recording) == ["side"]
    start = peri_event(recording, "trial start", by="side", window=(0, 1))
    assert start.seconds[start.mean()[1, :, 0].argmax()] >= 0.5


def test_the_table_has_a_row_for_each_group_bin_and_cell(recording):
    table = peri_event(recording, "cue", by="side", window=(0, 1)).table()
    assert list(table) == ["side", "seconds", "cell", "mean", "sem", "moments"]
    assert len(table) == 2 * 10 * 2
    assert set(table["moments"]) == {5}
    right = table[(table["side"] == "right") & (table["cell"] == 7) & (table["seconds"] < 0.45)]
    np.testing.assert_allclose(right["mean"], 1, atol=0.03)


def test_single_trials_go_to_xarray_with_names(recording):
    around = peri_event(recording, "cue", by="side", window=(0, 1))
    array = around.to_xarray()
    assert array.sizes == {"moment": 10, "seconds": 10, "cell": 2}
    right = array.sel(cell=7)[array["side"] == "right"].mean("moment")
    np.testing.assert_allclose(right, around.mean()[1, :, 0], atol=1e-6)


@pytest.mark.parametrize(
    ("event", "by", "said"),
    [
        ("reward", None, "no event 'reward'.*there are: trial start, trial end, cue"),
        ("cue", "speed", "no variable 'speed'"),
        ("cue", "cue", "'cue' is event: moments are split by a discrete variable"),
    ],
)
def test_what_is_not_there_is_said_with_what_is(recording, event, by, said):
    with pytest.raises(InputError, match=said):
        peri_event(recording, event, by=by)


def test_a_factor_is_seen_around_what_makes_it_known(recording):
    known = np.full(FRAMES, np.nan)
    for first, stop, side in zip(
        recording.trials.first, recording.trials.stop, recording.trials.columns["side"], strict=True
    ):
        known[first + 5 : stop] = side
    late = Variable("side", known, "discrete", words=("left", "right"))
    told = replace(recording, behavior={**recording.behavior, "side": late})
    assert usual_view(told, ["side"]) == ("cue", "side")
    assert usual_view(told, ["cue"]) == ("cue", None)
    whole = np.repeat(recording.trials.columns["side"], 40)[:FRAMES]
    early = Variable("side", np.r_[np.zeros(10), whole][:FRAMES], "discrete")
    from_start = replace(recording, behavior={**recording.behavior, "side": early})
    assert usual_view(from_start, ["side"]) == ("trial start", "side")
    assert usual_view(recording, ["speed"]) is None


def test_cells_are_read_by_the_few_however_many_moments_there_are(recording, monkeypatch):
    moments = Moments.of(recording, "cue", "side")
    whole = responses(recording, moments, (1, 2)).halves
    monkeypatch.setattr(around_events, "BLOCK_BYTES", 1)
    sizes = [block.shape[1] for _, block in around_events._few_cells(
        recording, moments, around_events._bins_of(recording, (1, 2))[1])]  # fmt: skip
    assert sizes == [1, 1]
    np.testing.assert_array_equal(responses(recording, moments, (1, 2)).halves, whole)


def test_the_window_of_a_trial_shows_most_of_it(recording):
    assert window_of(recording, "trial start") == (1, 2)
    assert window_of(recording, "trial end") == (2, 1)
    assert window_of(recording, "cue") == (1, 2)
