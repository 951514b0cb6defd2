"""Lists the methods of attribution: what each computes, and what a user should know of it.

Most explain the encoder frame by frame: they take a `Stream` and yield, chunk of frames by chunk,
the local attribution (frames in chunk, latents, cells), with a window (…, cells, window). Others
score a factor as a whole: they take a `Stream` and a `Watch` to report to, and return
`FactorScores`. Torch is imported only to compute: windows and help texts list methods without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from napari_xcebra.errors import InputError
from napari_xcebra.plugins import plugged_in, problems, refuse

if TYPE_CHECKING:
    from torch import Tensor

    from napari_xcebra.attribution.stream import Stream
    from napari_xcebra.attribution.watching import Watch

Mapped = TypeVar("Mapped")
EVERY = 10
"""Slow methods use one frame in this many, unless the user says otherwise."""

OVER_TIME = "generative-gradient"
"""What follows the time slider in place of a method that scores whole traces."""


@dataclass(frozen=True)
class Method:
    """A method of attribution.

    Parameters
    ----------
    name : str
    note : str
        What it computes, for users.
    function : str
        Module of `maps` and name in it, as in "from_encoder:neuron_gradient"; a module of another
        package with all its parents, as in "my_package.maps:score".
    slow : bool
        Whether it takes many times as long as the gradients.
    latents : bool
        Whether it scores single latents and frames, rather than whole factors.
    fitted : bool
        Whether it first fits a map to the whole recording, and reports to a `Watch` meanwhile.
    share : bool
        Whether its scores are shares of variance: one slightly below zero is zero.
    unit : str
        What its scores count, beside a colour bar or axis.
    instead : str
        Method that scores single frames in its place; empty if it does so itself.
    local : str
        What scores single frames, as `function`, where that scores whole factors.
    from_variables : bool
        Whether it tells of a factor that the encoder did not learn.
    """

    name: str
    note: str = ""
    function: str = ""
    slow: bool = False
    latents: bool = True
    fitted: bool = False
    share: bool = False
    unit: str = "arbitrary units"
    instead: str = ""
    local: str = ""
    from_variables: bool = False

    @property
    def has_latents(self) -> bool:
        """Whether it scores single latents, too."""
        return self.latents or bool(self.local)

    @property
    def help(self) -> str:
        """What it computes and how long it takes, for a tooltip."""
        if not self.function:  # the consensus of others
            return self.note
        many = "many passes through the encoder for each frame"
        return f"{self.note} Takes {many if self.slow else 'seconds'}."

    @property
    def over_time(self) -> str:
        """Method that scores single frames for this one."""
        return self.instead or self.name

    @property
    def frames(self) -> slice | None:
        """Frames to compute it on, unless the user says otherwise; None for all."""
        return slice(None, None, EVERY) if self.slow else None

    @property
    def compute(self) -> Callable[..., Any]:
        """What computes it; imports torch."""
        return self._imported(self.function)

    @property
    def compute_local(self) -> Callable[..., Any] | None:
        """What scores single frames, if anything; imports torch."""
        function = self.function if self.latents else self.local
        return self._imported(function) if function else None

    def _imported(self, function: str) -> Callable[..., Any]:
        module, name = function.split(":")
        if "." in module:
            return partial(_call_package, self, module, name)
        return getattr(import_module(f"napari_xcebra.attribution.maps.{module}"), name)


def _call_package(method: Method, module: str, name: str, *given: Any, **more: Any) -> Any:
    """What a function of another package computes; a sentence if it fails."""
    try:
        found = getattr(import_module(module), name)(*given, **more)
    except InputError:
        raise
    except Exception as error:  # code of others fails in any way
        raise _failed(method, error) from error
    return _iterate(method, found) if isinstance(found, Iterator) else found


def _iterate(method: Method, chunks: Iterator[Any]) -> Iterator[Any]:
    try:
        yield from chunks
    except InputError:
        raise
    except Exception as error:
        raise _failed(method, error) from error


def _failed(method: Method, error: Exception) -> InputError:
    return InputError(
        f"The method {method.name} of another package failed ({type(error).__name__}: {error})."
    )


REGISTRY = {
    method.name: method
    for method in (
        Method(
            "both-routes",
            "What both routes agree on: the share of a cell's variance that this factor explains "
            "from the variables (conditional encoding) and from the encoder (generative gradient).",
            "both_routes:both_routes",
            latents=False,
            share=True,
            unit="share of variance, R²",
            instead=OVER_TIME,
            from_variables=True,
        ),
        Method(
            "conditional-encoding",
            "From the variables: the share of a cell's variance, in held-out blocks of time, that "
            "this factor explains beyond the other factors and the unobserved state. Holds up "
            "where variables are correlated.",
            "conditional:conditional_encoding",
            latents=False,
            share=True,
            unit="share of variance, R²",
            instead=OVER_TIME,
            from_variables=True,
        ),
        Method(
            OVER_TIME,
            "From the encoder: the share of a cell's variance that the latents of this factor "
            "explain, where these come from the other cells; no variable is used. Over time and "
            "for single latents, how much the cell changes with each.",
            "from_encoder:generative_gradient",
            latents=False,
            fitted=True,
            share=True,
            unit="share of variance, R²",
            local="from_encoder:local_gradient",
        ),
        Method(
            "inverted-neuron-gradient",
            "The map of the xCEBRA paper: the pseudo-inverse of the Jacobian. Accurate where "
            "there is little noise.",
            "from_encoder:inverted_neuron_gradient",
            unit="mean |J⁺|, arbitrary units",
        ),
        Method(
            "neuron-gradient",
            "The Jacobian itself, not inverted.",
            "from_encoder:neuron_gradient",
            unit="mean |J|, arbitrary units",
        ),
        Method(
            "integrated-gradients",
            "Gradients along the path from zero to the activity.",
            "from_encoder:integrated_gradients",
            slow=True,
        ),
        Method(
            "feature-ablation",
            "What changes when a cell is silenced. Slower with more cells.",
            "from_encoder:feature_ablation",
            slow=True,
        ),
        Method(
            "shapley-zeros",
            "Shapley values against silence.",
            "from_encoder:shapley_zeros",
            slow=True,
        ),
        Method(
            "shapley-shuffled",
            "Shapley values against shuffled activity.",
            "from_encoder:shapley_shuffled",
            slow=True,
        ),
    )
}
"""All methods by name, the default first; those of other packages last."""


def _add_plugged() -> None:
    for plugged in plugged_in("methods"):
        method = plugged.value
        if not isinstance(method, Method):
            refuse(plugged.name, plugged.package, f"it is a {type(method).__name__}, no Method")
        elif method.name in REGISTRY or ":" not in method.function or "." not in method.function:
            refuse(
                plugged.name,
                plugged.package,
                f"there is a method {method.name} already"
                if method.name in REGISTRY
                else f"its function is {method.function!r}, not package.module:name",
            )
        else:
            REGISTRY[method.name] = method


_add_plugged()

METHODS = tuple(REGISTRY)
"""Names of all methods, the default first."""

DEFAULT = METHODS[0]
"""The map to look at first: in the docks, on the command line, in the report and from Python."""

FIRST = (DEFAULT, OVER_TIME)
"""Maps that are made of every run, the one to look at first before the other."""

WHICH_FIRST = (
    "Look at both routes first: what the variables and the encoder agree on is rarely wrong. The "
    "generative gradient tells single latents and moments apart."
)
"""Advice on choosing a method; benchmarks/results/maps.md has the figures."""

_CONSENSUS = "consensus-of-"


def method_named(name: str) -> Method:
    """Method of that name, or the consensus of one over seeds.

    A file of another version may name a method that is not in the registry: it has the defaults.

    >>> method_named("both-routes").over_time, method_named("shapley-zeros").frames
    ('generative-gradient', slice(None, None, 10))
    """
    if is_consensus(name):
        title = title_of_method(method_behind(name))
        note = f"Mean over seeds of z by {title}: what trainings with different seeds share."
        return Method(name, note, latents=False, unit="mean z over seeds")
    return REGISTRY.get(name, Method(name))


def first_to_look_at(attributions: Mapping[str, Mapped]) -> list[Mapped]:
    """Maps by method in the order to look at them; those of other versions come last.

    >>> first_to_look_at({"consensus-of-x": 1, "neuron-gradient": 2, "conditional-encoding": 3})
    [3, 2, 1]
    """
    known = {method: i for i, method in enumerate(METHODS)}
    ordered = sorted(attributions, key=lambda method: known.get(method, len(METHODS)))
    return [attributions[method] for method in ordered]


def check_method(name: str) -> None:
    """Raise a sentence that lists the methods if this is not one."""
    if name not in REGISTRY:
        raise InputError(
            f"There is no attribution method {name!r}; there are: {', '.join(METHODS)}."
            + "".join(f" {sentence}" for sentence in problems())
        )


def title_of_method(name: str) -> str:
    """As it is written in a list.

    >>> title_of_method("shapley-zeros")
    'shapley zeros'
    """
    return name.replace("-", " ")


def consensus_of(method: str) -> str:
    """Name of the map that fits with several seeds agree on.

    >>> consensus_of("neuron-gradient")
    'consensus-of-neuron-gradient'
    """
    return _CONSENSUS + method


def is_consensus(method: str) -> bool:
    """Whether it is what several fits agree on, rather than the map of one."""
    return method.startswith(_CONSENSUS)


def method_behind(method: str) -> str:
    """The method that a consensus is of; any other is its own."""
    return method.removeprefix(_CONSENSUS)


def local_scores(method: str, stream: Stream, watch: Watch | None = None) -> Iterator[Tensor]:
    """|A| at every frame, averaged over the lags of a window: (frames in chunk, latents, cells).

    Parameters
    ----------
    watch : Watch, optional
        Told of progress while a map is fitted.
    """
    check_method(method)
    about = REGISTRY[method]
    compute = about.compute_local
    if compute is None:
        raise InputError(
            f"{method} explains whole traces and has no scores over time: choose another method, "
            f"such as {about.over_time}, to see scores frame by frame."
        )
    more = {"watch": watch} if about.fitted else {}
    for local in compute(stream, **more):
        size = local.abs_()
        yield size.mean(3) if size.ndim == 4 else size
