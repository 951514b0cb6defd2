"""Does the test of cells find what is rare or has heavy tails, and nothing where labels are others?

Cells of 80 (60) whose events have amplitudes with heavy tails, whose gain a hidden state divides,
that fire in a field in one lap of three, or that follow the speed beside a life of their own. Power
and false cells at q ≤ 0.1; then the same cells with labels reversed, and shifted by a third and by
half of the recording, under the verdict of the true ones, so that q is not set by the verdict.

    python benchmarks/power.py [--seeds 3 4]
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
import torch
from report import header, row, typed
from scipy.ndimage import gaussian_filter1d
from scipy.signal import lfilter

from napari_xcebra.attribution import significance
from napari_xcebra.learn import FitSettings, fit
from napari_xcebra.recording import Recording, Variable

RATE, LEVEL, CELLS, CARRIERS = 10.0, 0.1, 80, 30
KINDS = ("ordinary", "divisive gain", "heavy-tailed events", "heavy-tailed traces", "rare fields")


def slow(rng: np.random.Generator, frames: int, columns: int, over: float) -> np.ndarray:
    """Smooth noise of variance 1."""
    wave = gaussian_filter1d(rng.normal(size=(frames, columns)), over, axis=0)
    return (wave - wave.mean(0)) / wave.std(0)


def imaged(rng: np.random.Generator, rates: np.ndarray, tau: float = 0.5) -> np.ndarray:
    """Calcium with noise of a third of its spread."""
    events = rng.poisson(np.clip(rates, 0, None)).astype(float)
    calcium = lfilter([1], [1, -np.exp(-1 / (tau * RATE))], events, axis=0)
    return calcium + 0.3 * calcium.std() * rng.normal(size=calcium.shape)


def simulated(kind: str, seed: int, frames: int) -> tuple[Recording, np.ndarray]:
    """A recording with one variable, and which cells carry it."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    truth = np.arange(CELLS) < CARRIERS
    if kind == "rare fields":
        return rare_fields(rng, frames, truth), truth
    speed, state = slow(rng, frames, 2, 20).T
    own = slow(rng, frames, CELLS, 20)
    drive = np.where(truth, speed[:, None] * rng.choice([-1, 1], CELLS), own)
    if kind.startswith("heavy"):
        events = rng.poisson(0.02 * np.exp(0.8 * drive)) * rng.lognormal(0, 1.8, size=drive.shape)
        traces = events if kind.endswith("events") else lfilter([1], [1, -0.82], events, axis=0)
    else:
        if kind == "ordinary":
            drive = np.where(truth, 0.5 * drive, 0) + own
        rates = 1 / (1 + np.exp(-2 * drive))
        if kind == "divisive gain":
            rates /= 1 + 4 * np.exp(state)[:, None]
        traces = imaged(rng, 0.3 * rates / rates.mean(0))
    return Recording(traces, RATE, {"speed": Variable("speed", speed)}), truth


def rare_fields(rng: np.random.Generator, frames: int, truth: np.ndarray) -> Recording:
    """Place fields on a belt of 2 m, active in one lap of three."""
    pace = np.clip(15 + 6 * slow(rng, frames, 1, 15)[:, 0], 0, None)
    position = np.mod(np.cumsum(pace) / RATE, 200.0)
    lap = np.cumsum(np.r_[0, np.diff(position) < -100])
    away = np.abs(position[:, None] - rng.uniform(0, 200, CELLS))
    field = np.exp(-0.5 * np.square(np.minimum(away, 200 - away) / 8))
    active = (rng.random((lap.max() + 1, CELLS)) < 0.35)[lap]
    rates = 0.03 + np.where(truth, 0.6 * active * field, 0.1 * np.exp(slow(rng, frames, CELLS, 15)))
    angle = Variable("speed", position * np.pi / 100, "circular", "rad")
    return Recording(imaged(rng, rates), RATE, {"speed": angle})


def with_other_labels(recording: Recording, number: int) -> Recording:
    """The same cells with labels reversed, or shifted by a third or by half."""
    speed = recording.variable("speed")
    frames = recording.n_frames
    changed = (speed.values[::-1], *(np.roll(speed.values, frames // n, axis=0) for n in (3, 2)))
    return replace(recording, behavior={"speed": replace(speed, values=changed[number].copy())})


def main() -> None:
    """Print power and false cells."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[3, 4])
    parser.add_argument("--frames", type=int, default=8000)
    given = typed(parser, seeds=[3], frames=2000)
    torch.set_num_threads(1)
    print(header("Power of q"))
    print(row("cells", "power", "false", "other labels: q ≤ 0.1", "p < 0.05"))
    print(row(*["---"] * 5))
    for kind in KINDS:
        power, false, found, others = [], 0, 0, []
        for seed in given.seeds:
            recording, truth = simulated(kind, seed, given.frames)
            trained = fit(recording, {"speed": ["speed"]}, FitSettings(seed=seed))
            at = significance(trained, recording).q("speed") <= LEVEL
            power.append(at[truth].mean())
            false, found = false + int((at & ~truth).sum()), found + int(at.sum())
            for number in range(3):
                other = significance(trained, with_other_labels(recording, number))
                others.append((other.q("speed") <= LEVEL, other.p("speed") < 0.05))
        selected, low = np.array(others).sum((0, 2)), np.array(others)[:, 1].mean()
        print(row(kind, f"{np.mean(power):.2f}", f"{false} of {found}",
                  f"{selected[0]} of {len(others) * CELLS}", f"{low:.3f}"), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
