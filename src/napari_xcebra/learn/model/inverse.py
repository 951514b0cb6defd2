"""Inverts the Jacobian of the encoder, as the map of the paper needs it."""

from __future__ import annotations

import torch
from torch import Tensor

CUT_OFF = 0.05
"""Singular values of J below this share of the largest count as zero.

With more latents than the recording has dimensions, what is left over has next to no gradient,
and its inverse drowns the rest: box model with 2 time latents too many, auROC 0.93–0.96 with
1e-6, 0.97–1.00 with 0.05; with the right number both give 0.99–1.00 (3 recordings each).
"""

PRECISE_BELOW = 0.01
"""Cut-off under which JJᵀ is computed in double precision."""


def inverse(jacobian: Tensor, scale: Tensor, cut_off: float) -> Tensor:
    """J_f⁺ = Jᵀ(JJᵀ)⁻¹, transposed, by the small matrix JJᵀ.

    At the minimum of the loss J_f⁺ ∝ J_g, the Jacobian of the mixing (Theorem 2, Eq. 46).
    The rows are brought to the units of the similarity for it, in which the parts of the
    embedding are comparable, and back: (SJ)⁺S = J⁺ for any J of full rank.

    Parameters
    ----------
    jacobian : (frames, latents, cells) or (frames, latents, cells, window)
    scale : (latents,)
        S.
    cut_off : float
        As in `numpy.linalg.pinv`.

    Returns
    -------
    Of the shape of `jacobian`.
    """
    rows = jacobian.flatten(2)
    # JJᵀ squares the condition number: what a small cut-off keeps, single precision does not hold
    precise = rows.double() if cut_off < PRECISE_BELOW else rows
    weight = torch.outer(scale, scale).to(precise.dtype)
    gram = (precise @ precise.transpose(1, 2)).mul_(weight)
    inverted = _pseudo_inverse(gram, cut_off**2).mul_(weight)
    return (inverted @ precise).to(jacobian.dtype).view_as(jacobian)


def _pseudo_inverse(gram: Tensor, cut_off: float) -> Tensor:
    """Inverse of symmetric matrices, eigenvalues below a share of the largest taken as zero.

    A plain inverse takes a twentieth of the time of an eigen-decomposition; it will do wherever
    the norms show that no eigenvalue is that small.

    Parameters
    ----------
    gram : (frames, latents, latents)
    """
    inverted, failed = torch.linalg.inv_ex(gram)
    condition = gram.flatten(1).norm(dim=1) * inverted.flatten(1).norm(dim=1)
    doubtful = ((failed != 0) | ~(condition * cut_off < 1)).nonzero()[:, 0]
    if len(doubtful):
        values, vectors = torch.linalg.eigh(gram[doubtful].double())
        sizes = torch.where(values > cut_off * values[:, -1:], 1 / values, 0)
        exact = (vectors * sizes[:, None]) @ vectors.transpose(1, 2)
        inverted[doubtful] = exact.to(gram.dtype)
    return inverted
