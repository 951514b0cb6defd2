"""Reads recordings and samples in the background, one at a time, and shows them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from qtpy.QtCore import QObject, Signal

from napari_xcebra.io.opening import Opening
from napari_xcebra.io.orientation import LayoutUnclear
from napari_xcebra.widgets.docks.recording.loading import (
    SAMPLES,
    Loaded,
    is_from,
    put_into,
    read,
    simulate,
    take_behavior,
    with_kind,
    with_pixel_size,
)
from napari_xcebra.widgets.services.jobs import ActivityBar, in_background
from napari_xcebra.widgets.services.reading import Openings, result_of, with_kept_size
from napari_xcebra.widgets.state.preferences import keep_pixel_size
from napari_xcebra.widgets.window import Services
from napari_xcebra.workspace_file import Opened

if TYPE_CHECKING:
    from qtpy.QtWidgets import QWidget


class Opener(QObject):
    """What is read takes the front; what is cancelled meanwhile is thrown away."""

    changed = Signal()
    """It began to read, or ended."""
    began = Signal(str)
    """Name of what is read."""
    shown = Signal(object)
    """A recording was read, and is in front now."""
    failed = Signal(str, str)
    """A sentence, and details."""
    asked = Signal(object, object)
    """Which axis is cells (`LayoutUnclear`), and a function of the layout that is the answer."""

    def __init__(self, services: Services, owner: QWidget) -> None:
        super().__init__(owner)
        self._services, self._state, self._owner = services, services.state, owner
        self._reading: ActivityBar | None = None
        self._openings = Openings(owner, services.state.viewer)
        owner.destroyed.connect(self._end)

    @property
    def busy(self) -> bool:
        """Whether something is being read."""
        return self._reading is not None

    def open(self, opening: Opening, *, replacing: bool) -> None:
        """Read a recording; `replacing`, it takes the place of the one in front."""
        opening = self._with_size(opening)
        job = self._openings.submit(opening)

        def answer(layout: str) -> None:
            settings = replace(opening.settings, layout=layout)  # type: ignore[arg-type]
            self.open(replace(opening, settings=settings), replacing=replacing)

        self._load(lambda: read(job, opening), opening.path.name, replacing, answer)

    def open_sample(self, key: str, *, replacing: bool) -> None:
        """Simulate a recording."""
        self._load(lambda: simulate(key), SAMPLES[key].title, replacing)

    def cancel(self) -> None:
        """Stop reading, and discard what was read."""
        self._openings.cancel()
        self._end()
        self.changed.emit()

    def again(self, opening: Opening) -> Opening | None:
        """How to open the recording in front again, if that is what is to be opened."""
        current = self._state.current
        if current is None or current.opening is None or not is_from(current, opening):
            return None
        return replace(opening, kinds=current.opening.kinds)

    def change_kind(
        self, opened: Opened, name: str, kind: str, failed: Callable[[str, str], None]
    ) -> None:
        """Give a variable of the recording in front another kind, and read behaviour again.

        An angle that was averaged as a plain number must be averaged again.
        """
        changed = with_kind(opened, name, kind)
        if opened.opening is not None:
            take = partial(take_behavior, self._state, opened, opened.opening)
            job = self._openings.submit(opened.opening)
            in_background(partial(result_of, job), take, failed, owner=self._owner)
        self._state.change_recording(changed)

    def change_pixel_size(self, opened: Opened, size: float) -> None:
        """Give the recording in front pixels of so many micrometres; 0: not known."""
        self._state.change_recording(with_pixel_size(opened, size))

    def _with_size(self, opening: Opening) -> Opening:
        """The size of a pixel as it was given before, unless the form says otherwise."""
        size, current = opening.settings.pixel_size, self._state.current
        if size or (current is not None and is_from(current, opening)):
            keep_pixel_size(opening.path, size)
        return with_kept_size(opening)

    def _end(self) -> None:
        if self._reading is not None:
            self._reading.close()
        self._reading = None

    def _load(
        self,
        work: Callable[[], Loaded | LayoutUnclear],
        name: str,
        replacing: bool,
        answer: Callable[[str], None] | None = None,
    ) -> None:
        before = self._state.current if replacing else None
        self._end()
        self._reading = attempt = self._services.processes.activity.begin(f"Reading {name}")
        self.began.emit(name)
        self.changed.emit()

        def if_wanted(then: Callable[..., None], *outcome: Any) -> None:
            if self._reading is attempt:
                self._end()
                self.changed.emit()
                then(*outcome)

        done = partial(if_wanted, partial(self._show, before, answer))
        in_background(work, done, partial(if_wanted, self.failed.emit), owner=self._owner)

    def _show(
        self,
        before: Opened | None,
        answer: Callable[[str], None] | None,
        loaded: Loaded | LayoutUnclear,
    ) -> None:
        if isinstance(loaded, LayoutUnclear):
            self.asked.emit(loaded, answer)
            return
        put_into(self._state, loaded)
        if before in self._state.opened:
            self._state.forget(before)
        self._services.processes.warm_up()
        self.shown.emit(loaded.recording)
