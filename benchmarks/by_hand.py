"""Does every kind of recording end in a right map and a true sentence?

All are written by hand, without a simulator of the project: few cells, heavy tails, noise that
cells share, an artefact in all of them, a variable that cells tell by how much they vary, cells
that lead or follow, a sole carrier, two variables that are copies, many classes, events, trials of
unequal length, gaps, a hidden state, a place, labels of another recording. Defaults. Seeds below
10 chose what is said of copies and of cells that vary. Areas under the ROC of each route, cells
found at q ≤ 0.1, and with `--words` what is said.

    python benchmarks/by_hand.py [--seeds 11 12] [--only WORD] [--window 10] [--words] [--kept FILE]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from report import header, kept, row, typed
from scipy.ndimage import gaussian_filter1d
from scipy.signal import lfilter

from napari_xcebra.attribution import attribute, auroc, significance
from napari_xcebra.errors import InputError
from napari_xcebra.learn import FitSettings, fit
from napari_xcebra.recording import Recording, Variable

RATE, LEVEL = 10.0, 0.1
ROUTES = ("both-routes", "conditional-encoding", "generative-gradient")


@dataclass
class Made:
    """Traces, behaviour, and which cells carry each factor."""

    traces: np.ndarray
    behavior: dict
    truth: dict[str, np.ndarray]
    factors: dict[str, list[str]] = field(default_factory=dict)
    trials: np.ndarray | None = None

    @property
    def recording(self) -> Recording:
        """As a user would make it."""
        traces = self.traces.astype(np.float32)
        return Recording.from_arrays(traces, RATE, self.behavior, trials=self.trials)

    @property
    def named(self) -> dict[str, list[str]]:
        """Variables of each factor."""
        return self.factors or {name: [name] for name in self.behavior}


def slow(rng: np.random.Generator, frames: int, columns: int, over: float) -> np.ndarray:
    """Smooth noise of variance 1."""
    wave = gaussian_filter1d(rng.normal(size=(frames, columns)), over, axis=0)
    return (wave - wave.mean(0)) / wave.std(0)


def rising(drive: np.ndarray, slope: float = 2) -> np.ndarray:
    """Rate between 0 and 1."""
    return 1 / (1 + np.exp(-slope * drive))


def calcium(rng: np.random.Generator, rates: np.ndarray) -> np.ndarray:
    """Calcium of spikes, with noise."""
    spikes = rng.poisson(0.3 * np.clip(rates, 0, None)).astype(float)
    traces = lfilter([1], [1, -np.exp(-1 / (0.6 * RATE))], spikes, axis=0)
    return traces + 0.4 * traces.std() * rng.normal(size=traces.shape)


def carried(cells: int, *counts: int) -> list[np.ndarray]:
    """Which cells carry the first variable, the second …"""
    every = np.arange(cells)
    return [(every >= a) & (every < b) for a, b in pairwise(np.cumsum([0, *counts]))]


def heading(rng: np.random.Generator, cells: int, count: int, frames: int = 6000) -> Made:
    angle = np.cumsum(gaussian_filter1d(rng.normal(size=frames), 8)) * 0.35
    (truth,) = carried(cells, count)
    tuned = np.exp(2 * (np.cos(angle[:, None] - rng.uniform(0, 2 * np.pi, cells)) - 1))
    rates = np.where(truth, tuned, rising(slow(rng, frames, cells, 15)))
    variable = Variable("heading", np.mod(angle, 2 * np.pi), "circular", "rad")
    return Made(calcium(rng, rates), {"heading": variable}, {"heading": truth})


def speed(rng: np.random.Generator, cells: int, count: int, frames: int = 6000) -> Made:
    pace = slow(rng, frames, 1, 12)[:, 0]
    (truth,) = carried(cells, count)
    drive = np.where(
        truth, pace[:, None] * rng.choice([-1, 1], cells), slow(rng, frames, cells, 12)
    )
    return Made(calcium(rng, rising(drive)), {"speed": pace}, {"speed": truth})


def heavy(rng: np.random.Generator, traces: bool, frames: int = 6000, cells: int = 80) -> Made:
    pace = slow(rng, frames, 1, 20)[:, 0]
    (truth,) = carried(cells, 25)
    drive = np.where(
        truth, pace[:, None] * rng.choice([-1, 1], cells), slow(rng, frames, cells, 20)
    )
    events = rng.poisson(0.03 * np.exp(0.9 * drive)) * (rng.pareto(1.7, size=drive.shape) + 0.1)
    if traces:
        events = lfilter([1], [1, -0.85], events, axis=0)
        events += 0.1 * np.median(np.abs(events)) * rng.normal(size=events.shape)
    return Made(events, {"speed": pace}, {"speed": truth})


def shared_noise(rng: np.random.Generator, frames: int = 8000, cells: int = 90) -> Made:
    pace = slow(rng, frames, 1, 15)[:, 0]
    (truth,) = carried(cells, 30)
    common = slow(rng, frames, 4, 2) @ rng.normal(size=(4, cells))
    own = 0.7 * slow(rng, frames, cells, 15)
    drive = np.where(truth, pace[:, None] * rng.choice([-1, 1], cells), own) + 0.7 * common
    return Made(calcium(rng, rising(drive, 1.5)), {"speed": pace}, {"speed": truth})


def artefact(rng: np.random.Generator, frames: int = 6000, cells: int = 80) -> Made:
    pace = np.abs(slow(rng, frames, 1, 10)[:, 0])
    (truth,) = carried(cells, 15)
    drive = np.where(truth, 2 * pace[:, None] - 1.5, slow(rng, frames, cells, 15))
    traces = calcium(rng, rising(drive))
    traces = (traces - traces.mean(0)) / traces.std(0)
    moved = traces + 0.5 * pace[:, None] * rng.uniform(0.6, 1.4, cells)
    return Made(moved, {"speed": pace}, {"speed": truth})


def varying(rng: np.random.Generator, size: float, frames: int = 8000, cells: int = 80) -> Made:
    arousal = slow(rng, frames, 1, 25)[:, 0]
    (truth,) = carried(cells, 40)
    spread = np.where(truth, np.exp(size * arousal[:, None]), 1)
    traces = spread * rng.normal(size=(frames, cells))
    return Made(traces / traces.std(0), {"arousal": arousal}, {"arousal": truth})


def leading(rng: np.random.Generator, frames: int = 8000, cells: int = 80) -> Made:
    pace = slow(rng, frames + 40, 1, 6)[:, 0]
    (truth,) = carried(cells, 30)
    drive = slow(rng, frames, cells, 6)
    for cell in np.flatnonzero(truth):
        start = 20 + rng.integers(-6, 7)
        drive[:, cell] = rng.choice([-1, 1]) * pace[start : start + frames]
    return Made(calcium(rng, rising(drive)), {"speed": pace[20 : 20 + frames]}, {"speed": truth})


def copies(rng: np.random.Generator, noise: float, frames: int = 8000, cells: int = 80) -> Made:
    wheel, pupil, more = slow(rng, frames, 3, 15).T
    truth, other = carried(cells, 25, 20)
    drive = np.where(truth, wheel[:, None] * rng.choice([-1, 1], cells), pupil[:, None])
    drive = np.where(truth | other, drive, slow(rng, frames, cells, 15))
    behavior = {"wheel": wheel, "speed": wheel + noise * more, "pupil": pupil}
    return Made(
        calcium(rng, rising(drive)), behavior, {"wheel": truth, "speed": truth, "pupil": other}
    )


def classes(rng: np.random.Generator, frames: int = 8000, cells: int = 80) -> Made:
    odour = np.repeat(rng.integers(8, size=frames // 40), 40)
    (truth,) = carried(cells, 30)
    preferred = 0.1 + 0.9 * (odour[:, None] == rng.integers(8, size=cells))
    rates = np.where(truth, preferred, rising(slow(rng, frames, cells, 15)))
    return Made(calcium(rng, rates), {"odour": odour}, {"odour": truth})


def licks(rng: np.random.Generator, frames: int = 8000, cells: int = 80) -> Made:
    at = np.cumsum(rng.integers(40, 160, size=frames // 100))
    lick = np.zeros(frames)
    lick[at[at < frames - 60]] = 1
    (truth,) = carried(cells, 25)
    rates = rising(slow(rng, frames, cells, 15))
    for cell in np.flatnonzero(truth):
        course = np.exp(-0.5 * np.square((np.arange(40) - rng.integers(0, 15)) / 3))
        rates[:, cell] = 0.05 + np.convolve(lick, course)[:frames]
    return Made(calcium(rng, rates), {"lick": Variable("lick", lick, "event")}, {"lick": truth})


def trials(rng: np.random.Generator, equal: bool, cells: int = 80, count: int = 160) -> Made:
    lengths = np.full(count, 45) if equal else rng.integers(25, 80, size=count)
    number = np.repeat(np.arange(count), lengths)
    within = np.concatenate([np.arange(length) for length in lengths])
    stimulus, outcome = rng.integers(3, size=count)[number], rng.integers(2, size=count)[number]
    truth, other = carried(cells, 25, 20)
    rates = rising(slow(rng, len(number), cells, 15))
    for cell in np.flatnonzero(truth | other):
        bump = np.exp(-0.5 * np.square((within - rng.integers(5, 20)) / 4))
        label, values = (stimulus, 3) if truth[cell] else (outcome, 2)
        rates[:, cell] = 0.05 + bump * (label == rng.integers(values))
    behavior = {"stimulus": stimulus, "outcome": outcome}
    return Made(calcium(rng, rates), behavior, {"stimulus": truth, "outcome": other}, trials=number)


def gaps(rng: np.random.Generator) -> Made:
    made = speed(rng, 70, 25, 7000)
    values = made.behavior["speed"].copy()
    for start in rng.integers(0, 6800, 25):
        values[start : start + rng.integers(5, 90)] = np.nan
    return Made(made.traces, {"speed": values}, made.truth)


def strangers(rng: np.random.Generator) -> Made:
    made = speed(rng, 70, 25)
    return Made(made.traces, {"speed": slow(rng, 6000, 1, 12)[:, 0]}, {"speed": np.zeros(70, bool)})


def hidden(rng: np.random.Generator, frames: int = 9000, cells: int = 90) -> Made:
    state = slow(rng, frames, 1, 25)[:, 0]
    pace = 0.75 * state + 0.66 * slow(rng, frames, 1, 10)[:, 0]
    truth, other = carried(cells, 25, 35)
    drive = np.where(truth, pace[:, None], state[:, None]) * rng.choice([-1, 1], cells)
    drive = np.where(truth | other, drive, slow(rng, frames, cells, 15))
    return Made(calcium(rng, rising(drive)), {"speed": pace}, {"speed": truth})


def place(rng: np.random.Generator, frames: int = 9000, cells: int = 100) -> Made:
    where = np.abs(np.mod(np.cumsum(0.06 * slow(rng, frames, 2, 10), axis=0), 2) - 1)
    (truth,) = carried(cells, 40)
    away = np.square(where[:, None] - rng.uniform(0, 1, (cells, 2))).sum(2)
    fields = np.exp(-0.5 * away / np.square(rng.uniform(0.1, 0.25, cells)))
    rates = np.where(truth, fields, rising(slow(rng, frames, cells, 15)))
    behavior = {"x": where[:, 0], "y": where[:, 1]}
    return Made(calcium(rng, rates), behavior, {"place": truth}, {"place": ["x", "y"]})


KINDS: dict[str, Callable[[np.random.Generator], Made]] = {
    "8 cells, heading": partial(heading, cells=8, count=3),
    "15 cells, heading": partial(heading, cells=15, count=5),
    "8 cells, speed": partial(speed, cells=8, count=2, frames=5000),
    "all 60 cells, both signs": partial(speed, cells=60, count=60),
    "sole carrier": partial(speed, cells=60, count=1, frames=8000),
    "heavy-tailed events": partial(heavy, traces=False),
    "heavy-tailed traces": partial(heavy, traces=True),
    "strong noise correlations": shared_noise,
    "artefact in all cells": artefact,
    "by how much cells vary": partial(varying, size=0.9),
    "the same, little": partial(varying, size=0.3),
    "cells that lead or follow": leading,
    "two copies": partial(copies, noise=0.0),
    "two near copies": partial(copies, noise=0.15),
    "8 classes": classes,
    "events": licks,
    "trials of unequal length": partial(trials, equal=False),
    "trials": partial(trials, equal=True),
    "gaps in the labels": gaps,
    "hidden state that goes with it": hidden,
    "place": place,
    "labels of another recording": strangers,
}


def measured(name: str, seed: int, window: int) -> dict:
    """What is found of each factor, and what is said."""
    made = KINDS[name](np.random.default_rng([seed, *name.encode()]))
    recording = made.recording
    trained = fit(recording, made.named, FitSettings(seed=seed, window=window))
    maps = {route: attribute(trained, recording, route) for route in ROUTES}
    try:
        tested = significance(trained, recording)
    except InputError:
        tested = None
    found: dict = {"factors": {}, "notes": list(maps["both-routes"].notes)}
    for factor, truth in made.truth.items():
        several = 0 < truth.sum() < len(truth)
        about: dict = {
            "carriers": int(truth.sum()),
            "strength": trained.goodness[factor].strength,
            "verdict": trained.goodness[factor].verdict,
            "auroc": [auroc(m.score(factor), truth) if several else None for m in maps.values()],
        }
        if tested is not None and np.isfinite(tested.q(factor)).any():
            at = tested.q(factor) <= LEVEL
            about |= {"found": int((at & truth).sum()), "false": int((at & ~truth).sum())}
        found["factors"][factor] = about
    return found


def main() -> None:
    """Print a table, and what is said."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, nargs="+", default=[11, 12])
    parser.add_argument("--only", default="", help="kinds whose name holds this")
    parser.add_argument("--window", type=int, default=1)
    parser.add_argument("--words", action="store_true", help="print verdicts and notes as well")
    parser.add_argument("--kept", type=Path, help="file of results, to go on from")
    given = typed(parser, seeds=[1], only="8 cells")
    torch.set_num_threads(1)
    print(header("Recordings written by hand"))
    titles = ("both routes", "from the variables", "from the encoder", "found", "false")
    print(row("recording", "seed", "factor", "carriers", "verdict", *titles))
    print(row(*["---"] * 10))
    for name in (name for name in KINDS if given.only in name):
        for seed in given.seeds:
            key = f"{name}, {seed}, {given.window}"
            found = kept(given.kept, key, partial(measured, name, seed, given.window))
            for factor, about in found["factors"].items():
                areas = ("–" if a is None else f"{a:.3f}" for a in about["auroc"])
                tested = (about.get("found", "–"), about.get("false", "–"))
                what = (name, seed, factor, about["carriers"], about["strength"])
                print(row(*what, *areas, *tested), flush=True)
            if given.words:
                said = [about["verdict"] for about in found["factors"].values()]
                print("\n" + "\n".join(f"- {each}" for each in [*said, *found["notes"]]) + "\n")


if __name__ == "__main__":
    main()
