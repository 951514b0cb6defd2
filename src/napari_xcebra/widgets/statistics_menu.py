"""Which single-cell statistics stand in the table of cells."""

from __future__ import annotations

from dataclasses import replace

from qtpy.QtWidgets import QMenu, QPushButton

from napari_xcebra.attribution.single_cell import STATISTICS
from napari_xcebra.widgets.session import Session
from napari_xcebra.widgets.statistics_store import applicable, help_on, statistics_of

HELP = "Columns of the table with what labs compute of single cells, for the same variables."


class StatisticsButton(QPushButton):
    """Button with a menu to tick statistics in; those that are ticked are computed.

    Parameters
    ----------
    session : Session
    """

    def __init__(self, session: Session) -> None:
        super().__init__("Statistics")
        self._session = session
        self.setToolTip(HELP)
        menu = QMenu(self)
        menu.setToolTipsVisible(True)
        self.entries = {}
        for name, statistic in STATISTICS.items():
            unit = f", {statistic.unit}" if statistic.unit else ""
            title = f"{name.replace('_', ' ').capitalize()} ({statistic.title}{unit})"
            action = menu.addAction(title)
            action.setCheckable(True)
            action.setToolTip(help_on(name))
            action.triggered.connect(lambda _=False: self._choose())
            self.entries[name] = action
        self.setMenu(menu)

    def show_shown(self) -> None:
        """Show what is ticked, and what can be for the factor that is shown.

        What is ticked is computed for whatever run is shown.
        """
        opened, run, shown = self._session.current, self._session.shown_run, self._session.shown
        if opened is None or run is None:
            return
        possible = applicable(opened.recording, run.fit.part(shown.factor).variables)
        for name, action in self.entries.items():
            action.setChecked(name in shown.statistics)
            action.setEnabled(name in possible)
        self.setEnabled(bool(possible))
        why = "" if possible else " This factor has no variable to compute them for."
        self.setToolTip(HELP + why)
        statistics_of(self._session).ask(opened, run, shown.statistics)

    def _choose(self) -> None:
        names = tuple(name for name, action in self.entries.items() if action.isChecked())
        opened, run = self._session.current, self._session.shown_run
        if opened is not None and run is not None:
            # also what was stopped before
            statistics_of(self._session).ask(opened, run, names, again=True)
        self._session.shown = replace(self._session.shown, statistics=names)
