"""From 50 cells to 10,000 and from 10,000 frames to 1,000,000, beside the reference.

Each place of the grid is measured in a process of its own, on one thread, in seconds of the
processor; peak memory is that process's. Beside the reference (PyPI `cebra` 0.6.1) as it is stands
the one with a k-d tree put in. A run that is cut short goes on where it was (`--kept FILE`).

    python benchmarks/scale.py [--cells 50,500] [--frames 10000] [--windows 1] [--timeout 600]
                               [--only ours,tree,reference] [--kept FILE] [--print-only]
    python benchmarks/scale.py --fits 200,1000,4000 [--frames 20000] [--kept FILE]
    python benchmarks/scale.py --maps 200,50000 [--frames 20000] [--kept FILE]

The second prints the parts of a default fit of two variables, for each number of cells; the third
goes from a file to a map whose cells are tested, and tells how long one waits for a sign of life
at most (looks at whether to stop: work can be cancelled there).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from report import header, kept, peak_memory, row, typed

LATENTS = (4, 2)
"""Latents for time and for the variable."""
HIDDEN = 30 * sum(LATENTS)
BATCH = 512
ENOUGH = 0.95
"""R² of the variable, decoded from its own latents, at which a run counts as having learned it."""
LOOKED_AT = 4000
"""Frames at which it is decoded."""
EVERY = 10
"""Steps between two looks."""
LEAST_STEPS = 12
"""Steps that are timed at least, if there is time."""
ATTRIBUTED = 5000
"""Frames that are attributed, and a fifth of them; the time of all is what these two foretell."""
GUARD = 10.0
"""Times the time-out, in seconds of the processor, that a process may take by the clock."""
NAMES = {
    "ours": "ours",
    "tree": "reference with a k-d tree put in",
    "reference": "reference, unmodified",
}


@dataclass(frozen=True)
class Place:
    """One place of the grid, for one of the three."""

    who: str
    cells: int
    frames: int
    window: int

    @property
    def bytes_of_traces(self) -> int:
        """Of float32."""
        return 4 * self.cells * self.frames


# ---------------------------------------------------------------- the recording


def write_recording(folder: Path, cells: int, frames: int) -> None:
    """Cells that respond to six latents, two of them observed: traces.npy and variable.npy."""
    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.normal(scale=0.1, size=(frames, sum(LATENTS))), axis=0)
    latents = (2 / np.pi * np.arcsin(np.sin(walk))).astype(np.float32)  # folded into ±1
    mixing = rng.normal(size=(sum(LATENTS), cells)).astype(np.float32)
    file = np.lib.format.open_memmap(
        folder / "traces.npy", mode="w+", dtype=np.float32, shape=(frames, cells)
    )
    step = max(1, 2**24 // cells)
    for start in range(0, frames, step):
        drive = latents[start : start + step] @ mixing
        noise = rng.random(drive.shape, np.float32) - 0.5
        file[start : start + step] = np.maximum(drive, 0) + noise
    file.flush()
    np.save(folder / "variable.npy", latents[:, LATENTS[0] :])


# ---------------------------------------------------------------- the two opponents


class Learner(Protocol):
    """Either training run."""

    def step(self) -> None: ...

    def embedding(self, frames: np.ndarray) -> np.ndarray:
        """Latents of the variable: (frames, 2)."""
        ...

    def attribute(self, frames: int) -> None:
        """The inverted neuron gradient at the first frames."""
        ...

    def drawing(self) -> float:
        """Seconds a step takes to draw pairs, if it does not draw its own."""
        ...

    def products(self) -> float:
        """Seconds the bare matrix products of a step take; NaN if that is not known."""
        ...


class Ours:
    """Traces stay on disk until they are read; exact penalty on 64 frames, the default."""

    def __init__(self, folder: Path, place: Place) -> None:
        from napari_xcebra.learn import FitSettings, Training
        from napari_xcebra.recording import Recording
        from napari_xcebra.recording.traces import NpyTraces

        traces = NpyTraces(folder / "traces.npy", cells_first=False)
        variable = np.load(folder / "variable.npy")
        self.recording = Recording.from_arrays(traces, 10.0, {"variable": variable})
        settings = FitSettings(
            time_latents=LATENTS[0],
            hidden_units=HIDDEN,
            batch_size=BATCH,
            window=place.window,
            lambda_=0.1,
            settle=0.0,
            ramp=0.0,
            steps=1_000_000,
            stop_when_settled=False,
        )
        self.training = Training(self.recording, {"variable": ["variable"]}, settings)
        self._run = self.training.run(1)

    def step(self) -> None:
        """One step, with its report."""
        next(self._run)

    def embedding(self, frames: np.ndarray) -> np.ndarray:
        """Latents of the variable: (frames, 2)."""
        from napari_xcebra.learn.device import embedded

        own = self.training.parts[0].latents
        return embedded(self.training.encoder, self.training.data, frames)[frames, own]

    def attribute(self, frames: int) -> None:
        """All of the recording is there, as much of it is streamed."""
        from napari_xcebra.attribution import attribute
        from napari_xcebra.learn import Fit

        training = self.training
        weights = {name: w.numpy() for name, w in training.encoder.state_dict().items()}
        scale = training.psi.scale().detach().numpy()
        fit = Fit(
            training.settings, training.parts, training.inputs, weights, scale, {}, {}, 1, "", {}
        )
        attribute(fit, self.recording, frames=slice(0, frames), workers=1)

    def drawing(self) -> float:
        """Pairs of several steps are drawn at once, the median of three."""
        from napari_xcebra.learn.data.sampling import DRAWN_AHEAD

        rng = np.random.default_rng(0)
        draw = partial(self.training.sampler.draw, BATCH * DRAWN_AHEAD, rng)
        return float(np.median([spent(draw) for _ in range(3)])) / DRAWN_AHEAD

    def products(self) -> float:
        """Seconds for the products of one step, the median of five."""
        from products import Products, shapes_of

        bare = Products(shapes_of(self.training))
        bare()
        return float(np.median([spent(bare) for _ in range(5)]))


class Theirs:
    """Its own random projection as penalty, the default; all traces in memory, as it wants them."""

    def __init__(self, folder: Path, place: Place) -> None:
        from reference import ReferenceSettings, ReferenceTraining

        self.window, self.traces = place.window, np.load(folder / "traces.npy")
        model = "offset1-model-mse-clip-5-5" if place.window == 1 else "offset10-model-mse"
        settings = ReferenceSettings(
            tree=place.who == "tree", batch_size=BATCH, ramp=(0, 1), model=model, units=HIDDEN
        )
        self.training = ReferenceTraining(
            self.traces, np.load(folder / "variable.npy"), LATENTS, settings
        )

    def step(self) -> None:
        """One step."""
        self.training.train(1)

    def embedding(self, frames: np.ndarray) -> np.ndarray:
        """Latents of the variable: (frames, 2)."""
        import torch

        model = self.training.solver.model.module
        lags = np.arange(self.window) - self.window // 2
        found = []
        with torch.no_grad():
            for some in np.array_split(frames, max(1, len(frames) // 500)):
                x = torch.from_numpy(self.traces[some[:, None] + lags]).transpose(1, 2)
                found.append(model(x).flatten(1).numpy()[:, LATENTS[0] :])
        return np.concatenate(found)

    def attribute(self, frames: int) -> None:
        """J and J⁺ by one of its four ways; not with a window, for which it has none in batches."""
        from reference import attribution_method, one_inversion

        if self.window > 1:
            raise NotImplementedError
        one_inversion(attribution_method(self.traces[:frames], sum(LATENTS)))

    def drawing(self) -> float:
        """Each step draws its own."""
        return 0.0

    def products(self) -> float:
        """Not asked of it."""
        return float("nan")


# ---------------------------------------------------------------- measuring


def measured(folder: Path, place: Place, timeout: float) -> dict[str, Any]:
    """All figures of one place; runs in a process of its own."""
    import torch

    torch.set_num_threads(1)
    for package in ("napari_xcebra.attribution", "napari_xcebra.learn"):
        import_module(package)
    if place.who != "ours":
        import_module("reference")
    began = time.process_time()
    learner: Learner = Ours(folder, place) if place.who == "ours" else Theirs(folder, place)
    setup = time.process_time() - began
    variable = np.load(folder / "variable.npy")
    looked = np.linspace(place.window, place.frames - place.window - 1, LOOKED_AT).astype(int)
    seconds: list[float] = []
    reached, r2 = None, float("nan")
    while time.process_time() - began < timeout:
        seconds.append(spent(learner.step))
        if len(seconds) % EVERY == 0 and reached is None:
            r2 = decoded(learner.embedding(looked), variable[looked])
            reached = setup + sum(seconds) if r2 >= ENOUGH else None
        if reached is not None and len(seconds) >= LEAST_STEPS:
            break
    found: dict[str, Any] = {
        "setup": setup,
        "step": float(np.median(seconds[1:] or seconds or [np.nan])) + learner.drawing(),
        "steps": len(seconds),
        "reached": reached,
        "r2": r2,
        "trained_mb": peak_memory(),
    }
    if place.who == "ours":
        found["products"] = learner.products()
    if time.process_time() - began < timeout:
        with contextlib.suppress(NotImplementedError):
            found["attribution"] = foretold(learner.attribute, place.frames)
    return {**found, "peak_mb": peak_memory()}


def foretold(attribute: Callable[[int], None], frames: int) -> float:
    """Seconds for all frames: what a call takes whatever it is asked, and what each frame takes."""
    most = min(ATTRIBUTED, frames)
    few = most // 5
    attribute(few)  # imports
    short, long = (spent(partial(attribute, n)) for n in (few, most))
    return long + (long - short) / (most - few) * (frames - most)


def spent(work: Any) -> float:
    """Seconds of the processor."""
    began = time.process_time()
    work()
    return time.process_time() - began


def decoded(latents: np.ndarray, variable: np.ndarray) -> float:
    """R² of a linear decoder, made on every other frame and tested on those between."""
    design = np.c_[np.ones(len(latents)), latents]
    if not np.isfinite(design).all():
        return float("nan")
    weights, *_ = np.linalg.lstsq(design[::2], variable[::2], rcond=1e-6)
    residual = variable[1::2] - design[1::2] @ weights
    return float(1 - np.square(residual).sum() / np.square(variable - variable.mean(0))[1::2].sum())


def parts_of_fit(folder: Path) -> dict[str, float]:
    """Seconds of the processor of a default fit, part by part; runs in a process of its own."""
    import torch
    from products import Products, shapes_of

    from napari_xcebra.learn import FitSettings, Training
    from napari_xcebra.learn.fitting import finish, train
    from napari_xcebra.recording import Recording
    from napari_xcebra.recording.traces import NpyTraces

    torch.set_num_threads(1)
    traces = NpyTraces(folder / "traces.npy", cells_first=False)
    names = dict(zip("ab", np.load(folder / "variable.npy").T, strict=True))
    recording = Recording.from_arrays(traces, 10.0, names)
    factors = {name: [name] for name in names}
    begun = time.process_time()
    training = Training(recording, factors, FitSettings())
    started = time.process_time()
    train(training)
    trained = time.process_time()
    finish(training, recording)
    measured = time.process_time()
    bare = Products(shapes_of(training))
    bare()
    return {
        "start": started - begun,
        "training": trained - started,
        "measuring": measured - trained,
        "fit": measured - begun,
        "steps": training.step,
        "products": training.step * float(np.median([spent(bare) for _ in range(5)])),
        "peak_mb": peak_memory(),
    }


class Watched:
    """Seconds, longest silence and memory of the parts of a piece of work."""

    def __init__(self) -> None:
        self.parts: dict[str, dict[str, float]] = {}

    def looked(self) -> bool:
        """Note a sign of life; never ask to stop."""
        now = time.perf_counter()
        self._silence, self._last = max(self._silence, now - self._last), now
        return False

    def do(self, name: str, work: Callable[[], Any]) -> Any:
        """Do a part of the work."""
        begun = self._last = time.perf_counter()
        spent, self._silence = time.process_time(), 0.0
        done = work()
        self.looked()
        self.parts[name] = {
            "clock": time.perf_counter() - begun,
            "processor": time.process_time() - spent,
            "silence": self._silence,
            "peak_mb": peak_memory(),
            "own_mb": own_memory(),
        }
        print(name, self.parts[name], file=sys.stderr, flush=True)
        return done


def own_memory() -> float:
    """Memory of this process now without pages of files, in MB; NaN where it is not told."""
    status = Path("/proc/self/status")
    if not status.exists():
        return float("nan")
    lines = status.read_text().splitlines()
    return float(next(line for line in lines if line.startswith("RssAnon")).split()[1]) / 1024


def parts_to_map(folder: Path) -> dict[str, dict[str, float]]:
    """What it takes to come from a file to a tested map; runs in a process of its own."""
    import napari_xcebra as xc
    from napari_xcebra.errors import InputError

    watched = Watched()
    behavior = {"behavior": folder / "variable.npy", "rate": 10.0}
    recording = watched.do("open", lambda: xc.open_recording(folder / "traces.npy", **behavior))
    factors = {name: [name] for name in recording.behavior}
    fit = watched.do("fit", lambda: xc.fit(recording, factors, stop=watched.looked))
    watched.do("map", lambda: xc.attribute(fit, recording, stop=watched.looked))
    with contextlib.suppress(InputError):  # too few independent samples: no part of that name
        watched.do("test", lambda: xc.significance(fit, recording, stop=watched.looked))
    return watched.parts


def table_to_map(sizes: dict[tuple[int, int], dict[str, Any]]) -> str:
    """One row a size."""
    names = ("cells", "frames", "open, s", "fit, s", "map, s", "test, s", "all, s", "processor, s")
    names += ("longest silence, s", "peak, MB", "without pages of files, MB")
    lines = [row(*names), row(*["---"] * len(names))]
    for (cells, frames), parts in sizes.items():
        if "failed" in parts:
            lines.append(row(f"{cells:,}", f"{frames:,}", parts["failed"], *[""] * 8))
            continue
        whole = ("open", "fit", "map", "test")
        clock = [parts[name]["clock"] if name in parts else float("nan") for name in whole]
        spent = sum(each["processor"] for each in parts.values())
        figures = [f"{seconds:.1f}" for seconds in (*clock, sum(clock), spent)]
        most = [max(e[name] for e in parts.values()) for name in ("silence", "peak_mb", "own_mb")]
        figures += [f"{most[0]:.1f}", f"{most[1]:,.0f}", f"{most[2]:,.0f}"]
        lines.append(row(f"{cells:,}", f"{frames:,}", *figures))
    return "\n".join(lines)


def table_of_parts(parts: dict[tuple[int, int], dict[str, Any]]) -> str:
    """One row a size; fits of many cells also in multiples of the first."""
    names = ("cells", "frames", "start, s", "training, s", "measuring, s", "fit, s", "/ first")
    names += ("steps", "/ bare products", "start + measuring / training", "peak, MB")
    lines, first = [row(*names), row(*["---"] * len(names))], None
    for (cells, frames), each in parts.items():
        if "failed" in each:
            lines.append(row(f"{cells:,}", f"{frames:,}", each["failed"], *[""] * 8))
            continue
        first = first or each["fit"]
        seconds = [f"{each[name]:.1f}" for name in ("start", "training", "measuring", "fit")]
        beside = (each["start"] + each["measuring"]) / each["training"]
        ratios = (
            f"{each['fit'] / first:.2f}",
            each["steps"],
            f"{each['fit'] / each['products']:.2f}",
        )
        peak = f"{each['peak_mb']:.0f}"
        lines.append(row(f"{cells:,}", f"{frames:,}", *seconds, *ratios, f"{beside:.0%}", peak))
    return "\n".join(lines)


def in_child(place: Place | str, folder: Path, timeout: float) -> dict[str, Any]:
    """Figures of a place, or of "fit" or "map", from a new process; or why there are none."""
    wanted = place if isinstance(place, str) else vars(place)
    request = json.dumps([str(folder), wanted, timeout])
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    try:
        done = subprocess.run(
            [sys.executable, __file__, "--child", request],
            env={**os.environ, **threads},
            capture_output=True,
            text=True,
            timeout=GUARD * timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"did not finish within {timeout:.0f} s"}
    if done.returncode < 0:
        return {"failed": "killed, out of memory"}
    if done.returncode:
        return {"failed": done.stderr.strip().splitlines()[-1][:120]}
    return json.loads(done.stdout.splitlines()[-1])


def does_not_fit(place: Place, written: bool) -> str:
    """Why a place cannot be tried on this machine; empty if it can."""
    disk = shutil.disk_usage(tempfile.gettempdir()).free
    if not written and 1.1 * place.bytes_of_traces > disk:
        return f"traces of {place.bytes_of_traces / 2**30:.0f} GB do not fit on the disk"
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    brute = 16 * place.frames * BATCH if place.who == "reference" else 0
    if place.who != "ours" and 2 * place.bytes_of_traces + brute > 0.9 * memory:
        return f"needs more than the {memory / 2**30:.0f} GB of memory"
    return ""


# ---------------------------------------------------------------- the tables


@dataclass(frozen=True)
class Results:
    """What was found, by place."""

    found: dict[Place, dict[str, Any]]

    def table(self) -> str:
        """One row a place."""
        names = (
            "cells",
            "frames",
            "window",
            "who",
            "set-up, s",
            "steps / s",
            f"s to R² ≥ {ENOUGH}",
            "attribution, s",
            "peak, MB",
            "products / step",
        )
        lines = [row(*names), row(*["---"] * len(names))]
        for place, each in self.found.items():
            size = f"{place.cells:,}", f"{place.frames:,}", place.window, NAMES[place.who]
            if "failed" in each:
                lines.append(row(*size, each["failed"], *[""] * 5))
                continue
            lines.append(row(*size, *self._figures(each)))
        return "\n".join(lines)

    def _figures(self, each: dict[str, Any]) -> list[str]:
        reached = f"{each['reached']:.1f}" if each["reached"] else _not_reached(each)
        attribution = f"{each['attribution']:.1f}" if "attribution" in each else "–"
        share = f"{each['products'] / each['step']:.0%}" if "products" in each else ""
        speed = f"{1 / each['step']:.3g}" if each["steps"] else "no step in time"
        return [
            f"{each['setup']:.1f}",
            speed,
            reached,
            attribution,
            f"{each['peak_mb']:.0f}",
            share,
        ]

    @cached_property
    def measured(self) -> dict[Place, dict[str, Any]]:
        """Those that did a step."""
        return {p: e for p, e in self.found.items() if "failed" not in e and e["steps"] > 0}

    def plot(self, path: Path, label: str, of: Any) -> None:
        """One figure over frames, a panel a window, colour by cells, line by who."""
        import matplotlib as mpl

        mpl.use("Agg")
        from matplotlib import pyplot as plt

        windows = sorted({place.window for place in self.measured})
        cells = sorted({place.cells for place in self.measured})
        colours = dict(zip(cells, ("#0072b2", "#009e73", "#e69f00", "#d55e00"), strict=False))
        styles = {"ours": "o-", "tree": "s--", "reference": "x:"}
        figure, panels = plt.subplots(
            1, len(windows), figsize=(11, 4.6), sharey=True, squeeze=False, layout="constrained"
        )
        for panel, window in zip(panels[0], windows, strict=True):
            for who, style in styles.items():
                for count in cells:
                    own = sorted(
                        (p.frames, of(e))
                        for p, e in self.measured.items()
                        if (p.who, p.cells, p.window) == (who, count, window)
                    )
                    if own:
                        panel.loglog(*zip(*own, strict=True), style, color=colours[count])
            panel.set(title=f"window {window}", xlabel="frames", xlim=(7e3, 1.4e6))
            panel.grid(alpha=0.3)
        panels[0][0].set_ylabel(label)
        lines = [plt.Line2D([], [], color=colour) for colour in colours.values()]
        marks = [
            plt.Line2D([], [], color="0.3", linestyle=s[1:], marker=s[0]) for s in styles.values()
        ]
        texts = [f"{count:,} cells" for count in colours] + list(NAMES.values())
        figure.legend(lines + marks, texts, loc="outside lower center", ncols=3, frameon=False)
        figure.savefig(path, dpi=110)
        plt.close(figure)


def _not_reached(each: dict[str, Any]) -> str:
    return f"not in {each['steps']} steps (R² {each['r2']:.2f})"


def main() -> None:
    """Measure the places asked for, print the table, draw the two figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    numbers = lambda text: [int(value) for value in text.split(",")]  # noqa: E731
    parser.add_argument("--cells", type=numbers, default=[50, 500, 5000, 10_000])
    parser.add_argument("--frames", type=numbers, default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--windows", type=numbers, default=[1, 10])
    parser.add_argument("--only", default="ours,tree,reference")
    parser.add_argument("--timeout", type=float, default=600.0, help="processor seconds a place")
    parser.add_argument("--kept", type=Path, help="file of results to go on from and add to")
    parser.add_argument("--fits", type=numbers, help="numbers of cells: whole fits, in parts")
    parser.add_argument("--maps", type=numbers, help="numbers of cells: from file to tested map")
    parser.add_argument("--print-only", action="store_true", help="measure nothing")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = typed(parser, cells=[50], frames=[10_000], windows=[1], only="ours")
    if given.child:
        folder, place, timeout = json.loads(given.child)
        whole = {"fit": parts_of_fit, "map": parts_to_map}
        if isinstance(place, str):
            print(json.dumps(whole[place](Path(folder))))
        else:
            print(json.dumps(measured(Path(folder), Place(**place), timeout)))
        return
    if given.fits:
        print(header("A default fit, in parts"))
        print(table_of_parts(by_size("fit", given.fits, given)))
    if given.maps:
        print(header("From a file to a tested map"))
        print(table_to_map(by_size("map", given.maps, given)))
    if given.fits or given.maps:
        return
    found: dict[Place, dict[str, Any]] = {}
    for cells in given.cells:
        for frames in given.frames:
            with tempfile.TemporaryDirectory() as folder:
                for window in given.windows:
                    for who in given.only.split(","):
                        place = Place(who, cells, frames, window)
                        result = look_up(place, Path(folder), given)
                        if result is not None:
                            found[place] = result
    results = Results(found)
    print(header("Fast at real size"))
    print(results.table())
    here = Path(__file__).parent
    results.plot(here / "scale_speed.png", "training steps a second", lambda e: 1 / e["step"])
    results.plot(here / "scale_memory.png", "peak memory, MB", lambda e: e["peak_mb"])


def by_size(what: str, cells: list[int], given: argparse.Namespace) -> dict[tuple[int, int], Any]:
    """Parts of whole pieces of work by cells and frames, each in a process of its own."""
    parts = {}
    for count in cells:
        for frames in given.frames:
            with tempfile.TemporaryDirectory() as name:
                write_recording(Path(name), count, frames)
                measure = partial(in_child, what, Path(name), given.timeout)
                parts[count, frames] = kept(given.kept, f"{what} {count} {frames}", measure)
    return parts


def look_up(place: Place, folder: Path, given: argparse.Namespace) -> dict[str, Any] | None:
    """Results of a place: those kept, or measured now."""

    def measure() -> dict[str, Any] | None:
        if given.print_only:
            return None
        written = (folder / "variable.npy").exists()
        if reason := does_not_fit(place, written):
            return {"failed": reason}
        print(vars(place), file=sys.stderr, flush=True)
        if not written:
            write_recording(folder, place.cells, place.frames)
        return in_child(place, folder, given.timeout)

    return kept(given.kept, json.dumps(vars(place), sort_keys=True), measure)


if __name__ == "__main__":
    main()
