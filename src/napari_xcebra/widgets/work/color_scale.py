"""Knows what the colours on the canvas mean: one scale for dock, layer and colour bar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from napari_xcebra.attribution.methods import DEFAULT, method_named, title_of_method
from napari_xcebra.widgets.layers.canvas_legend import ColorBar
from napari_xcebra.widgets.state.of_state import OfState
from napari_xcebra.widgets.state.own_layers import KEY, role_of
from napari_xcebra.widgets.state.shown import painted_map
from napari_xcebra.widgets.state.signals import Signal

if TYPE_CHECKING:
    from napari_xcebra.widgets.layers.score_painter import Limits, ScorePainter
    from napari_xcebra.widgets.state.state import State
    from napari_xcebra.widgets.work.around_event import AroundPainter
    from napari_xcebra.widgets.work.time_painter import TimePainter

MOVING = ("scores over time", "scores around an event")
"""Roles of Image layers, whose limits the user can also change with napari's own slider."""


@dataclass(frozen=True)
class Scale:
    """What the colours of the uppermost scores mean.

    Parameters
    ----------
    title : str
        The factor, and what is shown of it.
    method : str
        As it is written in a list.
    unit : str
        What the scores count.
    colormap : str
        Any that napari knows.
    limits : (low, high)
        Scores at the ends of the colours.
    chosen : bool
        Whether the user chose the limits.
    of_map : bool
        Whether the colours are those of the map, rather than of a frame or moment.
    """

    title: str
    method: str
    unit: str
    colormap: str
    limits: Limits
    chosen: bool = False
    of_map: bool = True


class ColorScale(OfState):
    """Tells the scale of what is painted, and changes its limits, wherever they are kept."""

    changed = Signal()

    def __init__(
        self, state: State, painter: ScorePainter, over_time: TimePainter, around: AroundPainter
    ) -> None:
        super().__init__(state)
        self._painter, self._over_time, self._around = painter, over_time, around
        self._told: Scale | None = None
        self.bar = ColorBar(state.viewer)
        for signal in (
            state.shown_changed,
            state.live_changed,
            state.runs_changed,
            state.recording_changed,
            painter.limits_changed,
            over_time.status_changed,
        ):
            signal.connect(self._tell)
        layers = state.viewer.layers
        layers.events.inserted.connect(self._listen)
        layers.events.removed.connect(self._tell)
        for layer in layers:
            self._listen_to(layer)
        self._tell()

    @property
    def now(self) -> Scale | None:
        """The scale of the uppermost scores in view; None if there are none."""
        painted = painted_map(self.state)
        layer = self._uppermost()
        if layer is None or painted is None or painted.at_chance:
            return None
        role, method = role_of(layer), painted.attribution.method
        if role == "scores":
            limits, chosen = self._painter.limits, self._painter.limits_chosen
            return Scale(painted.title, title_of_method(method), painted.unit,
                         self.state.shown.colormap, limits, chosen)  # fmt: skip
        if role == "scores over time":
            method = method_named(method).over_time
            unit = method_named(method).unit.removeprefix("mean ")
            title, chosen = f"{painted.title}, this frame", self._over_time.limits_chosen
        else:
            method, title = DEFAULT, layer.metadata[KEY]["title"]
            unit, chosen = method_named(DEFAULT).unit, self._around.limits_chosen
        low, high = layer.contrast_limits
        limits = float(low), float(high)
        name = layer.colormap.name
        return Scale(title, title_of_method(method), unit, name, limits, chosen, of_map=False)

    def set_limits(self, limits: Limits | None) -> None:
        """Choose the limits of what is painted; None for those made from the scores."""
        layer = self._uppermost()
        role = None if layer is None else role_of(layer)
        if role == "scores over time":
            self._over_time.set_limits(limits)
        elif role == "scores around an event":
            self._around.set_limits(limits)
        else:
            self._painter.set_limits(limits)

    def _uppermost(self) -> Any:
        """The uppermost visible layer with scores, the one beside it aside."""
        own = self._painter.layer
        for layer in reversed(self.state.viewer.layers):
            if layer.visible and (layer is own or role_of(layer) in MOVING):
                return layer
        return None

    def _listen(self, event: Any) -> None:
        self._listen_to(event.value)
        self._tell()

    def _listen_to(self, layer: Any) -> None:
        role = role_of(layer)
        if role in MOVING:
            layer.events.contrast_limits.connect(self._tell)
            layer.events.colormap.connect(self._tell)
        if role in (*MOVING, "scores"):
            layer.events.visible.connect(self._tell)

    def _tell(self, *_: Any) -> None:
        if not self.state_open:
            return
        now = self.now
        if now != self._told:
            self._told = now
            self._draw(now)
            self.changed.emit()

    def _draw(self, now: Scale | None) -> None:
        if now is None:
            self.bar.hide()
        else:
            self.bar.show_scale(now.title, now.method, now.unit, now.colormap, now.limits)
