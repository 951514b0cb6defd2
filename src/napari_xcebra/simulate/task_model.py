"""Simulates a choice between two sides, trial by trial, and cells of all that goes on in it.

Stimulus and choice go together, and the outcome follows from both, as they do in labs. Cells carry
stimulus, choice, outcome, running and phase.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy

from napari_xcebra.recording.recording import Recording
from napari_xcebra.recording.variables import Trials, Variable
from napari_xcebra.simulate.arena_model import running_rates, with_baseline
from napari_xcebra.simulate.simulation import (
    Population,
    Simulation,
    check_cells,
    check_count,
    check_positive,
    joined,
    ornstein_uhlenbeck,
    population_of,
    smoothed,
    template_counts,
)

FACTORS = {name: (name,) for name in ("stimulus", "choice", "outcome", "running")}
EVENTS = ("reward", "lick")
"""Events that cells may respond to."""
CARRIED = {kind: (kind,) for kind in (*FACTORS, "phase", *EVENTS)}
"""Kinds of cells that carry each factor, the phase of the trial, and events."""
EVENT_DECAYS = (0.3, 1.0)
"""Range of the time constants of responses to events, in s."""
WINDOWS = {"decision": (1.5, 2.0), "reward": (0.5, 2.5), "lick": (0.5, 1.5)}
"""Seconds before and after each event in which cells may respond."""
SIDES, OUTCOMES = ("left", "right"), ("wrong", "correct")
OTHER_SIDE = (0.0, 0.25)
"""Range of the response to what a cell does not prefer, in that to what it prefers."""
ONSET = 0.15
"""Time within which responses rise, in s."""
STIMULUS_DECAYS, CHOICE_RISES, CHOICE_DECAYS, OUTCOME_DECAYS = (
    (0.5, 2.5),
    (0.4, 1.0),
    (0.8, 2.0),
    (1.0, 2.5),
)
"""Ranges of the time constants of responses, in s."""
LAST_PHASE = 9.0
"""Latest preferred time of phase cells, in s from the start of the trial."""
PHASE_WIDTHS = (0.4, 1.2)
"""Range of widths (standard deviations) of phase cells, in s."""


def task(
    *,
    stimulus: int = 20,
    choice: int = 20,
    outcome: int = 15,
    running: int = 20,
    phase: int = 15,
    untuned: int = 20,
    reward: int = 0,
    lick: int = 0,
    frames: int = 20_000,
    rate: float = 10.0,
    trials: bool = True,
    seed: int = 0,
) -> Simulation:
    """Cells of a mouse that chooses between left and right.

    A trial lasts about 9 s: stimulus, delay, choice, outcome, and a rest of random length. The
    choice follows the stimulus in 4 of 5 trials, which are the correct ones. The recording has its
    trials: the stimulus is known in the whole trial, choice and outcome from when they happen on.
    Moments of decision, rewards and licks are events.

    Parameters
    ----------
    stimulus : int
        Number of cells that respond to a stimulus on their side, and a while after it.
    choice : int
        Number of cells that are active around a choice of their side.
    outcome : int
        Number of cells that respond to a correct, or a wrong, outcome.
    running : int
        Number of cells that rise, or fall, with running speed, up to a limit.
    phase : int
        Number of cells that are active at some time of every trial, whatever the sides.
    untuned : int
        Number of cells that are active but carry nothing.
    reward, lick : int
        Number of cells that respond to every reward, and to every lick.
    frames : int
    rate : float
        Frames per second.
    trials : bool
        Without it, the recording is one segment without events, and stimulus, choice and outcome
        are given on every frame of their trial.
    seed : int

    Returns
    -------
    Simulation
        Truth and factors "stimulus", "choice", "outcome", "running", and events that have cells;
        truth also has "phase" where there are phase cells. Left and wrong are 0, right and correct
        are 1. The time since the trial began, in s, is `hidden["phase"]`. Rates are between 0
        and 1.

    Examples
    --------
    >>> counts = {"stimulus": 4, "choice": 4, "outcome": 2, "running": 3, "phase": 2}
    >>> simulation = task(**counts, untuned=5, frames=500)
    >>> {factor: int(cells.sum()) for factor, cells in simulation.truth.items()}
    {'stimulus': 4, 'choice': 4, 'outcome': 2, 'running': 3, 'phase': 2}
    """
    counts = dict(
        zip((*FACTORS, "phase"), (stimulus, choice, outcome, running, phase), strict=True)
    )
    responding = {"reward": reward, "lick": lick}
    check_cells({**counts, "untuned": untuned, **responding})
    check_count("frames", frames, 2)
    check_positive("rate", rate)
    streams = np.random.default_rng(check_count("seed", seed)).spawn(3)
    for_trials, for_tuning, for_untuned = streams

    course = _run_trials(for_trials, frames, 1 / rate)
    population = _tuned_cells(for_tuning, course, counts)
    if untuned:
        templates = _tuned_cells(for_untuned, course, template_counts(counts, untuned))
        population = joined(population, templates.lookalikes(for_untuned, untuned))
    if reward or lick:
        found = _event_rates(for_tuning.spawn(1)[0], course, responding, rate)
        population = joined(population, population_of(found, CARRIED))
    return _simulation(course, population, rate, seed, trials=trials)


def _tuned_cells(
    rng: np.random.Generator, trials: _TaskCourse, counts: Mapping[str, int]
) -> Population:
    """Cells that carry a variable or the phase, `counts` of them by kind."""
    for_stimulus, for_choice, for_outcome, for_running, for_phase, for_baseline = rng.spawn(6)
    rates = {
        "stimulus": _stimulus_rates(for_stimulus, trials, counts["stimulus"]),
        "choice": _choice_rates(for_choice, trials, counts["choice"]),
        "outcome": _outcome_rates(for_outcome, trials, counts["outcome"]),
        "running": running_rates(for_running, trials.running, counts["running"], RUN_SPEED),
        "phase": _phase_rates(for_phase, trials.phase, counts["phase"]),
    }
    return population_of({k: with_baseline(for_baseline, r) for k, r in rates.items()}, CARRIED)


def _stimulus_rates(rng: np.random.Generator, trials: _TaskCourse, cells: int) -> np.ndarray:
    """As long as the stimulus, then decaying, (frames, cells)."""
    time = trials.phase[:, None]
    lasts = np.exp(-np.maximum(time - STIMULUS, 0) / rng.uniform(*STIMULUS_DECAYS, cells))
    return _preference(rng, trials.stimulus, cells) * _onset(time) * lasts


def _choice_rates(rng: np.random.Generator, trials: _TaskCourse, cells: int) -> np.ndarray:
    """Rising to the choice, then decaying, (frames, cells)."""
    time = trials.from_choice[:, None]
    rises, decays = rng.uniform(*CHOICE_RISES, cells), rng.uniform(*CHOICE_DECAYS, cells)
    around = np.exp(-np.abs(time) / np.where(time < 0, rises, decays))
    return _preference(rng, trials.choice, cells) * around


def _outcome_rates(rng: np.random.Generator, trials: _TaskCourse, cells: int) -> np.ndarray:
    """From the outcome on, decaying, (frames, cells)."""
    time = trials.from_outcome[:, None]
    after = np.exp(-np.maximum(time, 0) / rng.uniform(*OUTCOME_DECAYS, cells))
    return _preference(rng, trials.outcome, cells) * _onset(time) * after


def _phase_rates(rng: np.random.Generator, phase: np.ndarray, cells: int) -> np.ndarray:
    """A Gaussian around some time of the trial, (frames, cells)."""
    times = LAST_PHASE * (np.arange(cells) + rng.uniform(0, 1, cells)) / max(cells, 1)
    return np.exp(-(((phase[:, None] - times) / rng.uniform(*PHASE_WIDTHS, cells)) ** 2) / 2)


def _event_rates(
    rng: np.random.Generator, trials: _TaskCourse, counts: Mapping[str, int], rate: float
) -> dict[str, np.ndarray]:
    """From each event on, decaying, those of licks added up to a limit: (frames, cells) each."""
    found = {}
    for kind, cells in counts.items():
        began, rates = getattr(trials, kind).astype(float), np.empty((len(trials.trial), cells))
        for cell, decay in enumerate(rng.uniform(*EVENT_DECAYS, cells)):
            kept = np.exp(-1 / (decay * rate))
            rates[:, cell] = np.tanh(scipy.signal.lfilter([1.0], [1.0, -kept], began))
        found[kind] = with_baseline(rng, rates)
    return found


def _preference(rng: np.random.Generator, values: np.ndarray, cells: int) -> np.ndarray:
    """1 where a variable has the value a cell prefers, less elsewhere, (frames, cells)."""
    prefers = np.arange(cells) % 2
    return np.where(values[:, None] == prefers, 1, rng.uniform(*OTHER_SIDE, cells))


def _onset(time: np.ndarray) -> np.ndarray:
    """Rise from 0, before time 0, to 1."""
    return 1 - np.exp(-np.maximum(time, 0) / ONSET)


def _simulation(
    course: _TaskCourse, population: Population, rate: float, seed: int, *, trials: bool
) -> Simulation:
    frames = len(population.rates)
    description = (
        f"Mouse choosing between two sides in {course.trial[-1] + 1} trials, {frames / rate:.0f} s;"
        f" cells: {population}."
    )
    since = {
        "stimulus": course.phase,
        "choice": course.from_choice,
        "outcome": course.from_outcome,
    }
    # without trials, a value is given from the beginning of its trial
    values = {
        name: np.where((seconds >= 0) | (not trials), getattr(course, name), np.nan)
        for name, seconds in since.items()
    }
    words = {"stimulus": SIDES, "choice": SIDES, "outcome": OUTCOMES}
    behavior = [Variable(n, v, "discrete", words=words[n]) for n, v in values.items()]
    behavior.append(Variable("running", course.running, unit="cm/s"))
    carried = [name for name in EVENTS if population.truth[name].any()]
    for name, window in WINDOWS.items():
        if trials or name in carried:
            behavior.append(Variable(name, getattr(course, name), "event", window=window))
    recording = Recording(
        traces=population.rates,
        rate=rate,
        behavior={variable.name: variable for variable in behavior},
        source=f"simulated task, seed {seed}",
        notes=(description,),
        trials=_trials(course, values, words) if trials else None,
    )
    factors = FACTORS | {name: (name,) for name in carried}
    return population.simulation(recording, factors, {"phase": course.phase})


def _trials(
    course: _TaskCourse, values: Mapping[str, np.ndarray], words: Mapping[str, tuple[str, ...]]
) -> Trials:
    """Trials with what is known of each; of the last, which may be cut, not all is."""
    first = np.flatnonzero(np.diff(course.trial, prepend=-1))
    stop = np.r_[first[1:], len(course.trial)]
    columns = {name: column[stop - 1] for name, column in values.items()}
    return Trials(first, stop, columns, words)


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
class _TaskCourse:
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


def _run_trials(rng: np.random.Generator, frames: int, dt: float) -> _TaskCourse:
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
    return _TaskCourse(
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
