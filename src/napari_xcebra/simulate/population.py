"""Simulated cells and what they carry, before anybody images them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from napari_xcebra.recording import InputError
from napari_xcebra.simulate.processes import correlation_time, ornstein_uhlenbeck
from napari_xcebra.simulate.simulation import check_count

TEMPLATES = 60
"""Tuned cells whose distribution of rates and time scale the untuned cells take over."""


@dataclass(frozen=True)
class Population:
    """Cells of some kinds: their rates and what they carry.

    Parameters
    ----------
    rates : (frames, cells) float32
    kinds : (cells,) str
    truth : mapping of str to (cells,) bool
    """

    rates: np.ndarray
    kinds: np.ndarray
    truth: Mapping[str, np.ndarray]

    def __str__(self) -> str:
        """Phrase for the notes of a recording."""
        return ", ".join(f"{n} {kind}" for kind, n in Counter(self.kinds.tolist()).items())


def joined(*populations: Population) -> Population:
    """Cells of all of them, in that order."""
    return Population(
        rates=np.hstack([p.rates for p in populations]),
        kinds=np.concatenate([p.kinds for p in populations]),
        truth={
            factor: np.concatenate([p.truth[factor] for p in populations])
            for factor in populations[0].truth
        },
    )


def population_of(
    rates: Mapping[str, np.ndarray], carried: Mapping[str, Collection[str]]
) -> Population:
    """Cells by kind.

    Parameters
    ----------
    rates : mapping of str to (frames, cells) float
        Rates of the cells of each kind.
    carried : mapping of str to collection of str
        For each factor, the kinds that carry it.
    """
    kinds = np.repeat(list(rates), [r.shape[1] for r in rates.values()])
    truth = {factor: np.isin(kinds, list(by)) for factor, by in carried.items()}
    return Population(np.hstack(list(rates.values())).astype(np.float32), kinds, truth)


def lookalikes(rng: np.random.Generator, templates: np.ndarray, cells: int) -> np.ndarray:
    """Rates that look like those of tuned cells, one by one, but follow a process of their own.

    Each has the distribution of rates and the time scale of some template, so that neither
    gives it away.

    Parameters
    ----------
    rng : numpy.random.Generator
    templates : (frames, templates) float
    cells : int

    Returns
    -------
    (frames, cells) float32
    """
    timescales = correlation_time(templates)
    rates = np.empty((len(templates), cells), np.float32)
    for cell, template in enumerate(np.resize(rng.permutation(templates.shape[1]), cells)):
        process = ornstein_uhlenbeck(rng, len(templates), timescales[template])
        rates[np.argsort(process), cell] = np.sort(templates[:, template])
    return rates


def template_counts(kinds: Collection[str], cells: int) -> dict[str, int]:
    """How many templates of each kind that many untuned cells need."""
    return dict.fromkeys(kinds, -(-min(cells, TEMPLATES) // len(kinds)))


def check_cells(counts: Mapping[str, int]) -> None:
    """Number of cells of each kind, not all 0, or one sentence about it."""
    if sum(check_count(name, count) for name, count in counts.items()) == 0:
        raise InputError(f"{', '.join(counts)} are all 0: at least one cell is needed.")
