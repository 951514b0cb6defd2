"""Shows the tuning of the selected cells to a factor or a variable."""

from __future__ import annotations

from typing import cast, get_args

import numpy as np
from qtpy.QtWidgets import QLabel, QMenu

from napari_xcebra.attribution.single_cell.tuning import Spacing, Tuning, columns_of, tuning_to
from napari_xcebra.recording import Recording
from napari_xcebra.widgets.controls.boxes import small_box, small_button
from napari_xcebra.widgets.docks.cells.panel import LookedAt, Panel
from napari_xcebra.widgets.plots.tuning_plot import TuningPlot

SHOWN = ""
"""Entry that follows the factor that is painted."""
SPACINGS: dict[Spacing, str] = {
    "width": "Bins of equal width",
    "occupancy": "Bins visited equally often",
}
RESOLUTIONS = {0.5: "Coarse", 1.0: "Medium", 2.0: "Fine"}


class TuningPanel(Panel):
    """The panel in the middle of the Cells dock."""

    def __init__(self) -> None:
        self.plot = TuningPlot()
        super().__init__(self.plot)
        self.to = small_box("The factor or variable to plot tuning for.")
        self.spacing: Spacing = "width"
        self.resolution = 1.0
        self.bins_button = small_button("Bins", "How the variable is binned.", self._bins_menu())
        self.controls.addWidget(QLabel("Tuning to"))
        self.controls.addWidget(self.to, 1)
        self.controls.addWidget(self.bins_button)
        self.tuning: Tuning | None = None
        self.to.activated.connect(lambda _: self._measure())

    def _refresh(self) -> None:
        looked = self._looked
        self.offer_controls(looked is not None and bool(looked.recording.behavior))
        self._fill_choices()
        self._measure()

    # ------------------------------------------------------------ choices

    def _bins_menu(self) -> QMenu:
        menu = QMenu(self)
        for spacing in get_args(Spacing):
            action = menu.addAction(SPACINGS[spacing])
            action.triggered.connect(lambda _=False, s=spacing: self.cut(spacing=s))
        menu.addSeparator()
        for resolution, title in RESOLUTIONS.items():
            action = menu.addAction(title)
            action.triggered.connect(lambda _=False, r=resolution: self.cut(resolution=r))
        for action in menu.actions():
            action.setCheckable(not action.isSeparator())
        menu.aboutToShow.connect(lambda: self._tick(menu))
        return menu

    def _tick(self, menu: QMenu) -> None:
        now = {SPACINGS[self.spacing], RESOLUTIONS[self.resolution]}
        for action in menu.actions():
            action.setChecked(action.text() in now)

    def cut(self, spacing: Spacing | None = None, resolution: float | None = None) -> None:
        """Cut the variable into other bins."""
        self.spacing = spacing or self.spacing
        self.resolution = resolution or self.resolution
        self._measure()

    def _fill_choices(self) -> None:
        """Factors, then variables; the entry that was chosen stays if it is still there."""
        chosen = self.to.currentData()
        self.to.clear()
        looked = self._looked
        if looked is None:
            return
        why = "shown" if looked.run else "suggested"
        self.to.addItem(f"{looked.factor} ({why})" if looked.factor else "–", SHOWN)
        for name, variables in looked.factors.items():
            if variables:
                self.to.addItem(_described(name, variables), f"factor {name}")
        for name in looked.recording.behavior:
            self.to.addItem(name, f"variable {name}")
        self.to.setCurrentIndex(max(0, self.to.findData(chosen)))

    @property
    def variables(self) -> tuple[str, ...]:
        """Variables whose tuning is wanted."""
        looked = self._looked
        if looked is None:
            return ()
        kind, _, name = cast(str, self.to.currentData() or SHOWN).partition(" ")
        if kind == "variable":
            return (name,)
        return looked.factors.get(name if kind == "factor" else looked.factor, ())

    # ------------------------------------------------------------ measuring and drawing

    def _measure(self) -> None:
        looked, self._asked = self._looked, None
        if looked is None:
            self.say("")
            return
        self.plot.setBackground(looked.style.background)
        if sentence := self._what_to_do(looked):
            self.say(sentence)
            return
        cells = [cell for cell in looked.cells if cell in looked.activity]
        if not cells:
            return  # being read
        activity = [looked.activity[cell] for cell in cells]
        recording, variables = looked.recording, self.variables
        spacing, resolution = self.spacing, self.resolution
        self._compute(
            lambda _: _measured(recording, variables, activity, spacing, resolution),
            lambda tuning: self._draw(tuning, looked, cells),
        )

    def _what_to_do(self, looked: LookedAt) -> str:
        if not looked.recording.behavior:
            return "No behaviour: add a behaviour file in the Recording dock to see tuning."
        if not looked.cells:
            return "Click a cell in the image to see its tuning."
        if not self.variables:
            return f"The {looked.factor} factor has no variable: choose one above."
        return ""

    def _draw(self, tuning: Tuning, looked: LookedAt, cells: list[int]) -> None:
        self.tuning = tuning
        self.show_view()
        names, axis = [looked.name(cell) for cell in cells], looked.recording.origin.axis
        self.plot.show_tuning(tuning, names, looked.style, axis)
        variables = len(columns_of(looked.recording, self.variables))
        more = f"\nOnly the first 2 of its {variables} columns are drawn." if variables > 2 else ""
        self.plot.setToolTip(
            "Mean activity of the selected cells at each value. Shading and bars: standard "
            "error over blocks of time." + more
        )


def _measured(
    recording: Recording,
    variables: tuple[str, ...],
    activity: list[np.ndarray],
    spacing: Spacing,
    resolution: float,
) -> Tuning:
    columns = columns_of(recording, variables)[:2]
    used = ~np.asarray(recording.excluded)
    return tuning_to(columns, np.stack(activity, axis=1), used, spacing, resolution)


def _described(name: str, variables: tuple[str, ...]) -> str:
    return name if variables == (name,) else f"{name} ({', '.join(variables)})"
