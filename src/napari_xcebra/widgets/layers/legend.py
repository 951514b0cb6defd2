"""Writes on the canvas what its colours mean, how long a micrometre is, and the time.

Colour bar and scale bar are part of the scene, so that napari's screenshots show them. napari's own
would not do: its colour bar has no title and no unit, and knows no Labels layers; its scale bar
needs layers in micrometres, and coordinates here stay pixels.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np
from napari.utils.colormaps import ensure_colormap
from qtpy.QtCore import QPoint, QRect, QSize, Qt, QTimer
from qtpy.QtGui import QColor, QFontMetrics, QImage, QPainter
from superqt.utils import qimage_to_array
from vispy.scene.visuals import Image
from vispy.visuals.transforms import STTransform

from napari_xcebra.attribution.methods import DEFAULT, method_named, title_of_method
from napari_xcebra.recording import Recording
from napari_xcebra.text import brief, round_length
from napari_xcebra.widgets.controls.napari_window import canvas_of, scene_of
from napari_xcebra.widgets.layers.camera import camera_of
from napari_xcebra.widgets.state.shown import painted_map
from napari_xcebra.widgets.state.signals import OfState, Signal
from napari_xcebra.widgets.state.state import KEY, role_of

if TYPE_CHECKING:
    from napari_xcebra.widgets.layers.scores import Limits, ScorePainter
    from napari_xcebra.widgets.layers.scores_over_time import AroundPainter, TimePainter
    from napari_xcebra.widgets.state.state import State


EDGE, INSIDE = 8, 6
"""Pixels from the edge of the canvas to a box, and from that to what is in it."""
WIDTH, STRIP = 180, 10
"""Pixels of the colour bar; a longer title makes it wider."""
MOST = 0.25
"""Share of the width of the canvas that a scale bar takes at most."""
ON_TOP = 10**6
"""Order in the scene, as that of napari's own overlays."""
BOX, INK = QColor(0, 0, 0, 165), QColor(255, 255, 255)


class _Corner:
    """A picture in a lower corner of the canvas, left or right."""

    def __init__(self, viewer: Any, *, right: bool) -> None:
        self._right = right
        # they must not outlive their window
        canvas, scene = canvas_of(viewer), scene_of(viewer)
        self._canvas_of_window = None if canvas is None else ref(canvas)
        self._scene_of_window = None if scene is None else ref(scene)
        self.place = QRect()
        """Where it is on the canvas, in pixels; empty while it is hidden."""
        self._picture: Any = None
        if scene is not None:
            scene.events.resize.connect(self.update)

    @property
    def _canvas(self) -> Any:
        return self._canvas_of_window and self._canvas_of_window()

    @property
    def _scene(self) -> Any:
        return self._scene_of_window and self._scene_of_window()

    @property
    def width(self) -> float:
        """Of the canvas, in pixels."""
        return 0.0 if self._canvas is None else float(self._canvas.width())

    def hide(self) -> None:
        """Take it away."""
        self.place = QRect()
        if self._picture is not None:
            self._picture.visible = False

    def update(self, _: object = None) -> None:
        """Draw it anew, in its corner."""
        if self._scene is None or self._canvas is None:
            return
        size = self.size()
        if size.isEmpty():
            self.hide()
            return
        x = self._canvas.width() - EDGE - size.width() if self._right else EDGE
        self.place = QRect(QPoint(x, self._canvas.height() - EDGE - size.height()), size)
        self._show(self._draw_image(size))

    def size(self) -> QSize:
        """What it needs now; empty if there is nothing to show."""
        raise NotImplementedError

    def _draw(self, painter: QPainter, inside: QRect) -> None:
        raise NotImplementedError

    @property
    def _metrics(self) -> QFontMetrics:
        return self._canvas.fontMetrics()

    def _draw_image(self, size: QSize) -> np.ndarray:
        """Its pixels, as fine as those of the screen: (height, width, 4) uint8."""
        ratio = self._canvas.devicePixelRatioF()
        image = QImage(size * ratio, QImage.Format.Format_ARGB32)
        image.setDevicePixelRatio(ratio)
        image.fill(Qt.GlobalColor.transparent)
        painter = QPainter(image)
        painter.setFont(self._canvas.font())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(BOX)
        box = QRect(QPoint(0, 0), size)
        painter.drawRoundedRect(box, 4, 4)
        painter.setPen(INK)
        self._draw(painter, box.adjusted(INSIDE, INSIDE, -INSIDE, -INSIDE))
        painter.end()
        return qimage_to_array(image).copy()

    def _show(self, pixels: np.ndarray) -> None:
        if self._picture is None:
            self._picture = Image(pixels, parent=self._scene)
            self._picture.order = ON_TOP
            self._picture.set_gl_state("translucent", depth_test=False)
        else:
            self._picture.set_data(pixels)
        fineness = self._canvas.devicePixelRatioF()
        place = self.place.x(), self.place.y()
        self._picture.transform = STTransform((1 / fineness, 1 / fineness), place)
        self._picture.visible = True


class _ColorBar(_Corner):
    """What is painted and by which method, the colours, their limits and unit."""

    def __init__(self, viewer: Any) -> None:
        super().__init__(viewer, right=False)
        self.lines: tuple[str, ...] = ()
        """Title, method, then the low limit, the unit and the high limit."""
        self._strip = QImage()

    def show_scale(
        self, title: str, method: str, unit: str, colormap: str, limits: tuple[float, float]
    ) -> None:
        """Show a scale; see `_Scale`."""
        self.lines = (title, method, brief(limits[0]), unit, brief(limits[1]))
        colors = 255 * ensure_colormap(colormap).map(np.linspace(0, 1, 256))
        row = np.ascontiguousarray(colors.astype(np.uint8))
        self._strip = QImage(row.tobytes(), 256, 1, 4 * 256, QImage.Format.Format_RGBA8888).copy()
        self.update()

    def hide(self) -> None:
        """Take it away."""
        self.lines = ()
        super().hide()

    def size(self) -> QSize:
        """Room for its words."""
        if not self.lines:
            return QSize()
        title, method, low, unit, high = self.lines
        wide = self._metrics.horizontalAdvance
        # the unit stands in the middle
        limits = wide(unit) + 2 * (max(wide(low), wide(high)) + 2 * INSIDE)
        width = max(WIDTH, round(1.1 * wide(title)), wide(method), limits)
        most = int(self.width) - 2 * EDGE
        height = 3 * self._metrics.height() + STRIP + 4
        return QSize(min(width + 2 * INSIDE, most), height + 2 * INSIDE)

    def _draw(self, painter: QPainter, inside: QRect) -> None:
        title, method, low, unit, high = self.lines
        line = self._metrics.height()
        sides = Qt.AlignmentFlag

        def write(y: int, text: str, side: Any) -> None:
            place = QRect(inside.left(), inside.top() + y, inside.width(), line)
            short = self._metrics.elidedText(text, Qt.TextElideMode.ElideRight, inside.width())
            painter.drawText(place, int(side), short)

        font = painter.font()
        font.setBold(True)
        painter.setFont(font)
        write(0, title, sides.AlignLeft)
        font.setBold(False)
        painter.setFont(font)
        write(line, method, sides.AlignLeft)
        strip = QRect(inside.left(), inside.top() + 2 * line + 2, inside.width(), STRIP)
        painter.drawImage(strip, self._strip)
        below = 2 * line + STRIP + 4
        for text, side in (
            (low, sides.AlignLeft), (unit, sides.AlignHCenter), (high, sides.AlignRight)
        ):  # fmt: skip
            write(below, text, side)


class ScaleBar(_Corner):
    """A length in micrometres; hidden where the size of a pixel is not known."""

    def __init__(self, state: State) -> None:
        super().__init__(state.viewer, right=True)
        self._of = OfState(state)
        self.micrometres = self.length = 0.0
        """What it stands for, and its length in pixels of the screen."""
        state.recording_changed.connect(self.update)
        camera_of(state.viewer).events.zoom.connect(self.update)
        self.update()

    def size(self) -> QSize:
        """Room for a round length that suits the zoom."""
        recording = self._of.state.recording if self._of.state_open else None
        size = recording.pixel_size if recording is not None and recording.footprints else None
        if size is None or not self.width:
            return QSize()
        screen = camera_of(self._of.state.viewer).zoom / size
        self.micrometres = round_length(MOST * self.width / screen)
        self.length = self.micrometres * screen
        width = max(round(self.length), self._metrics.horizontalAdvance(self.text))
        return QSize(width + 2 * INSIDE, self._metrics.height() + 5 + 2 * INSIDE)

    @property
    def text(self) -> str:
        """The length in words."""
        if self.micrometres >= 1000:
            return f"{self.micrometres / 1000:g} mm"
        return f"{self.micrometres:g} µm"

    def _draw(self, painter: QPainter, inside: QRect) -> None:
        line = self._metrics.height()
        words = QRect(inside.left(), inside.top(), inside.width(), line)
        painter.drawText(words, int(Qt.AlignmentFlag.AlignHCenter), self.text)
        left = inside.center().x() - round(self.length) // 2
        painter.fillRect(QRect(left, inside.bottom() - 2, round(self.length), 3), INK)


PAUSE = 0.25
"""Seconds between two texts: each takes 7 ms to draw, as long as the rest of the window."""


def _time_text(recording: Recording, frame: int) -> str:
    """Time of a frame, in seconds, and its number as the slider has it.

    >>> _time_text(Recording.from_arrays([[0.0]] * 200, rate=10.0), 123)
    '12.3 s · frame 123'
    """
    decimals = 1 if recording.rate <= 10 else 2
    return f"{recording.times[frame]:,.{decimals}f} s · frame {frame:,}"  # type: ignore[index]


class TimeText(OfState):
    """Keeps napari's text on the canvas at the time of the slider."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._written = False
        self._last = 0.0
        self._at_rest = QTimer()
        self._at_rest.setSingleShot(True)
        self._at_rest.setInterval(int(1000 * PAUSE))
        self._at_rest.timeout.connect(self._write_late)
        state.recording_changed.connect(self._write)
        state.frame_changed.connect(self._write_soon)
        self._write()

    def _write_soon(self) -> None:
        """Write with a frame, where the last text is old enough, and when the slider rests."""
        if time.monotonic() - self._last < PAUSE:
            self._at_rest.start()
        else:
            self._at_rest.stop()
            self._write()

    def _write_late(self) -> None:
        if self.state_open:
            self._write()

    def _write(self) -> None:
        state, self._last = self.state, time.monotonic()
        overlay, recording = _overlay_of(state.viewer), state.recording
        if recording is not None:
            overlay.text = _time_text(recording, min(state.frame, recording.n_frames - 1))
        # a text of the user's own is left alone
        if (recording is not None) != self._written:
            self._written = overlay.visible = recording is not None
            overlay.position = "top_left"


def _overlay_of(viewer: Any) -> Any:
    """The text on the canvas, wherever this version of napari has it."""
    canvas = getattr(viewer, "canvas", None)
    return viewer.text_overlay if canvas is None else canvas.overlays.text  # napari < 0.9


MOVING = ("scores over time", "scores around an event")
"""Roles of Image layers, whose limits the user can also change with napari's own slider."""


@dataclass(frozen=True)
class _Scale:
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
        self._told: _Scale | None = None
        self.bar = _ColorBar(state.viewer)
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
    def now(self) -> _Scale | None:
        """The scale of the uppermost scores in view; None if there are none."""
        painted = painted_map(self.state)
        layer = self._uppermost()
        if layer is None or painted is None or painted.at_chance:
            return None
        role, method = role_of(layer), painted.attribution.method
        if role == "scores":
            limits, chosen = self._painter.limits, self._painter.limits_chosen
            return _Scale(painted.title, title_of_method(method), painted.unit,
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
        return _Scale(title, title_of_method(method), unit, name, limits, chosen, of_map=False)

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

    def _draw(self, now: _Scale | None) -> None:
        if now is None:
            self.bar.hide()
        else:
            self.bar.show_scale(now.title, now.method, now.unit, now.colormap, now.limits)
