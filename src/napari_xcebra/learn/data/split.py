"""Splits frames into training and held-out blocks, of whole trials where there are trials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.labels import Labels, correlation_time
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.recording import Recording

FEWEST = 64
"""Training pairs below which nothing is learned."""
TRIALS_A_BLOCK = 2
"""Trials for each held-out block, from which on whole trials are held out."""


@dataclass(frozen=True)
class UsableFrames:
    """Frames to draw from, in runs that neither pairs nor windows leave.

    Parameters
    ----------
    anchors : (anchors,) int64
        Frames whose whole window lies within one run, ascending.
    run : (frames,) int64
        Number of the run a frame belongs to, −1 outside.
    """

    anchors: np.ndarray
    run: np.ndarray

    @classmethod
    def within(cls, usable: np.ndarray, segment: np.ndarray, window: int) -> UsableFrames:
        """Runs of usable frames, cut at segment boundaries."""
        frames = len(usable)
        begins = usable & np.r_[True, ~usable[:-1] | (segment[1:] != segment[:-1])]
        run = np.where(usable, np.cumsum(begins) - 1, -1)
        left, right = window // 2, window - 1 - window // 2
        t = np.flatnonzero(usable)
        t = t[(t >= left) & (t < frames - right)]
        t = t[(run[t - left] == run[t]) & (run[t + right] == run[t])]
        return cls(t, run)

    def pairs(self, offset: int) -> np.ndarray:
        """Anchors t for which t + offset is an anchor of the same run."""
        is_anchor = np.zeros(len(self.run), bool)
        is_anchor[self.anchors] = True
        t = self.anchors[self.anchors < len(self.run) - offset]
        return t[is_anchor[t + offset] & (self.run[t + offset] == self.run[t])]


def usable_frames(recording: Recording, window: int) -> np.ndarray:
    """Frames whose whole window lies in one segment: (frames in use,) int64."""
    return UsableFrames.within(~np.asarray(recording.excluded), recording.segment, window).anchors


@dataclass(frozen=True)
class Split:
    """Frames for training, and held-out blocks that are contiguous in time.

    Parameters
    ----------
    training, held_out : UsableFrames
    block : (frames,) int64
        Number of the held-out block a frame belongs to, −1 outside.
    """

    training: UsableFrames
    held_out: UsableFrames
    block: np.ndarray

    def set_aside(self) -> tuple[UsableFrames, UsableFrames, np.ndarray]:
        """Set a quarter of the training frames aside.

        Every fourth stretch between two held-out blocks: the blocks keep it apart from the rest.

        Returns
        -------
        rest, aside : UsableFrames
        stretch : (frames,) int64
            Number of the stretch that a frame set aside belongs to, −1 elsewhere.
        """
        before = np.maximum.accumulate(self.block) + 1
        aside = before % 4 == 2
        if before.max() < 6:  # partners are found in another stretch, so two are needed
            aside = before % 2 == 1
        run, anchors = self.training.run, self.training.anchors
        rest = UsableFrames(anchors[~aside[anchors]], np.where(aside, -1, run))
        stretch = np.where(aside & (run >= 0), before, -1)
        return rest, UsableFrames(anchors[aside[anchors]], np.where(aside, run, -1)), stretch


def split_by_memory(
    recording: Recording, labels: Mapping[str, Labels], settings: FitSettings, offset: int
) -> Split:
    """`_split_frames`, with a guard as long as labels, smoothed traces and time pairs reach.

    The same recording, labels and settings give the same split, so the frames that were held out
    from a fit can be found again.
    """
    longest = recording.n_frames // (4 * settings.blocks)
    times = [correlation_time(c, recording.segment, longest) for c in labels.values()]
    # a smoothed frame reaches four standard deviations to either side; a filter behind it reaches
    # half a second further, but with weights that hardly count there
    times.append(round(4 * settings.smoothing * recording.rate))
    return _split_frames(recording, settings, max([offset, *times]), offset)


def _split_frames(
    recording: Recording, settings: FitSettings, guard: int, offset: int = 0
) -> Split:
    """Hold out blocks spread evenly over the usable frames.

    Parameters
    ----------
    guard : int
        Frames on either side of a block that are not used, because traces and labels there are
        still those of the training frames.
    offset : int
        Frames between the members of a time pair, if not as the settings have it.
    """
    offset = offset or settings.time_offset or 1
    usable = ~np.asarray(recording.excluded)
    n_usable = int(usable.sum())
    part = n_usable / settings.blocks
    length = round(part * settings.held_out)
    guard = int(min(guard, (part - length) // 4))
    order = np.cumsum(usable) - 1
    middle = (np.arange(settings.blocks) + 0.5) * part
    block = np.full(recording.n_frames, -1, np.int64)
    near = np.zeros(recording.n_frames, bool)
    place = _middle_of_trial(recording, order, settings.blocks)
    for number, centre in enumerate(middle):
        distance = np.abs(place - centre)
        # a block has one trial at least
        least = float(distance[usable].min(initial=np.inf)) + 0.5 if place is not order else 0.0
        inside = usable & (distance < max(length / 2, least))
        block[inside] = number
        if inside.any():
            own = order[inside]
            near |= (order >= own[0] - guard) & (order <= own[-1] + guard)
    segment = recording.segment
    training = UsableFrames.within(usable & ~near, segment, settings.window)
    # a held-out run must not join two blocks, hence the block number in its segment
    held_out = UsableFrames.within(
        block >= 0, segment * (settings.blocks + 1) + block, settings.window
    )
    split = Split(training, held_out, block)
    _check(split, recording, settings, offset)
    return split


def _middle_of_trial(recording: Recording, order: np.ndarray, blocks: int) -> np.ndarray:
    """Place of each frame among the usable ones; all frames of a trial have that of its middle.

    Parameters
    ----------
    order : (frames,) int64
        Place of each frame.
    blocks : int
        Blocks to make; trials are cut if they are too few to hold some of them out.
    """
    trials = recording.trials
    if trials is None or len(trials) < TRIALS_A_BLOCK * blocks:
        return order
    place = order.astype(np.float64)
    for first, stop in zip(trials.first, trials.stop, strict=True):
        place[first:stop] = (order[first] + order[stop - 1]) / 2
    return place


def _check(split: Split, recording: Recording, settings: FitSettings, offset: int) -> None:
    longest = int(np.bincount(recording.segment[~np.asarray(recording.excluded)]).max(initial=0))
    if longest < settings.window + offset:
        raise InputError(
            f"The longest trial has {longest} usable frames: `window` ({settings.window}) + "
            f"`time_offset` ({offset}) frames are needed in at least one trial; lower them, or "
            "make the trials longer."
        )
    pairs = len(split.training.pairs(offset))
    if pairs < FEWEST:
        raise InputError(
            f"{pairs} frames are left for training pairs, of {recording.n_frames} in the "
            f"recording: at least {FEWEST} are needed; record longer or lower `window`, "
            "`time_offset` or `held_out`."
        )
    blocks = np.unique(split.block[split.held_out.pairs(offset)])
    if len(blocks) < settings.blocks:
        raise InputError(
            f"Only {len(blocks)} of {settings.blocks} held-out blocks are long enough for `window` "
            f"({settings.window}) + `time_offset` ({offset}) frames: use fewer `blocks`, "
            "a larger `held_out` or a longer recording."
        )
