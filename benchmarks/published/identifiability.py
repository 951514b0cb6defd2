"""Are the latents found up to what theory says? Tables 1 and 2 of Zimmermann et al. 2021.

"Contrastive learning inverts the data generating process": latents z are drawn from a marginal p(z)
on a sphere, in a box or anywhere, their positive partner z̃ from a conditional p(z̃|z), and both are
mixed by an invertible network g into as many observations. An encoder f that minimises InfoNCE with
the similarity of that conditional finds z up to an affine map (Table 1: R² after a linear
regression), and, if the conditional is not rotationally symmetric or the embedding is bounded by
the box, up to permutation and scale (Table 2: MCC, the mean absolute correlation of latents matched
one to one). Rows marked ✗ violate an assumption, on purpose.

Similarities and loss are those of this package; pairs are new at every step, and the box is a
sigmoid of learned size, as in that paper. Its encoder has six hidden layers of 100 to 500 units and
takes 300,000 steps of 6,144 pairs; here are three of 256 and fewer pairs by far.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from scipy.stats import gennorm, vonmises_fisher
from torch import nn

from napari_xcebra.learn.objective.loss import cross_similarity, info_nce, pair_similarity
from napari_xcebra.simulate.box_model import draw_mixing

DRAWS = 25_000
"""Candidates for each weight matrix of the mixing, as many as the paper's code draws."""
FRESH = 10_000
"""Points at which R² and MCC are measured."""
BOX = (-1.0, 1.0)
"""The paper's [0, 1], doubled and centred, since the mixing expects latents around 0."""
BATCH, UNITS, LAYERS, RATE = 512, 256, 3, 1e-3


@dataclass(frozen=True)
class Density:
    """Exp(−|x/scale|^power) in each direction, or von Mises–Fisher with κ = scale (power 0)."""

    power: int
    scale: float = 1.0

    @property
    def name(self) -> str:
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
        drawn = {
            1: lambda: rng.laplace(scale=scale, size=centre.shape),
            2: lambda: rng.normal(scale=scale / np.sqrt(2), size=centre.shape),
        }.get(self.power)
        if drawn is not None:
            return centre + drawn()
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
    supervised : float
        The paper's score of an encoder trained on the latents, in %.
    """

    space: Space
    marginal: Density | None
    conditional: Density
    model_space: Space
    power: int
    matches: bool
    r2: float | None = None
    mcc: float | None = None
    supervised: float = 0.0

    @property
    def words(self) -> tuple[str, ...]:
        """As the paper writes it."""
        marginal = self.marginal.name if self.marginal else "Uniform"
        model = {0: "vMF(κ=1)", 1: "Laplace", 2: "Normal"}.get(
            self.power, f"GenNorm(β={self.power})"
        )
        fits = "✓" if self.matches else "✗"
        return self.space, marginal, self.conditional.name, self.model_space, model, fits


_ONE, _SPREAD = Density(2, 1), Density(1, 1)
CASES = (
    Case("Sphere", None, VMF, "Sphere", 0, True, r2=99.42, supervised=99.71),
    Case("Sphere", None, Density(0, 10), "Sphere", 0, False, r2=99.86, supervised=99.71),
    Case("Sphere", None, LAPLACE, "Sphere", 0, False, r2=99.91, supervised=99.71),
    Case("Sphere", None, NORMAL, "Sphere", 0, False, r2=99.86, supervised=99.71),
    Case("Box", None, NORMAL, "Unbounded", 2, False, r2=99.60, mcc=58.26, supervised=99.78),
    Case("Box", None, LAPLACE, "Unbounded", 2, False, r2=99.64, mcc=59.67, supervised=99.78),
    Case("Box", None, LAPLACE, "Unbounded", 3, False, r2=99.70, supervised=99.78),
    Case("Box", None, NORMAL, "Unbounded", 3, False, r2=99.69, mcc=43.80, supervised=99.78),
    Case("Sphere", _ONE, LAPLACE, "Sphere", 0, False, r2=99.02, supervised=99.70),
    Case("Sphere", _ONE, NORMAL, "Sphere", 0, False, r2=99.02, supervised=99.70),
    Case("Unbounded", _SPREAD, _ONE, "Unbounded", 2, False, r2=98.13, supervised=99.65),
    Case("Unbounded", _ONE, _ONE, "Unbounded", 2, False, r2=98.76, supervised=99.61),
    Case("Box", None, LAPLACE, "Box", 1, True, mcc=98.62, supervised=99.93),
    Case("Box", None, CUBIC, "Box", 3, True, mcc=99.90, supervised=99.93),
    Case("Box", None, NORMAL, "Box", 2, False, mcc=99.77, supervised=99.93),
    Case("Box", None, LAPLACE, "Box", 2, False, mcc=99.76, supervised=99.93),
    Case("Box", None, CUBIC, "Box", 1, False, mcc=98.80, supervised=99.93),
    Case("Box", None, LAPLACE, "Unbounded", 1, False, mcc=98.57, supervised=99.97),
    Case("Box", None, CUBIC, "Unbounded", 3, False, mcc=99.85, supervised=99.97),
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


class Encoder(nn.Module):
    """Observations to latents: anywhere, on the sphere, or in a box whose size is learned."""

    def __init__(self, d: int, space: Space, size: float) -> None:
        super().__init__()
        widths = [d, *[UNITS] * LAYERS]
        hidden = [layer for n, m in pairwise(widths) for layer in (nn.Linear(n, m), nn.GELU())]
        self.layers = nn.Sequential(*hidden, nn.Linear(UNITS, d))
        self.space = space
        self.log_size = nn.Parameter(torch.full((d,), float(np.log(size))))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = self.layers(x)
        if self.space == "Sphere":
            return nn.functional.normalize(found, dim=1)
        return self.log_size.exp() * torch.sigmoid(found) if self.space == "Box" else found


def identifiability_fit(
    row: int, latents: int, seed: int, training: str, steps: int
) -> dict[str, Any]:
    """R² and MCC, in %, of the observations themselves and of what was learned."""
    case, d = CASES[row], latents
    rng = np.random.default_rng([seed, 1])
    torch.manual_seed(seed)
    mixing = draw_mixing(np.random.default_rng([seed, 0]), d, d, DRAWS)
    # a box begins at the size of a few steps between partners, and is learned from there
    encoder = Encoder(d, case.model_space, 2.0 if training == "supervised" else 5.0)
    optimizer = torch.optim.Adam(encoder.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    kind: Any = {0: "dot", 2: "euclidean"}.get(case.power, "power")
    for _ in range(steps):
        z = draw_marginal(case, BATCH, d, rng)
        reference = encoder(torch.tensor(mixing(z), dtype=torch.float32))
        if training == "supervised":
            wanted = torch.tensor(z - (BOX[0] if case.model_space == "Box" else 0))
            loss = (reference - wanted).square().mean()
        else:
            partners = mixing(draw_partners(case, z, rng))
            partner = encoder(torch.tensor(partners, dtype=torch.float32))
            positive = pair_similarity(reference, partner, kind, case.power)
            negative = cross_similarity(reference, reference, kind, case.power)
            negative = negative.fill_diagonal_(-1e9)
            loss = info_nce(positive, negative, include_positive=True).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    fresh = draw_marginal(case, FRESH, d, rng)
    observed = mixing(fresh)
    with torch.no_grad():
        found = encoder(torch.tensor(observed, dtype=torch.float32)).double().numpy()
    return {
        "r2": affine_r2(found, fresh),
        "mcc": matched_correlation(found, fresh),
        "identity": {
            "r2": affine_r2(observed, fresh),
            "mcc": matched_correlation(observed, fresh),
        },
        "loss": round(loss.item(), 3),
    }


def affine_r2(found: np.ndarray, truth: np.ndarray) -> float:
    """R² of a linear regression of the true latents on those found, over all latents, in %."""
    design = np.c_[np.ones(len(found)), found]
    weights, *_ = np.linalg.lstsq(design, truth, rcond=None)
    explained = 1 - (truth - design @ weights).var(0) / truth.var(0)
    return round(float(100 * explained.mean()), 2)


def matched_correlation(found: np.ndarray, truth: np.ndarray) -> float:
    """Mean absolute correlation of latents matched one to one (MCC), in %."""
    d = truth.shape[1]
    between = np.abs(np.corrcoef(found.T, truth.T)[:d, d:])
    return round(float(100 * between[linear_sum_assignment(-between)].mean()), 2)
