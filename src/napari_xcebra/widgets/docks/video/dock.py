"""Shows the video of the animal at the time of the slider, decoded in a thread."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
from qtpy.QtCore import QObject, QRect, QSize, Qt, Signal
from qtpy.QtGui import QImage, QPainter, QPaintEvent
from qtpy.QtWidgets import QSizePolicy, QWidget

from napari_xcebra.errors import InputError
from napari_xcebra.io.containers.video import Decoder
from napari_xcebra.recording.movies import Video
from napari_xcebra.widgets.controls.boxes import PlainLabel
from napari_xcebra.widgets.controls.layouts import in_column
from napari_xcebra.widgets.controls.napari_window import Presence, end_with_dock, follow
from napari_xcebra.widgets.window import services_of

if TYPE_CHECKING:
    import napari


EMPTY = "No video: give one as “Behaviour video” in the Recording dock, or drop it on the image."


class _VideoPicture(QWidget):
    """A picture in its own proportions, as large as there is room."""

    def __init__(self) -> None:
        super().__init__()
        self._image: QImage | None = None
        self.setMinimumSize(120, 90)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName("Video of the animal")

    def show_pixels(self, pixels: np.ndarray | None) -> None:
        """Show (height, width, 3) uint8; None for nothing."""
        self._image = None
        if pixels is not None:
            height, width, _ = pixels.shape
            pixels = np.ascontiguousarray(pixels)
            shown = QImage(pixels.data, width, height, 3 * width, QImage.Format.Format_RGB888)
            self._image = shown.copy()  # which does not need the array any longer
        self.update()

    @property
    def image(self) -> QImage | None:
        """What is shown."""
        return self._image

    def paintEvent(self, event: QPaintEvent | None) -> None:
        """Draw."""
        if self._image is None:
            return
        size = self._image.size().scaled(self.size(), Qt.AspectRatioMode.KeepAspectRatio)
        place = QRect(0, 0, size.width(), size.height())
        place.moveCenter(self.rect().center())
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        painter.drawImage(place, self._image)
        painter.end()


class VideoDock(QWidget):
    """The frame of the video that was taken at the time of the slider."""

    def __init__(self, napari_viewer: napari.viewer.Viewer) -> None:
        super().__init__()
        self.state = services_of(napari_viewer).state
        self.picture = _VideoPicture()
        self.caption = PlainLabel(wrap=True)
        self.reader = _VideoReader(self)
        self._presence = Presence(self)
        in_column((self.picture, 1), self.caption, of=self).setContentsMargins(4, 4, 4, 4)
        self.reader.came.connect(self._show)
        self.reader.failed.connect(self._fail)
        self.destroyed.connect(self.reader.close)
        self._presence.changed.connect(self._follow)
        follow(self, self.state.recording_changed, self._follow)
        follow(self, self.state.frame_changed, self._follow)
        self._follow()
        end_with_dock(self)

    def sizeHint(self) -> QSize:
        """Small: it stands beside the traces."""
        return QSize(320, 240)

    @property
    def _video(self) -> Video | None:
        recording = self.state.recording
        return recording.video if recording is not None else None

    def _follow(self, _: object = None) -> None:
        """Ask for the frame at the slider, if it is seen."""
        video, recording = self._video, self.state.recording
        if video is None or recording is None:
            self.picture.show_pixels(None)
            self.caption.setText(EMPTY)
            return
        if not self._presence.now:
            return
        seconds = float(np.asarray(recording.times)[min(self.state.frame, recording.n_frames - 1)])
        number = video.at(seconds)
        if number is None:
            self.picture.show_pixels(None)
            self.caption.setText(f"{video.path.name} has no frame at {seconds:,.1f} s.")
        else:
            self.reader.ask(video, number)

    def _show(self, video: Video, number: int, pixels: np.ndarray) -> None:
        if video is self._video:
            self.picture.show_pixels(pixels)
            self.caption.setText(
                f"{video.path.name} · {video.times[number]:,.2f} s · frame {number:,}"
            )

    def _fail(self, sentence: str) -> None:
        self.picture.show_pixels(None)
        self.caption.setText(sentence)


class _VideoReader(QObject):
    """Gives the frames of one video after the other, to the thread of the window."""

    came = Signal(object, int, object)
    """Video, number of the frame, and its pixels, (height, width, 3) uint8."""
    failed = Signal(str)
    """Why a frame could not be read, in a sentence."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._turn = threading.Lock()
        self._wanted: tuple[Video, int] | None = None
        self._working = self._closed = False
        self._open: tuple[Video, Decoder] | None = None

    def ask(self, video: Video, number: int) -> None:
        """Decode a frame; what was asked for before and is not begun yet is given up."""
        with self._turn:
            self._wanted = video, number
            if self._working or self._closed:
                return
            self._working = True
        threading.Thread(target=self._work, daemon=True, name="video").start()

    def close(self, *_: Any) -> None:
        """Give up what is under way, and let go of the file."""
        with self._turn:
            self._closed, self._wanted = True, None
            if not self._working:
                self._let_go()

    def _work(self) -> None:
        while True:
            with self._turn:
                wanted, self._wanted = self._wanted, None
                if wanted is None:
                    self._working = False
                    if self._closed:
                        self._let_go()
                    return
            self._decode(*wanted)

    def _decode(self, video: Video, number: int) -> None:
        try:
            if self._open is None or self._open[0] is not video:
                self._let_go()
                self._open = video, Decoder(video.path, video.stamps)
            picture = self._open[1].frame(number)
        except InputError as error:
            outcome: tuple[Any, ...] = (self.failed, str(error))
        else:
            outcome = (self.came, video, number, picture)
        if not self._closed:
            outcome[0].emit(*outcome[1:])

    def _let_go(self) -> None:
        if self._open is not None:
            self._open[1].close()
        self._open = None
