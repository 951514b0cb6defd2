"""Are the latents found up to what theory says? Tables 1 and 2 of Zimmermann et al. 2021.

"Contrastive learning inverts the data generating process": ten latents z are drawn from a
marginal p(z) on a sphere, in a box or anywhere, their positive partner z̃ from a conditional
p(z̃|z), and both are mixed into ten observations by an invertible network g. An encoder f that
minimises InfoNCE with the similarity of that conditional finds z up to an affine map (Table 1: R²
after a linear regression), and, if the conditional is not rotationally symmetric or the embedding
is bounded by the box, up to permutation and scale (Table 2: MCC, the mean absolute correlation
of latents matched one to one). Rows marked ✗ violate an assumption, on purpose.

It is trained by the training of this package: `mode="time"` on a recording with a trial of two
frames for each pair (z, z̃), so that a time pair is a draw from p(z̃|z) and the negatives are draws
from p(z). Similarities: vMF is "dot" with τ = 1, Normal is "euclidean", Laplace and GenNorm(β) are
"power" with exponent 1 and β. λ is 0: that paper has no Jacobian penalty. The model's space is
"Unbounded" with a bound far outside of the optimum, "Box" with the scaled tanh 5 % outside of it
(the paper learns the size of the box). R² and MCC are measured on fresh draws from p(z).

The paper draws new pairs at each of 300,000 steps of 6,144 for an encoder of seven layers; here
pairs, steps and layers are fewer by far, which `--pairs` and `--steps` change, and so does the
number of latents (`--latents`): with ten, a pair of the box shares 16 nats, of which InfoNCE sees
no more than log N (6 at a batch of 512), and learns slowly.

    python benchmarks/identifiability.py [--latents 10] [--pairs 100000] [--steps 3000]
        [--seeds 1] [--table 1 2] [--only 0 1 2 …]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from report import header, row, typed
from scipy.optimize import linear_sum_assignment
from scipy.stats import gennorm, vonmises_fisher

from napari_xcebra.learn import FitSettings, fit
from napari_xcebra.recording import Recording
from napari_xcebra.simulate.box_model import Mixing, draw_mixing

DRAWS = 25_000
"""Candidates for each weight matrix of the mixing, as many as the paper's code draws."""
IDENTIFIED = 90.0
"""Above this, in %, latents count as found; below, a higher score is no better."""
FRESH = 10_000
"""Points at which R² and MCC are measured."""
BOX = (-1.0, 1.0)
"""The paper's [0, 1], doubled and centred, since the mixing expects latents around 0."""
PINNED: dict[str, Any] = {
    "mode": "time",
    "lambda_": 0.0,
    "stop_when_settled": False,
    "window": 1,
    "smoothing": 0.0,
    "time_offset": 1,
    "batch_size": 512,
    "learning_rate": 0.003,
    "decay": 0.01,
    "settle": 0.1,
    "ramp": 0.1,
    "temperature": "fixed",
    "temperature_value": 1.0,
    "include_positive": True,
    "hidden_units": 200,
    "held_out": 0.05,
    "blocks": 2,
    "device": "cpu",
    "threads": 1,
}
"""Every setting that a result may depend on, so that a change of the defaults changes none."""
OFF: dict[str, Any] = {"hide": 0.0, "readout": 0.0, "deconvolve": False}
"""What the paper does not have."""
PINNED |= OFF


@dataclass(frozen=True)
class Density:
    """Exp(−|x/scale|^power) in each direction, or von Mises–Fisher with κ = scale (power 0)."""

    power: int
    scale: float = 1.0

    @property
    def name(self) -> str:
        """As the paper writes it."""
        return {
            0: f"vMF(κ={self.scale:g})",
            1: f"Laplace(λ={self.scale:g})",
            2: f"Normal(σ={self.scale:g})",
        }.get(self.power, f"GenNorm(β={self.power}; λ={self.scale:g})")

    def around(self, centre: np.ndarray, rng: np.random.Generator, unit: float) -> np.ndarray:
        """One draw about each of (points, d) centres; `unit` is the length of the paper's 1."""
        if self.power == 0:
            return _von_mises_fisher(centre, self.scale, rng)
        # a Normal's σ is its standard deviation: exp(−x²/2σ²)
        scale = unit * self.scale * (np.sqrt(2) if self.power == 2 else 1)
        return centre + gennorm.rvs(self.power, scale=scale, size=centre.shape, random_state=rng)


VMF, NORMAL, LAPLACE, CUBIC = Density(0, 1), Density(2, 0.05), Density(1, 0.05), Density(3, 0.05)
Space = Literal["Sphere", "Box", "Unbounded"]


@dataclass(frozen=True)
class Case:
    """A row of the tables: how pairs are made, what the model assumes, and the paper's scores.

    Parameters
    ----------
    marginal : Density, optional
        Uniform if none.
    power : int
        Of the model's similarity, 0 for the dot product.
    r2, mcc : float, optional
        The paper's, in %.
    """

    space: Space
    marginal: Density | None
    conditional: Density
    model_space: Space
    power: int
    matches: bool
    r2: float | None = None
    mcc: float | None = None

    @property
    def similarity(self) -> dict[str, Any]:
        """Settings of the model's similarity."""
        if self.power == 0:
            return {"similarity": "dot", "bound": 20.0}
        kind = "euclidean" if self.power == 2 else "power"
        return {"similarity": kind, "power": float(self.power), "bound": self._bound}

    @property
    def _bound(self) -> float:
        """Of the embedding: a box around the optimum, or out of its reach."""
        if self.model_space != "Box":
            return 100.0
        own = 0.05 * (BOX[1] - BOX[0]) * (np.sqrt(2) if self.power == 2 else 1)
        return 1.05 * BOX[1] / own


CASES = (
    Case("Sphere", None, VMF, "Sphere", 0, True, r2=99.42),
    Case("Sphere", None, Density(0, 10), "Sphere", 0, False, r2=99.86),
    Case("Sphere", None, LAPLACE, "Sphere", 0, False, r2=99.91),
    Case("Sphere", None, NORMAL, "Sphere", 0, False, r2=99.86),
    Case("Box", None, NORMAL, "Unbounded", 2, False, r2=99.60, mcc=58.26),
    Case("Box", None, LAPLACE, "Unbounded", 2, False, r2=99.64, mcc=59.67),
    Case("Box", None, LAPLACE, "Unbounded", 3, False, r2=99.70),
    Case("Box", None, NORMAL, "Unbounded", 3, False, r2=99.69, mcc=43.80),
    Case("Sphere", Density(2, 1), LAPLACE, "Sphere", 0, False, r2=99.02),
    Case("Sphere", Density(2, 1), NORMAL, "Sphere", 0, False, r2=99.02),
    Case("Unbounded", Density(1, 1), Density(2, 1), "Unbounded", 2, False, r2=98.13),
    Case("Unbounded", Density(2, 1), Density(2, 1), "Unbounded", 2, False, r2=98.76),
    Case("Box", None, LAPLACE, "Box", 1, True, mcc=98.62),
    Case("Box", None, CUBIC, "Box", 3, True, mcc=99.90),
    Case("Box", None, NORMAL, "Box", 2, False, mcc=99.77),
    Case("Box", None, LAPLACE, "Box", 2, False, mcc=99.76),
    Case("Box", None, CUBIC, "Box", 1, False, mcc=98.80),
    Case("Box", None, LAPLACE, "Unbounded", 1, False, mcc=98.57),
    Case("Box", None, CUBIC, "Unbounded", 3, False, mcc=99.85),
)


def draw_marginal(case: Case, points: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Latents z ~ p(z): (points, d)."""
    if case.space == "Box":
        return rng.uniform(*BOX, (points, d))
    centre = np.zeros((points, d))
    if case.space == "Sphere":
        if case.marginal is None:
            return _on_sphere(rng.standard_normal((points, d)))
        centre[:, 0] = 1
        return _on_sphere(case.marginal.around(centre, rng, unit=1))
    assert case.marginal is not None
    return case.marginal.around(centre, rng, unit=1)


def draw_partners(case: Case, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Partners z̃ ~ p(z̃|z), truncated to the box or taken back to the sphere: (points, d)."""
    if case.space != "Box":
        partners = case.conditional.around(z, rng, unit=1)
        return _on_sphere(partners) if case.space == "Sphere" else partners
    unit = BOX[1] - BOX[0]
    partners = case.conditional.around(z, rng, unit)
    outside = np.abs(partners) > BOX[1]
    while outside.any():  # a draw that leaves the box is drawn again: that is truncation
        partners[outside] = case.conditional.around(z[outside], rng, unit)
        outside = np.abs(partners) > BOX[1]
    return partners


def _on_sphere(z: np.ndarray) -> np.ndarray:
    return z / np.linalg.norm(z, axis=1, keepdims=True)


def _von_mises_fisher(centre: np.ndarray, kappa: float, rng: np.random.Generator) -> np.ndarray:
    """Draws about one pole, each reflected so that the pole falls on its centre."""
    pole = np.eye(centre.shape[1])[0]
    draws = vonmises_fisher(pole, kappa).rvs(len(centre), random_state=rng)
    normal = _on_sphere(pole - centre)
    return draws - 2 * (draws * normal).sum(1, keepdims=True) * normal


def paired_recording(
    case: Case, mixing: Mixing, pairs: int, d: int, rng: np.random.Generator
) -> Recording:
    """A trial of two frames for each pair."""
    z = draw_marginal(case, pairs, d, rng)
    both = np.stack([z, draw_partners(case, z, rng)], axis=1).reshape(2 * pairs, d)
    return Recording(traces=mixing(both), rate=1.0, starts=np.arange(0, 2 * pairs, 2))


def affine_r2(found: np.ndarray, truth: np.ndarray) -> float:
    """R² of a linear regression of the true latents on those found, over all latents, in %."""
    design = np.c_[np.ones(len(found)), found]
    weights, *_ = np.linalg.lstsq(design, truth, rcond=None)
    return float(100 * (1 - (truth - design @ weights).var(0) / truth.var(0)).mean())


def matched_correlation(found: np.ndarray, truth: np.ndarray) -> float:
    """Mean absolute correlation of latents matched one to one (MCC), in %."""
    d = truth.shape[1]
    between = np.abs(np.corrcoef(found.T, truth.T)[:d, d:])
    return float(100 * between[linear_sum_assignment(-between)].mean())


def one_fit(case: Case, given: argparse.Namespace, seed: int) -> tuple[float, float, float, float]:
    """R² and MCC of the observations themselves, and of the embedding."""
    rng, d = np.random.default_rng([seed, 1]), given.latents
    mixing = draw_mixing(np.random.default_rng([seed, 0]), d, d, DRAWS)
    recording = paired_recording(case, mixing, given.pairs, d, rng)
    sizes = {"time_latents": d, "steps": given.steps, "seed": seed}
    settings = FitSettings(**{**PINNED, **case.similarity, **sizes})
    trained = fit(recording, None, settings)
    fresh = draw_marginal(case, FRESH, d, rng)
    observed = mixing(fresh)
    found = trained.embed(Recording(traces=observed, rate=1.0)).astype(float)
    if case.power == 0:
        found = _on_sphere(found)
    measures: tuple[Callable[..., float], ...] = (affine_r2, matched_correlation)
    return tuple(m(each, fresh) for each in (observed, found) for m in measures)


def assumed(power: int) -> str:
    """The model's conditional, as the paper writes it."""
    return {0: "vMF(κ=1)", 1: "Laplace", 2: "Normal"}.get(power, f"GenNorm(β={power})")


def print_table(name: str, found: dict[Case, np.ndarray]) -> None:
    """One table as markdown: `name` is r2 or mcc."""
    number, title = (0, "1: affine, R²") if name == "r2" else (1, "2: permutations, MCC")
    print(f"### Table {title} in %\n")
    print(row("space", "p(z)", "p(z̃\\|z)", "model", "q(z̃\\|z)", "fits", "x itself", "ours (paper)"))
    print(row(*["---"] * 8))
    close = []
    for case, values in found.items():
        theirs = getattr(case, name)
        if theirs is None:
            continue
        identity, ours = values[:, number].mean(), values[:, 2 + number].mean()
        marginal = case.marginal.name if case.marginal else "Uniform"
        if theirs > IDENTIFIED:
            close.append(ours >= theirs - 1)
        print(
            row(
                *(case.space, marginal, case.conditional.name, case.model_space),
                *(assumed(case.power), "✓" if case.matches else "✗"),
                *(f"{identity:.1f}", f"{ours:.2f} ({theirs:.2f})"),
            )
        )
    print(
        f"\nOf the {len(close)} that the paper finds identified (above {IDENTIFIED:g} %), "
        f"{sum(close)} are within 1 point of its value or above it.\n"
    )


def main() -> None:
    """Fit every case and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--latents", type=int, default=10)
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--table", nargs="+", choices=["1", "2"], default=["1", "2"])
    parser.add_argument("--only", type=int, nargs="+", help="numbers of the cases, from 0")
    given = typed(parser, pairs=2000, steps=20, only=[0])
    torch.set_num_threads(1)
    began = time.perf_counter()
    names = [{"1": "r2", "2": "mcc"}[table] for table in given.table]
    wanted = [CASES[n] for n in given.only] if given.only else CASES
    found = {}
    for case in wanted:
        if all(getattr(case, name) is None for name in names):
            continue
        found[case] = np.array([one_fit(case, given, seed) for seed in range(given.seeds)])
        minutes = (time.perf_counter() - began) / 60
        print(f"{minutes:.1f} min", case, found[case].mean(0), file=sys.stderr, flush=True)
    print(header("Identifiability (Zimmermann et al. 2021, Tables 1 and 2)"))
    print(
        f"{given.latents} latents and observations (paper: 10), {given.pairs:,} pairs (paper: new "
        f"ones at every step), {given.steps:,} steps of {PINNED['batch_size']} (paper: 300,000 of "
        f"6,144), {given.seeds} seeds (paper: 5). "
        f"{(time.perf_counter() - began) / 60:.0f} minutes.\n"
    )
    for name in names:
        print_table(name, found)


if __name__ == "__main__":
    main()
