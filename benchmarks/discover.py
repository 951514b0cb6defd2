"""Hidden factors of known truth, surrogates, and real recordings whose behaviour is withheld.

    python benchmarks/discover.py [--quick] [--seeds N] [--real]

No seed from 1,000 on was used to choose anything. Courses are compared with the true ones as the
indicator shows them.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.signal import lfilter
from scipy.special import ndtr
from scipy.stats import rankdata

from napari_xcebra import HiddenFactors, Recording, discover
from napari_xcebra.attribution.discovery.courses import held_out_share

RATE = 10.0
FIRST_SEED = 1000
KINDS = ("monotone", "bell-tuned", "place", "rare events")
SIZES = ((1, 50, 4000), (2, 100, 8000), (3, 120, 12000), (4, 160, 8000), (5, 200, 12000))
"""Hidden factors, cells and frames."""
SURROGATES = ("independent", "bleaching", "movement")


@dataclass(frozen=True)
class Truth:
    """Traces (frames, cells), true courses (frames, dimensions) each, and (factors, cells) bool."""

    traces: np.ndarray
    courses: list[np.ndarray]
    carried: np.ndarray


def slow(rng: np.random.Generator, frames: int, tau: float) -> np.ndarray:
    """Gaussian course of a time scale in frames: (frames,)."""
    keep = np.exp(-1 / tau)
    found = lfilter([1], [1, -keep], rng.normal(size=frames + int(6 * tau)))
    width = max(1, int(tau / 4))
    found = np.convolve(found, np.ones(width) / width, "same")[-frames:]
    return (found - found.mean()) / found.std()


def indicator(activity: np.ndarray) -> np.ndarray:
    """As a calcium indicator shows it: rises in 0.15 s, decays in 1 s."""
    decayed = lfilter([1], [1, -np.exp(-1 / RATE)], activity, axis=0)
    return lfilter([1 - np.exp(-1 / 1.5)], [1, -np.exp(-1 / 1.5)], decayed, axis=0)


def _imaged(rng: np.random.Generator, rates: np.ndarray, noise: np.ndarray | float) -> np.ndarray:
    spikes = rng.poisson(rates) * rng.gamma(4, 0.25, rates.shape)
    shown = indicator(spikes)
    noisy = shown + noise * shown.std(0) * rng.normal(size=shown.shape)
    return noisy.astype(np.float32)


def population(kind: str, factors: int, cells: int, frames: int, seed: int) -> Truth:
    """Cells of which a quarter carries nothing and a tenth of the others two factors."""
    rng = np.random.default_rng([seed, KINDS.index(kind), factors, cells, frames])
    carried, rates = np.zeros((factors, cells), bool), np.zeros((frames, cells))
    tuned = rng.permutation(cells)[cells // 4 :]
    carried[np.arange(len(tuned)) % factors, tuned] = True
    if factors > 1:
        both = rng.choice(tuned, len(tuned) // 10, replace=False)
        carried[rng.integers(factors, size=len(both)), both] = True
    courses = []
    for own in carried:
        count, tau = int(own.sum()), np.exp(rng.uniform(np.log(15), np.log(80)))
        if kind == "place":
            course = np.stack([ndtr(slow(rng, frames, tau)) for _ in range(2)], 1)
            away = course[:, None] - rng.uniform(0, 1, (count, 2))
            seen = np.exp(-np.square(away).sum(2) / (2 * rng.uniform(0.15, 0.25, count) ** 2))
        elif kind == "bell-tuned":
            course = slow(rng, frames, tau)[:, None]
            away = ndtr(course) - (rng.permutation(count) + 0.5) / count
            seen = np.exp(-(away**2) / (2 * rng.uniform(0.1, 0.2, count) ** 2))
        elif kind == "monotone":
            course = slow(rng, frames, tau)[:, None]
            slope = rng.choice([-1, 1], count) * rng.uniform(1, 3, count)
            seen = 1 / (1 + np.exp(-slope * (course - rng.normal(0, 0.5, count))))
        else:
            events = (rng.random(frames) < rng.integers(25, 60) / frames) * rng.uniform(0.5, 1.5)
            course = lfilter([1], [1, -np.exp(-1 / rng.uniform(5, 15))], events)[:, None]
            seen = course * rng.uniform(0.5, 1.5, count)
        courses.append(indicator(course))
        rates[:, own] += seen / (seen.std(0) + 1e-9) * rng.uniform(0.5, 1.2, count)
    rates = 0.15 * (rates - rates.min(0)) + 0.1 * rng.uniform(0.2, 0.6, cells)
    return Truth(_imaged(rng, rates, 0.7 * rng.uniform(0.4, 1.2, cells)), courses, carried)


def surrogate(kind: str, cells: int, frames: int, seed: int) -> np.ndarray:
    """Traces of slow cells that share nothing, but for light that fades, or movement."""
    rng = np.random.default_rng([seed, SURROGATES.index(kind), cells, frames])
    taus = np.exp(rng.uniform(np.log(5), np.log(150), cells))
    own = np.stack([slow(rng, frames, tau) for tau in taus], 1)
    traces = _imaged(rng, np.exp(0.7 * own - 2.5), 0.5)
    traces /= traces.std(0)
    if kind == "bleaching":
        fading = np.exp(-np.arange(frames)[:, None] / frames * rng.uniform(0.3, 1.2, cells))
        traces = (traces + 3) * fading
    elif kind == "movement":
        moved = np.zeros((frames, 1))
        for start in rng.integers(0, frames, rng.integers(30, 80)):
            moved[start : start + rng.integers(1, 5)] += rng.uniform(1, 4)
        traces = traces - moved * rng.uniform(0.3, 1.2, cells)
    return traces.astype(np.float32)


def _likeness(true: np.ndarray, found: np.ndarray) -> float:
    """Mean canonical correlation, over the dimensions of the true course."""
    one, other = (np.linalg.qr(each - each.mean(0))[0] for each in (true, found))
    return float(np.linalg.svd(one.T @ other)[1].sum() / true.shape[1])


def auroc(scores: np.ndarray, carried: np.ndarray) -> float:
    """Chance that a cell that carries it scores higher than one that does not."""
    count = carried.sum()
    above = rankdata(scores)[carried].sum() - count * (count + 1) / 2
    return float(above / count / (~carried).sum())


def compare(truth: Truth, found: HiddenFactors) -> tuple[list[float], list[float], int, int]:
    """Likeness and auROC of each true factor, false cells, and cells in all."""
    likeness = np.zeros((len(truth.courses), max(len(found), 1)))
    for i, course in enumerate(truth.courses):
        for j, name in enumerate(found.names):
            likeness[i, j] = _likeness(course, np.nan_to_num(found.course(name)))
    rows, columns = linear_sum_assignment(-likeness)
    best = np.zeros(len(truth.courses))
    best[rows] = likeness[rows, columns]
    if not len(found):
        return best.tolist(), [], 0, 0
    pairs = list(zip(rows, columns, strict=True))
    scores = [auroc(found.scores[j], truth.carried[i]) for i, j in pairs]
    false = sum(int(((found.q[j] <= 0.1) & ~truth.carried[i]).sum()) for i, j in pairs)
    return best.tolist(), scores, false, sum(int((found.q[j] <= 0.1).sum()) for _, j in pairs)


def hidden_table(sizes: tuple[tuple[int, int, int], ...], seeds: int) -> None:
    """Number, courses and cells by kind of tuning."""
    print("kind          right  off by   MCC least/median  auROC least  false    linear  s")
    for kind in KINDS:
        off: list[int] = []
        match: list[float] = []
        areas: list[float] = []
        linear: list[float] = []
        false, cells, began = 0, 0, time.time()
        for factors, count, frames in sizes:
            for seed in range(FIRST_SEED, FIRST_SEED + seeds):
                truth = population(kind, factors, count, frames, seed)
                found = discover(Recording(truth.traces, RATE))
                best, scores, wrong, of = compare(truth, found)
                off.append(len(found) - factors)
                match, areas = match + best, areas + scores
                false, cells = false + wrong, cells + of
                shares = found.baselines
                if len(found):
                    others = [share for name, (share, _) in shares.items() if name != "discover"]
                    linear.append(shares["discover"][0] / max(others))
        right = np.mean(np.array(off) == 0)
        print(
            f"{kind:12}  {right:5.0%}  {min(off):+d}…{max(off):+d}   {min(match):.2f} / "
            f"{np.median(match):.2f}        {min(areas):.3f}        {false}/{cells}   "
            f"×{np.median(linear):.2f}  {(time.time() - began) / len(off):.0f}",
            flush=True,
        )


def surrogate_table(seeds: int, frames: int) -> None:
    """How often something is claimed where there is nothing."""
    print("\nsurrogate     recordings  with a factor  called what it is")
    for kind in SURROGATES:
        claimed = called = 0
        for seed in range(FIRST_SEED, FIRST_SEED + seeds):
            for cells in (50, 120):
                found = discover(Recording(surrogate(kind, cells, frames, seed), RATE))
                claimed += len(found) > 0
                called += len(found) > 0 and all(each.suspicion for each in found.factors)
        print(f"{kind:12}  {2 * seeds:10}  {claimed:13}  {called:16}", flush=True)


def real_table() -> None:
    """What comes back of behaviour that was withheld."""
    from real_recordings import at_hand

    wanted = ("worm", "fly", "V1")
    print("\nreal recording, behaviour withheld")
    for name, opened in at_hand().items():
        if not any(word.lower() in name.lower() for word in wanted):
            continue
        recording = opened().recording
        found = discover(replace(recording, behavior={}))
        print(f"{name}: {len(found)} hidden factors")
        if not len(found):
            continue
        courses = np.nan_to_num(found.courses)
        traces = np.asarray(recording.traces)[:, np.asarray(recording.accepted)]
        for variable in recording.behavior.values():
            known = variable.known
            values = variable.values[known]
            if variable.kind == "circular":
                turns = values * 2 * np.pi / variable.period
                values = np.hstack([np.cos(turns), np.sin(turns)])
            elif variable.kind == "discrete":
                values = (values == np.unique(values)).astype(float)
            shares = [
                held_out_share(columns[known], values).mean()
                for columns in (np.hstack([courses, courses**2]), traces / traces.std(0))
            ]
            print(f"  {variable.name}: R² {shares[0]:.2f} from courses, {shares[1]:.2f} from cells")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one small recording of each")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--real", action="store_true", help="real recordings alone")
    asked = parser.parse_args()
    if asked.real:
        real_table()
        return
    seeds = 1 if asked.quick else asked.seeds
    sizes = ((2, 40, 2500),) if asked.quick else SIZES
    hidden_table(sizes, seeds)
    surrogate_table(seeds, 2500 if asked.quick else 8000)
    if not asked.quick:
        real_table()


if __name__ == "__main__":
    main()
