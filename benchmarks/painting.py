"""How long the window waits for us when scores are painted: factors, threshold, time slider.

What is measured is our own time and that of the layers' models, with a viewer that has no window:
what drawing on the screen takes depends on the graphics card. `--window` measures with a window
and the dock, too, up to where napari has been told what to draw.

    python benchmarks/painting.py [--window]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from napari.components import ViewerModel
from report import header, row, typed

from napari_xcebra.attribution.ranking import Ranking, RowFilter
from napari_xcebra.attribution.result import Attribution
from napari_xcebra.learn.data.factors import Part
from napari_xcebra.learn.data.inputs import Inputs
from napari_xcebra.learn.quality.verdict import Goodness
from napari_xcebra.learn.result import Fit
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.recording import Footprints, Recording
from napari_xcebra.runs import Run
from napari_xcebra.widgets.layers.movie import CellMovie
from napari_xcebra.widgets.services.scores_over_time import ScoresOverTime, _stretch_length
from napari_xcebra.widgets.state.shown import shown_map
from napari_xcebra.widgets.state.state import State
from napari_xcebra.widgets.window import services_of

SIZES = ((150, 512), (1_000, 512), (10_000, 2048))
FRAMES, RATE = 600, 30.0
TARGETS = {"show a factor": 100.0, "switch factor": 100.0, "follow the slider": 30.0}
"""Milliseconds for the largest field, by how the name of what is done begins."""
FACTORS = ("place", "speed")
METHOD = "inverted-neuron-gradient"


def main() -> None:
    """Print a table a size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--window", action="store_true", help="measure with a window and the dock, too"
    )
    parser.add_argument("--sizes", type=int, default=len(SIZES), help="only the first ones")
    given = typed(parser, sizes=1)
    print(header("Painting"))
    print("Processor time of the window's thread; software GL where there is a window.\n")
    print(row("cells", "field", "what", "median, ms", "most, ms", "target", ""))
    print(row("---:", "---", "---", "---:", "---:", "---", "---"))
    for cells, side in SIZES[: given.sizes]:
        recording, run = field_of_discs(cells, side)
        viewer: Any = ViewerModel()
        times = painted(recording, run, viewer)
        times |= tabulated(services_of(viewer).state)
        times |= followed(recording, services_of(viewer).state.current.labels)
        for what, taken in times.items():
            _print(cells, side, what, taken)
        if given.window:
            import napari

            from napari_xcebra.widgets.docks.attribution.dock import AttributionDock

            viewer = napari.Viewer(show=True)
            viewer.window.add_dock_widget(AttributionDock(viewer), name="Attribution")
            for what, taken in painted(recording, run, viewer).items():
                _print(cells, side, f"{what}, with the dock", taken)
            viewer.close()


def painted(recording: Recording, run: Run, viewer: Any) -> dict[str, list[float]]:
    """Milliseconds of each thing that the user does, several times each."""
    state = services_of(viewer).state
    state.show(recording)
    assert services_of(state.viewer).painter
    state.add_run(run)
    times = {"show a factor for the first time": []}
    for factor in FACTORS:
        times["show a factor for the first time"] += timed(lambda f=factor: show(state, f), 1)
    other = iter(FACTORS * 20)
    times["switch factor"] = timed(lambda: show(state, next(other)), 10)
    steps = iter(np.linspace(-1, 2, 10))
    state.shown = replace(state.shown, dim=True)
    times["move the threshold, others dimmed"] = timed(
        lambda: setattr(state, "shown", replace(state.shown, threshold=next(steps))), 10
    )
    names = iter(("magma", "viridis") * 5)
    times["change the colours"] = timed(
        lambda: setattr(state, "shown", replace(state.shown, colormap=next(names))), 10
    )
    return times


def tabulated(state: State) -> dict[str, list[float]]:
    """Milliseconds to arrange the table."""
    return {"rank and sort the table": timed(lambda: rank(state), 10)}


def followed(recording: Recording, labels: np.ndarray) -> dict[str, list[float]]:
    """Milliseconds to draw a frame of scores over time, by the seconds they are averaged over."""
    scores = ScoresOverTime(recording, _stretch_length(recording.n_cells))
    rng = np.random.default_rng(0)
    for start in range(0, recording.n_frames, scores.length):
        frames = slice(start, min(start + scores.length, recording.n_frames))
        scores.put(frames, rng.random((frames.stop - start, recording.n_cells), np.float32))
    movie, times = CellMovie(scores, labels), {}
    for seconds in (0, 1, 5):
        scores.window = max(1, round(seconds * RATE))
        frames = iter(range(200, 230))
        times[f"follow the slider, mean of {seconds} s"] = timed(
            lambda f=frames: movie.frame(next(f)), 30
        )
    return times


def show(state: State, factor: str) -> None:
    """As the dock does."""
    state.shown = replace(state.shown, run="run", factor=factor, method=METHOD)


def rank(state: State) -> np.ndarray:
    """Rows of the table, by score."""
    painted, recording = shown_map(state), state.recording
    assert painted is not None and recording is not None
    ranking = Ranking.of(recording, painted, state.shown.threshold)
    return ranking.rows("score", descending=True, shown=RowFilter(accepted_only=True))


def timed(call: Callable[[], object], times: int) -> list[float]:
    """Milliseconds of each call, of this thread alone: other programs do not count."""
    taken = []
    for _ in range(times):
        start = time.thread_time()
        call()
        taken.append(1e3 * (time.thread_time() - start))
    return taken


def field_of_discs(cells: int, side: int) -> tuple[Recording, Run]:
    """Discs on a square grid, with scores drawn at random."""
    across = int(np.ceil(np.sqrt(cells)))
    radius = max(2, side // across // 3)
    rows, columns = np.mgrid[-radius : radius + 1, -radius : radius + 1]
    inside = rows**2 + columns**2 <= radius**2
    place = (np.arange(across) * (side - 2 * radius - 1) // across + radius).astype(int)
    down, right = (axis.ravel()[:cells, None] for axis in np.meshgrid(place, place))
    row_, column = (down + rows[inside]).ravel(), (right + columns[inside]).ravel()
    cell = np.repeat(np.arange(cells), int(inside.sum()))
    footprints = Footprints((side, side), cell, row_, column, np.ones(len(cell), np.float32))
    rng = np.random.default_rng(0)
    recording = Recording(
        traces=rng.random((FRAMES, cells), np.float32), rate=RATE, footprints=footprints,
        images={"mean": rng.random((side, side), np.float32)},
    )  # fmt: skip
    return recording, random_run(cells)


def random_run(cells: int) -> Run:
    """A run that was never trained."""
    parts = tuple(Part(name, (name,), i, i + 1, "euclidean", 1.0) for i, name in enumerate(FACTORS))
    goodness = {name: Goodness(name, 5.0, 6.2, 1.2, 0.1, 1.2, 0.5, True) for name in FACTORS}
    nothing = np.zeros(cells, np.float32)
    fit = Fit(FitSettings(), parts, Inputs(np.arange(cells), nothing, nothing, 0.0), {},
              np.ones(2, np.float32), {}, goodness, 600, "", {})  # fmt: skip
    scores = np.random.default_rng(1).random((2, cells), np.float32)
    attribution = Attribution(METHOD, "mean", parts, np.arange(cells), scores, FRAMES,
                              dict.fromkeys(FACTORS, True), dict.fromkeys(FACTORS, ""))  # fmt: skip
    return Run("run", "2026-11-16T09:30:00", {}, fit, {METHOD: attribution})


def _print(cells: int, side: int, what: str, times: list[float]) -> None:
    median = float(np.median(times))
    target = next((ms for name, ms in TARGETS.items() if what.startswith(name)), None)
    aim, met = "", ""
    if target is not None and (cells, side) == SIZES[-1]:
        aim, met = f"< {target:g} ms", "met" if median < target else "**not met**"
    print(row(f"{cells:,}", f"{side}²", what, f"{median:.1f}", f"{max(times):.1f}", aim, met))


if __name__ == "__main__":
    main()
