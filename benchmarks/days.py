"""Cells matched between simulated days: how many pairs are right, and how sure they are said to be.

    python benchmarks/days.py           # seeds that chose nothing
    python benchmarks/days.py --fit     # the weights of `recording.matching`, on other seeds
    python benchmarks/days.py --quick

Every cell is drawn anew each day, as an extractor finds it anew; the field drifts and turns a
little, cells leave and others come. A pair is right if both are of the same cell of the simulation.
"""

import argparse
from dataclasses import replace

import numpy as np
import pandas as pd

from napari_xcebra.recording import Recording
from napari_xcebra.recording import matching as m
from napari_xcebra.simulate.drawing import draw_somata, draw_vessels, mean_and_max, place_somata

SHAPE = (512, 512)
FITTED, MEASURED = range(4), range(100, 112)
CASES = {
    "5 µm, 30 % turnover": {},
    "the same, no mean image": {"image": False},
    "the same, 600 cells": {"cells": 600},
    "the same, 60 cells": {"cells": 60},
    "10 µm, 2° turned, 50 %": {"drift": 10, "turn": 2.0, "turnover": 0.5},
    "20 µm, centres off by 2 µm": {"drift": 20, "jitter": 2.0},
    "nothing moved, no turnover": {"drift": 0, "turn": 0.0, "turnover": 0.0},
}


def two_days(seed, cells=250, drift=5.0, turn=0.3, turnover=0.3, jitter=0.7, image=True):
    """Two recordings of one field of 1 µm a pixel, and the simulated cell behind each ROI."""
    rng = np.random.default_rng(seed)
    vessels = draw_vessels(rng, SHAPE)
    new = round(turnover * cells)
    inner = (SHAPE[0] - 60, SHAPE[1] - 60)
    places = place_somata(rng, cells + new, inner, 0.1, vessels[30:-30, 30:-30]) + 30
    angle, way = np.deg2rad(turn) * rng.choice([-1, 1]), rng.uniform(0, 2 * np.pi)
    turned = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    middle = np.array(SHAPE) / 2
    days = []
    for day, there in enumerate((np.arange(cells), np.arange(new, cells + new))):
        centres = places[there]
        dark = vessels
        if day:
            shift = drift * np.array([np.cos(way), np.sin(way)])
            centres = (centres - middle) @ turned + middle + shift
            dark = np.roll(vessels, shift.round().astype(int), (0, 1))
        centres = np.clip(centres + rng.normal(0, jitter, centres.shape), 16, SHAPE[0] - 17)
        footprints = draw_somata(rng, centres, SHAPE)
        quiet = np.zeros((4, len(there)))
        light = rng.uniform(0.5, 1.5, len(there))
        images = mean_and_max(rng, footprints, light, quiet, dark, 0.6) if image else {}
        recording = Recording.from_arrays(np.zeros((4, len(there)), np.float32), 10.0)
        recording = replace(recording, footprints=footprints, images=images, pixel_size=1.0)
        days.append((recording, there))
    return days


def judged(days):
    """Right pairs, pairs proposed, pairs there are, and the proposal."""
    (one, first), (other, second) = days
    found = m.propose_matching({"one": one, "other": other})
    pairs = found.pairs
    right = first[pairs["cell"].to_numpy(int)] == second[pairs["other_cell"].to_numpy(int)]
    return right, len(np.intersect1d(first, second)), found


def row(case, seeds, **how):
    rights, there, sure = [], 0, []
    for seed in seeds:
        right, both, found = judged(two_days(seed, **how))
        rights.append(right)
        there += both
        sure.append(found.pairs["confidence"].to_numpy(float))
    right, sure = np.concatenate(rights), np.concatenate(sure)
    return {
        "days": case,
        "pairs": len(right),
        "right": f"{right.mean():.1%}" if len(right) else "–",
        "least": f"{min(r.mean() for r in rights if len(r)):.1%}" if len(right) else "–",
        "found": f"{right.sum() / max(there, 1):.1%}",
        "said to be right": f"{sure.mean():.1%}" if len(right) else "–",
    }


def unrelated(seeds):
    """Pairs between fields that have nothing to do with each other."""
    return [len(judged([two_days(s)[0], two_days(s + 1000)[0]])[0]) for s in seeds]


def fit_weights():
    """Logistic regression on candidates of the seeds that choose."""
    from scipy.optimize import minimize

    features, same = [], []
    for how in CASES.values():
        for seed in FITTED:
            (one, first), (other, second) = two_days(seed, **how)
            a, b = m._PlacedCells.of(one, "one"), m._PlacedCells.of(other, "other")
            i, j, x = m.pair_features(a, b.moved(m._alignment(a, b)))
            features.append(x)
            same.append(first[i] == second[j])
    x, y = np.concatenate(features), np.concatenate(same)

    def loss(w):
        odds = x @ w
        return np.logaddexp(0, np.where(y, -odds, odds)).mean() + 1e-4 * (w[1:] ** 2).sum()

    w = minimize(loss, np.array(m.WEIGHTS)).x
    print(f"{len(y):,} candidates, {y.mean():.0%} the same; WEIGHTS = {tuple(w.round(2).tolist())}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--case", type=int, help="only this one, from 0 on; unrelated fields: -1")
    given = parser.parse_args()
    if given.fit:
        fit_weights()
        return
    cases = dict(list(CASES.items())[:1]) if given.quick else CASES
    seeds = MEASURED[:2] if given.quick else MEASURED
    if given.case is not None:
        cases = dict([list(CASES.items())[given.case]]) if given.case >= 0 else {}
    table = pd.DataFrame([row(case, seeds, **how) for case, how in cases.items()])
    print(table.to_string(index=False))
    if given.case in (None, -1):
        print(f"Pairs between unrelated fields: {unrelated(seeds)}")


if __name__ == "__main__":
    main()
