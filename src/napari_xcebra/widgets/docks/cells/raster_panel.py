"""Shows the traces of all cells at once, sorted, with behaviour above them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from napari_xcebra.attribution.single_cell.peaks import preferred_values
from napari_xcebra.attribution.single_cell.tuning import columns_of
from napari_xcebra.jobs import tasks
from napari_xcebra.recording import Recording
from napari_xcebra.recording.overview.cell_order import INSTALL, by_correlation, has_rastermap
from napari_xcebra.recording.overview.raster import Raster, raster_of
from napari_xcebra.widgets.controls.boxes import fill, small_box
from napari_xcebra.widgets.docks.cells.behavior_choice import BehaviorChoice
from napari_xcebra.widgets.docks.cells.panel import LookedAt, Panel
from napari_xcebra.widgets.docks.cells.time_row import TimeRow
from napari_xcebra.widgets.plots.plot_style import ColorKey, sequential_map
from napari_xcebra.widgets.plots.raster_plot import RasterPlot, z_limits
from napari_xcebra.widgets.services.jobs import JobQueue, Processes, Work

MOST_VALUES = 8_000_000
"""Values of the traces by which cells are sorted: enough to tell them apart."""
FILE, SCORE, PEAK, CORRELATION, RASTERMAP = "file", "score", "peak", "correlation", "rastermap"
HELP = (
    "Each row is an accepted cell, in standard deviations from its mean (z).\nClick: select the "
    "cell and go to that moment; with Ctrl, add it. Wheel: zoom time. Ctrl + wheel: zoom cells. "
    "Shift + wheel: scroll cells."
)
SORT_HELP = "How the cells are sorted, from top to bottom."


class RasterPanel(Panel):
    """The panel of the Cells dock behind the tab All cells."""

    def __init__(self, processes: Processes, behavior: BehaviorChoice) -> None:
        self.plot = RasterPlot()
        super().__init__(self.plot)
        self.plot.setToolTip(HELP)
        self.plot.setAccessibleName("Traces of all cells")
        self.sort = small_box(SORT_HELP)
        self.sort.setAccessibleName("Sort cells by")
        self.key = self.plot.key = ColorKey()
        self.time = TimeRow(self.plot)
        self.behavior = behavior
        self.time.readout.hide()  # the canvas tells it, and the axis
        self.controls.addWidget(self.sort, 3)
        self.controls.addWidget(behavior.button())
        self.controls.addWidget(self.key, 2)
        self.controls.addWidget(self.time)
        self._own_order = False
        self._of: tuple[Recording, Raster, tuple[float, float]] | None = None
        self._orders: dict[str, np.ndarray] = {}
        self._jobs = JobQueue(processes, latest=True)
        self.sort.activated.connect(lambda _: self._choose_order())
        behavior.changed.connect(self._show_lanes)
        self.plot.frame_chosen.connect(self.frame_chosen)
        self.plot.cell_chosen.connect(self.cell_chosen)

    def show_frame(self, frame: int) -> None:
        """Put the cursor on a frame."""
        if self._looked is not None:
            self.plot.move_cursor(frame)

    def close_feed(self) -> None:
        """Stop computing."""
        super().close_feed()
        self._of = None
        self._jobs.close()

    def _refresh(self) -> None:
        looked = self._looked
        self.offer_controls(looked is not None)
        if looked is None:
            self.say("Open a recording in the Recording dock to see its cells.")
            return
        self.plot.follow_style(looked.style)
        self._fill_orders(looked)
        self._show_lanes()
        self._show_raster(looked)

    def _show_lanes(self) -> None:
        if not self._stale:
            self.plot.show_lanes(self.behavior.lanes)

    # ------------------------------------------------------------ reading

    def _raster(self, looked: LookedAt) -> Raster | None:
        """All traces of the recording, if they have been averaged."""
        if self._of is None or self._of[0].traces is not looked.recording.traces:
            return None
        before, raster, limits = self._of
        if not _same_behavior(before, looked.recording):
            self._orders = {by: o for by, o in self._orders.items() if not by.startswith(PEAK)}
        self._of = looked.recording, raster, limits
        return raster

    def _show_raster(self, looked: LookedAt) -> None:
        if self._raster(looked) is not None:
            self._show_order()
            return
        recording, self._of, self._orders = looked.recording, None, {}
        self.say(f"Averaging the traces of {recording.n_cells:,} cells …")

        def work(stop: Callable[[], bool]) -> tuple[Recording, Raster, tuple[float, float]]:
            raster = raster_of(recording, stop=stop)
            return recording, raster, z_limits(raster)

        def done(found: tuple[Recording, Raster, tuple[float, float]]) -> None:
            self._of = found
            self._show_order()

        self._compute(work, done)

    # ------------------------------------------------------------ sorting

    def _fill_orders(self, looked: LookedAt) -> None:
        """Offer what the cells can be sorted by; by score as soon as there are scores."""
        orders = []
        if looked.scores is not None:
            orders.append((f"{looked.factor} score", SCORE))
        for column in columns_of(looked.recording, looked.variables):
            orders.append((f"tuning peak: {column.name}", f"{PEAK} {column.name}"))
        orders.append(("correlation", CORRELATION))
        if has_rastermap():
            orders.append((RASTERMAP, RASTERMAP))
        orders.append(("number", FILE))
        values = [value for _, value in orders]
        chosen = self.sort.currentData()
        if not self._own_order or chosen not in values:
            chosen = SCORE if SCORE in values else CORRELATION
        fill(self.sort, [(f"by {name}", value) for name, value in orders], chosen)
        more = "" if has_rastermap() else f"\nFor rastermap: {INSTALL}"
        self.sort.setToolTip(SORT_HELP + more)

    def _choose_order(self) -> None:
        self._own_order = True
        if self._looked is not None and self._raster(self._looked) is not None:
            self._show_order()

    def _show_order(self) -> None:
        """Draw the cells in the order that is chosen, once it is known."""
        looked = self._looked
        raster = self._raster(looked) if looked else None
        if looked is None or raster is None:
            return
        by = self.sort.currentData()
        if by == FILE:
            self._draw(looked, raster, np.arange(looked.recording.n_cells))
        elif by == SCORE and looked.scores is not None:
            self._draw(looked, raster, np.argsort(-np.asarray(looked.scores), kind="stable"))
        elif by in self._orders:
            self._draw(looked, raster, self._orders[by])
        else:
            self._find_order(looked, raster, by)

    def _find_order(self, looked: LookedAt, raster: Raster, by: str) -> None:
        recording = looked.recording
        self.say("Sorting the cells …")

        def done(order: np.ndarray) -> None:
            self._orders[by] = order
            self._show_order()

        if by == RASTERMAP:
            wanted = self._ask()
            self._jobs.ask(
                Work(
                    "rastermap",
                    tasks.RASTERMAP(raster.means(MOST_VALUES)),
                    lambda order: done(order) if wanted() else None,
                    say=lambda said, *_: self.say(said) if wanted() else None,
                )
            )
        elif by == CORRELATION:
            self._compute(lambda _: by_correlation(raster.means(MOST_VALUES)), done)
        else:
            name = by.removeprefix(f"{PEAK} ")
            column = next(c for c in columns_of(recording, looked.variables) if c.name == name)
            self._compute(
                lambda stop: np.argsort(preferred_values(recording, column, stop), kind="stable"),
                done,
            )

    def _draw(self, looked: LookedAt, raster: Raster, order: np.ndarray) -> None:
        accepted = np.asarray(looked.recording.accepted)
        order = order[accepted[order]] if accepted.any() else order
        assert self._of is not None
        limits, style = self._of[2], looked.style
        ids = np.asarray(looked.recording.cell_ids)
        marks = {cell: (str(ids[cell]), style.line(i)) for i, cell in enumerate(looked.cells)}
        self.show_view()
        self.plot.show_raster(raster, order, looked.recording.rate, limits, marks, style)
        low, high = limits
        self.key.show_key("z", sequential_map(), [f"{low:g}", "z", f"{high:g}"], style)


def _same_behavior(one: Recording, other: Recording) -> bool:
    """Whether cells have the same tuning in both."""
    return one is other or (
        one.behavior.keys() == other.behavior.keys()
        and all(one.behavior[name] is other.behavior[name] for name in one.behavior)
        and np.array_equal(np.asarray(one.excluded), np.asarray(other.excluded))
    )
