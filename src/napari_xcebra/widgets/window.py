"""Builds what the docks of a window share, one of each, and asks before it is closed on work."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakMethod

from qtpy.QtCore import QEvent, QObject, Qt, QTimer
from qtpy.QtWidgets import QMessageBox, QWidget

from napari_xcebra.support.leftovers import give_back_memory
from napari_xcebra.widgets.controls.accessible import attend_to_docks
from napari_xcebra.widgets.controls.napari_window import (
    keep_places,
    main_window,
    open_dock,
    real_viewer,
    viewer_part,
)
from napari_xcebra.widgets.layers import layers
from napari_xcebra.widgets.layers.camera import CloseUp, FollowFront
from napari_xcebra.widgets.layers.layers import DecisionPainter
from napari_xcebra.widgets.layers.legend import ScaleBar, TimeText
from napari_xcebra.widgets.layers.mouse import CellMenu, Picking
from napari_xcebra.widgets.layers.movie import MoviePlayer
from napari_xcebra.widgets.layers.scores import ScorePainter
from napari_xcebra.widgets.services.jobs import JobQueue, Processes
from napari_xcebra.widgets.services.reading import close_reader
from napari_xcebra.widgets.state.cell_queue import CellQueue, Deciding
from napari_xcebra.widgets.state.curations import Curations
from napari_xcebra.widgets.state.preferences import follow_preferences
from napari_xcebra.widgets.state.signals import Listeners
from napari_xcebra.widgets.state.state import State

if TYPE_CHECKING:
    import napari
    from qtpy.QtWidgets import QDockWidget

    from napari_xcebra.widgets.layers.legend import ColorScale
    from napari_xcebra.widgets.layers.mouse import Lasso
    from napari_xcebra.widgets.layers.scores_over_time import AroundPainter, TimePainter
    from napari_xcebra.widgets.services.reading import CallChecks, CellStudies
    from napari_xcebra.widgets.services.run_jobs import (
        DimensionSearch,
        RunJobs,
        StatisticsStore,
        Sweeper,
    )
    from napari_xcebra.widgets.services.scores_over_time import ScoreFeed
    from napari_xcebra.widgets.services.training import Retraining, Trainer


class Services:
    """Everything that the docks of one viewer share, each built from what it needs.

    What paints, or takes long to import, is made when first asked for.
    """

    def __init__(self, viewer: napari.Viewer) -> None:
        follow_preferences()
        self.state = state = State(viewer, layers)
        self.processes = Processes()
        self.jobs = JobQueue(self.processes)
        """What is computed for runs, one thing after the other."""
        self.curations = Curations(state)
        self.decisions = DecisionPainter(state, self.curations)
        self.queue = CellQueue(state, self.curations)
        self.deciding = Deciding(state, self.curations, self.queue)
        self.picking = Picking(state, self.curations)
        self.cell_menu = CellMenu(self.picking, self.deciding, self.open_dock)
        self.time_text = TimeText(state)
        self.movie = MoviePlayer(state)
        self.camera = FollowFront(state)
        self.close_up = CloseUp(state, self.curations, self.queue)
        self.scale_bar = ScaleBar(state)
        state.front_changed.connect(self._empty_views)
        window = main_window(viewer)
        if window is not None:
            window.destroyed.connect(self.close)
            _AskBeforeClosing(self.at_stake, window)
            attend_to_docks(window)
            keep_places(window)

    def close(self) -> None:
        """End the background processes and let others have the journals."""
        self.state.closed = True
        self.processes.close()
        self.curations.close()
        if self.state.has_viewer:  # a window that was deleted may have outlived it
            close_reader(self.state.viewer)

    def _empty_views(self) -> None:
        """Let everything in the window forget the recording that was in front.

        A view says how in `forget_recording`; none listens for itself, and none can be left out.
        """
        window, views = main_window(self.state.viewer), Listeners()
        for view in window.findChildren(QWidget) if window is not None else ():
            if (forget := getattr(view, "forget_recording", None)) is not None:
                views.connect(forget)
        views.emit()

    def at_stake(self) -> list[str]:
        """What would be lost with the window, a sentence each."""
        made = [self.__dict__[name] for name in ("training", "sweeper") if name in self.__dict__]
        at_work = sorted(queue.at_stake for queue in (self.jobs, *made) if queue.busy)
        return [*at_work, *filter(None, [self.state.saved_runs.sentence(self.state.opened)])]

    def open_dock(self, name: str) -> QDockWidget:
        """Open a dock, or bring it to the front."""
        return open_dock(self.state.viewer, name)

    # ------------------------------------------------------------ painting

    @cached_property
    def painter(self) -> ScorePainter:
        """Paints the map that is shown, from when it is first asked for."""
        return ScorePainter(self.state)

    @cached_property
    def time_painter(self) -> TimePainter:
        """Paints the scores at the frame of the time slider."""
        from napari_xcebra.widgets.layers.scores_over_time import TimePainter

        return TimePainter(self.state, self.scores_over_time)

    @cached_property
    def color_scale(self) -> ColorScale:
        """What the colours on the canvas mean."""
        from napari_xcebra.widgets.layers.legend import ColorScale

        return ColorScale(self.state, self.painter, self.time_painter, self.around_event)

    @cached_property
    def studies(self) -> CellStudies:
        """Reads what a cell is judged by."""
        from napari_xcebra.widgets.services.reading import CellStudies

        return CellStudies(self.state)

    @cached_property
    def checks(self) -> CallChecks:
        """Says which calls of the extractor are doubtful, and proposes decisions."""
        from napari_xcebra.widgets.services.reading import CallChecks

        return CallChecks(self.state, self.curations, self.queue)

    @cached_property
    def lasso(self) -> Lasso:
        """Draws around cells."""
        from napari_xcebra.widgets.layers.mouse import Lasso

        return Lasso(self.state)

    # ------------------------------------------------------------ work

    @cached_property
    def run_jobs(self) -> RunJobs:
        """Scores, tests and repeats runs."""
        from napari_xcebra.widgets.services.run_jobs import RunJobs

        return RunJobs(self.state, self.jobs)

    @cached_property
    def training(self) -> Trainer:
        """Trains runs."""
        from napari_xcebra.widgets.services.training import Trainer

        _ = self.color_scale  # maps so far are painted, too
        return Trainer(self.state, self.processes, self.painter)

    @cached_property
    def retraining(self) -> Retraining:
        """Trains again on the accepted cells."""
        from napari_xcebra.widgets.services.training import Retraining

        return Retraining(self.state, self.curations, self.painter, self.training)

    @cached_property
    def statistics(self) -> StatisticsStore:
        """Single-cell statistics of runs."""
        from napari_xcebra.widgets.services.run_jobs import StatisticsStore

        return StatisticsStore(self.state, self.jobs)

    @cached_property
    def scores_over_time(self) -> ScoreFeed:
        """Scores frame by frame."""
        from napari_xcebra.widgets.services.scores_over_time import ScoreFeed

        return ScoreFeed(self.processes)

    @cached_property
    def around_event(self) -> AroundPainter:
        """Scores by the time from an event."""
        from napari_xcebra.widgets.layers.scores_over_time import AroundPainter

        return AroundPainter(self.state, self.jobs)

    @cached_property
    def dimension_search(self) -> DimensionSearch:
        """Tries numbers of latents."""
        from napari_xcebra.widgets.services.run_jobs import DimensionSearch

        return DimensionSearch(self.state, self.jobs)

    @cached_property
    def sweeper(self) -> Sweeper:
        """Runs sweeps."""
        from napari_xcebra.widgets.services.run_jobs import Sweeper

        return Sweeper(self.processes)


_SERVICES: WeakKeyDictionary[Any, Services] = WeakKeyDictionary()


def services_of(viewer: napari.Viewer) -> Services:
    """The services of a viewer, also by a proxy of it; made when first asked for."""
    viewer = real_viewer(viewer)
    if viewer not in _SERVICES:
        _SERVICES[viewer] = Services(viewer)
    return _SERVICES[viewer]


LATER = 1000
"""Milliseconds after which what is deleted with a window is gone."""


class _AskBeforeClosing(QObject):
    """Asks once before the user closes a window with work under way or unsaved runs.

    napari also asks whether to close, but does not know what is under way. A script that closes
    its viewer is not asked. `at_stake`, a bound method, returns what would be lost, as sentences.
    """

    def __init__(self, at_stake: Callable[[], list[str]], window: Any) -> None:
        super().__init__(window)
        self._at_stake = WeakMethod(at_stake)
        self._window: Any = window
        self._agreed = False
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        """Keep the window open if the user says so."""
        if event is None or event.type() != QEvent.Type.Close:
            return False
        QTimer.singleShot(LATER, give_back_memory)
        ask = self._at_stake()
        at_stake = ask() if ask is not None else []
        # a script closes what is in the window before the window
        if self._agreed or not at_stake or not viewer_part(self._window).isVisible():
            return False
        self._agreed = self._ask(at_stake)
        if self._agreed and not event.spontaneous():
            return False
        event.ignore()
        if self._agreed:
            # as a program does it: napari would ask a second time
            QTimer.singleShot(0, self._window.close)
        return True

    def _ask(self, at_stake: list[str]) -> bool:
        question = QMessageBox(self._window)
        question.setIcon(QMessageBox.Icon.Question)
        question.setWindowTitle("Close the window?")
        question.setTextFormat(Qt.TextFormat.PlainText)  # runs are named by users and files
        question.setText("\n".join(at_stake))
        question.setInformativeText("Close the window anyway?")
        close = question.addButton("Close", QMessageBox.ButtonRole.DestructiveRole)
        stay = question.addButton("Keep it open", QMessageBox.ButtonRole.RejectRole)
        question.setDefaultButton(stay)
        question.exec()
        return question.clickedButton() is close
