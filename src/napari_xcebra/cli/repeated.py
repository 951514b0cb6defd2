"""Commands that train more than once."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from napari_xcebra.cli.flags import factors_from, frames_from, settings_from
from napari_xcebra.recording import Recording

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution
    from napari_xcebra.attribution.stability import Stability


def stability(arguments: argparse.Namespace, recording: Recording, first: Attribution) -> Stability:
    """Train with further seeds; Ctrl-C keeps those that are finished."""
    from napari_xcebra.attribution.stability import across_seeds
    from napari_xcebra.cli.progress import interrupt_as_request, seeds_bar

    settings = settings_from(arguments)
    seeds = range(settings.seed + 1, settings.seed + arguments.seeds)
    with interrupt_as_request() as request, seeds_bar(arguments) as bar:
        found = across_seeds(
            recording,
            factors_from(arguments.factor),
            settings,
            seeds,
            arguments.method,
            done=[first],
            frames=frames_from(arguments.frames),
            aggregate=arguments.aggregate,
            on_progress=bar,
            stop=request,
        )
    assert found is not None  # the first seed is there
    return found
