"""Lists the factors of a run, and the settings and versions it was made with, as columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution


class Column(NamedTuple):
    """Values of a column, and what it holds."""

    values: Any
    description: str


def holds_something(values: Any) -> bool:
    """Whether any value is known."""
    values = np.asarray(values)
    return values.dtype.kind != "f" or not np.isnan(values).all()


def factor_columns(first: Attribution) -> dict[str, Column]:
    """A row for each factor: its variables, verdict and goodness of fit."""
    parts, fit = first.parts, first.fit
    by_factor = {
        "factor": Column([part.name for part in parts], "name of the factor"),
        "variables": Column([", ".join(part.variables) for part in parts], "its variables"),
        "map": Column([first.method] * len(parts), "map that `score` is by"),
        "above_chance": Column(
            [first.was_found(part.name) for part in parts],
            "False if the map of the factor means nothing",
        ),
        "verdict": Column([first.verdicts[part.name] for part in parts], "verdict on the factor"),
        "latents": Column([part.stop - part.start for part in parts], "columns of the embedding"),
    }
    if fit is not None:
        for name, text in (
            ("goodness", "nats above chance on held-out frames"),
            ("r2", "held-out R² of the variables, read from the latents"),
            ("ridge_r2", "the same of a ridge regression from the cells"),
            ("encoder_share", "of the trained encoder in its mean with the regression"),
            ("p", "of the cells telling the labels that well by chance"),
        ):
            values = np.array([getattr(fit.goodness[part.name], name) for part in parts], float)
            if holds_something(values):
                by_factor[name] = Column(values, text)
    return by_factor


def made_with(attributions: Sequence[Attribution], threshold: float) -> dict[str, Column]:
    """A row for each setting and version: name, value and meaning."""
    first = attributions[0]
    rows = [
        ("threshold", f"{threshold:g}", "z above which a cell is above threshold"),
        ("maps", ", ".join(each.method for each in attributions), "maps of the cells"),
        ("aggregate", first.aggregate, "how scores of single frames are combined"),
        ("frames", str(first.n_frames), "frames that the scores are taken over"),
    ]
    fit = first.fit
    if fit is not None:
        rows += [
            (f"version of {name}", version, "that it was trained with")
            for name, version in fit.versions.items()
        ]
        rows += [
            (knob.name.rstrip("_"), str(getattr(fit.settings, knob.name)), knob.metadata["help"])
            for knob in fields(fit.settings)
        ]
        rows += [
            (f"lambda of {part.name}", f"{part.lambda_:g}", "λ that training ended with")
            for part in fit.parts
            if not np.isnan(part.lambda_)
        ]
        rows += [("steps done", str(fit.steps), "training steps")]
    rows += [("note", note, "") for note in _notes(first)]
    settings, values, help = zip(*rows, strict=True)
    return {
        "setting": Column(settings, "name of the setting"),
        "value": Column(values, "its value"),
        "meaning": Column(help, "what it means"),
    }


def _notes(attribution: Attribution) -> Iterable[str]:
    return (*(attribution.fit.notes if attribution.fit else ()), *attribution.notes)
