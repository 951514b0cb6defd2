"""Chooses the factors to train: one row per factor."""

from __future__ import annotations

from collections.abc import Callable

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QMenu,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
    QToolButton,
    QWidget,
)
from superqt.utils import signals_blocked

from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.factors import Factor
from napari_xcebra.learn.data.suggestions import latents_for, suggested_factors, why_not
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.recording import Recording
from napari_xcebra.widgets.controls.boxes import PlainLabel, WholeBox, plain
from napari_xcebra.widgets.controls.layouts import in_column, in_row, reach_after

AskedFor = Callable[[], tuple[dict[str, Factor], FitSettings]]
"""Chosen factors and settings; raises `InputError` if they are invalid."""
NAME, VARIABLES, LATENTS = range(3)
ROW, MOST_ROWS = 30, 6


class FactorTable(QWidget):
    """Rows with a tick, a name, variables and a number of latents."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._recording: Recording | None = None
        self._table = QTableWidget(0, 3)
        self._table.setHorizontalHeaderLabels(["Factor", "Variables", "Latents"])
        for column, text in enumerate(
            (
                "Tick the factors to score cells for; double-click to rename.",
                "Behaviour variables of the factor; several are learned together.",
                "Dimensions of the embedding; usually as many as the variables have.",
            )
        ):
            self._table.horizontalHeaderItem(column).setToolTip(text)
        header = self._table.horizontalHeader()
        header.setSectionResizeMode(NAME, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(VARIABLES, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(LATENTS, QHeaderView.ResizeMode.ResizeToContents)
        self._table.verticalHeader().hide()
        self._table.verticalHeader().setDefaultSectionSize(ROW)
        self._table.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self._table.setToolTip("Tick the factors to score cells for.")
        self._table.itemChanged.connect(lambda _: self.changed.emit())
        self.left_out = PlainLabel(wrap=True)
        self._add = QPushButton("Add factor")
        self._add.setToolTip("Add a row for variables that belong together.")
        self._add.clicked.connect(self._add_empty)
        in_column(self._table, self.left_out, in_row(1, self._add), of=self)

    def show_recording(self, recording: Recording | None) -> None:
        """Suggest factors for a recording, keeping those that still make sense."""
        before = self._rows() if self._recording is not None else {}
        self._recording = recording
        self._table.setRowCount(0)
        if recording is not None:
            known = set(recording.behavior)
            kept = {n: row for n, row in before.items() if row[1] and set(row[1]) <= known}
            if kept and {v for _, names, _ in kept.values() for v in names} >= _usable(recording):
                for name, (ticked, names, latents) in kept.items():
                    self._add_row(name, names, latents, ticked)
            else:
                for name, factor in suggested_factors(recording).items():
                    self._add_row(name, list(factor.variables))
        self._add.setEnabled(bool(recording and recording.behavior))
        self._say_left_out()
        self._fit_height()
        self.changed.emit()

    def _say_left_out(self) -> None:
        behavior = self._recording.behavior if self._recording is not None else {}
        reasons = {name: why_not(variable) for name, variable in behavior.items()}
        names = [f"{name} ({reason})" for name, reason in reasons.items() if reason]
        self.left_out.setText(f"Left out: {', '.join(names)}.")
        self.left_out.setVisible(bool(names))

    @property
    def factors(self) -> dict[str, Factor]:
        """Ticked factors; raises `InputError` if they are invalid."""
        factors: dict[str, Factor] = {}
        for row in range(self._table.rowCount()):
            ticked, name, variables, latents = self._row(row)
            if not ticked:
                continue
            if not name:
                raise InputError("A ticked factor has no name: double-click it and type one.")
            if name in factors:
                raise InputError(f"Two factors are called {name!r}: rename one.")
            if not variables:
                raise InputError(f"Factor {name!r} has no variables: choose some in its row.")
            factors[name] = Factor(variables, latents)
        return factors

    def show_latents(self, shown: bool) -> None:
        """Show or hide the column with numbers of latents."""
        self._table.setColumnHidden(LATENTS, not shown)

    def tick(self, *names: str) -> None:
        """Tick these factors and no others."""
        for row in range(self._table.rowCount()):
            item = self._table.item(row, NAME)
            on = item.text() in names
            item.setCheckState(Qt.CheckState.Checked if on else Qt.CheckState.Unchecked)

    def set_latents(self, name: str, latents: int) -> None:
        """Set the number of latents of a factor."""
        for row in range(self._table.rowCount()):
            if self._table.item(row, NAME).text().strip() == name:
                self._table.cellWidget(row, LATENTS).setValue(latents)

    def _rows(self) -> dict[str, tuple[bool, list[str], int | None]]:
        rows = [self._row(row) for row in range(self._table.rowCount())]
        return {name: (ticked, variables, latents) for ticked, name, variables, latents in rows}

    def _row(self, row: int) -> tuple[bool, str, list[str], int | None]:
        item = self._table.item(row, NAME)
        menu: QMenu = self._table.cellWidget(row, VARIABLES).menu()
        variables = [action.data() for action in menu.actions() if action.isChecked()]
        spin: WholeBox = self._table.cellWidget(row, LATENTS)
        ticked = item.checkState() == Qt.CheckState.Checked
        return ticked, item.text().strip(), variables, spin.value() or None

    def _add_empty(self) -> None:
        taken = set(self._rows())
        self._add_row(next(n for i in range(1, 1000) if (n := f"factor {i}") not in taken), [])
        self._fit_height()

    def _add_row(
        self, name: str, variables: list[str], latents: int | None = None, ticked: bool = True
    ) -> None:
        row = self._table.rowCount()
        with signals_blocked(self._table):
            self._table.insertRow(row)
            item = QTableWidgetItem(name)
            item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
            item.setCheckState(Qt.CheckState.Checked if ticked else Qt.CheckState.Unchecked)
            item.setToolTip("Ticked factors are trained together. Double-click to rename.")
            self._table.setItem(row, NAME, item)
            spin = WholeBox()
            spin.setRange(0, 64)
            spin.setValue(latents or 0)
            spin.setAccessibleName(f"Latents of {name}")
            spin.setToolTip("Dimensions of this factor; auto uses as many as its variables have.")
            spin.valueChanged.connect(lambda _: self.changed.emit())
            button = self._variables_button(variables, spin)
            self._table.setCellWidget(row, VARIABLES, button)
            self._table.setCellWidget(row, LATENTS, spin)
        places = [(above, column) for above in range(row + 1) for column in (VARIABLES, LATENTS)]
        reach_after(self._table, [self._table.cellWidget(*place) for place in places])
        self.changed.emit()

    def _variables_button(self, chosen: list[str], spin: WholeBox) -> QToolButton:
        assert self._recording is not None
        button, menu = QToolButton(), QMenu()
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        button.setSizePolicy(button.sizePolicy().Policy.Ignored, button.sizePolicy().Policy.Fixed)
        for name, variable in self._recording.behavior.items():
            reason = why_not(variable)
            action = menu.addAction(f"{name} ({reason})" if reason else name)
            action.setData(name)
            action.setCheckable(True)
            action.setChecked(name in chosen)
            action.setEnabled(not reason)
        menu.triggered.connect(lambda _: self._choose(button, spin))
        button.setMenu(menu)
        # a menu is not owned by its button
        menu.setParent(button, menu.windowFlags())
        self._show_choice(button, spin)
        return button

    def _choose(self, button: QToolButton, spin: WholeBox) -> None:
        self._show_choice(button, spin)
        self.changed.emit()

    def _show_choice(self, button: QToolButton, spin: WholeBox) -> None:
        names = [action.data() for action in button.menu().actions() if action.isChecked()]
        button.setText(", ".join(names) or "choose…")
        button.setAccessibleName(f"Variables: {', '.join(names) or 'none'}")
        button.setToolTip(
            plain(f"Variables: {', '.join(names)}." if names else "Choose variables.")
        )
        assert self._recording is not None
        spin.setSpecialValueText(f"auto ({latents_for(self._recording, names)})")

    def _fit_height(self) -> None:
        """As tall as its rows, so that the dock does not scroll inside a scroll area."""
        rows = min(max(self._table.rowCount(), 1), MOST_ROWS)
        header = self._table.horizontalHeader().sizeHint().height()
        self._table.setFixedHeight(header + rows * ROW + 6)


def _usable(recording: Recording) -> set[str]:
    return {name for name, variable in recording.behavior.items() if not why_not(variable)}
