"""Draws the course of learning."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from napari_xcebra.learn import Fit
from napari_xcebra.report.figures.picture import LINES, Where, in_picture, written


def learning_curves(fit: Fit, path: Where = None) -> Figure:
    """Loss of every factor with its chance level, and the penalty with λ, over the steps."""
    figure = Figure(figsize=(7.5, 6))
    figure.set_layout_engine("constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    _draw_losses(above, fit)
    _draw_penalty(below, fit)
    _shade_phases(above, below, fit)
    return written(figure, path)


def _draw_losses(ax: Axes, fit: Fit) -> None:
    supervised = fit.settings.mode == "supervised"
    chance = 1.0 if supervised else float(np.log(fit.settings.negatives))
    step = fit.history["step"]
    for number, factor in enumerate(fit.factors):
        colour = LINES[number % len(LINES)]
        ax.plot(step, fit.history[factor], color=colour, label=in_picture(factor))
        if not supervised:
            # chance differs with the number of negatives; the distance to it does not
            ax.plot(step[-1:], chance - fit.goodness[factor].goodness, "o", mfc="white",
                    mec=colour, clip_on=False, zorder=5)  # fmt: skip
    ax.axhline(chance, color="black", ls="--", lw=1, label="chance")
    if not supervised:
        ax.plot([], [], "o", mfc="white", mec="black", label="on held-out frames")
    ax.set_ylabel("mean squared error" if supervised else "InfoNCE (nats)")
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))


def _draw_penalty(ax: Axes, fit: Fit) -> None:
    step, penalty = fit.history["step"], fit.history["penalty"]
    ax.plot(step, penalty, color=LINES[0])
    ax.set_ylabel("penalty ‖J‖²", color=LINES[0])
    low, high = np.nanmin(penalty, initial=np.inf), np.nanmax(penalty, initial=-np.inf)
    if 0 < 10 * low < high < np.inf:
        ax.set_yscale("log")
    else:
        ax.set_ylim(bottom=0)
    weight = ax.twinx()
    weight.plot(step, fit.history["lambda"], color=LINES[1])
    weight.set_ylabel("largest λ" if lambdas_differ(fit) else "λ", color=LINES[1])
    weight.set_ylim(bottom=0)
    ax.set_xlabel("step")


def _shade_phases(above: Axes, below: Axes, fit: Fit) -> None:
    """Where λ is zero, raised and held."""
    steps, settle = fit.settings.steps, fit.settings.settle
    edges = [0, settle * steps, _held_from(fit), steps]
    phases = (("settling (λ = 0)", 0.0), ("raising λ", 0.06), ("holding λ", 0.0))
    for (name, shade), left, right in zip(phases, edges[:-1], edges[1:], strict=True):
        if left >= fit.steps or right <= left:
            continue
        right = min(right, fit.steps)
        for ax in (above, below):
            ax.axvspan(left, right, color="black", alpha=shade, lw=0)
        above.text((left + right) / 2, 1.02, name, ha="center", fontsize=9,
                   transform=above.get_xaxis_transform())  # fmt: skip
    above.set_xlim(0, fit.steps)


def _held_from(fit: Fit) -> float:
    """Step from which λ is held."""
    if fit.settings.lambda_ != "auto":
        return (fit.settings.settle + fit.settings.ramp) * fit.settings.steps
    moving = fit.history["step"][fit.history["lambda"] != fit.lambda_]
    return float(moving.max(initial=fit.settings.settle * fit.settings.steps))


def lambdas_differ(fit: Fit) -> bool:
    """Whether the parts of the embedding ended with different λ."""
    return len({part.lambda_ for part in fit.parts if not np.isnan(part.lambda_)}) > 1
