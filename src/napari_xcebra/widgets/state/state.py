"""Holds what a window is about: recordings and their layers, runs, what is shown, selection, time.

Every layer of ours carries one entry in ``layer.metadata``, under the key ``napari-xcebra``:
``version`` (of this entry), ``role`` (what the layer shows), ``source`` (where the recording came
from), ``token`` (the same for all layers of a recording), and, by role, the recording itself or
the provenance of scores. Layers are found by it, whatever the user calls them.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal, Protocol
from uuid import uuid4
from weakref import WeakValueDictionary, ref

import numpy as np

from napari_xcebra.files import name_of
from napari_xcebra.recording import Recording
from napari_xcebra.runs import Run, free_name
from napari_xcebra.widgets.state.preferences import preferred_colormap
from napari_xcebra.widgets.state.shown import Shown, View, painted_map
from napari_xcebra.widgets.state.signals import OfState, Signal
from napari_xcebra.workspace_file import Opened, WorkspaceFile

if TYPE_CHECKING:
    import napari

    from napari_xcebra.attribution import Attribution
    from napari_xcebra.io.opening import Opening
    from napari_xcebra.learn import Fit
    from napari_xcebra.recording import Recording
    from napari_xcebra.widgets.state.shown import LiveRun
    from napari_xcebra.workspace_file import Opened


KEY = "napari-xcebra"
VERSION = 1
Role = Literal[
    "image",
    "movie",
    "activity",
    "outlines",
    "cells",
    "scores",
    "scores over time",
    "scores around an event",
    "property",
    "decisions",
    "selection",
    "close-up",
]
LayerTuple = tuple[Any, dict[str, Any], str]


def metadata(role: Role, recording: Recording, token: str = "", **more: Any) -> dict[str, Any]:
    """Entry of a layer of ours."""
    about = {"version": VERSION, "role": role, "source": recording.source, "token": token}
    return {KEY: about | more}


def role_of(layer: Any) -> Role | None:
    """What a layer of ours shows; None for any other layer."""
    return shown_by(layer.metadata)[0]


def shown_by(metadata: dict[str, Any]) -> tuple[Role | None, str]:
    """What a layer with this metadata shows, and which one of several."""
    entry = metadata.get(KEY)
    return (entry.get("role"), entry.get("shows", "")) if isinstance(entry, dict) else (None, "")


def _token_of(layer: LayerTuple) -> str:
    """Token of a layer of `recording_layers`."""
    return layer[1]["metadata"][KEY]["token"]


def layers_of(viewer: Any, opened: Opened) -> list[Any]:
    """Layers that belong to a recording."""
    return [
        layer
        for layer in viewer.layers
        if role_of(layer) and layer.metadata[KEY].get("token") == opened.token
    ]


def _clean_names(viewer: Any, opened: Opened) -> None:
    """Take away the numbers that napari put after names that another recording had."""
    for layer in layers_of(viewer, opened):
        layer.name = re.sub(r" \[\d+\]$", "", layer.name)


def is_copy(layer: Any) -> bool:
    """Whether a layer is a copy of the background, made for a second view."""
    return role_of(layer) == "image" and bool(layer.metadata[KEY].get("second"))


class _Drawing(Protocol):
    """Draws recordings in a viewer; handed to the state, which does not draw itself."""

    def add_missing(self, viewer: Any, opened: Opened, layers: Sequence[LayerTuple] | None) -> None:
        """Add those layers of a recording that are not in the viewer."""

    def bring_up_to_date(self, viewer: Any, opened: Opened) -> None:
        """Update the layers after a change of a recording."""

    def take_out(self, viewer: Any, layers: Sequence[Any]) -> None:
        """Take layers out of the viewer."""

    def put_back(self, viewer: Any, layers: Sequence[Any]) -> None:
        """Put layers back that were taken out, in their order."""


class _LayerSets(OfState):
    """Knows the layers of all recordings, in the viewer or set aside."""

    def __init__(self, state: State, drawing: _Drawing) -> None:
        super().__init__(state)
        self._drawing = drawing
        # by token, of recordings that are not in front
        self._aside: dict[str, list[Any]] = {}
        # tokens of recordings that have come to the front before, and that changed since
        self._drawn: set[str] = set()
        self._outdated: set[str] = set()

    def is_aside(self, opened: Opened) -> bool:
        """Whether the layers of a recording are set aside."""
        return opened.token in self._aside

    def bring(self, opened: Opened | None, layers: Sequence[LayerTuple] | None = None) -> None:
        """Set the layers of all other recordings aside, and put those of this one back.

        When it comes for the first time, its layers are made; `layers` are those of
        `recording_layers`, where they were made already.
        """
        viewer = self.state.viewer
        for other in self.state.opened:
            if other is not opened and not self.is_aside(other):
                own = layers_of(viewer, other)
                self._aside[other.token] = [layer for layer in own if not is_copy(layer)]
                self._drawing.take_out(viewer, own)
        if opened is None:
            return
        self._drawing.put_back(viewer, self._aside.pop(opened.token, []))
        if opened.token not in self._drawn:
            self.add(opened, layers)
        if opened.token in self._outdated:
            self._outdated.discard(opened.token)
            self._drawing.bring_up_to_date(viewer, opened)

    def add(self, opened: Opened, layers: Sequence[LayerTuple] | None = None) -> None:
        """Add those of the images, activity and cells of a recording that are not in the viewer."""
        self._drawn.add(opened.token)
        self._drawing.add_missing(self.state.viewer, opened, layers)

    def adopt(self, opened: Opened) -> None:
        """Take over layers that somebody else added to the viewer."""
        self._drawn.add(opened.token)

    def tidy(self, opened: Opened) -> None:
        """Take away the numbers that napari gave to names that another recording had."""
        _clean_names(self.state.viewer, opened)

    def update(self, opened: Opened) -> None:
        """Update the layers of a recording that was changed, once it is in front."""
        if opened is self.state.current:
            self._drawing.bring_up_to_date(self.state.viewer, opened)
        else:
            self._outdated.add(opened.token)

    def of(self, opened: Opened | None, *roles: Role) -> list[Any]:
        """Layers of a recording, also while it is not in front; those of some roles, if given."""
        if opened is None:
            return []
        aside = self._aside.get(opened.token)
        own = layers_of(self.state.viewer, opened) if aside is None else list(aside)
        return [layer for layer in own if role_of(layer) in roles] if roles else own

    def one(self, opened: Opened | None, role: Role) -> Any | None:
        """The first layer of a recording that has this role; None if there is none."""
        return next(iter(self.of(opened, role)), None)

    def lacks_some(self, opened: Opened) -> bool:
        """Whether layers of a recording were removed from the viewer."""
        wanted = {"cells", "activity"} | ({"image"} if opened.recording.images else set())
        wanted |= {"movie"} if opened.recording.movie is not None else set()
        return not wanted <= {role_of(layer) for layer in self.of(opened)}

    def put(self, layer: Any, place: int | None = None) -> None:
        """Insert a layer of a recording into the viewer, above the others unless told where.

        Wherever layers of a recording are made, this adds them. One of a recording that is not in
        front waits with its others, and one of a closed recording is dropped.
        """
        token = layer.metadata[KEY]["token"]
        owner = next((opened for opened in self.state.opened if opened.token == token), None)
        if owner is None:
            return
        if self.is_aside(owner):
            self._aside[token].append(layer)
        else:
            layers = self.state.viewer.layers
            layers.insert(len(layers) if place is None else place, layer)

    def remove(self, opened: Opened, layer: Any) -> None:
        """Remove a layer of a recording, also if it is not in front."""
        if self.is_aside(opened):
            self._aside[opened.token].remove(layer)
        else:
            self.state.viewer.layers.remove(layer)

    def forget(self, opened: Opened) -> None:
        """Remove all layers of a recording that is not in front, copies by the user included."""
        if own := layers_of(self.state.viewer, opened):
            self._drawing.take_out(self.state.viewer, own)
        self._aside.pop(opened.token, None)
        self._outdated.discard(opened.token)


IN_TIME = ("movie", "activity", "scores over time", "scores around an event")
"""Roles of layers that change with the slider."""


class _TimeSlider(OfState):
    """Follows the slider and moves it; keeps the frame itself where no layer has frames.

    Emits `frame_changed` of the state.
    """

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self.frame = 0
        self._held = False
        state.viewer.dims.events.current_step.connect(self._follow)
        state.viewer.layers.events.inserted.connect(_keep_thumbnail)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Follow nothing while layers come and go, at which napari moves the slider."""
        before, self._held = self._held, True
        try:
            yield
        finally:
            self._held = before

    def begin_at(self, frame: int) -> bool:
        """Put the slider of a recording that came to the front on a frame; whether it changed."""
        before = self.frame
        with self.held():
            self.go_to(frame)
        self.frame = self.there
        return self.frame != before

    def go_to(self, frame: int) -> None:
        """Move to a frame, or to the first or last where there is no such frame."""
        recording = self.state.recording
        if recording is None:
            return
        frame = int(np.clip(frame, 0, recording.n_frames - 1))
        axis = self._axis
        if axis is not None:
            self.state.viewer.dims.set_current_step(axis, frame)
        else:
            self._take(frame)

    @property
    def _axis(self) -> int | None:
        """Axis of the viewer that counts the frames; None if no layer with frames is there."""
        state = self.state
        if state.current is None:
            return None
        axis = state.viewer.dims.ndim - state.current.labels.ndim - 1
        return axis if axis >= 0 else None

    @property
    def there(self) -> int:
        """Where the slider is in the current recording, which may be shorter than another one."""
        axis, recording = self._axis, self.state.recording
        if recording is None:
            return self.frame
        at = self.frame if axis is None else int(self.state.viewer.dims.current_step[axis])
        return min(at, recording.n_frames - 1)

    def _follow(self) -> None:
        if not self._held:
            self._take(self.there)

    def _take(self, frame: int) -> None:
        if frame != self.frame:
            self.frame = frame
            self.state.frame_changed.emit(frame)


def _keep_thumbnail(inserted: Any) -> None:
    """Let a layer change without a word to napari's list of layers.

    For every new thumbnail napari paints the whole list, which takes a third of each frame.
    """
    layer = inserted.value
    if role_of(layer) in IN_TIME and not layer.events.thumbnail.blocked():
        layer.events.thumbnail.block()


NAMED = 3
"""Unsaved runs to name at most; of more, only the number is given."""


class _SavedRuns:
    """Knows runs by their fit, which a run keeps when it is renamed or scored once more."""

    def __init__(self) -> None:
        self._fits: WeakValueDictionary[int, Fit] = WeakValueDictionary()

    def mark(self, runs: Iterable[Run]) -> None:
        """Note runs that were just written, or come from a file."""
        for run in runs:
            self._fits[id(run.fit)] = run.fit

    def lacking(self, opened: Opened) -> list[Run]:
        """Runs of a recording that are not on disk."""
        return [run for run in opened.runs if id(run.fit) not in self._fits]

    def sentence(self, recordings: Sequence[Opened]) -> str:
        """The runs that would be lost with the window; empty if there are none."""
        names = [f"{run.name} of {each.name}" for each in recordings for run in self.lacking(each)]
        if not names:
            return ""
        which = ", ".join(names) if len(names) <= NAMED else f"{len(names)} runs"
        are = "is" if len(names) == 1 else "are"
        where = "Save in the Train dock, or File ▸ IO Utilities ▸ Save workspace"
        return f"{which} {are} not saved ({where})."


def collect_while_waiting() -> None:
    """Collect garbage now, while the user waits for something to open.

    With napari loaded this takes 0.2 s, and Python does it whenever there are enough new objects,
    mostly at the first layer that is added during training. Done now, it is not due by then.
    """
    gc.collect()


class State:
    """State of one viewer.

    One recording is in front: its layers are in the viewer, and those of the others are set aside.
    """

    leaving = Signal()
    """Another recording is about to come to the front."""
    front_changed = Signal()
    """Another recording is in front, or none: every view is emptied before it is filled anew."""
    recording_changed = Signal()
    """Another recording is current, the current one was changed, or one was opened or closed."""
    runs_changed = Signal()
    """A run of the current recording was added, changed, renamed or removed."""
    shown_changed = Signal()
    """What is painted is to change; `shown` says how."""
    live_changed = Signal()
    """The run that is being trained has a new map, or has come to its end."""
    selection_changed = Signal()
    """Other cells are selected."""
    frame_changed = Signal(int)
    """The time slider was moved to this frame."""
    closed = False
    """Whether the window is closed."""

    def __init__(self, viewer: napari.Viewer, drawing: _Drawing) -> None:
        self._viewer = ref(viewer)
        self.layers = _LayerSets(self, drawing)
        self.opened: list[Opened] = []
        self._current: Opened | None = None
        self._shown = Shown(colormap=preferred_colormap())
        self._live: LiveRun | None = None
        self._selection = np.zeros(0, np.int64)
        # by token, of recordings that are not in front
        self._views: dict[str, View] = {}
        self.saved_runs = _SavedRuns()
        self._slider = _TimeSlider(self)
        for layer in viewer.layers:
            self._adopt(layer)
        # when napari is done with the layer, as those of other recordings are taken out
        viewer.layers.events.inserted.connect(
            lambda event: self._adopt(event.value), position="last"
        )

    @property
    def viewer(self) -> napari.Viewer:
        """The viewer this state belongs to."""
        viewer = self._viewer()
        assert viewer is not None, "the viewer of this state was closed"
        return viewer

    @property
    def has_viewer(self) -> bool:
        """Whether the viewer still exists."""
        return self._viewer() is not None

    # ------------------------------------------------------------ recordings

    @property
    def current(self) -> Opened | None:
        """The recording in front, which the docks work on."""
        return self._current

    @current.setter
    def current(self, opened: Opened | None) -> None:
        if opened is not self._current:
            self._turn_to(opened)

    def _turn_to(self, opened: Opened | None, closing: Opened | None = None) -> None:
        """Bring a recording to the front with what was seen of it; close another, if given.

        Everything is that of the new one before anybody is told.
        """
        before, moved = self._current, False
        with self._slider.held():
            self._bring_to_front(opened)
            if opened is not before:
                if before is not None:
                    self._views[before.token] = self._view_of(before)
                self._current = opened
            if closing is not None:
                self.opened.remove(closing)
                self._views.pop(closing.token, None)
                self.layers.forget(closing)
        if opened is not before:
            kept = self._views.pop(opened.token, None) if opened else None
            view = kept or View(Shown(colormap=self._shown.colormap))
            self._shown, self._selection = view.shown, view.selection
            moved = self._slider.begin_at(view.frame)
            self.front_changed.emit()
        self.recording_changed.emit()
        self.runs_changed.emit()
        self.selection_changed.emit()
        self.shown_changed.emit()
        if moved:
            self.frame_changed.emit(self.frame)

    def _bring_to_front(
        self, opened: Opened | None, layers: Sequence[LayerTuple] | None = None
    ) -> None:
        current = self._current
        if current not in (None, opened) and not self.layers.is_aside(current):
            self.leaving.emit()
        self.layers.bring(opened, layers)

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
            token = _token_of(layers[0]) if layers else uuid4().hex
            opened = self._register(recording, token, opening)
        with self._slider.held():
            self._bring_to_front(opened, layers)
            if self.layers.one(opened, "cells") is None:
                self.layers.add(opened, layers)
        self.current = opened
        return opened

    def change_recording(self, recording: Recording, of: Opened | None = None) -> None:
        """Replace a recording by a changed copy: other kinds, traces, accepted cells.

        That of `of`, which need not be in front; else the current one.
        """
        opened = of or self._current
        if opened not in self.opened:
            return
        opened.recording = recording
        for drawn in ("labels", "centers", "shapes"):
            opened.__dict__.pop(drawn, None)
        self.layers.update(opened)
        if opened is self._current:
            self.recording_changed.emit()

    def forget(self, opened: Opened) -> None:
        """Close a recording and remove its layers."""
        others = [other for other in self.opened if other is not opened]
        following = others[-1] if others else None
        self._turn_to(following if opened is self._current else self._current, closing=opened)

    def _adopt(self, layer: Any) -> None:
        """Adopt a recording that came with a layer: from a reader, a sample or a script."""
        if role_of(layer) != "cells":
            return
        entry = layer.metadata[KEY]
        if any(opened.token == entry.get("token") for opened in self.opened):
            return
        recording = entry.get("value")
        if isinstance(recording, Recording):
            opened = self._register(recording, entry["token"], entry.get("opening"))
            self.layers.adopt(opened)
            self.current = opened
            self.layers.tidy(opened)
            collect_while_waiting()

    def _register(self, recording: Recording, token: str, opening: Opening | None) -> Opened:
        wanted = name_of(str(opening.path) if opening else recording.source)
        name = free_name(wanted, [opened.name for opened in self.opened])
        opened = Opened(name, recording, token, opening)
        self.opened.append(opened)
        return opened

    # ------------------------------------------------------------ on disk

    def as_file(self) -> WorkspaceFile:
        """Recordings, runs and view settings as they are now, to be written in any thread."""
        current = self.opened.index(self._current) if self._current else -1
        views = [self._view_of(opened).as_dict() for opened in self.opened]
        now = [replace(opened, runs=list(opened.runs)) for opened in self.opened]
        return WorkspaceFile(now, current, views)

    def _view_of(self, opened: Opened) -> View:
        if opened is self._current:
            return View(self._shown, self._selection, self.frame)
        return self._views.get(opened.token, View(Shown()))

    def restore(self, saved: WorkspaceFile, layers: Sequence[LayerTuple] | None = None) -> None:
        """Show what `load_workspace` read, beside what is open already.

        `layers` are those of the recording in front, where they were made already.
        """
        for opened, shown in zip_longest(saved.opened, saved.shown[: len(saved.opened)]):
            self.saved_runs.mark(opened.runs)
            opened.name = free_name(opened.name, [other.name for other in self.opened])
            self.opened.append(opened)
            self._views[opened.token] = View.from_dict(shown or {}, opened.recording.n_cells)
        if (front := saved.front) is not None:
            self.show(front.recording, layers=layers)

    # ------------------------------------------------------------ runs

    @property
    def runs(self) -> list[Run]:
        """Runs of the current recording, oldest first."""
        return list(self._current.runs) if self._current else []

    def add_run(self, run: Run, to: Opened | None = None) -> Run:
        """Add a run, under another name if its own is taken; returns it as it was added.

        `to` may be another recording than the one in front.
        """
        opened = to or self._current
        assert opened is not None, "a run needs a recording"
        run = replace(run, name=free_name(run.name, [r.name for r in opened.runs]))
        opened.runs.append(run)
        if opened is self._current:
            self.runs_changed.emit()
        return run

    def replace_run(self, name: str, run: Run) -> None:
        """Replace a run by a changed one (renamed, or with another attribution)."""
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
        """The run that is being trained on the current recording, as far as it has got."""
        live = self._live
        return live if live is not None and live.opened is self._current else None

    def show_live(self, live: LiveRun | None) -> None:
        """Show the latest map of the run in training; None once it has finished or failed."""
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
        painted = painted_map(self)
        return None if painted is None else painted.scores

    # ------------------------------------------------------------ selection and time

    @property
    def selection(self) -> np.ndarray:
        """Positions of the selected cells in the recording, in the order of selecting."""
        return self._selection

    def select(self, cells: Iterable[int], *, toggle: bool = False) -> None:
        """Select cells by position; with `toggle`, change these and keep the others."""
        there = range(self.recording.n_cells if self.recording else 0)
        chosen = [cell for cell in dict.fromkeys(int(cell) for cell in cells) if cell in there]
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
