"""Paints scores on the cells: one layer per run and factor.

It is a Labels layer whose colour map is a look-up table with one colour per cell: changing the
scores changes the table and touches no pixel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakKeyDictionary, WeakSet

import numpy as np
from napari.layers import Image, Labels, Layer
from napari.utils.colormaps import CyclicLabelColormap, ensure_colormap
from napari.utils.colormaps.standardize_color import transform_color

from napari_xcebra.attribution.methods import is_consensus, title_of_method
from napari_xcebra.attribution.score_map import Latent, ScoreMap, attribution_of, color_limits
from napari_xcebra.recording import Recording
from napari_xcebra.recording.footprints import drawn_labels
from napari_xcebra.text import unmarked
from napari_xcebra.widgets.layers.camera import SecondView
from napari_xcebra.widgets.layers.layers import cell_features, footprints_of, outline_others
from napari_xcebra.widgets.plots.plot_style import ON_DARK
from napari_xcebra.widgets.state.shown import COLORMAP, TRAINING, bright_cells, painted_map
from napari_xcebra.widgets.state.signals import OfState, Signal
from napari_xcebra.widgets.state.state import KEY, Role, metadata, role_of

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution
    from napari_xcebra.runs import Run
    from napari_xcebra.widgets.state.shown import Asked, LiveRun
    from napari_xcebra.widgets.state.state import State
    from napari_xcebra.workspace_file import Opened


GREY = (0.5, 0.5, 0.5, 0.35)
"""Cells of a factor at chance."""
DIMMED = 0.25
"""Opacity of cells below the threshold."""


def colors_of(
    scores: np.ndarray,
    colormap: str = COLORMAP,
    limits: tuple[float, float] | None = None,
    bright: np.ndarray | None = None,
    *,
    at_chance: bool = False,
) -> np.ndarray:
    """Colour of the background and of each cell.

    Parameters
    ----------
    scores : (cells,) float
        NaN: not used, clear.
    colormap : str
        Any that napari knows.
    limits : (low, high), optional
        Scores at the ends of the colour map; the range of the scores if not given.
    bright : (cells,) bool, optional
        Cells to show in full; the others are dimmed.
    at_chance : bool
        Whether the scores mean nothing: all cells that have one are grey.

    Returns
    -------
    (cells + 1, 4) float32, between 0 and 1
    """
    colors = np.zeros((len(scores) + 1, 4), np.float32)
    known = np.isfinite(scores)
    if at_chance:
        colors[1:][known] = GREY
    elif known.any():
        low, high = limits or (float(scores[known].min()), float(scores[known].max()))
        place = np.clip((scores[known] - low) / ((high - low) or 1.0), 0, 1)
        colors[1:][known] = ensure_colormap(colormap).map(place)
    if bright is not None and not at_chance:
        colors[1:][known & ~bright, 3] = DIMMED
    return colors


def _label_colormap(colors: np.ndarray) -> CyclicLabelColormap:
    """Colour map of a Labels layer by a table: label i has row i."""
    return CyclicLabelColormap(colors=colors, background_value=0)


def score_layer(
    recording: Recording,
    attribution: Attribution,
    factor: str,
    token: str = "",
) -> Labels:
    """Labels layer of one factor, painted by score, with its features table.

    A factor at chance is painted grey and says so in its name: its scores would look like a map
    and mean nothing. One that could not be tested says so as well.
    """
    scores, tested = attribution.score(factor), attribution.significance
    layer = Labels(
        drawn_labels(footprints_of(recording), np.asarray(recording.accepted)),
        name=unmarked(f"{factor} · {attribution.method}{attribution.mark_of_doubt(factor)}"),
        opacity=0.85,
        features=cell_features(
            recording,
            score=scores,
            z=attribution.z(factor),
            selected=attribution.selected(factor),
            **({"q": tested.q(factor)} if tested and factor in tested.shortest else {}),
        ),
        metadata=metadata("scores", recording, token, **_provenance(attribution, factor)),
    )
    limits = color_limits(scores, attribution.method)
    _repaint(layer, scores, limits=limits, at_chance=attribution.at_chance(factor))
    return layer


def _blank_layer(recording: Recording, labels: np.ndarray, name: str, **about: Any) -> Labels:
    """Hidden Labels layer whose cells have no colours yet; `about` says what it is to show."""
    return Labels(
        labels,
        name=name,
        opacity=0.85,
        visible=False,
        colormap=_label_colormap(np.zeros((recording.n_cells + 1, 4), np.float32)),
        features=cell_features(recording),
        metadata=metadata("scores", recording, **about),
    )


def _provenance(attribution: Attribution, factor: str) -> dict[str, Any]:
    """Where the scores of a layer come from."""
    return {
        "factor": factor,
        "method": attribution.method,
        "aggregate": attribution.aggregate,
        "at_chance": attribution.at_chance(factor),
        "verdict": attribution.verdicts.get(factor, ""),
        "seed": attribution.seed,
        "frames": attribution.n_frames,
    }


def _repaint(layer: Labels, scores: np.ndarray, **how: Any) -> None:
    """Give the cells of a layer the colours of new scores; see `colors_of`."""
    layer.colormap = _label_colormap(colors_of(np.asarray(scores, np.float64), **how))


def color_by(state: State, name: str, values: np.ndarray | None) -> None:
    """Colour the cells of the recording in front by a property of theirs; None ends that.

    The name of the layer says which values its colours run between, or the colours of its words.
    """
    opened = state.current
    layer = state.layers.one(opened, "property")
    if opened is None or values is None:
        if layer is not None:
            state.viewer.layers.remove(layer)
        return
    if values.dtype.kind in "biuf":
        shown = values.astype(np.float64)
        known = shown[np.isfinite(shown)]
        # a few outliers do not count
        low, high = map(float, np.percentile(known, [1, 99])) if len(known) else (0.0, 1.0)
        colors = colors_of(shown, state.shown.colormap, (low, high))
        ends = f"{low:.3g} to {high:.3g}".replace("-", "−")
    else:
        words, place = np.unique(values.astype(str), return_inverse=True)
        colors = np.zeros((len(values) + 1, 4), np.float32)
        colors[1:] = transform_color([ON_DARK[i % len(ON_DARK)] for i in place])
        ends = ", ".join(words[:6]) + (" …" if len(words) > 6 else "")
    title = unmarked(f"{name}: {ends}")
    if layer is None:
        about = metadata("property", opened.recording, opened.token)
        layer = Labels(opened.labels, name=title, opacity=0.85, metadata=about)
        chosen = set(state.viewer.layers.selection)
        state.layers.put(layer, place_below(state, "decisions", "selection", "close-up"))
        state.viewer.layers.selection = chosen
        layer.editable = False
    layer.name, layer.colormap = title, _label_colormap(colors)


def set_contrast(layer: Image, limits: tuple[float, float], most: float) -> tuple[float, float]:
    """Set the ends of the colours, with sliders that reach to `most`; returns them as set."""
    low, high = limits if limits[1] > limits[0] else (limits[0], limits[0] + 1.0)
    layer.contrast_limits_range = (min(0.0, low), max(most, high))
    layer.contrast_limits = (low, high)
    low, high = layer.contrast_limits
    return float(low), float(high)


AnyRun: TypeAlias = "Run | LiveRun | Asked"
"""What has maps: a run, also one that is being trained or was just asked for."""


class ScoreLayers(OfState):
    """Finds, makes and removes the Labels layers of maps.

    The user may rename, move or delete them. The consensus of several seeds has its own layer.
    """

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self.painted: WeakKeyDictionary[Labels, tuple[Any, Any]] = WeakKeyDictionary()
        """What the colours and the table of each layer were made from."""
        # made for maps that are still being computed
        self._spare: WeakSet[Labels] = WeakSet()
        # creation times of present and of deleted runs
        self._known: set[str] = set()
        self._deleted: set[str] = set()

    def find(self, run: AnyRun, factor: str, method: str) -> Labels | None:
        """The layer of a map of the current recording, if it has been made."""
        for layer in self.state.layers.of(self.state.current, "scores"):
            entry = layer.metadata[KEY]
            same_map = entry.get("factor") == factor and (
                is_consensus(entry.get("method", "")) == is_consensus(method)
            )
            if _is_of(layer, run) and same_map:
                return layer
        return None

    def to_paint(self, run: AnyRun, factor: str, method: str) -> Labels:
        """The layer of a map; made if there is none."""
        layer = self.find(run, factor, method) or self._take_over(run, factor, method)
        if layer is None:
            layer = self._insert(self._blank(run, factor, method))
        self._spare.discard(layer)
        return layer

    def prepare(self, run: AnyRun, factor: str, method: str, mark: str = "") -> None:
        """Make the layer of a map that is being computed: inserting it takes napari a while."""
        layer = self.find(run, factor, method)
        if layer is None:
            layer = self._take_over(run, factor, method)
        elif layer not in self._spare:
            return
        if layer is None:
            layer = self._insert(self._blank(run, factor, method))
        self._spare.add(layer)
        _entitle(layer, mark)

    def discard(self, opened: Opened, run: AnyRun) -> None:
        """Remove the layers of a run that failed or was stopped."""
        for layer in self.state.layers.of(opened, "scores"):
            if _is_of(layer, run):
                self.state.layers.remove(opened, layer)

    def follow_runs(self) -> None:
        """Keep the layers of renamed runs, and free those of deleted ones."""
        state = self.state
        there = {run.created for opened in state.opened for run in opened.runs}
        self._deleted = (self._deleted | self._known) - there
        self._known = there
        names = {run.name for run in state.runs}
        for layer in self.state.layers.of(state.current, "scores"):
            entry = layer.metadata[KEY]
            runs = [run for run in state.runs if run.created == entry.get("created")]
            if entry.get("run") not in names and len(runs) == 1:
                entry["run"] = runs[0].name
                _entitle(layer)

    def _blank(self, run: AnyRun, factor: str, method: str) -> Labels:
        opened = self.state.current
        assert opened is not None, "a map is of a recording"
        title = _title(factor, method, run.name)
        return _blank_layer(
            opened.recording,
            opened.labels,
            title,
            named=title,
            token=opened.token,
            factor=factor,
            method=method,
            run=run.name,
            created=run.created,
        )

    def _take_over(self, run: AnyRun, factor: str, method: str) -> Labels | None:
        """Reuse the layer of a deleted run, or one that is still without a map.

        Each additional layer costs napari 10 MB, which it does not free.
        """
        for layer in self.state.layers.of(self.state.current, "scores"):
            if layer in self._spare or layer.metadata[KEY].get("created") in self._deleted:
                blank = self._blank(run, factor, method)
                layer.metadata, layer.name = blank.metadata, blank.name
                layer.features, layer.colormap = blank.features, blank.colormap
                self.painted.pop(layer, None)
                return layer
        return None

    def _insert(self, layer: Labels) -> Labels:
        # the label image is shared: drawing in one layer would change all
        layer.editable = False
        self.state.layers.put(layer, place_below(self.state, "decisions", "selection"))
        return layer


def place_below(state: State, *roles: Role) -> int:
    """Where to insert a layer so that it lies below those of the recording in front."""
    layers = state.viewer.layers
    above = [i for i, layer in enumerate(layers) if role_of(layer) in roles]
    return above[0] if above else len(layers)


def _entitle(layer: Labels, mark: str | None = None) -> None:
    """Name a layer by its map and a mark, unless the user renamed it; None leaves the mark."""
    entry = layer.metadata[KEY]
    if layer.name != entry.get("named"):
        return
    if mark is not None:
        entry["mark"] = mark
    latent = entry.get("latent")
    title = _title(entry["factor"], entry["method"], entry["run"], latent) + entry.get("mark", "")
    # napari numbers a name that another layer has
    layer.name = title
    entry["named"] = layer.name


def _title(factor: str, method: str, run: str, latent: Latent = None) -> str:
    part = (
        ""
        if latent is None
        else f", {latent if isinstance(latent, str) else f'latent {latent + 1}'}"
    )
    return unmarked(f"{factor}{part} · {title_of_method(method)} · {run}")


def _is_of(layer: Labels, run: AnyRun) -> bool:
    entry = layer.metadata[KEY]
    return (entry.get("run"), entry.get("created")) == (run.name, run.created)


Limits = tuple[float, float]
SCORE_COLUMNS = {"score", "z", "selected", "q", "p", "stable"}
"""Of features tables."""
Beside = tuple[str, str]
"""Run and factor of the map that is shown beside the first."""


class ScorePainter(OfState):
    """Paints one Labels layer per run and factor, made when first shown, then repainted in place.

    Layers of others are never touched.
    """

    limits_changed = Signal()

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._limits: dict[tuple[str, ...], Limits] = {}
        self.layers = ScoreLayers(state)
        self._besides: WeakKeyDictionary[Opened, Beside] = WeakKeyDictionary()
        self._cells_hidden: WeakSet[Any] = WeakSet()
        self._second = SecondView(state)
        state.shown_changed.connect(self.update)
        state.live_changed.connect(self.update)
        state.runs_changed.connect(self._follow_runs)
        state.recording_changed.connect(self.update)
        self.update()

    # ------------------------------------------------------------ colours

    @property
    def limits(self) -> Limits:
        """Scores at the ends of the colours of the map that is shown."""
        painted = painted_map(self.state)
        return self._limits.get(self._key, painted.limits) if painted else (0.0, 1.0)

    @property
    def limits_chosen(self) -> bool:
        """Whether the user chose the limits of this map."""
        return self._key in self._limits

    def set_limits(self, limits: Limits | None) -> None:
        """Choose the limits of the map that is shown; None for those made from the scores."""
        if limits is None:
            self._limits.pop(self._key, None)
        elif limits[1] > limits[0]:
            self._limits[self._key] = limits
        self.update()
        self.limits_changed.emit()

    @property
    def _key(self) -> tuple[str, ...]:
        shown, current = self.state.shown, self.state.current
        token = current.token if current else ""
        return (token, shown.run, shown.factor, str(shown.latent), shown.method)

    # ------------------------------------------------------------ layers

    @property
    def layer(self) -> Labels | None:
        """The layer of the map that is shown, if it has been made."""
        run, method = self._run, self.state.shown.method
        return self.layers.find(run, self.state.shown.factor, method) if run else None

    @property
    def _run(self) -> Run | LiveRun | None:
        """The run that is painted, also while it is being trained."""
        return self.state.painted_live or self.state.shown_run

    @property
    def beside(self) -> Beside | None:
        """Run and factor of the map beside that of the recording in front."""
        return self._besides.get(self.state.current) if self.state.current else None

    @beside.setter
    def beside(self, beside: Beside | None) -> None:
        self._take(beside)
        self.update()

    def _take(self, beside: Beside | None) -> None:
        if (opened := self.state.current) is not None and beside is not None:
            self._besides[opened] = beside
        elif opened is not None:
            self._besides.pop(opened, None)

    def second_map(self) -> ScoreMap | None:
        """The map beside, by the same method; None if there is none."""
        opened, shown, beside = self.state.current, self.state.shown, self.beside
        run = opened.run(beside[0]) if opened and beside else None
        attribution = attribution_of(run, shown.method, self.state.recording)
        if attribution is None or shown.blind or not beside or beside[1] not in attribution.factors:
            return None
        return ScoreMap(attribution, beside[1])

    def update(self) -> None:
        """Paint what is to be shown, and hide our other score layers."""
        state, shown = self.state, self.state.shown
        showing: list[Labels] = []
        beside: Labels | None = None
        active = state.viewer.layers.selection.active
        painted, run = painted_map(state), self._run
        if self.beside == (shown.run, shown.factor):
            self._take(None)  # the same map twice says nothing
        if painted is not None and run is not None:
            layer = self._painted_layer(run, painted, self.limits)
            outline_others(state, ~painted.known)
            # while scores follow the time slider, another layer shows them
            if not shown.over_time or painted.why_not_over_time:
                showing.append(layer)
            if (other := self.second_map()) is not None and self.beside is not None:
                beside_run = state.current.run(self.beside[0]) if state.current else None
                assert beside_run is not None
                beside = self._painted_layer(beside_run, other, other.limits)
                showing.append(beside)
        for layer in state.viewer.layers:
            if role_of(layer) == "scores" and layer.visible != (layer in showing):
                layer.visible = layer in showing
        if shown.blind:
            self._withhold_scores()
        elif painted is None:
            self._show_cells()
        if painted is None and state.recording is not None:
            outline_others(state, ~np.asarray(state.recording.accepted))
        self._second.show(beside)
        if showing:
            self._activate(showing, active)

    def _activate(self, showing: list[Labels], before: Layer | None) -> None:
        """Make the painted layer the active one, for napari's controls and status line.

        napari activates an inserted layer, and leaves a hidden one active.
        """
        selection = self.state.viewer.layers.selection
        now = selection.active
        hidden = now is not None and role_of(now) == "scores" and now not in showing
        if hidden or (now is not before and now is not showing[0]):
            selection.active = showing[0]

    def _painted_layer(self, run: Run | LiveRun, painted: ScoreMap, limits: Limits) -> Labels:
        opened, shown = self.state.current, self.state.shown
        assert opened is not None
        layer = self.layers.to_paint(run, painted.factor, painted.attribution.method)
        above = shown.threshold if shown.dim or shown.stable_only else None
        faded = (above, shown.q_limit if shown.q_only else None, shown.dim, shown.stable_only)
        colors = (painted.attribution, painted.latent, shown.colormap, limits, faded)
        table = (painted.attribution, painted.latent, shown.threshold, id(opened.recording))
        before = self.layers.painted.get(layer, (None, None))
        if before[0] != colors:
            _repaint(
                layer,
                painted.scores,
                colormap=shown.colormap,
                limits=limits,
                bright=bright_cells(painted, shown),
                at_chance=painted.at_chance,
            )
        if before[1] != table:
            self._tabulate(layer, opened, painted)
            _entitle(layer, _mark(painted))
        if before == (None, None):
            self._hide_cells(opened)
        self.layers.painted[layer] = (colors, table)
        return layer

    def _withhold_scores(self) -> None:
        """Remove scores from all layers, in case one is shown or pointed at."""
        painted = self.layers.painted
        for layer in [layer for layer in painted if layer in self.state.viewer.layers]:
            _repaint(layer, np.full(len(layer.features) - 1, np.nan))
            for name in SCORE_COLUMNS & set(layer.features):
                layer.features[name] = np.nan
            layer.events.properties()
            layer.events.features()
            del painted[layer]

    def _tabulate(self, layer: Labels, opened: Opened, painted: ScoreMap) -> None:
        """Bring the features table up to date; columns that the user added stay."""
        known = {} if painted.q is None else {"q": painted.q}
        if painted.over_seeds is not None:
            known["stable"] = painted.stable(self.state.shown.threshold)
        columns = cell_features(
            opened.recording,
            score=painted.scores.astype(np.float32),
            z=painted.z.astype(np.float32),
            selected=painted.above(self.state.shown.threshold)
            & painted.attribution.was_found(painted.factor),
            **known,
        )
        if len(layer.features) != len(columns):
            layer.features = columns
        else:
            # assigning the whole table would take ten times as long
            for name in columns:
                layer.features[name] = columns[name].to_numpy()
            layer.events.properties()
            layer.events.features()
        layer.metadata[KEY].update(
            _provenance(painted.attribution, painted.factor),
            latent=painted.latent,
            threshold=self.state.shown.threshold,
        )

    def _hide_cells(self, opened: Opened) -> None:
        """Their random colours would mix with those of the scores."""
        for layer in self.state.layers.of(opened, "cells"):
            if layer.visible:
                layer.visible = False
                self._cells_hidden.add(layer)

    def _show_cells(self) -> None:
        """Show the cells again that were hidden for scores of a cancelled or deleted run."""
        for layer in self.state.layers.of(self.state.current):
            if layer in self._cells_hidden:
                self._cells_hidden.discard(layer)
                layer.visible = True

    # ------------------------------------------------------------ what happens elsewhere

    def _follow_runs(self) -> None:
        self.layers.follow_runs()
        self.update()


def _mark(painted: ScoreMap) -> str:
    """Mark in the name of the layer."""
    return TRAINING if painted.provisional else painted.attribution.mark_of_doubt(painted.factor)
