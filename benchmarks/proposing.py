"""How well a few decisions by hand say what would be decided on the other ROIs.

A simulated field in which every tenth to third ROI is an artefact: neuropil, motion at an edge, a
vessel, noise, or a part of a cell that is there already. Decisions are right; the ROIs that are
decided on are drawn at random. Reported are the area under the curve on the ROIs that are left, and
how far mean probabilities are from the share that is a cell, in fifths of these ROIs.

    python benchmarks/proposing.py [--quick]
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
from report import header, row, typed

from napari_xcebra.attribution.ranks import auroc
from napari_xcebra.curation.evidence import learn, measure
from napari_xcebra.curation.order import find_doubts
from napari_xcebra.recording import Recording
from napari_xcebra.recording.footprints import Footprints
from napari_xcebra.simulate import field

KINDS = ("neuropil", "motion", "vessel", "noise", "part")


def field_with_artefacts(
    seed: int, cells: int = 120, each: int = 12, frames: int = 3000
) -> tuple[Recording, np.ndarray]:
    """Recording, and which of its ROIs are cells, (ROIs,) bool."""
    rng = np.random.default_rng([seed, 7])
    simulated = field(
        cells=cells, frames=frames, shape=(256, 256), junk=len(KINDS) * each,
        snr=rng.uniform(6, 14), seed=seed,
    )  # fmt: skip
    recording = simulated.recording
    traces, spots = np.array(recording.traces), recording.footprints
    assert spots is not None
    noise = np.median(np.abs(np.diff(traces[:, :cells], axis=0)))
    jumps = np.zeros(frames)
    for start in rng.integers(0, frames - 5, 25):
        jumps[start : start + rng.integers(1, 4)] += rng.normal(0, 1)
    slow = np.cumsum(rng.normal(size=frames))
    slow -= np.convolve(np.pad(slow, 200, mode="edge"), np.full(401, 1 / 401), "valid")
    keep = [np.stack([spots.cell, spots.row, spots.column, spots.weight])]
    for i in range(len(KINDS) * each):
        roi, kind = cells + i, KINDS[i % len(KINDS)]
        own = noise * rng.normal(size=frames) * rng.uniform(0.7, 1.5)
        height, width = 6.0, 6.0
        if kind == "motion":
            traces[:, roi] = own + 8 * noise * jumps * rng.uniform(0.5, 1.5)
            height, width = rng.permutation([14.0, 3.0])
        elif kind == "vessel":
            traces[:, roi] = own - 3 * noise * slow / slow.std() * rng.uniform(0.5, 1.5)
            height, width = rng.permutation([22.0, 4.0])
        elif kind == "noise":
            traces[:, roi] = own
            height = width = rng.uniform(1.5, 4)
        elif kind == "part":
            whole = int(rng.integers(cells))
            traces[:, roi] = 0.8 * traces[:, whole] + own
            inside = keep[0][:, keep[0][0] == whole]
            half = inside[:, inside[1] <= np.median(inside[1])]
            keep[0] = keep[0][:, keep[0][0] != roi]
            keep.append(np.concatenate([np.full((1, half.shape[1]), roi), half[1:]]))
        if kind in ("motion", "vessel", "noise"):
            keep[0] = keep[0][:, keep[0][0] != roi]
            keep.append(_ellipse(rng, roi, height, width, spots.shape))
    cell, down, right, weight = np.concatenate(keep, axis=1)
    drawn = Footprints(spots.shape, cell.astype(int), down.astype(int), right.astype(int), weight)
    is_cell = np.arange(recording.n_cells) < cells
    probability = np.clip(
        0.5 + 0.25 * np.where(is_cell, 1, -1) + rng.normal(0, 0.25, len(is_cell)), 0, 1
    )
    made = replace(recording, traces=traces, footprints=drawn, movie=None,
                   accepted=probability > 0.5, cells={"probability": probability})  # fmt: skip
    return made, is_cell


def _ellipse(
    rng: np.random.Generator, roi: int, height: float, width: float, shape: tuple[int, ...]
) -> np.ndarray:
    middle = rng.uniform(25, np.array(shape) - 25)
    down, right = np.indices(shape)
    inside = ((down - middle[0]) / height) ** 2 + ((right - middle[1]) / width) ** 2 <= 1
    place = np.nonzero(inside)
    return np.stack([np.full(len(place[0]), roi), *place, np.ones(len(place[0]))])


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs=2, default=(100, 120), help="first, and end")
    asked = typed(parser, seeds=(100, 102))
    print(header("Proposals from a few decisions"))
    print(row("decisions", "AUC, mean", "lowest", "calibration error, mean", "highest"))
    print(row(*["---:"] * 5))
    seeds = range(*asked.seeds)
    fields = [field_with_artefacts(seed) for seed in seeds]
    measured = [measure(recording) for recording, _ in fields]
    for decisions in (15, 30, 60):
        found = [
            judged(evidence, is_cell, decisions, seed)
            for evidence, (_, is_cell), seed in zip(measured, fields, seeds, strict=True)
        ]
        area, error = np.transpose(found)
        print(row(decisions, f"{area.mean():.3f}", f"{area.min():.3f}",
                  f"{100 * error.mean():.1f} points", f"{100 * error.max():.1f}"))  # fmt: skip
    print("\nOf the calls that are wrong, doubted; and of all ROIs:")
    for evidence, (recording, is_cell) in zip(measured[:5], fields, strict=False):
        calls = np.asarray(recording.accepted)
        doubts = find_doubts(recording, evidence, calls).degree > 0
        wrong = calls != is_cell
        print(f"{doubts[wrong].mean():.0%} of {wrong.sum()}, {doubts.mean():.0%}")


def judged(evidence, is_cell, decisions: int, seed: int) -> tuple[float, float]:  # type: ignore[no-untyped-def]
    """Area under the curve on the ROIs that are left, and calibration error there."""
    rng = np.random.default_rng([seed, decisions])
    decided = rng.permutation(len(is_cell))[:decisions]
    found = learn(evidence, decided, is_cell[decided])
    rest = np.setdiff1d(np.arange(len(is_cell)), decided)
    probability, truth = found.probability[rest], is_cell[rest]
    parts = np.array_split(np.argsort(probability), 5)
    error = np.mean([abs(probability[p].mean() - truth[p].mean()) for p in parts])
    return auroc(probability, truth), float(error)


if __name__ == "__main__":
    main()
