"""Simulates the trials of a mouse that chooses between two sides, and what it does in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from napari_xcebra.simulate.processes import ornstein_uhlenbeck, smoothed

STIMULUS = 1.5
"""Length of the stimulus, in s."""
DELAY, REACTION, REST = (1.0, 2.0), (0.3, 0.9), (2.0, 4.5)
"""Ranges of the delay, of the time to the choice, and between trials, in s."""
FEEDBACK, OUTCOME = 0.3, 2.0
"""Time from the choice to the outcome, and length of the outcome, in s."""
CORRECT_SHARE = 0.8
"""Share of the trials in which the choice follows the stimulus."""
RUN_TIME, RUN_SMOOTH = 1.2, 0.15
"""Coherence time of running and the time it is smoothed over, in s."""
RUN_SPEED, RUN_BIAS = 12.0, 0.3
"""Scale of running, in cm/s, and how far its drive is above 0, where the mouse stands still."""
REWARDED_SHARE, FREE_REWARDS = 0.7, 0.04
"""Share of the correct choices that are rewarded, and rewards that are free, per s."""
LICKED_SHARE, LICK_BOUTS, LICKS, LICK_RATE = 0.8, 0.04, 5, 6.0
"""Share of the rewards that are licked, other bouts per s, licks in a bout, and licks per s."""
SLOWED_SHARE, SLOWED_BY = 0.6, 0.9
"""Share of the trials in which a stimulus slows the mouse, and by how much of the drive."""


@dataclass(frozen=True)
class Course:
    """Behaviour of the mouse and state of the task, frame by frame.

    Parameters
    ----------
    trial : (frames,) int
        Number of the trial.
    phase, from_choice, from_outcome : (frames,) float64
        Time since the trial began, the choice, and the outcome, in s; negative before.
    stimulus, choice : (frames,) int
        0 is left, 1 is right.
    outcome : (frames,) int
        0 is wrong, 1 is correct.
    running : (frames,) float64
        In cm/s.
    decision, reward, lick : (frames,) int64
        How often the mouse chose, was rewarded and licked.
    """

    trial: np.ndarray
    phase: np.ndarray
    from_choice: np.ndarray
    from_outcome: np.ndarray
    stimulus: np.ndarray
    choice: np.ndarray
    outcome: np.ndarray
    running: np.ndarray
    decision: np.ndarray
    reward: np.ndarray
    lick: np.ndarray


def run_trials(rng: np.random.Generator, frames: int, dt: float) -> Course:
    """Trials one after the other until the frames, `dt` seconds apart, are full."""
    for_times, for_sides, for_running, for_licks = rng.spawn(4)
    shortest = STIMULUS + DELAY[0] + REACTION[0] + FEEDBACK + OUTCOME + REST[0]
    trials = int(np.ceil(frames * dt / shortest))
    delay, reaction, rest = (for_times.uniform(*span, trials) for span in (DELAY, REACTION, REST))
    choice_at = STIMULUS + delay + reaction
    ends = np.cumsum(choice_at + FEEDBACK + OUTCOME + rest)
    time = np.arange(frames) * dt
    trial = np.searchsorted(ends, time, side="right")
    phase = time - np.r_[0, ends[:-1]][trial]
    stimulus = for_sides.integers(0, 2, trials)
    outcome = (for_sides.random(trials) < CORRECT_SHARE).astype(int)
    choice = np.where(outcome == 1, stimulus, 1 - stimulus)
    chosen = np.r_[0, ends[:-1]] + choice_at
    rewarded = _rewards(for_licks, (chosen + FEEDBACK)[outcome == 1], frames * dt)
    return Course(
        trial=trial,
        phase=phase,
        from_choice=phase - choice_at[trial],
        from_outcome=phase - (choice_at + FEEDBACK)[trial],
        stimulus=stimulus[trial],
        choice=choice[trial],
        outcome=outcome[trial],
        running=_running(for_running, trial, phase < STIMULUS, dt),
        decision=_counted(chosen, frames, dt),
        reward=_counted(rewarded, frames, dt),
        lick=_counted(_licks(for_licks, rewarded, frames * dt), frames, dt),
    )


def _rewards(rng: np.random.Generator, correct: np.ndarray, seconds: float) -> np.ndarray:
    """Times of rewards, in s: after most correct choices, and free ones now and then."""
    given = correct[rng.random(len(correct)) < REWARDED_SHARE]
    return np.sort(np.r_[given, rng.uniform(0, seconds, rng.poisson(FREE_REWARDS * seconds))])


def _licks(rng: np.random.Generator, rewarded: np.ndarray, seconds: float) -> np.ndarray:
    """Times of licks, in s: bouts after most rewards, and now and then at other times."""
    after = rewarded[rng.random(len(rewarded)) < LICKED_SHARE]
    begins = np.r_[after + rng.uniform(0.1, 0.4, len(after)),
                   rng.uniform(0, seconds, rng.poisson(LICK_BOUTS * seconds))]  # fmt: skip
    return np.concatenate([begin + np.arange(rng.poisson(LICKS)) / LICK_RATE for begin in begins])


def _counted(times: np.ndarray, frames: int, dt: float) -> np.ndarray:
    """How many of these times, in s, lie in each frame: (frames,) int64."""
    at = np.floor(times / dt).astype(np.int64)
    return np.bincount(at[at < frames], minlength=frames)


def _running(
    rng: np.random.Generator, trial: np.ndarray, stimulus: np.ndarray, dt: float
) -> np.ndarray:
    """Bouts of running, in cm/s: a fast process where it is above 0, slowed by some stimuli."""
    drive = RUN_BIAS + ornstein_uhlenbeck(rng, len(trial), RUN_TIME / dt)
    slowed = (rng.random(trial[-1] + 1) < SLOWED_SHARE)[trial] & stimulus
    bouts = np.maximum(drive - SLOWED_BY * slowed, 0)
    return RUN_SPEED * smoothed(bouts, RUN_SMOOTH / dt)
