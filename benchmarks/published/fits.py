"""One fit and all that is measured of it: the box model, the navigating animal, grid cells."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra import open_recording
from napari_xcebra.attribution import METHODS, Attribution, attribute, auroc
from napari_xcebra.attribution.single_cell import cell_statistics
from napari_xcebra.learn import Factor, Fit, fit
from napari_xcebra.learn.data.factors import TIME
from napari_xcebra.learn.fitting import snapshot
from napari_xcebra.learn.quality.consistency import consistency
from napari_xcebra.learn.training.training import Training
from napari_xcebra.recording import Recording
from napari_xcebra.simulate import Simulation, arena, box
from napari_xcebra.simulate.box_model import box_mixing, box_walk
from published.results import FOLDER, preset_settings

INVERTED, GRADIENT = "inverted-neuron-gradient", "neuron-gradient"
MAPS = {
    "feature-ablation": "Feature ablation",
    "shapley-shuffled": "Shapley, shuffled",
    "shapley-zeros": "Shapley, zeros",
    "integrated-gradients": "Integrated gradients",
    GRADIENT: "Neuron gradient",
    INVERTED: "Inverted neuron gradient",
    "generative-gradient": "From the encoder (generative gradient)",
    "conditional-encoding": "From the variables (conditional encoding)",
    "both-routes": "Both routes",
}
PUBLISHED = tuple(MAPS)[:6]
"""Maps of the paper, a score for each latent and cell; the others have one for each cell."""
assert set(MAPS) == set(METHODS)
FRAMES = 1000
"""Frames that a map is the mean of."""
UNSEEN_FRAMES, SIGMA = 5000, 0.1
"""Path on which latents are recovered, and its steps, as those of the recording."""
DRAWN_FRAMES, DRAWN_CELLS = 100, 40
RATE = 10.0
CACHE = FOLDER / "cache"
"""Simulated animals, and embeddings that later ones are compared with; not in the repository."""


def map_auroc(scores: np.ndarray, truth: np.ndarray) -> float:
    """The auROC of (latents, cells) or (cells,) scores against the cells that carry a factor."""
    return round(auroc(scores.ravel(), np.broadcast_to(truth, scores.shape).ravel()), 4)


def listed(values: np.ndarray) -> list[Any]:
    """As short a text as will do."""
    return np.round(np.asarray(values, float), 2).tolist()


def factor_scores(scores: Attribution, factor: str) -> np.ndarray:
    """As the paper has them, by latent, or those of the factor."""
    if scores.method not in PUBLISHED or scores.latent_scores is None:
        return scores.score(factor)
    return scores.latent_scores[scores.part(factor).latents]


def measured_maps(
    trained: Fit, recording: Recording, factor: str, truth: np.ndarray
) -> dict[str, Any]:
    """The auROC of every map, and what it took of the processor, in seconds."""
    frames = slice(0, None, max(1, recording.n_frames // FRAMES))
    found: dict[str, float] = {}
    spent: dict[str, float] = {}
    for method in MAPS:
        began = time.process_time()
        scores = factor_scores(attribute(trained, recording, method, frames=frames), factor)
        spent[method] = round(time.process_time() - began, 2)
        if np.isfinite(scores).all():
            found[method] = map_auroc(scores, truth)
    return {"auroc": found, "map_seconds": spent}


def fit_results(trained: Fit, factor: str) -> dict[str, Any]:
    """Held-out R², nats above chance, λ and steps."""
    goodness = trained.goodness.get(factor)
    if goodness is None:
        return {"steps": trained.steps}
    return {
        "steps": trained.steps,
        "r2": round(float(goodness.r2), 4),
        "nats": round(float(goodness.goodness), 3),
    }


def timed_fit(
    recording: Recording, factors: Any, settings: Any, look: Callable[[Training], Any] | None = None
) -> tuple[Fit, float]:
    """A fit, and the seconds of the processor that it took without those of `look`."""
    began, looked = time.process_time(), 0.0

    def watched(training: Training) -> None:
        nonlocal looked
        before = time.process_time()
        if look is not None:
            look(training)
        looked += time.process_time() - before

    every = max(1, settings.steps // 10)
    trained = fit(recording, factors, settings, every=every, look=watched)
    return trained, round(time.process_time() - began - looked, 1)


# The box model: Tables 1 and 2, Figs. 3 and 8


@cache
def _box(observed: str, d: int, dataset: int, frames: int) -> Simulation:
    return box(d1=d - 2, d2=2, observed=observed, frames=frames, seed=dataset)


def box_fit(
    observed: str, d: int, dataset: int, mode: str, regularised: bool, preset: str, frames: int
) -> dict[str, Any]:
    """The map of z2, which is observed (Table 1) or not (Table 2)."""
    simulation = _box(observed, d, dataset, frames)
    hidden = d - 2 if observed == "z2" else 2
    settings = preset_settings(preset, regularised, mode=mode, time_latents=hidden, seed=dataset)
    trained, seconds = timed_fit(simulation.recording, simulation.factors, settings)
    factor = "z2" if observed == "z2" else TIME
    result = measured_maps(trained, simulation.recording, factor, simulation.truth["z2"])
    result |= fit_results(trained, observed) | {"fit_seconds": seconds}
    result["optimum"] = optimum(simulation, d, dataset, mode)
    if mode == "hybrid":
        result["recovered"] = recovered(simulation, trained, d, dataset)
    return result


def optimum(simulation: Simulation, d: int, dataset: int, mode: str) -> dict[str, float]:
    """The auROC of z2's map for an encoder at the regularised optimum of Eq. 10 (App. A.4).

    There J_f has the rows of J_g⁺ that belong to z2, for cells of unit variance. If the encoder
    has the other latents as well, J_f⁺ is J_g, and |J_f| is the same.
    """
    some = slice(0, None, max(1, simulation.recording.n_frames // 500))
    latents = [simulation.hidden[name][some] for name in ("z1", "z2")]
    mixing = box_mixing(dataset, d1=d - 2, d2=2)
    j_g = mixing.jacobian(*latents) / mixing(*latents).std(0)[:, None]
    j_f = np.linalg.pinv(j_g)[:, -2:]
    inverted = np.linalg.pinv(j_f).transpose(0, 2, 1)
    inverted = j_g.transpose(0, 2, 1)[:, -2:] if mode == "hybrid" else inverted
    truth = simulation.truth["z2"]
    return {
        GRADIENT: map_auroc(np.abs(j_f).mean(0), truth),
        INVERTED: map_auroc(np.abs(inverted).mean(0), truth),
    }


def recovered(simulation: Simulation, trained: Fit, d: int, dataset: int) -> dict[str, float]:
    """R² of both sets of latents after an affine map, along a path that was never seen.

    A path and not single points: settings may smooth the traces.
    """
    d1 = d - 2
    path = box_walk(np.random.default_rng(10_000 + dataset), UNSEEN_FRAMES, d, SIGMA)
    fresh = {"z1": path[:, :d1], "z2": path[:, d1:]}
    traces = box_mixing(dataset, d1=d1, d2=2)(fresh["z1"], fresh["z2"])
    seen, unseen = (
        np.c_[np.ones(len(each)), each]
        for each in (
            trained.embed(simulation.recording),
            trained.embed(Recording(traces=traces, rate=RATE)),
        )
    )
    inside = np.isfinite(unseen).all(1)
    known = np.isfinite(seen).all(1)
    r2 = {}
    for name, latents in fresh.items():
        weights, *_ = np.linalg.lstsq(seen[known], simulation.hidden[name][known], rcond=None)
        error, truth = (latents - unseen @ weights)[inside], latents[inside]
        r2[name] = round(float((1 - error.var(0) / truth.var(0)).mean()), 4)
    return r2


# The navigating animal: Tables 3 to 5, Figs. 4 and 10


@cache
def navigation(simulator: str, noise: float, dataset: int, frames: int) -> tuple[Recording, Any]:
    """Place, grid, head direction and speed cells, 100 each, and the kind of each."""
    kinds = np.repeat(["place", "grid", "direction", "speed"], 100)
    if simulator == "own":
        simulation = arena(frames=frames, noise=noise, seed=dataset)
        return simulation.recording, kinds
    rates, behavior = _ratinabox(dataset, frames)
    rng = np.random.default_rng([dataset, 1])
    rates = rates + noise * rates.std(0) * rng.standard_normal(rates.shape)
    angular = {"direction": "circular"}
    return Recording.from_arrays(rates.astype(np.float32), RATE, behavior, kinds=angular), kinds


@cache
def _ratinabox(dataset: int, frames: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """As App. B.2 says: 100 ms steps in the default environment, default cells otherwise."""
    kept = CACHE / f"ratinabox-{dataset}-{frames}.npz"
    if kept.exists():
        with np.load(kept) as saved:
            return saved["rates"], {name: saved[name] for name in saved if name != "rates"}
    import ratinabox
    from ratinabox import Agent, Environment
    from ratinabox.Neurons import GridCells, HeadDirectionCells, PlaceCells, SpeedCell

    ratinabox.verbose = False
    np.random.seed(dataset)  # noqa: NPY002 -- the package draws from the global generator
    animal = Agent(Environment(), {"dt": 1 / RATE})
    place = {"n": 100, "description": "diff_of_gaussians", "widths": 0.2}
    modules = {"gridscale_distribution": "modules", "gridscale": (0.3, 0.4)}
    grid = {"n": 100, "description": "rectified_cosines", **modules}
    populations = [
        PlaceCells(animal, place),
        GridCells(animal, grid),
        HeadDirectionCells(animal, {"n": 100}),
        SpeedCell(animal),  # one, since all of its cells are alike
    ]
    rates, path = [], []
    for _ in range(frames):
        animal.update()
        for each in populations:
            each.update()
        *three, speed = (np.ravel(each.firingrate) for each in populations)
        rates.append(np.concatenate([*three, np.full(100, speed[0])]))
        angle = np.arctan2(animal.head_direction[1], animal.head_direction[0])
        path.append([*animal.pos, angle, np.linalg.norm(animal.velocity)])
    way = np.array(path)
    behavior = {"position": way[:, :2], "direction": way[:, 2], "speed": way[:, 3]}
    CACHE.mkdir(parents=True, exist_ok=True)
    np.savez(kept, rates=np.array(rates, np.float32), **behavior)
    return np.array(rates, np.float32), behavior


def arena_fit(
    simulator: str,
    noise: float,
    dataset: int,
    seed: int,
    mode: str,
    regularised: bool,
    preset: str,
    frames: int,
) -> dict[str, Any]:
    """The map of position; its mean score by kind of cell, over training and over time."""
    recording, kinds = navigation(simulator, noise, dataset, frames)
    truth = np.isin(kinds, ["place", "grid"])
    # as Fig. 4b: 4 latents for position and 10 for time; the defaults have 2 and 2
    latents, hidden = (4, 10) if preset == "paper" else (None, 2)
    settings = preset_settings(preset, regularised, mode=mode, time_latents=hidden, seed=seed)
    factors = {"position": Factor(["position"], latents)}
    course: dict[str, list[float]] = {"step": [], INVERTED: [], GRADIENT: []}

    def look(training: Training) -> None:
        course["step"].append(training.step)
        so_far = snapshot(training, recording.source)
        few = slice(0, None, max(1, recording.n_frames // 200))
        for method in (INVERTED, GRADIENT):
            scores = factor_scores(attribute(so_far, recording, method, frames=few), "position")
            course[method].append(map_auroc(scores, truth))

    watched = mode == "hybrid" and not noise
    trained, seconds = timed_fit(recording, factors, settings, look if watched else None)
    result = measured_maps(trained, recording, "position", truth)
    result |= fit_results(trained, "position") | {"fit_seconds": seconds}
    if watched:
        few = slice(0, None, max(1, recording.n_frames // FRAMES))
        scores = attribute(trained, recording, INVERTED, frames=few)
        kind_z = {kind: scores.z("position")[kinds == kind] for kind in dict.fromkeys(kinds)}
        result["z"] = {str(kind): listed(z) for kind, z in kind_z.items()}
        result["course"] = course
        if regularised and seed == 0:
            result["drawn"] = _drawn(trained, recording, scores)
    return result


def _drawn(trained: Fit, recording: Recording, scores: Attribution) -> dict[str, Any]:
    """Some frames of the embedding and of the map over time, to be drawn (Figs. 4b, c, 7)."""
    frames = slice(0, DRAWN_FRAMES)
    every = max(1, recording.n_cells // DRAWN_CELLS)
    over_time = scores.over_time("position", frames=frames)[:, ::every]
    spread = slice(0, None, max(1, recording.n_frames // 500))
    return {
        "over_time": listed(over_time / np.nanmax(over_time)),
        "embedding": listed(trained.embed(recording)[spread, :2]),
        "position": listed(recording.variable("position").values[spread]),
    }


# Grid cells: Fig. 7


def grid_fit(
    source: str, dataset: int, mode: str, regularised: bool, preset: str, frames: int
) -> dict[str, Any]:
    """Do cells that carry position, and their grid score, stand out from shuffled cells?

    Shuffled cells are the same ones, each shifted in time by some minutes. `source` is "simulated",
    or a recording of grid cells with the variable "position".
    """
    rng = np.random.default_rng([dataset, 2])
    if source == "simulated":
        simulation = arena(place=0, grid=64, direction=0, speed=0, frames=frames, seed=dataset)
        rates, behavior = np.array(simulation.recording.traces), simulation.recording.behavior
        rate, position = RATE, behavior["position"].values
        traces = rng.poisson(rates).astype(float)
        traces = (np.cumsum(traces, 0) - np.cumsum(np.roll(traces, 5, 0), 0))[5:]
        position = position[5:]
    else:
        recording = open_recording(Path(source))
        rate, position = recording.rate, recording.variable("position").values
        traces = np.array(recording.traces)
    shifts = rng.integers(len(traces) // 5, 4 * len(traces) // 5, traces.shape[1])
    shuffled = np.stack([np.roll(t, s) for t, s in zip(traces.T, shifts, strict=True)], axis=1)
    both = np.hstack([traces, shuffled]).astype(np.float32)
    recording = Recording.from_arrays(both, rate, {"position": position})
    truth = np.arange(both.shape[1]) < traces.shape[1]
    latents, hidden = (4, 10) if preset == "paper" else (None, 2)
    settings = preset_settings(preset, regularised, mode=mode, time_latents=hidden, seed=dataset)
    factors = {"position": Factor(["position"], latents)}
    trained, seconds = timed_fit(recording, factors, settings)
    result = measured_maps(trained, recording, "position", truth)
    gridness = cell_statistics(recording, {"position": ["position"]}, ["grid_score"])
    score = gridness.of("position")["grid_score"]
    result["grid_score_auroc"] = map_auroc(np.nan_to_num(score, nan=-2.0), truth)
    result["grid_scores"] = listed(score)
    inverted = attribute(trained, recording, INVERTED, frames=slice(0, None, 20))
    result["z"] = listed(inverted.z("position"))
    return result | fit_results(trained, "position") | {"fit_seconds": seconds}


# The number of latents: Fig. 6


def dimension_fit(
    mode: str, factor_latents: int, time_latents: int, seed: int, preset: str, frames: int
) -> dict[str, Any]:
    """The auROC, and the consistency with fits of earlier seeds whose embeddings are at hand."""
    simulation = box(d1=3, d2=3, observed="z2", frames=frames, seed=0)
    settings = preset_settings(preset, mode=mode, time_latents=time_latents, seed=seed)
    factors = None if mode == "time" else {"z2": Factor(["z2"], factor_latents)}
    trained, seconds = timed_fit(simulation.recording, factors, settings)
    every = max(1, frames // 2000)
    embedding = (trained.embed(simulation.recording) * trained.scale)[::every].astype(np.float32)
    stem = f"{mode}-{factor_latents}-{time_latents}-{preset}-{frames}"
    CACHE.mkdir(parents=True, exist_ok=True)
    agreement = {}
    for earlier in range(seed):
        path = CACHE / f"{stem}-{earlier}.npy"
        if path.exists():
            r2 = consistency([np.load(path), embedding])
            agreement[str(earlier)] = round(float((r2[0, 1] + r2[1, 0]) / 2), 4)
    np.save(CACHE / f"{stem}-{seed}.npy", embedding)
    result = {"consistency": agreement, "fit_seconds": seconds, "steps": trained.steps}
    if mode == "time":
        return result
    few = slice(0, None, max(1, frames // FRAMES))
    scores = attribute(trained, simulation.recording, INVERTED, frames=few)
    found = map_auroc(factor_scores(scores, "z2"), simulation.truth["z2"])
    return result | {"auroc": {INVERTED: found}} | fit_results(trained, "z2")
