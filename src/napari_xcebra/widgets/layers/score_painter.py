"""Paints the scores that are shown on Labels layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

import numpy as np
from napari.layers import Labels

from napari_xcebra.attribution.score_map import ScoreMap, attribution_of
from napari_xcebra.widgets.layers.camera import SecondView
from napari_xcebra.widgets.layers.layers import cell_features
from napari_xcebra.widgets.layers.outlines import outline_others
from napari_xcebra.widgets.layers.painting import doubt_of, provenance, repaint
from napari_xcebra.widgets.layers.score_layers import TRAINING, ScoreLayers, entitle
from napari_xcebra.widgets.state.of_state import OfState
from napari_xcebra.widgets.state.own_layers import KEY, role_of
from napari_xcebra.widgets.state.shown import bright_cells, painted_map
from napari_xcebra.widgets.state.signals import Signal

if TYPE_CHECKING:
    from napari.layers import Layer

    from napari_xcebra.runs import Run
    from napari_xcebra.widgets.state.shown import LiveRun
    from napari_xcebra.widgets.state.state import State
    from napari_xcebra.workspace_file import Opened

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

    def map_beside(self) -> ScoreMap | None:
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
            if (other := self.map_beside()) is not None and self.beside is not None:
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
            repaint(
                layer,
                painted.scores,
                colormap=shown.colormap,
                limits=limits,
                bright=bright_cells(painted, shown),
                at_chance=painted.at_chance,
            )
        if before[1] != table:
            self._tabulate(layer, opened, painted)
            entitle(layer, _mark(painted))
        if before == (None, None):
            self._hide_cells(opened)
        self.layers.painted[layer] = (colors, table)
        return layer

    def _withhold_scores(self) -> None:
        """Remove scores from all layers, in case one is shown or pointed at."""
        painted = self.layers.painted
        for layer in [layer for layer in painted if layer in self.state.viewer.layers]:
            repaint(layer, np.full(len(layer.features) - 1, np.nan))
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
            selected=painted.above(self.state.shown.threshold),
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
            provenance(painted.attribution, painted.factor),
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
    return TRAINING if painted.provisional else doubt_of(painted.attribution, painted.factor)
