"""What a user should know of each method of attribution before choosing it.

Torch is not imported here: windows and help texts list the methods without it.
"""

from __future__ import annotations

EVERY = 10
"""Slow methods take every so many frames."""

_SLOW = "Takes many passes through the encoder for each frame"
_NOTES = {
    "conditional-encoding": "Share of a cell's variance, in blocks of time not seen, that this "
    "factor carries, beside the other factors and the time latents. Right also where variables go "
    "together. Takes seconds.",
    "generative-gradient": "How much a cell changes with each latent, all others held: the paper's "
    "idea, made for noisy recordings. Takes seconds; has scores for single latents and over time.",
    "inverted-neuron-gradient": "The map of the xCEBRA paper: the pseudo-inverse of the Jacobian. "
    "Right where there is little noise. Takes seconds.",
    "neuron-gradient": "The Jacobian itself, not inverted. Takes seconds.",
    "integrated-gradients": f"Gradients along the way from zero to the activity. {_SLOW}.",
    "feature-ablation": f"What changes when a cell is silenced. {_SLOW}, the more the more cells.",
    "shapley-zeros": f"Shapley values against silence. {_SLOW}.",
    "shapley-shuffled": f"Shapley values against shuffled activity. {_SLOW}.",
}


WHICH_FIRST = (
    "Look at conditional encoding first: it stays right where variables go together, or the "
    "recording is short. The generative gradient tells single latents and moments apart."
)
"""What to tell somebody who chooses among the methods; benchmarks/RESULTS.md has the figures."""

DEFAULT = "conditional-encoding"
"""The map to look at first: in the docks, on the command line, in the report and from Python."""

OVER_TIME = "generative-gradient"
"""Where a method scores whole traces, what follows the time slider instead."""

FIRST = (DEFAULT, OVER_TIME)
"""Maps that are made of every run, the one to look at first before the other."""

METHODS = tuple(_NOTES)
"""Names of the methods, the default first; a test holds them to those that can be computed."""


CONSENSUS = "consensus-of-"
"""Before the name of a method: what fits with several seeds agree on."""


def consensus_of(method: str) -> str:
    """Name of the map that fits with several seeds agree on.

    >>> consensus_of("neuron-gradient")
    'consensus-of-neuron-gradient'
    """
    return CONSENSUS + method


def is_consensus(method: str) -> bool:
    """Whether it is what several fits agree on, rather than the map of one."""
    return method.startswith(CONSENSUS)


def method_behind(method: str) -> str:
    """The method that a consensus is of; any other is its own."""
    return method.removeprefix(CONSENSUS)


def note_on(method: str) -> str:
    """A sentence or two for a tooltip."""
    if is_consensus(method):
        title = title_of_method(method_behind(method))
        return f"Mean over seeds of z by {title}: what trainings that differ in their seed share."
    return _NOTES.get(method, "")


def is_slow(method: str) -> bool:
    """Whether it takes many times as long as the gradients."""
    return _SLOW in note_on(method)


def scores_latents(method: str) -> bool:
    """Whether it scores single latents, and so also single frames, beside whole factors."""
    return method != DEFAULT and not is_consensus(method)


def method_over_time(method: str) -> str:
    """The method that tells single frames apart for this one: itself, if it does.

    >>> method_over_time("conditional-encoding")
    'generative-gradient'
    """
    return OVER_TIME if method == DEFAULT else method


def is_share(method: str) -> bool:
    """Whether its scores are shares of variance: a little less than nothing is nothing."""
    return method == DEFAULT


def frames_for(method: str) -> slice | None:
    """Frames to compute it on, unless the user says otherwise; None for all."""
    return slice(None, None, EVERY) if is_slow(method) else None


def title_of_method(method: str) -> str:
    """As it is written in a list.

    >>> title_of_method("shapley-zeros")
    'shapley zeros'
    """
    return method.replace("-", " ")
