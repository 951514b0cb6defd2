"""No window and no pair leaves its run of usable frames; held-out blocks stay apart."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.split import UsableFrames, _split_frames
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.recording import Recording


@st.composite
def timelines(draw):
    """Usable frames and segments with boundaries anywhere."""
    frames = draw(st.integers(1, 40))
    usable = np.array(draw(st.lists(st.booleans(), min_size=frames, max_size=frames)))
    starts = draw(st.sets(st.integers(1, max(1, frames - 1)), max_size=5))
    segment = np.cumsum([frame in starts for frame in range(frames)])
    return usable, segment


def in_one_run(usable, segment, first, last):
    """Whether the frames first to last exist, are usable and belong to one segment."""
    if first < 0 or last >= len(usable):
        return False
    span = slice(first, last + 1)
    return bool(usable[span].all() and len(np.unique(segment[span])) == 1)


@given(timelines(), st.integers(1, 7))
def test_an_anchor_is_a_frame_whose_whole_window_lies_in_one_run(timeline, window):
    usable, segment = timeline
    first = np.arange(len(usable)) - window // 2
    expected = [t for t, f in enumerate(first) if in_one_run(usable, segment, f, f + window - 1)]
    assert UsableFrames.within(usable, segment, window).anchors.tolist() == expected


@given(timelines(), st.integers(1, 7), st.integers(1, 45))
def test_a_pair_is_two_anchors_with_nothing_but_usable_frames_between(timeline, window, offset):
    usable, segment = timeline
    frames = UsableFrames.within(usable, segment, window)
    anchors = set(frames.anchors.tolist())
    expected = [
        t
        for t in sorted(anchors)
        if t + offset in anchors and in_one_run(usable, segment, t, t + offset)
    ]
    assert frames.pairs(offset).tolist() == expected


def a_recording(frames=4000, starts=(), excluded=()):
    mask = np.zeros(frames, bool)
    mask[list(excluded)] = True
    return Recording.from_arrays(np.zeros((frames, 1)), 10.0, starts=[0, *starts], excluded=mask)


GAP = range(1000, 1300)


@pytest.mark.parametrize("excluded", [(), GAP], ids=["whole", "with a gap"])
def test_held_out_blocks_are_contiguous_and_spread_over_the_recording(excluded):
    settings = FitSettings(blocks=8, held_out=0.2)
    recording = a_recording(excluded=excluded)
    split = _split_frames(recording, settings, guard=20)
    usable = np.flatnonzero(~recording.excluded)
    number = split.block[usable]
    assert set(number.tolist()) == {-1, *range(8)}
    # one beginning and one end a block, counted over the frames that may be used
    assert (np.diff(np.r_[-1, number, -1]) != 0).sum() == 2 * 8
    assert (number >= 0).mean() == pytest.approx(0.2, abs=0.01)
    middles = [np.flatnonzero(number == b).mean() for b in range(8)]
    assert np.diff(middles) == pytest.approx(len(usable) / 8, rel=0.05)


@pytest.mark.parametrize("window", [1, 6])
@pytest.mark.parametrize("excluded", [(), GAP], ids=["whole", "with a gap"])
def test_training_keeps_the_guard_from_held_out_frames(window, excluded):
    guard = 20
    recording = a_recording(starts=[700, 1900], excluded=excluded)
    split = _split_frames(recording, FitSettings(window=window), guard)
    left = window // 2
    lags = np.arange(window) - left
    seen = np.unique(split.training.anchors[:, None] + lags)
    unseen = np.unique(split.held_out.anchors[:, None] + lags)
    gap = np.abs(unseen[:, None] - seen[None]).min()
    assert gap > guard
    assert not recording.excluded[seen].any()
    assert not recording.excluded[unseen].any()


def test_a_held_out_pair_never_leaves_its_block_or_its_trial():
    settings = FitSettings(time_offset=7, window=3)
    recording = a_recording(starts=[250, 700])  # the first of them lies in the first block
    split = _split_frames(recording, settings, guard=0)
    starts = split.held_out.pairs(7)
    assert len(starts) > 100
    assert (split.block[starts] == split.block[starts + 7]).all()
    assert (recording.segment[starts] == recording.segment[starts + 7]).all()


def test_a_guard_longer_than_the_recording_allows_still_leaves_training_frames():
    split = _split_frames(a_recording(), FitSettings(), guard=10**6)
    assert len(split.training.anchors) > 1500


@pytest.mark.parametrize(
    ("recording", "settings", "words"),
    [
        (a_recording(40), {"blocks": 2}, ["of 40 in the recording", "at least 64 are needed"]),
        (a_recording(20), {"window": 50}, ["20 usable frames", "`window` (50)", "needed"]),
        (
            a_recording(3000, starts=range(0, 3000, 10)),
            {"window": 12},
            ["longest trial has 10", "`window` (12)", "`time_offset` (1)", "needed"],
        ),
        (a_recording(3000, excluded=range(3000)), {}, ["0 usable frames", "needed"]),
        (
            a_recording(3000),
            {"blocks": 100, "window": 10},
            ["of 100 held-out blocks", "`window` (10)", "fewer `blocks`"],
        ),
    ],
    ids=["few frames", "window", "short trials", "all excluded", "blocks too short"],
)
def test_a_recording_too_short_for_the_settings_gets_one_sentence(recording, settings, words):
    with pytest.raises(InputError) as caught:
        _split_frames(recording, FitSettings(**settings), guard=2)
    message = str(caught.value)
    assert all(word in message for word in words)
    assert message.endswith(".")
    assert ". " not in message
