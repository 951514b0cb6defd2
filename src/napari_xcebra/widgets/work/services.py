"""Builds and owns the services of a window, one of each."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from qtpy.QtWidgets import QWidget

from napari_xcebra.widgets.controls.accessible import attend_to_docks
from napari_xcebra.widgets.controls.dock_opening import keep_places, open_dock
from napari_xcebra.widgets.controls.napari_window import main_window, real_viewer
from napari_xcebra.widgets.layers import layers
from napari_xcebra.widgets.layers.camera import FollowFront
from napari_xcebra.widgets.layers.canvas_legend import ScaleBar
from napari_xcebra.widgets.layers.close_up import CloseUp
from napari_xcebra.widgets.layers.decision_painter import DecisionPainter
from napari_xcebra.widgets.layers.picking import Picking
from napari_xcebra.widgets.layers.score_painter import ScorePainter
from napari_xcebra.widgets.layers.time_text import TimeText
from napari_xcebra.widgets.state.cell_queue import CellQueue
from napari_xcebra.widgets.state.curations import Curations
from napari_xcebra.widgets.state.deciding import Deciding
from napari_xcebra.widgets.state.preferences import follow_preferences
from napari_xcebra.widgets.state.signals import Listeners
from napari_xcebra.widgets.state.state import State
from napari_xcebra.widgets.work.cell_menu import CellMenu
from napari_xcebra.widgets.work.closing import AskBeforeClosing
from napari_xcebra.widgets.work.job_queue import JobQueue, Processes
from napari_xcebra.widgets.work.movie_player import MoviePlayer
from napari_xcebra.widgets.work.reading import close_reader

if TYPE_CHECKING:
    import napari
    from qtpy.QtWidgets import QDockWidget

    from napari_xcebra.widgets.layers.lasso import Lasso
    from napari_xcebra.widgets.work.around_event import AroundPainter
    from napari_xcebra.widgets.work.cell_study import CellStudies
    from napari_xcebra.widgets.work.color_scale import ColorScale
    from napari_xcebra.widgets.work.runs.dimension_search import DimensionSearch
    from napari_xcebra.widgets.work.runs.retraining import Retraining
    from napari_xcebra.widgets.work.runs.run_jobs import RunJobs
    from napari_xcebra.widgets.work.runs.statistics_store import StatisticsStore
    from napari_xcebra.widgets.work.runs.sweeper import Sweeper
    from napari_xcebra.widgets.work.runs.training import Trainer
    from napari_xcebra.widgets.work.score_feed import ScoreFeed
    from napari_xcebra.widgets.work.time_painter import TimePainter


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
            AskBeforeClosing(self.at_stake, window)
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
        from napari_xcebra.widgets.work.time_painter import TimePainter

        return TimePainter(self.state, self.scores_over_time)

    @cached_property
    def color_scale(self) -> ColorScale:
        """What the colours on the canvas mean."""
        from napari_xcebra.widgets.work.color_scale import ColorScale

        return ColorScale(self.state, self.painter, self.time_painter, self.around_event)

    @cached_property
    def studies(self) -> CellStudies:
        """Reads what a cell is judged by."""
        from napari_xcebra.widgets.work.cell_study import CellStudies

        return CellStudies(self.state)

    @cached_property
    def lasso(self) -> Lasso:
        """Draws around cells."""
        from napari_xcebra.widgets.layers.lasso import Lasso

        return Lasso(self.state)

    # ------------------------------------------------------------ work

    @cached_property
    def run_jobs(self) -> RunJobs:
        """Scores, tests and repeats runs."""
        from napari_xcebra.widgets.work.runs.run_jobs import RunJobs

        return RunJobs(self.state, self.jobs)

    @cached_property
    def training(self) -> Trainer:
        """Trains runs."""
        from napari_xcebra.widgets.work.runs.training import Trainer

        _ = self.color_scale  # maps so far are painted, too
        return Trainer(self.state, self.processes, self.painter)

    @cached_property
    def retraining(self) -> Retraining:
        """Trains again on the accepted cells."""
        from napari_xcebra.widgets.work.runs.retraining import Retraining

        return Retraining(self.state, self.curations, self.painter, self.training)

    @cached_property
    def statistics(self) -> StatisticsStore:
        """Single-cell statistics of runs."""
        from napari_xcebra.widgets.work.runs.statistics_store import StatisticsStore

        return StatisticsStore(self.state, self.jobs)

    @cached_property
    def scores_over_time(self) -> ScoreFeed:
        """Scores frame by frame."""
        from napari_xcebra.widgets.work.score_feed import ScoreFeed

        return ScoreFeed(self.processes)

    @cached_property
    def around_event(self) -> AroundPainter:
        """Scores by the time from an event."""
        from napari_xcebra.widgets.work.around_event import AroundPainter

        return AroundPainter(self.state, self.jobs)

    @cached_property
    def dimension_search(self) -> DimensionSearch:
        """Tries numbers of latents."""
        from napari_xcebra.widgets.work.runs.dimension_search import DimensionSearch

        return DimensionSearch(self.state, self.jobs)

    @cached_property
    def sweeper(self) -> Sweeper:
        """Runs sweeps."""
        from napari_xcebra.widgets.work.runs.sweeper import Sweeper

        return Sweeper(self.processes)


_SERVICES: WeakKeyDictionary[Any, Services] = WeakKeyDictionary()


def services_of(viewer: napari.Viewer) -> Services:
    """The services of a viewer, also by a proxy of it; made when first asked for."""
    viewer = real_viewer(viewer)
    if viewer not in _SERVICES:
        _SERVICES[viewer] = Services(viewer)
    return _SERVICES[viewer]
