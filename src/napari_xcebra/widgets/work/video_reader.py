"""Decodes frames of a video in a thread; of those asked for meanwhile only the last one."""

from __future__ import annotations

import threading
from typing import Any

from qtpy.QtCore import QObject, Signal

from napari_xcebra.errors import InputError
from napari_xcebra.io.containers.video import Decoder
from napari_xcebra.recording.movies.video import Video


class VideoReader(QObject):
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
