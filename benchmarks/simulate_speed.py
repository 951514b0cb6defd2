"""How long simulations take, beside RatInABox for the same animal and cells.

RatInABox (`pip install ratinabox==1.15.3`) is measured only if it is installed. It is slow, so by
default a twentieth of the recording is run and its time scaled up; it grows linearly with frames.

    python benchmarks/simulate_speed.py [--whole]
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable

from report import typed

from napari_xcebra.simulate import arena, box, field

FRAMES, EACH, DT = 20_000, 100, 0.1


def seconds(run: Callable[[], object]) -> float:
    """Wall-clock time of one call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def ratinabox_arena(frames: int) -> None:
    """Place, grid, head direction and speed cells as in the paper's App. B.2."""
    import numpy as np
    import ratinabox
    from ratinabox import Agent, Environment
    from ratinabox.Neurons import GridCells, HeadDirectionCells, PlaceCells, SpeedCell

    ratinabox.verbose = False
    np.random.seed(0)  # noqa: NPY002 -- the package draws from the global generator
    animal = Agent(Environment(), {"dt": DT})
    place = {"n": EACH, "widths": 0.2, "description": "diff_of_gaussians"}
    grid = {"n": EACH, "gridscale": (0.3, 0.4), "orientation": (0.0, 0.1)}
    cells = [
        PlaceCells(animal, place),
        GridCells(animal, grid),
        HeadDirectionCells(animal, {"n": EACH}),
        *(SpeedCell(animal) for _ in range(EACH)),
    ]
    for _ in range(frames):
        animal.update()
        for population in cells:
            population.update()


def main() -> None:
    """Print one line per simulation."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--whole", action="store_true", help="run RatInABox in full length")
    parser.add_argument("--frames", type=int, default=FRAMES, help="of the arena")
    given = typed(parser, frames=1000)
    whole, frames = given.whole, given.frames

    # The first call also pays for imports and caches; it is not what is measured.
    arena(frames=100)
    print(
        f"box,   {5 * frames:7,} frames × 50 cells    "
        f"{seconds(lambda: box(frames=5 * frames)):8.2f} s"
    )
    ours = seconds(lambda: arena(frames=frames, dt=DT))
    print(f"arena,  {frames:6,} frames × 400 cells   {ours:8.2f} s")
    print(
        f"field,  {frames:6,} frames × 200 cells   {seconds(lambda: field(frames=frames)):8.2f} s"
    )
    if importlib.util.find_spec("ratinabox") is None:
        print("RatInABox is not installed: no comparison.")
        return
    share = 1 if whole else 20
    theirs = share * seconds(lambda: ratinabox_arena(frames // share))
    how = "measured" if whole else f"1/{share} of the frames measured, time × {share}"
    print(
        f"RatInABox, same as arena            {theirs:8.2f} s ({how}), {theirs / ours:.0f} × ours"
    )


if __name__ == "__main__":
    main()
