"""What all docks of a viewer share: recordings, runs, what is shown, and the selection.

One object owns each of these; the docks change it through methods and listen to its signals.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4
from weakref import WeakKeyDictionary, ref

import numpy as np
from psygnal import Signal

from napari_xcebra.knobs import known_only
from napari_xcebra.recording import Recording
from napari_xcebra.runs import Run, free_name
from napari_xcebra.sessions import Opened, SavedSession, name_of, save_session
from napari_xcebra.widgets import own_layers
from napari_xcebra.widgets.garbage import collect_while_waiting
from napari_xcebra.widgets.kept_runs import mark_as_kept
from napari_xcebra.widgets.layers import KEY, LayerTuple, role_of, token_of
from napari_xcebra.widgets.preferences import follow_preferences, preferred_colormap
from napari_xcebra.widgets.processes import Processes
from napari_xcebra.widgets.shown import Shown
from napari_xcebra.widgets.time_slider import TimeSlider

if TYPE_CHECKING:
    import napari
    from napari.layers import Layer

    from napari_xcebra.attribution import Attribution
    from napari_xcebra.opening import Opening
    from napari_xcebra.widgets.in_view import OneInView
    from napari_xcebra.widgets.live_run import LiveRun
    from napari_xcebra.widgets.picking import Picking

_SESSIONS: WeakKeyDictionary[napari.Viewer, Session] = WeakKeyDictionary()


class Session(Processes):
    """State of one viewer.

    Signals
    -------
    recording_changed
        Another recording is current, or the current one was changed or closed.
    runs_changed
        A run of the current recording was added, changed, renamed or removed.
    shown_changed
        What is painted is to change; `shown` says how.
    live_changed
        The run that is being trained has a new map, or has come to its end.
    selection_changed
        Other cells are selected.
    frame_changed(int)
        The time slider was moved.
    """

    recording_changed = Signal()
    runs_changed = Signal()
    shown_changed = Signal()
    live_changed = Signal()
    selection_changed = Signal()
    frame_changed = Signal(int)

    def __init__(self, viewer: napari.Viewer) -> None:
        self._viewer = ref(viewer)
        self.opened: list[Opened] = []
        self._current: Opened | None = None
        self._shown = Shown(colormap=preferred_colormap())
        self._live: LiveRun | None = None
        self._selection = np.zeros(0, np.int64)
        self.picking: Picking | None = None
        self.in_view: OneInView | None = None
        self._slider = TimeSlider(self)
        for layer in viewer.layers:
            self._adopt(layer)
        viewer.layers.events.inserted.connect(lambda event: self._adopt(event.value))

    @property
    def viewer(self) -> napari.Viewer:
        """The viewer this session belongs to."""
        viewer = self._viewer()
        assert viewer is not None, "the viewer of this session was closed"
        return viewer

    # ------------------------------------------------------------ recordings

    @property
    def current(self) -> Opened | None:
        """The recording that the docks work on."""
        return self._current

    @current.setter
    def current(self, opened: Opened | None) -> None:
        if opened is self._current:
            return
        self._current = opened
        self._selection = np.zeros(0, np.int64)
        self._shown = Shown(colormap=self._shown.colormap)
        before = self._slider.frame
        self._slider.frame = self._slider.there
        self.recording_changed.emit()
        self.runs_changed.emit()
        self.selection_changed.emit()
        self.shown_changed.emit()
        if self.frame != before:
            self.frame_changed.emit(self.frame)

    @property
    def recording(self) -> Recording | None:
        """The current recording."""
        return self._current.recording if self._current else None

    def show(
        self,
        recording: Recording,
        opening: Opening | None = None,
        layers: Sequence[LayerTuple] | None = None,
    ) -> Opened:
        """Add the layers of a recording, if it has none yet, and make it current.

        `layers` are those of `recording_layers`, where they were made in the background already.
        """
        opened = next((o for o in self.opened if o.recording is recording), None)
        if opened is None:
            token = token_of(layers[0]) if layers else uuid4().hex
            opened = self._register(recording, token, opening)
        if not any(role_of(layer) == "cells" for layer in self.layers_of(opened)):
            self.add_layers(opened, layers)
        self.current = opened
        return opened

    def add_layers(self, opened: Opened, layers: Sequence[LayerTuple] | None = None) -> None:
        """Add those of the images, activity and cells of a recording that are not in the viewer."""
        own_layers.add_missing(self.viewer, opened, layers, self.prefix(opened))

    def prefix(self, opened: Opened) -> str:
        """What comes before the names of layers, where there are several recordings."""
        return "" if self.opened[0] is opened else f"{opened.name} · "

    def change_recording(self, recording: Recording) -> None:
        """Put a changed copy in the place of the current recording: kinds, traces, cells in use."""
        if self._current is None:
            return
        self._current.recording = recording
        for drawn in ("labels", "centers"):
            self._current.__dict__.pop(drawn, None)
        own_layers.bring_up_to_date(self.viewer, self._current)
        self.recording_changed.emit()

    def layers_of(self, opened: Opened) -> list[Layer]:
        """Layers in the viewer that belong to a recording, whatever they are called by now."""
        return own_layers.layers_of(self.viewer, opened)

    def forget(self, opened: Opened) -> None:
        """Close a recording and remove its layers."""
        self.opened.remove(opened)
        own_layers.remove(self.viewer, opened)
        if opened is self._current:
            self.current = self.opened[-1] if self.opened else None

    def _adopt(self, layer: Layer) -> None:
        """Take up a recording that came with a layer: from a reader, a sample or a script."""
        if role_of(layer) != "cells":
            return
        entry = layer.metadata[KEY]
        if any(opened.token == entry.get("token") for opened in self.opened):
            return
        recording = entry.get("value")
        if isinstance(recording, Recording):
            opened = self._register(recording, entry["token"], entry.get("opening"))
            own_layers.put_before_names(self.viewer, opened, self.prefix(opened))
            self.current = opened
            collect_while_waiting()

    def _register(self, recording: Recording, token: str, opening: Opening | None) -> Opened:
        wanted = name_of(str(opening.path) if opening else recording.source)
        name = free_name(wanted, [opened.name for opened in self.opened])
        opened = Opened(name, recording, token, opening)
        self.opened.append(opened)
        return opened

    # ------------------------------------------------------------ on disk

    def save(self, folder: str | PathLike[str]) -> Path:
        """Write recordings (where they are), runs and view settings to a folder."""
        current = self.opened.index(self._current) if self._current else -1
        return save_session(SavedSession(self.opened, current, asdict(self._shown)), folder)

    def restore(self, saved: SavedSession) -> None:
        """Show what `load_session` read, beside what is open already."""
        for opened in saved.opened:
            mark_as_kept(opened.runs)
            opened.name = free_name(opened.name, [other.name for other in self.opened])
            self.opened.append(opened)
            self.add_layers(opened)
        if 0 <= saved.current < len(saved.opened):
            self.current = saved.opened[saved.current]
            self.shown = Shown(**known_only(Shown, saved.shown))

    # ------------------------------------------------------------ runs

    @property
    def runs(self) -> list[Run]:
        """Runs of the current recording, oldest first."""
        return list(self._current.runs) if self._current else []

    def add_run(self, run: Run, to: Opened | None = None) -> Run:
        """Add a run, under another name if its own is taken; returns it as it was added."""
        opened = to or self._current
        assert opened is not None, "a run needs a recording"
        run = replace(run, name=free_name(run.name, [r.name for r in opened.runs]))
        opened.runs.append(run)
        if opened is self._current:
            self.runs_changed.emit()
        return run

    def replace_run(self, name: str, run: Run) -> None:
        """Put a changed run (renamed, with another attribution) in the place of one."""
        places = [
            (opened, place)
            for opened in self.opened
            for place, old in enumerate(opened.runs)
            if old.name == name and old.created == run.created
        ]
        # runs that were trained together have the same name and time
        same = [(opened, place) for opened, place in places if opened.runs[place].fit is run.fit]
        for opened, place in same or places:
            opened.runs[place] = run
        if self._shown.run == name and run.name != name:
            self._shown = replace(self._shown, run=run.name)
        self.runs_changed.emit()

    def remove_run(self, name: str) -> None:
        """Remove a run of the current recording."""
        if self._current is not None:
            self._current.runs = [run for run in self._current.runs if run.name != name]
            self.runs_changed.emit()

    # ------------------------------------------------------------ what is shown

    @property
    def shown(self) -> Shown:
        """What is painted."""
        return self._shown

    @shown.setter
    def shown(self, shown: Shown) -> None:
        if shown != self._shown:
            self._shown = shown
            self.shown_changed.emit()

    @property
    def shown_run(self) -> Run | None:
        """The run that is painted."""
        return self._current.run(self._shown.run) if self._current else None

    @property
    def live(self) -> LiveRun | None:
        """What there is so far of the run that is trained on the current recording."""
        live = self._live
        return live if live is not None and live.opened is self._current else None

    def show_live(self, live: LiveRun | None) -> None:
        """Put another map in the place of the one so far; None when the run is there, or failed."""
        self._live = live
        self.live_changed.emit()

    @property
    def painted_live(self) -> LiveRun | None:
        """The run that is being trained, if its map is what is painted."""
        live = self.live
        return live if live is not None and live.name == self._shown.run else None

    @property
    def attribution(self) -> Attribution | None:
        """The attribution that is painted, if it has been computed."""
        if self.painted_live is not None:
            return self.painted_live.attribution
        run = self.shown_run
        return run.attributions.get(self._shown.method) if run else None

    @property
    def scores(self) -> np.ndarray | None:
        """(cells,) scores that are painted; NaN for cells that were not used."""
        attribution, shown = self.attribution, self._shown
        if attribution is None or shown.blind or shown.factor not in attribution.factors:
            return None
        if isinstance(shown.latent, str) and shown.latent in attribution.details:
            return attribution.detail(shown.factor, shown.latent)
        if not isinstance(shown.latent, int) or not attribution.has_latents:
            return attribution.score(shown.factor)
        return attribution.latent(shown.factor, shown.latent)

    # ------------------------------------------------------------ selection and time

    @property
    def selection(self) -> np.ndarray:
        """Positions of the selected cells in the recording, in the order of selecting."""
        return self._selection

    def select(self, cells: Iterable[int], *, toggle: bool = False) -> None:
        """Select cells by position; with `toggle`, change these and keep the others."""
        chosen = list(dict.fromkeys(int(cell) for cell in cells))
        if toggle:
            before = self._selection.tolist()
            kept = [cell for cell in before if cell not in chosen]
            chosen = kept + [cell for cell in chosen if cell not in before]
        selection = np.array(chosen, np.int64)
        if not np.array_equal(selection, self._selection):
            self._selection = selection
            self.selection_changed.emit()

    @property
    def frame(self) -> int:
        """Frame at the time slider."""
        return self._slider.frame

    @frame.setter
    def frame(self, frame: int) -> None:
        self._slider.go_to(frame)


def session_of(viewer: napari.Viewer) -> Session:
    """The session of a viewer; made when first asked for."""
    # napari hands plugins a public proxy; all proxies of a viewer share one session
    viewer = getattr(viewer, "__wrapped__", viewer)
    if viewer not in _SESSIONS:
        from napari_xcebra.widgets.in_view import OneInView
        from napari_xcebra.widgets.picking import Picking

        follow_preferences()
        _SESSIONS[viewer] = session = Session(viewer)
        _close_with_window(viewer, session)
        session.picking = Picking(session)
        session.in_view = OneInView(session)
    return _SESSIONS[viewer]


def _close_with_window(viewer: napari.Viewer, session: Session) -> None:
    window = getattr(viewer, "window", None)
    if window is not None:
        from napari_xcebra.widgets.closing import AskBeforeClosing

        window._qt_window.destroyed.connect(session.close)
        AskBeforeClosing(session, window._qt_window)
