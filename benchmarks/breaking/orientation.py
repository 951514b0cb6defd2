"""Matrices of many kinds, in every container and either way round: which axis is time?"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import scipy.io
import scipy.ndimage
import scipy.signal
import scipy.stats

from breaking.tally import Tally, Trial, World, alike, judge_all
from napari_xcebra.recording import Recording

Rng = np.random.Generator
Arrays = Mapping[str, np.ndarray]


def calcium(
    rng: Rng, frames: int, cells: int, decay: float = 0.9, noise: float = 0.3
) -> np.ndarray:
    """Events that decay, with noise."""
    events = rng.random((frames, cells)) < 0.03
    course = scipy.signal.lfilter([1], [1, -decay], events * rng.gamma(2, 1, (frames, cells)), 0)
    return course + noise * rng.standard_normal((frames, cells))


def sorted_by_peak(rng: Rng, frames: int, cells: int) -> np.ndarray:
    """A sequence: neighbours in the list are alike, as are neighbours in time."""
    centre = np.sort(rng.random(cells))
    time = np.linspace(0, 1, frames)[:, None]
    bumps = np.exp(-0.5 * ((time - centre) / 0.04) ** 2)
    return bumps + 0.1 * rng.standard_normal((frames, cells))


def alike_neighbours(rng: Rng, frames: int, cells: int) -> np.ndarray:
    """Cells in order of their place share what they do; frames are far apart in time."""
    return scipy.ndimage.gaussian_filter1d(rng.standard_normal((frames, cells)), 3, axis=1)


def by_brightness(rng: Rng, frames: int, cells: int) -> np.ndarray:
    """Bleaching cells, sorted by their brightness."""
    bleaching = np.exp(-np.linspace(0, 1, frames))[:, None]
    return (50 * np.sort(rng.gamma(2, 1, cells)) + calcium(rng, frames, cells)) * bleaching


KINDS: dict[str, Callable[[Rng, int, int], np.ndarray]] = {
    "calcium": calcium,
    "fast and noisy": lambda rng, *n: calcium(rng, *n, decay=0.4, noise=1.0),
    "events": lambda rng, *n: (rng.random(n) < 0.02) * rng.gamma(2, 1, n),
    "raster": lambda rng, *n: (rng.random(n) < 0.1).astype(np.uint8),
    "counts": lambda rng, *n: rng.poisson(np.exp(calcium(rng, *n) / 2)),
    "shuffled frames": lambda rng, *n: rng.permutation(calcium(rng, *n, noise=0.05)),
    "sorted by peak": sorted_by_peak,
    "alike neighbours": alike_neighbours,
    "by brightness": by_brightness,
    "trial after trial": lambda rng, *n: np.resize(calcium(rng, max(2, n[0] // 5), n[1]), n),
    "with unknown values": lambda rng, *n: np.where(rng.random(n) < 0.1, np.nan, calcium(rng, *n)),
    "one state": lambda rng, *n: np.cumsum(rng.standard_normal((n[0], 1)), 0) * rng.random(n[1])
    + 0.5 * rng.standard_normal(n),
}  # fmt: skip
SIZES = ((700, 45), (60, 240), (130, 130), (1500, 6), (31, 30))
"""Frames and cells: the usual, few frames, square, few cells, small."""

Write = Callable[[Path, np.ndarray, Arrays], Path]


def npz(folder: Path, matrix: np.ndarray, more: Arrays) -> Path:
    np.savez(folder / "session.npz", **{"dff": matrix, **more})
    return folder / "session.npz"


def npy(folder: Path, matrix: np.ndarray, more: Arrays) -> Path:
    """What goes with it lies beside it in files of its own."""
    for name, values in more.items():
        np.save(folder / f"{name}.npy", values)
    np.save(folder / "dff.npy", matrix)
    return folder / "dff.npy"


def mat_5(folder: Path, matrix: np.ndarray, more: Arrays) -> Path:
    scipy.io.savemat(folder / "session.mat", {"dff": matrix, **more}, oned_as="column")
    return folder / "session.mat"


def mat_73(folder: Path, matrix: np.ndarray, more: Arrays) -> Path:
    path = folder / "session.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, values in {"dff": matrix, **more}.items():
            values = values if np.ndim(values) == 2 else np.reshape(values, (-1, 1))
            file[name] = np.asarray(values).T  # MATLAB lists columns first
            file[name].attrs["MATLAB_class"] = np.bytes_("double")
    with path.open("r+b") as opened:
        opened.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")
    return path


def h5(folder: Path, matrix: np.ndarray, more: Arrays) -> Path:
    with h5py.File(folder / "session.h5", "w") as file:
        for name, values in {"dff": matrix, **more}.items():
            file[name] = values
    return folder / "session.h5"


def zarr(folder: Path, matrix: np.ndarray, more: Arrays) -> Path:
    from zarr import open_group

    group = open_group(folder / "session.zarr", mode="w")
    for name, values in {"dff": matrix, **more}.items():
        made = group.create_array(name, shape=np.shape(values), dtype=np.asarray(values).dtype)
        made[...] = values
    return folder / "session.zarr"


def csv(folder: Path, matrix: np.ndarray, more: Arrays) -> Path:
    """Headed by ids of ROIs if cells are columns; without any head if they are rows."""
    head = [str(3 + 2 * number) for number in range(matrix.shape[1])]
    pd.DataFrame(matrix, columns=head).to_csv(folder / "dff.csv", index=False)
    return folder / "dff.csv"


def headless(folder: Path, matrix: np.ndarray, more: Arrays) -> Path:
    np.savetxt(folder / "dff.csv", matrix, delimiter=",", fmt="%.5g")
    return folder / "dff.csv"


def numbered(folder: Path, matrix: np.ndarray, more: Arrays) -> Path:
    """As pandas writes it, with numbers of rows and columns."""
    pd.DataFrame(matrix).to_csv(folder / "dff.csv")
    return folder / "dff.csv"


def named(folder: Path, matrix: np.ndarray, more: Arrays) -> Path:
    table = pd.DataFrame(matrix, columns=[f"ROI{n:03d}" for n in range(matrix.shape[1])])
    table.to_csv(folder / "dff.txt", index=False, sep="\t")
    return folder / "dff.txt"


CONTAINERS: tuple[Write, ...] = (npy, npz, mat_5, mat_73, h5, zarr)
TABLES: tuple[Write, ...] = (csv, headless, numbered, named)


def per_cell(rng: Rng, cells: int) -> Arrays:
    """What has an entry for each cell, under names of a lab."""
    return {
        "depth": np.repeat([120.0, 180.0], [cells // 2, cells - cells // 2])[:, None],
        "cell_coordinates": 500 * rng.random((cells, 2)),
        "snr": rng.gamma(3, 1, cells),
        "is_red": (rng.random(cells) < 0.2).astype(np.uint8),
    }


def per_frame(rng: Rng, frames: int) -> Arrays:
    """Behaviour on the frames."""
    speed = scipy.ndimage.gaussian_filter1d(rng.standard_normal(frames), 3)
    return {"speed": speed, "position": np.cumsum(rng.standard_normal((frames, 2)), 0)}


COMPANIONS: dict[str, Callable[[Rng, int, int], Arrays]] = {
    "alone": lambda rng, frames, cells: {},
    "with cell arrays": lambda rng, frames, cells: per_cell(rng, cells),
    "with one cell array": lambda rng, frames, cells: {
        "brain_area": rng.integers(1, 4, (cells, 1))},
    "with behaviour": lambda rng, frames, cells: per_frame(rng, frames),
    "with both": lambda rng, frames, cells: {**per_cell(rng, cells), **per_frame(rng, frames)},
    "with times": lambda rng, frames, cells: {"t": np.arange(frames) / 15.0},
    "with times and cell arrays": lambda rng, frames, cells: {
        "timestamps": 2.0 + np.arange(frames) / 15.0, "skew": rng.gamma(2, 1, cells),
        "xpix_med": 512 * rng.random(cells)},
}  # fmt: skip


def judge_of(truth: np.ndarray, arrays: Arrays) -> Callable[[Recording], str]:
    """Says what a recording has wrong: its matrix, its behaviour, or cells as behaviour."""
    of_cells = {*per_cell(np.random.default_rng(0), 4), "brain_area", "skew", "xpix_med"}

    def judge(recording: Recording) -> str:
        found = np.asarray(recording.traces[:])
        if not alike(found, truth):
            turned = alike(found, truth.T)
            shape = " × ".join(map(str, found.shape))
            return f"{'turned' if turned else 'garbled'}: {shape} of {truth.shape}"
        for name, variable in recording.behavior.items():
            if name in of_cells:
                return f"{name} of the cells as behaviour"
            if name in arrays and not alike(variable.values.squeeze(), arrays[name].squeeze()):
                return f"{name} is garbled"
        return ""

    return judge


def trials(home: Path, rng: random.Random, everything: bool) -> Iterator[Trial]:
    """Each kind of matrix, with what goes with it, in all containers and both ways."""
    numbers = np.random.default_rng(rng.randrange(2**32))
    cases = [*product(KINDS, COMPANIONS, CONTAINERS, (False, True))]
    cases += [*product(KINDS, ["alone", "beside a table"], TABLES, (False, True))]
    cases += [*product(KINDS, ["beside a table", "beside a faster table"], CONTAINERS[:1],
                       (False, True))]  # fmt: skip
    rng.shuffle(cases)
    for number, (kind, company, write, cells_first) in enumerate(cases):
        frames, cells = SIZES[0] if rng.random() < 0.4 else rng.choice(SIZES)
        folder = World.at(home).shared
        truth = np.asarray(KINDS[kind](numbers, frames, cells), np.float32)
        arrays = COMPANIONS.get(company, COMPANIONS["alone"])(numbers, frames, cells)
        if cells_first and write in (csv, named):
            continue  # ids of cells head columns
        path = write(folder, truth.T if cells_first else truth, arrays)
        options: dict[str, Any] = {"rate": 15.0}
        if "table" in company:
            rows = frames if company == "beside a table" else int(frames * 2.5)
            table = pd.DataFrame(per_frame(numbers, rows)["position"], columns=["x", "y"])
            if rows != frames:
                table.insert(0, "time_s", np.arange(rows) / 37.5)
            table.to_csv(folder / "behaviour.csv", index=False)
            options["behavior"] = folder / "behaviour.csv"
        way = "cells × frames" if cells_first else "frames × cells"
        case = f"{kind} ({frames} frames, {cells} cells) as {way}, {write.__name__}, {company}"
        yield Trial(case, path, judge_of(truth, arrays), options)
        if not everything and number > 400:
            return


def fall_mat(home: Path, rng: random.Random) -> Iterator[Trial]:
    """What suite2p saves for MATLAB: cells first, statistics in structs."""
    numbers = np.random.default_rng(rng.randrange(2**32))
    for kind, (frames, cells) in product(("calcium", "shuffled frames", "alike neighbours"), SIZES):
        folder = World.at(home).shared
        truth = 100 + 10 * np.asarray(KINDS[kind](numbers, frames, cells), np.float32)
        stat = np.empty((1, cells), object)
        for cell in range(cells):
            pixels = np.arange(4 + cell % 3)
            row, column = 3 * (cell // 20), 4 * (cell % 20)
            stat[0, cell] = {"ypix": row + pixels % 2, "xpix": column + pixels // 2,
                             "lam": np.ones(len(pixels)), "npix": len(pixels), "skew": 1.5,
                             "med": [row, column]}  # fmt: skip
        ops = {"fs": 15.0, "Ly": 128, "Lx": 128, "meanImg": numbers.random((128, 128))}
        saved = {"F": truth.T, "Fneu": np.full_like(truth.T, 7), "spks": np.zeros_like(truth.T),
                 "stat": stat, "ops": ops, "iscell": np.ones((cells, 2)),
                 "redcell": np.zeros((cells, 2))}  # fmt: skip
        scipy.io.savemat(folder / "Fall.mat", saved)

        def judge(recording: Recording, truth: np.ndarray = truth, n: int = cells) -> str:
            found = np.asarray(recording.traces[:])
            if found.shape != truth.shape:
                return f"turned: {found.shape} of {truth.shape}"
            # relative to a baseline that moves, traces are alike, cell by cell
            pairs = zip(found.T, truth.T, strict=True)
            same = np.median([scipy.stats.spearmanr(a, b)[0] for a, b in pairs])
            if same < 0.6:
                return f"garbled: correlated by {same:.2f} with the truth"
            if recording.behavior:
                return f"behaviour from nowhere: {', '.join(recording.behavior)}"
            known = recording.footprints
            return "" if known is not None and len(np.unique(known.cell)) == n else "no footprints"

        yield Trial(
            f"{kind} ({frames} frames, {cells} cells), Fall.mat", folder / "Fall.mat", judge
        )


def family(home: Path, rng: random.Random, tally: Tally, everything: bool = True) -> None:
    """All kinds; until the time is over in small."""
    if everything:
        judge_all(fall_mat(home, rng), tally, until_told=False)
    judge_all(trials(home, rng, everything), tally, until_told=not everything)
