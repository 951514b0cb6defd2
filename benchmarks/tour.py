"""How long does the tour of the README take with a real mouse and keyboard?

A window is driven through the X server by xdotool: menus, tabs, buttons, cells and keys, nothing
by its function. Prints what each station took, until its result could be seen, and keeps a
picture of each. The aim is 60 s of machine time in all.

    xvfb-run -a -s "-screen 0 1600x1000x24" .ci/with-window-manager \\
        python benchmarks/tour.py [--pictures DIR]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import napari
import numpy as np
from qtpy.QtCore import QPoint, QRect
from qtpy.QtWidgets import QApplication, QMenu, QPushButton, QTabBar, QWidget
from report import header, row, typed

from napari_xcebra.widgets.controls.napari_window import canvas_of, main_window
from napari_xcebra.widgets.layers.camera import camera_of, labels_layer
from napari_xcebra.widgets.window import services_of

LIMIT = 180.0
"""Seconds after which something that was waited for counts as lost."""


class Hand:
    """A mouse and a keyboard, moved through the X server."""

    def move(self, *words: object) -> None:
        """One command of xdotool; the window lives on meanwhile."""
        with subprocess.Popen(["xdotool", *map(str, words)]) as moving:
            wait(lambda: moving.poll() is not None)
        assert moving.returncode == 0, f"xdotool could not do: {words}"

    def click(self, widget: QWidget, at: QPoint | None = None) -> None:
        """Press the left button on a widget, in its middle unless told otherwise."""
        place = widget.mapToGlobal(at or widget.rect().center())
        self.move("mousemove", "--sync", place.x(), place.y())
        rest(0.05)
        self.move("click", 1)
        rest(0.1)

    def press(self, key: str) -> None:
        """Press a key."""
        self.move("key", key)
        rest(0.05)

    def choose(self, window: QWidget, *path: str) -> None:
        """Go through menus."""
        bar = window.menuBar()  # type: ignore[attr-defined]
        self._press_entry(bar, path[0])
        for name in path[1:]:
            wait(lambda name=name: _menu_with(name) is not None)
            menu = _menu_with(name)
            assert menu is not None
            self._press_entry(menu, name)

    def _press_entry(self, menu: QWidget, name: str) -> None:
        place: QRect = menu.actionGeometry(_entry(menu, name))  # type: ignore[attr-defined]
        self.click(menu, place.center())


def _entry(menu: QWidget, name: str):  # type: ignore[no-untyped-def]
    return next((a for a in menu.actions() if a.text().replace("&", "").startswith(name)), None)


def _menu_with(name: str) -> QMenu | None:
    menus = [w for w in QApplication.topLevelWidgets() if isinstance(w, QMenu) and w.isVisible()]
    return next((menu for menu in menus if _entry(menu, name) is not None), None)


def wait(until: Callable[[], object], seconds: float = LIMIT) -> None:
    """Let the window live until something has happened."""
    application, end = QApplication.instance(), time.monotonic() + seconds
    while not until():
        if time.monotonic() > end:
            raise TimeoutError("the window did not come so far")
        application.processEvents()
        time.sleep(0.002)


def rest(seconds: float) -> None:
    """Let the window live for a while."""
    end = time.monotonic() + seconds
    wait(lambda: time.monotonic() > end)


class Tour:
    """A window, a hand, and what each station took."""

    def __init__(self, pictures: Path) -> None:
        self.pictures = pictures
        self.viewer = napari.Viewer()
        self.window = main_window(self.viewer)
        assert self.window is not None
        self.window.resize(1590, 960)
        self.window.move(0, 20)
        self.hand = Hand()
        self.state = services_of(self.viewer).state
        self.took: dict[str, float] = {}
        rest(1)

    def station(self, name: str, do: Callable[[], None], until: Callable[[], object]) -> None:
        """Do something by hand, and wait until it can be seen."""
        began = time.monotonic()
        do()
        wait(until)
        self.took[name] = time.monotonic() - began
        rest(1)
        picture = self.pictures / f"{len(self.took)}.png"
        subprocess.run(["import", "-window", "root", str(picture)], check=False)

    def tab(self, name: str) -> None:
        """Bring a dock to the front by its tab."""
        bars = [b for b in self.window.findChildren(QTabBar) if b.isVisible()]
        bar, place = next(
            (bar, i) for bar in bars for i in range(bar.count()) if bar.tabText(i) == name
        )
        self.hand.click(bar, bar.tabRect(place).center())

    def button(self, text: str) -> None:
        """Press the button with these words."""
        wait(lambda: self._button(text) is not None)
        self.hand.click(self._button(text))

    def _button(self, text: str) -> QPushButton | None:
        # docks behind another tab lie outside of the window
        inside = self.window.rect()
        fit = [
            button
            for button in self.window.findChildren(QPushButton)
            if button.isVisible()
            and button.isEnabled()
            and button.text().startswith(text)
            and inside.contains(button.mapTo(self.window, button.rect().center()))
        ]
        return min(fit, key=lambda button: len(button.text()), default=None)

    def cell(self, number: int) -> None:
        """Click a cell in the image."""
        canvas, layer, camera = (
            canvas_of(self.viewer),
            labels_layer(self.state),
            camera_of(self.viewer),
        )
        opened = self.state.current
        assert canvas is not None and layer is not None and opened is not None
        world = np.asarray(layer.data_to_world(opened.centers[number]))[-2:]
        away = (world - np.asarray(camera.center)[-2:]) * camera.zoom / canvas.devicePixelRatioF()
        middle = canvas.rect().center()
        self.hand.click(canvas, middle + QPoint(round(away[1]), round(away[0])))


def main() -> None:
    """Take the tour and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", type=Path, default=None)
    given = typed(parser)
    os.environ["NAPARI_XCEBRA_DATA"] = tempfile.mkdtemp()
    pictures = given.pictures or Path(tempfile.mkdtemp())
    pictures.mkdir(parents=True, exist_ok=True)
    tour = Tour(pictures)
    hand, state, services = tour.hand, tour.state, services_of(tour.viewer)
    menus = tour.window
    tour.station(
        "Plugins › napari-xcebra › Workspace",
        lambda: hand.choose(menus, "Plugins", "napari-xcebra", "Workspace"),
        lambda: len(tour.viewer.window.dock_widgets) >= 5,
    )
    sample = "File", "Open Sample", "napari-xcebra", "Navigating animal"
    tour.station(
        " › ".join(sample), lambda: hand.choose(menus, *sample), lambda: state.recording is not None
    )

    def train() -> None:
        tour.tab("Train")
        tour.button("Train")

    tour.station(
        "Train, until the last map is painted",
        train,
        lambda: state.shown_run is not None and not services.training.busy,
    )
    best = int(np.nanargmax(state.scores))

    def look() -> None:
        tour.tab("Attribution")
        tour.cell(best)

    tour.station("click the best cell", look, lambda: state.selection.tolist() == [best])
    tour.station(
        "Test which cells beat chance",
        lambda: tour.button("Test"),
        lambda: state.attribution is not None and state.attribution.significance is not None,
    )

    def decide() -> None:
        tour.tab("Curate")
        rest(0.5)
        for key in "ara":
            hand.press(key)

    def decided() -> int:
        curation = services.curations.current
        return 0 if curation is None else int((curation.status != 0).sum())

    tour.station("decide on three cells by keys", decide, lambda: decided() >= 3)
    print(header("The tour of the README, by mouse"))
    print(row("station", "seconds"))
    print(row("---", "---"))
    for name, seconds in tour.took.items():
        print(row(name, f"{seconds:.1f}"))
    total = sum(tour.took.values())
    print(row("**all** (target ≤ 60)", f"**{total:.1f}**"))
    services.close()
    tour.viewer.close()


if __name__ == "__main__":
    main()
