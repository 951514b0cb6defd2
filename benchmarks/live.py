"""How long until there is a map to look at? Measured in a real window.

Opens the demo recording (200 cells, 20,000 frames) in a real window, presses Train, and waits: for
the first map that is painted, for every repainting while the run learns, and for the final map.
Beside the seconds stands how far each map agrees with the final one, and with the truth of the
simulation; and what the maps cost the training, in processor time.

    xvfb-run -a -s "-screen 0 1600x1000x24" python benchmarks/live.py [--steps 600]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import napari
import numpy as np
import torch
from qtpy.QtWidgets import QApplication
from report import header, row, typed

from napari_xcebra.attribution.methods import FIRST
from napari_xcebra.attribution.ranks import auroc, rank_correlation
from napari_xcebra.attribution.scoring import LiveMap
from napari_xcebra.learn import FitSettings, fit
from napari_xcebra.simulate import Simulation, field
from napari_xcebra.widgets.app.workspace import open_workspace
from napari_xcebra.widgets.controls.napari_window import full_name
from napari_xcebra.widgets.state.state import State
from napari_xcebra.widgets.window import services_of

TARGET = 10.0
"""Seconds to the first map."""
FEW = 300
"""Steps of the training whose processor time is compared."""


@dataclass(frozen=True, eq=False)
class Painted:
    """A map that was painted.

    Parameters
    ----------
    seconds : float
        Since Train was pressed.
    step : int
        Of the training; 0 for the final map.
    scores : mapping of str to (cells,) float32
        By factor.
    """

    seconds: float
    step: int
    scores: dict[str, np.ndarray]


def main() -> None:
    """Train once in a window, and once each with and without maps for their cost."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--cells", type=int, default=200)
    parser.add_argument("--frames", type=int, default=20_000)
    given = typed(parser, steps=20, cells=40, frames=2000)
    simulation = field(cells=given.cells, frames=given.frames, seed=0)
    maps, opened = watched(simulation, given.steps)
    factors = list(simulation.factors)
    lines = [
        row("seconds", "step", *(f"{f}: auROC, ρ with the final map" for f in factors)),
        row(*["---"] * (2 + len(factors))),
    ]
    for one in maps:
        cells = [
            f"{auroc(one.scores[f], simulation.truth[f]):.3f}, "
            f"{rank_correlation(one.scores[f], maps[-1].scores[f]):.2f}"
            for f in factors
        ]
        lines.append(row(f"{one.seconds:.1f}", one.step or "final map", *cells))
    print(header("A map while it learns"))
    print(f"{given.cells} cells, {given.frames:,} frames, {given.steps} steps; {opened}\n")
    print("\n".join(lines))
    first, met = maps[0].seconds, "met" if maps[0].seconds <= TARGET else "**not met**"
    print(f"\nFirst map {first:.1f} s after pressing Train (target ≤ {TARGET:.0f} s): {met}.")
    for method in FIRST:
        print(cost(simulation, method))


def watched(simulation: Simulation, steps: int) -> tuple[list[Painted], str]:
    """Every map that was painted, the final one last; and how long the workspace took to open."""
    viewer = napari.Viewer()
    state = services_of(viewer).state
    state.show(simulation.recording)
    began = time.perf_counter()
    open_workspace(viewer)
    opened = f"opening the four docks took {time.perf_counter() - began:.1f} s."
    train = viewer.window.dock_widgets[full_name("Train")]
    wait(lambda: "Trains on" in train.device.text(), 60)
    train.form.value = replace(train.form.value, steps=steps)
    maps: list[Painted] = []
    began = time.perf_counter()
    train.train()

    def look() -> bool:
        """Note what has been painted since the last look."""
        step = state.painted_live.done if state.painted_live else 0
        new = not maps or maps[-1].step != step
        if new and is_painted(state):
            attribution = state.attribution
            assert attribution is not None
            # the dock names factors after their variables
            names = {tuple(part.variables): part.name for part in attribution.parts}
            scores = {
                factor: attribution.score(names[tuple(variables)])
                for factor, variables in simulation.factors.items()
            }
            maps.append(Painted(time.perf_counter() - began, step, scores))
        return not train.busy

    wait(look, 900)
    look()
    services_of(state.viewer).close()
    viewer.close()
    return maps, opened


def is_painted(state: State) -> bool:
    """Whether a map can be seen in the image."""
    layer = services_of(state.viewer).painter.layer
    return state.scores is not None and layer is not None and layer.visible


def wait(until: Callable[[], object], timeout: float) -> None:
    """Let the window live until something is true."""
    application, end = QApplication.instance(), time.perf_counter() + timeout
    while not until() and time.perf_counter() < end:
        application.processEvents()
        time.sleep(0.001)


def cost(simulation: Simulation, method: str) -> str:
    """What maps by a method add to the processor time of training, in a sentence."""
    settings, spent = FitSettings(steps=FEW), []

    def timed(training: object) -> None:
        began = time.process_time()
        live.look(training)  # type: ignore[arg-type]
        spent.append(time.process_time() - began)

    live = LiveMap(simulation.recording, method)
    began = time.process_time()
    fit(simulation.recording, simulation.factors, settings, look=timed)
    whole = time.process_time() - began
    made = [seconds for seconds in spent if seconds > 1e-3]
    return (
        f"Maps by {method}: {len(made)} in {FEW} steps, {1e3 * np.median(made):.0f} ms each "
        f"(first {1e3 * made[0]:.0f} ms), {sum(made) / (whole - sum(made)):.1%} of the training."
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
