"""Describes what is painted, a run in training included, and finds its map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from napari_xcebra.attribution.methods import DEFAULT, METHODS, title_of_method
from napari_xcebra.attribution.score_map import Latent, ScoreMap, attribution_for, attribution_of
from napari_xcebra.runs import now
from napari_xcebra.settings import known_only

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution
    from napari_xcebra.learn.data.factors import Factor
    from napari_xcebra.runs import Run
    from napari_xcebra.widgets.state.state import State
    from napari_xcebra.workspace_file import Opened


@dataclass(frozen=True, eq=False)
class Asked:
    """What a run was asked for; `others` are trained together with it, and get runs as well."""

    opened: Opened
    name: str
    factors: Mapping[str, Factor]
    created: str = field(default_factory=now)
    others: tuple[Opened, ...] = ()


@dataclass(frozen=True, eq=False)
class LiveRun:
    """A run in training, as far as it is painted; it is never saved.

    Parameters
    ----------
    opened : Opened
        The recording it is trained on.
    name, created : str
        Those that the run will have, so that its layers stay.
    attribution : Attribution
        The map so far.
    done, total : int
        Steps at which the map was made, and in all.
    """

    opened: Opened
    name: str
    created: str
    attribution: Attribution
    done: int
    total: int

    @property
    def title(self) -> str:
        """For a list of runs."""
        return f"{self.name} · training, {self.done / self.total:.0%}"

    @property
    def sentence(self) -> str:
        """Says that the map is provisional, and why."""
        frames = self.opened.recording.n_frames
        return (
            f"Provisional: {title_of_method(self.attribution.method)} after {self.done} of "
            f"{self.total} training steps, over {self.attribution.n_frames:,} of {frames:,} "
            "frames. There is no verdict yet, and the map still changes."
        )


COLORMAP = "viridis"
COLORMAPS = ("viridis", "magma", "inferno", "plasma", "cividis", "turbo", "gray")


@dataclass(frozen=True)
class Shown:
    """What is painted.

    Parameters
    ----------
    run, factor, method : str
    latent : int, str or None
        One latent of the factor, or "lag" for the lags of the cells; None for the factor as a
        whole.
    threshold : float
        z above which a cell counts as above threshold.
    colormap : str
    dim : bool
        Whether cells below the threshold are dimmed.
    q_limit : float
        q up to which a cell counts as more than chance.
    q_only : bool
        Whether only those stand in the table, and the others are dimmed.
    stable_only : bool
        Whether only cells on which all seeds agree stand in the table, and the others are dimmed.
    over_time : bool
    smoothing : float
        Seconds over which scores are averaged when they follow the time slider.
    blind : bool
        Whether all scores are hidden, for decisions that do not know them.
    statistics : tuple of str
        Single-cell statistics that stand in the table.
    properties : tuple of str
        Properties of the cells that stand in it.
    """

    run: str = ""
    factor: str = ""
    method: str = DEFAULT
    latent: Latent = None
    threshold: float = 0.0
    colormap: str = COLORMAP
    dim: bool = False
    q_limit: float = 0.1
    q_only: bool = False
    stable_only: bool = False
    over_time: bool = False
    smoothing: float = 1.0
    blind: bool = False
    statistics: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # a workspace file has lists
        for name in ("statistics", "properties"):
            object.__setattr__(self, name, tuple(getattr(self, name)))


class View(NamedTuple):
    """What is seen of a recording while another one is in front, or in a workspace file.

    What is painted, the selected cells, and the frame of the time slider.
    """

    shown: Shown
    selection: np.ndarray = np.zeros(0, np.int64)
    frame: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a file."""
        selected = {"selection": [int(cell) for cell in self.selection], "frame": int(self.frame)}
        return {**asdict(self.shown), **selected}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], n_cells: int) -> View:
        """View from a file; earlier versions kept only what is painted."""
        selected = [int(cell) for cell in values.get("selection", ())]
        inside = [cell for cell in selected if 0 <= cell < n_cells]
        frame = max(int(values.get("frame", 0)), 0)
        return cls(Shown(**known_only(Shown, values)), np.array(inside, np.int64), frame)


def painted_map(state: State) -> ScoreMap | None:
    """The visible map: the latest of a run in training, else what `shown_map` returns."""
    live = state.painted_live
    if live is None:
        return shown_map(state)
    attribution = attribution_for(live.attribution, state.recording)
    if attribution is None or state.shown.blind:
        return None
    return _map_of_attribution(state, attribution, live.sentence)


def shown_map(state: State) -> ScoreMap | None:
    """The chosen map of a trained run; None if it is not computed, or while scores are hidden."""
    return None if state.shown.blind else chosen_map(state)


def chosen_map(state: State) -> ScoreMap | None:
    """The chosen map of a trained run, even while scores are hidden; None if not computed."""
    attribution = attribution_of(state.shown_run, state.shown.method, state.recording)
    return None if attribution is None else _map_of_attribution(state, attribution)


def _map_of_attribution(
    state: State, attribution: Attribution, provisional: str = ""
) -> ScoreMap | None:
    """Map of the factor and latent that are chosen; None if there is no such factor."""
    shown = state.shown
    if shown.factor not in attribution.factors:
        return None
    latents = attribution.part(shown.factor).latents
    if isinstance(shown.latent, str):
        inside = shown.latent in attribution.details
    else:
        inside = (
            attribution.has_latents
            and shown.latent is not None
            and 0 <= shown.latent < latents.stop - latents.start
        )
    latent = shown.latent if inside else None
    last = _LAST.get(state)
    if last is None or last.attribution is not attribution or last.what != (shown.factor, latent):
        # kept, so that what is computed from the scores is computed once
        last = _LAST[state] = ScoreMap(attribution, shown.factor, latent, provisional)
    return last


_LAST: WeakKeyDictionary[State, ScoreMap] = WeakKeyDictionary()


def bright_cells(painted: ScoreMap, shown: Shown) -> np.ndarray | None:
    """(cells,) bool, cells that do not fade in the image; None if none fades."""
    wanted = [painted.above(shown.threshold)] if shown.dim else []
    if shown.q_only and painted.q is not None:
        wanted.append(painted.significant(shown.q_limit))
    if shown.stable_only and painted.over_seeds is not None:
        wanted.append(painted.stable(shown.threshold))
    return np.logical_and.reduce(wanted) if wanted else None


def best_factor(run: Run) -> str:
    """The factor to paint first: one above chance, else one that was not tested."""
    factors = [name for name in run.fit.factors if name in run.factors] or list(run.fit.factors)
    found = [name for name in factors if run.fit.goodness[name].above_chance]
    untested = [name for name in factors if run.fit.goodness[name].strength == "not tested"]
    return (found or untested or factors or [""])[0]


def best_method(run: Run, wanted: str) -> str:
    """The method to paint a new run by: the wanted one, else the first that it has a map of.

    A run without maps gets the wanted method, which the dock then offers to compute.
    """
    there = [method for method in METHODS if method in run.attributions]
    return wanted if wanted in run.attributions or not there else there[0]


TRAINING = " (training)"
"""Mark of a map, with which the name of its layer ends."""
