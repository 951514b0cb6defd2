"""Simulates the paper's synthetic data (App. B.1): two sets of latents in a box, mixed into cells.

Each layer is a full-rank matrix followed by a strictly increasing smooth function, so g can be
inverted on its image. As is usual in work on nonlinear ICA (Hyvärinen and Morioka 2016;
Zimmermann et al. 2021), matrices are drawn several times and the best-conditioned one is kept.

z1 reaches every cell; z2 reaches only the cells of x2 = g2(z1, z2).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import expit

from napari_xcebra.errors import InputError
from napari_xcebra.recording.recording import Recording
from napari_xcebra.recording.variables import Variable
from napari_xcebra.simulate.simulation import (
    Simulation,
    check_count,
    check_number,
    check_positive,
)

LEAK = 0.2
"""Slope of the smooth leaky ReLU far below zero; it is 1 far above."""
SHARPNESS = 4.0
"""How quickly the slope changes around zero: latents in [-1, 1] should meet both sides of it."""
DRAWS = 100
"""Candidates for each weight matrix."""
HIDDEN_LAYERS = 2
"""Square layers before the one that lifts to the cells."""


@dataclass(frozen=True)
class Mixing:
    """Injective map g from latents to cells.

    Parameters
    ----------
    weights : tuple of (inputs, outputs) float
        Square ones first; the last lifts to the cells.
    biases : tuple of (outputs,) float
    """

    weights: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...]

    def __call__(self, latents: np.ndarray) -> np.ndarray:
        """Activity of the cells, (frames, cells), for (frames, d) latents."""
        activity = latents
        for weight, bias in zip(self.weights, self.biases, strict=True):
            activity = _smooth_leaky_relu(activity @ weight + bias)
        return activity

    def jacobian(self, latents: np.ndarray) -> np.ndarray:
        """J_g at each of (frames, d) latents, (frames, cells, d), by the chain rule."""
        activity = latents
        jacobian = np.tile(np.eye(latents.shape[1]), (len(latents), 1, 1))
        for weight, bias in zip(self.weights, self.biases, strict=True):
            drive = activity @ weight + bias
            jacobian = _smooth_leaky_relu_slope(drive)[:, :, None] * (weight.T @ jacobian)
            activity = _smooth_leaky_relu(drive)
        return jacobian


def draw_mixing(rng: np.random.Generator, d: int, cells: int, draws: int = DRAWS) -> Mixing:
    """Random `Mixing` of `d` latents into at least as many cells, with output of order 1.

    Each weight matrix is the best-conditioned of that many draws.
    """
    sizes = [d] * (HIDDEN_LAYERS + 1) + [cells]
    weights = tuple(_weights(rng, *shape, draws) for shape in itertools.pairwise(sizes))
    biases = tuple(rng.uniform(-0.3, 0.3, size) for size in sizes[1:])
    return Mixing(weights, biases)


def _weights(rng: np.random.Generator, inputs: int, outputs: int, draws: int) -> np.ndarray:
    """Best-conditioned of several random matrices, each cell's weights of norm √2."""
    candidates = rng.standard_normal((draws, inputs, outputs))
    candidates *= np.sqrt(2) / np.linalg.norm(candidates, axis=1, keepdims=True)
    return candidates[np.argmin(np.linalg.cond(candidates))]


def _smooth_leaky_relu(x: np.ndarray) -> np.ndarray:
    """Strictly increasing and smooth: slope `LEAK` far below zero, 1 far above."""
    return LEAK * x + (1 - LEAK) * np.logaddexp(0, SHARPNESS * x) / SHARPNESS


def _smooth_leaky_relu_slope(x: np.ndarray) -> np.ndarray:
    """Slope of `_smooth_leaky_relu`."""
    return LEAK + (1 - LEAK) * expit(SHARPNESS * x)


MAX_CONDITION = 40.0
"""Largest condition number of J_g that is accepted anywhere in the box."""
CHECKED_FRAMES = 500
"""Points of the box at which J_g is looked at."""
ATTEMPTS = 200


@dataclass(frozen=True)
class _BoxMixing:
    """Mixing x = [g1(z1); g2(z1, z2)] and how well it is conditioned.

    Parameters
    ----------
    g1, g2 : Mixing
    condition : float
        Condition number of J_g, median over points of the box.
    worst : float
        Largest condition number over the same points.
    """

    g1: Mixing
    g2: Mixing
    condition: float = np.nan
    worst: float = np.nan

    def __call__(self, z1: np.ndarray, z2: np.ndarray) -> np.ndarray:
        """Activity x_i = g_i([z_j], j ∈ P_i) of all cells, (frames, cells) (Eq. 3)."""
        return np.hstack([self.g1(z1), self.g2(np.hstack([z1, z2]))])

    def jacobian(self, z1: np.ndarray, z2: np.ndarray) -> np.ndarray:
        """J_g, (frames, cells, d1 + d2), whose zeros are those of the true map A_g (Eq. 7).

        Its upper right block, of x1 by z2, is zero.
        """
        j1, j2 = self.g1.jacobian(z1), self.g2.jacobian(np.hstack([z1, z2]))
        return np.concatenate([np.pad(j1, ((0, 0), (0, 0), (0, z2.shape[1]))), j2], axis=1)


def box(
    *,
    observed: Literal["z1", "z2"] = "z2",
    d1: int = 2,
    d2: int = 2,
    cells: tuple[int, int] = (25, 25),
    frames: int = 20_000,
    sigma: float = 0.1,
    noise: float = 0.0,
    rate: float = 10.0,
    seed: int = 0,
) -> Simulation:
    """Latents on a random walk in [-1, 1]^d, mixed into cells by an injective function.

    Parameters
    ----------
    observed : {"z2", "z1"}
        Which latents are recorded as behaviour; the others stay hidden.
    d1, d2 : int
        Dimensions of z1, which reaches all cells, and of z2, which reaches only x2.
    cells : (int, int)
        Number of cells of x1 = g1(z1) and of x2 = g2(z1, z2).
    frames : int
        The paper has 100,000.
    sigma : float
        Standard deviation of a step before it is truncated to the box.
    noise : float
        Standard deviation of noise added to the traces.
    rate : float
        Frames per second; the model itself has no unit of time.
    seed : int

    Returns
    -------
    Simulation
        Truth "z1" is every cell, truth "z2" the cells of x2, which are the last.

    Examples
    --------
    >>> simulation = box(frames=1000, cells=(10, 15))
    >>> simulation.recording.n_cells, int(simulation.truth["z2"].sum())
    (25, 15)
    """
    if observed not in ("z1", "z2"):
        raise InputError(f"observed is {observed!r}: 'z1' or 'z2' is needed.")
    _check_sizes(d1, d2, cells)
    check_count("frames", frames, 2)
    check_positive("sigma", sigma, most=2)
    check_number("noise", noise, 0)
    for_latents, _, for_noise = _streams(seed)
    walk = box_walk(for_latents, frames, d1 + d2, sigma)
    latents = {"z1": walk[:, :d1], "z2": walk[:, d1:]}
    mixing = box_mixing(seed, d1=d1, d2=d2, cells=cells)
    activity = mixing(latents["z1"], latents["z2"])
    description = (
        f"Box model (App. B.1): z1 in {d1} dimensions reaches all {sum(cells)} cells, z2 in {d2} "
        f"only the last {cells[1]}; steps of {sigma:g}. Condition number of the mixing's Jacobian: "
        f"median {mixing.condition:.1f}, worst {mixing.worst:.1f}."
    )
    recording = Recording(
        traces=activity + noise * for_noise.standard_normal(activity.shape),
        rate=rate,
        behavior={observed: Variable(observed, latents[observed])},
        source=f"simulated box, seed {seed}",
        notes=(description,),
    )
    return Simulation(
        recording=recording,
        truth={"z1": np.ones(sum(cells), bool), "z2": np.arange(sum(cells)) >= cells[0]},
        factors={observed: (observed,)},
        hidden=latents,
        rates=activity,
        description=description,
    )


def box_mixing(
    seed: int, *, d1: int = 2, d2: int = 2, cells: tuple[int, int] = (25, 25)
) -> _BoxMixing:
    """The mixing of `box` with that seed, to send other latents through, or for its Jacobian."""
    _check_sizes(d1, d2, cells)
    return _draw_box_mixing(_streams(seed)[1], d1, d2, cells)


def _streams(seed: int) -> list[np.random.Generator]:
    """Randomness of the latents, of the mixing and of the noise."""
    return np.random.default_rng(check_count("seed", seed)).spawn(3)


def box_walk(rng: np.random.Generator, frames: int, d: int, sigma: float) -> np.ndarray:
    """Brownian motion in the box, z_t ~ N_[-1,1](z_{t-1}, σ²I).

    Latents move independently, p(z_t | z_{t-1}) = Π_i p(z_{i,t} | z_{i,t-1}) (Eq. 1), each with
    p ∝ exp(−δ), δ = (z_{i,t} − z_{i,t-1})² / 2σ² (Eq. 2). Steps that would leave the box are drawn
    again, which is what truncation means.

    Returns
    -------
    (frames, d) float64, within [-1, 1]
    """
    walk = np.empty((frames, d))
    for column, start in enumerate(rng.uniform(-1, 1, d)):
        spare = _endless_normals(rng, sigma)
        steps = (sigma * rng.standard_normal(frames - 1)).tolist()
        position, path = float(start), [float(start)]
        for step in steps:
            candidate = position + step
            while not -1.0 <= candidate <= 1.0:
                candidate = position + next(spare)
            position = candidate
            path.append(position)
        walk[:, column] = path
    return walk


def _endless_normals(rng: np.random.Generator, sigma: float) -> Iterator[float]:
    while True:
        yield from (sigma * rng.standard_normal(4096)).tolist()


def _draw_box_mixing(
    rng: np.random.Generator, d1: int, d2: int, cells: tuple[int, int]
) -> _BoxMixing:
    """Random mixing whose Jacobian is well conditioned all over the box.

    Drawn again until the condition number of J_g is at most `MAX_CONDITION` at every point
    looked at.
    """
    z = rng.uniform(-1, 1, (CHECKED_FRAMES, d1 + d2))
    for _ in range(ATTEMPTS):
        mixing = _BoxMixing(draw_mixing(rng, d1, cells[0]), draw_mixing(rng, d1 + d2, cells[1]))
        condition = np.linalg.cond(mixing.jacobian(z[:, :d1], z[:, d1:]))
        if condition.max() <= MAX_CONDITION:
            return replace(
                mixing, condition=float(np.median(condition)), worst=float(condition.max())
            )
    raise InputError(
        f"cells is {cells}: too few for a well-conditioned mixing of {d1} + {d2} latents "
        f"(condition number up to {MAX_CONDITION:g}, in {ATTEMPTS} draws); use more cells."
    )


def _check_sizes(d1: int, d2: int, cells: tuple[int, int]) -> None:
    check_count("d1", d1, 1)
    check_count("d2", d2, 1)
    if len(cells) != 2:
        raise InputError(f"cells is {cells!r}: two numbers, of x1 and x2, are needed.")
    if check_count("cells[0]", cells[0]) < d1 or check_count("cells[1]", cells[1]) < d1 + d2:
        raise InputError(
            f"cells is {tuple(cells)}: at least {d1} in x1 and {d1 + d2} in x2 are needed, "
            "otherwise the latents cannot be told apart."
        )
