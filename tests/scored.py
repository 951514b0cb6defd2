"""A recording with runs whose scores are made up: painting them takes no training."""

import numpy as np

from napari_xcebra.attribution.result import Attribution
from napari_xcebra.attribution.shift_test.result import Significance
from napari_xcebra.attribution.stability import Stability
from napari_xcebra.learn.data.factors import Factor, Part
from napari_xcebra.learn.data.inputs import Inputs
from napari_xcebra.learn.quality.verdict import Goodness
from napari_xcebra.learn.result import Fit
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.recording import Footprints, Recording
from napari_xcebra.runs import Run

CELLS = 12
UNUSED = 5
METHOD = "inverted-neuron-gradient"
PARTS = (
    Part("place", ("x", "y"), 0, 2, "euclidean", 1.0),
    Part("speed", ("v",), 2, 3, "euclidean", 1.0),
    Part("time", (), 3, 4, "euclidean", 1.0),
)
AT_CHANCE = "speed"


def scored_recording(**others):
    """Twelve cells of 4 × 4 pixels in a row, with ids of their own; one is not accepted."""
    row, column = np.mgrid[:4, :4].reshape(2, -1)
    footprints = Footprints(
        (10, 6 * CELLS),
        np.repeat(np.arange(CELLS), 16),
        np.tile(row, CELLS) + 2,
        (np.arange(CELLS)[:, None] * 6 + column).ravel(),
        np.ones(16 * CELLS, np.float32),
    )
    rng = np.random.default_rng(0)
    about = {
        "traces": rng.normal(size=(200, CELLS)),
        "rate": 10.0,
        "cell_ids": 100 + np.arange(CELLS),
        "accepted": np.arange(CELLS) != UNUSED,
        "footprints": footprints,
        "images": {"mean": rng.random((10, 6 * CELLS)).astype(np.float32)},
    }
    return Recording(**(about | others))


def scored_run(name="run 1", seed=0, created="2026-11-16T09:30:00"):
    """Run with scores of three factors, of which speed is at chance."""
    rng = np.random.default_rng(seed)
    scores = rng.random((4, CELLS)).astype(np.float32)
    scores[:, UNUSED] = np.nan
    goodness = {part.name: _goodness(part.name) for part in PARTS}
    used = np.delete(np.arange(CELLS), UNUSED)
    fit = Fit(
        settings=FitSettings(steps=1),
        parts=PARTS,
        inputs=Inputs(100 + used, np.zeros(len(used)), np.ones(len(used)), 0.0),
        weights={},
        scale=np.ones(4, np.float32),
        history={},
        goodness=goodness,
        steps=1,
        source="",
        versions={},
    )
    attribution = Attribution(
        method=METHOD,
        aggregate="mean",
        parts=PARTS,
        cell_ids=100 + np.arange(CELLS),
        latent_scores=scores,
        n_frames=200,
        strengths={name: g.strength for name, g in goodness.items()},
        verdicts={name: g.verdict for name, g in goodness.items()},
        fit=fit,
    )
    factors = {"place": Factor(["x", "y"]), "speed": Factor(["v"])}
    return Run(name, created, factors, fit, {METHOD: attribution})


def scored_test():
    """Test of those cells: q of place rises from cell to cell by 0.05, time could not be tested."""
    q = np.full((len(PARTS), CELLS), np.nan, np.float32)
    q[0] = 0.05 * np.arange(CELLS)
    q[1] = 1
    q[:, UNUSED] = np.nan
    shortest = {"place": 8.0, "speed": 2.0}
    impossible = {"time": "The unobserved state keeps its value for too long."}
    return Significance(tuple(part.name for part in PARTS), q, q, 1000, shortest, impossible)


def scored_seeds(run, seeds=(1, 2)):
    """Scores of a run's cells by other seeds: the same, but that the last two change places."""
    first = run.attributions[METHOD]
    scores = np.stack([first.score(factor) for factor in first.factors])
    swapped = scores.copy()
    swapped[:, [CELLS - 2, CELLS - 1]] = scores[:, [CELLS - 1, CELLS - 2]]
    by_seed = np.stack([swapped] * len(seeds))
    return Stability(METHOD, first.factors, first.cell_ids, by_seed, tuple(seeds))


def _goodness(factor):
    above = factor != AT_CHANCE
    size = 1.2 if above else 0.01
    return Goodness(factor, 5.0, 6.2, size, 0.05, size, 0.5, above)
