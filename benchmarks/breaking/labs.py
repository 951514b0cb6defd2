"""Files as labs leave them: one of a kind each, with what is in them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import scipy.io
import scipy.sparse

from breaking.orientation import calcium, sorted_by_peak
from breaking.tally import Tally, Trial, World, alike, judge_all
from napari_xcebra.recording import Recording

Rng = np.random.Generator
Write = Callable[[Path, Rng], "tuple[Path, Truth]"]
FRAMES, CELLS, RATE = 600, 37, 10.0
FILES: dict[str, Write] = {}


class Truth:
    """What a file holds.

    Parameters
    ----------
    traces : (frames, cells) array or None
        None: nothing that can be read as a recording.
    variables : mapping of str to (frames,) or (frames, k) array
        NaN where it is not known.
    cells : mapping of str to (cells,) array
    ids : sequence of int, optional
    options : mapping
        Arguments of `open_recording`.
    may : sequence of str
        Further variables that are no mistake.
    """

    def __init__(
        self,
        traces: np.ndarray | None,
        variables: Mapping[str, Any] | None = None,
        cells: Mapping[str, Any] | None = None,
        ids: Any = None,
        may: tuple[str, ...] = (),
        **options: Any,
    ) -> None:
        self.traces, self.variables, self.cells = traces, variables or {}, cells or {}
        self.ids, self.may, self.options = ids, may, {"rate": RATE, **options}

    def judge(self, recording: Recording) -> str:
        """What is wrong in a recording, in words."""
        found = np.asarray(recording.traces[:])
        if self.traces is None:
            return f"{found.shape} of nothing"
        if not alike(found, np.asarray(self.traces, np.float64)):
            turned = alike(found, np.asarray(self.traces, np.float64).T)
            return f"{'turned' if turned else 'garbled'}: {found.shape} of {self.traces.shape}"
        if self.ids is not None and list(recording.cell_ids) != list(self.ids):
            return f"ids {list(recording.cell_ids)[:4]} of {list(self.ids)[:4]}"
        for name, truth in self.variables.items():
            if name not in recording.behavior:
                return f"{name} is gone ({', '.join(recording.behavior) or 'no behaviour'})"
            wrong = _differs(recording.behavior[name].values, np.asarray(truth, float))
            if wrong:
                return f"{name}: {wrong}"
        more = set(recording.behavior) - set(self.variables) - set(self.may)
        if more:
            return f"behaviour from nowhere: {', '.join(sorted(more))}"
        for name, truth in self.cells.items():
            if name not in recording.cells:
                return f"{name} of the cells is gone ({', '.join(recording.cells) or 'none'})"
            if not np.array_equal(np.asarray(recording.cells[name]), np.asarray(truth)):
                return f"{name} of the cells is garbled"
        return ""


def _differs(found: np.ndarray, truth: np.ndarray) -> str:
    truth = truth.reshape(len(truth), -1)
    if found.shape != truth.shape:
        return f"{found.shape} of {truth.shape}"
    known, wanted = np.isfinite(found), np.isfinite(truth)
    if (wanted & ~known).sum() > 0.1 * wanted.sum() or (known & ~wanted).sum() > 3:
        return f"{int(known.sum())} known of {int(wanted.sum())}"
    both = known & wanted
    scale = np.nanmax(np.abs(truth)) or 1.0
    off = np.abs(np.where(both, found - np.where(both, truth, 0), 0)).max() / scale
    return f"off by {off:.2g} of its size" if off > 0.02 else ""


def a_file(write: Write) -> Write:
    FILES[write.__name__.replace("_", " ")] = write
    return write


def made(rng: Rng, frames: int = FRAMES, cells: int = CELLS) -> np.ndarray:
    return calcium(rng, frames, cells).astype(np.float32)


def slow(rng: Rng, frames: int = FRAMES) -> np.ndarray:
    """A variable that is smooth enough to be resampled."""
    return np.sin(np.arange(frames) / 25 + rng.random()) + 2


def npz(path: Path, **arrays: Any) -> Path:
    np.savez(path / "session.npz", **arrays)
    return path / "session.npz"


def mat(path: Path, **arrays: Any) -> Path:
    scipy.io.savemat(path / "session.mat", arrays)
    return path / "session.mat"


def with_table(path: Path, rng: Rng, table: pd.DataFrame | str) -> tuple[Path, np.ndarray, Path]:
    """Traces that need no question, and a table of behaviour."""
    traces = made(rng)
    np.save(path / "frames_x_cells.npy", traces)
    if isinstance(table, str):
        (path / "b.csv").write_text(table)
    else:
        table.to_csv(path / "b.csv", index=False)
    return path / "frames_x_cells.npy", traces, path / "b.csv"


# ------------------------------------------------------------ arrays


@a_file
def caiman_arrays_in_npz(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng)
    masks = np.zeros((900, CELLS))
    masks[np.arange(CELLS) * 7, np.arange(CELLS)] = 1
    snr = rng.gamma(3, 1, CELLS)
    file = npz(path, C=traces.T, S=(traces.T > 1) * traces.T, A=masks, SNR_comp=snr, fr=RATE)
    return file, Truth(traces, cells={"SNR_comp": snr})


@a_file
def suite2p_arrays_in_npz(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = 100 + made(rng)
    file = npz(path, F=traces.T, Fneu=0 * traces.T + 5, spks=0 * traces.T, fs=RATE,
               iscell=np.c_[np.ones(CELLS), rng.random(CELLS)])  # fmt: skip
    return file, Truth(traces, traces_="raw")


@a_file
def mat_with_xyz_and_region(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces, xyz = made(rng, 900, 300), rng.random((300, 3)) * 500
    region = rng.integers(1, 9, 300)
    file = mat(path, deltaF=traces.T, xyz=xyz, regionID=region[:, None])
    return file, Truth(traces, cells={"xyz_1": xyz[:, 0], "xyz_3": xyz[:, 2], "regionID": region})


@a_file
def mat_with_row_vectors_of_behaviour(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces, speed = made(rng), slow(rng)
    file = mat(path, dff=traces, speed=speed[None], t=np.arange(FRAMES)[None] / RATE)
    return file, Truth(traces, {"speed": speed})


@a_file
def binary_spikes_with_position(path: Path, rng: Rng) -> tuple[Path, Truth]:
    spikes = (rng.random((FRAMES, CELLS)) < 0.05).astype(np.uint8)
    place = np.c_[slow(rng), slow(rng)]
    return mat(path, spikes=spikes.T, pos=place), Truth(spikes, {"pos": place})


@a_file
def sparse_matrix_of_matlab(path: Path, rng: Rng) -> tuple[Path, Truth]:
    events = (rng.random((FRAMES, CELLS)) < 0.03) * rng.gamma(2, 1, (FRAMES, CELLS))
    file = mat(path, S=scipy.sparse.csc_matrix(events.T), speed=slow(rng))
    return file, Truth(events, may=("speed",))


@a_file
def int16_in_hdf5_with_timestamps(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = (1000 + 100 * made(rng)).astype(np.int16)
    with h5py.File(path / "a.h5", "w") as file:
        file["traces"], file["timestamps"] = traces.T, 5 + np.arange(FRAMES) / RATE
    return path / "a.h5", Truth(traces, rate=0.0)


@a_file
def hdf5_with_ids_and_centroids(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces, at = made(rng), rng.random((CELLS, 2))
    ids = np.sort(rng.choice(500, CELLS, replace=False))
    with h5py.File(path / "a.h5", "w") as file:
        file["dff"], file["roi_ids"], file["centroids"] = traces, ids, at
    return path / "a.h5", Truth(traces, cells={"centroids_1": at[:, 0]}, ids=ids)


@a_file
def z_scored_and_sorted_by_peak(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = sorted_by_peak(rng, FRAMES, 200)
    traces = ((traces - traces.mean(0)) / traces.std(0)).astype(np.float32)
    np.save(path / "zscored.npy", traces.T)
    return path / "zscored.npy", Truth(traces)


@a_file
def half_precision(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng, 2000, 150).astype(np.float16)
    np.save(path / "a.npy", traces.T)
    return path / "a.npy", Truth(traces.astype(np.float32))


@a_file
def columns_first_and_other_byte_order(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng, 2000, 150)
    np.save(path / "a.npy", np.asfortranarray(traces.T.astype(">f8")))
    return path / "a.npy", Truth(traces)


@a_file
def trials_frames_cells(path: Path, rng: Rng) -> tuple[Path, Truth]:
    np.save(path / "a.npy", made(rng).reshape(20, 30, CELLS))
    return path / "a.npy", Truth(None)


@a_file
def one_cell(path: Path, rng: Rng) -> tuple[Path, Truth]:
    np.save(path / "a.npy", made(rng)[:, 0])
    return path / "a.npy", Truth(None)


@a_file
def a_thousand_cells_few_frames(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng, 120, 1000)
    return npz(path, dff=traces, area=rng.integers(0, 5, 1000)), Truth(traces)


@a_file
def words_for_every_cell(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces, area = made(rng, 300, 500), rng.choice(["V1", "LM", "AL"], 500)
    return npz(path, traces=traces.T, area=area), Truth(traces, cells={"area": area})


@a_file
def words_for_every_frame(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng, 500, 300)
    words = np.repeat(["air", "odour", "air", "tone", "air"], 100)
    codes = np.searchsorted(["air", "odour", "tone"], words)
    return npz(path, traces=traces, stimulus=words), Truth(traces, {"stimulus": codes})


@a_file
def as_many_cells_as_frames(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng, 200, 200)
    file = npz(path, dff=traces.T, depth=rng.random(200), speed=slow(rng, 200))
    return file, Truth(traces, may=("speed",))


@a_file
def statistics_of_cells_as_long_as_the_frames(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng, 300, 300)
    snr, skew = rng.gamma(2, 1, (2, 300))
    file = npz(path, cells_x_time=traces.T, snr=snr, skew=skew)
    return file, Truth(traces, cells={"snr": snr, "skew": skew})


@a_file
def trials_in_frames(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng)
    start = np.arange(0, FRAMES, 60)
    file = npz(path, traces=traces, t=np.arange(FRAMES) / RATE, trial_start=start,
               trial_stop=start + 40, trial_type=np.arange(10) % 2)  # fmt: skip
    return file, Truth(traces, may=("trial_type",))


@a_file
def a_vector_for_each_cell(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng)
    return npz(path, **{f"cell_{n}": traces[:, n] for n in range(CELLS)}), Truth(traces)


@a_file
def netcdf_of_xarray(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng, 200, 260)
    with h5py.File(path / "a.nc", "w") as file:
        file["C"], file["unit_id"], file["frame"] = traces.T, np.arange(260), np.arange(200)
        for axis, name in enumerate(("unit_id", "frame")):
            file[name].make_scale(name)
            file["C"].dims[axis].attach_scale(file[name])
    return path / "a.nc", Truth(traces)


@a_file
def zarr_of_xarray(path: Path, rng: Rng) -> tuple[Path, Truth]:
    from zarr import open_group

    traces = made(rng, 200, 260)
    group = open_group(path / "a.zarr", mode="w", zarr_format=2)
    made_ = group.create_array("C", shape=(260, 200), dtype="f4")
    made_[...] = traces.T
    made_.attrs["_ARRAY_DIMENSIONS"] = ["unit_id", "frame"]
    return path / "a.zarr", Truth(traces)


@a_file
def table_of_pandas_in_hdf5(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng)
    with h5py.File(path / "a.h5", "w") as file:  # as to_hdf writes it, in the fixed format
        group = file.create_group("df")
        group.attrs["pandas_type"] = "frame"
        group["axis0"], group["axis1"] = np.arange(CELLS), np.arange(FRAMES)
        group["block0_items"], group["block0_values"] = np.arange(CELLS), traces
    return path / "a.h5", Truth(traces)


@a_file
def struct_of_structs(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces, speed = made(rng), slow(rng)
    session = {"imaging": {"dff": traces.T, "depth": np.arange(CELLS)[:, None]},
               "behavior": {"speed": speed[:, None]}}  # fmt: skip
    return mat(path, session=session), Truth(traces, {"speed": speed})


@a_file
def events_as_lists_of_frames(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng)
    file = npz(path, dff=traces, time=np.arange(FRAMES) / RATE,
               lick_frames=np.sort(rng.choice(FRAMES, 50, replace=False)))  # fmt: skip
    return file, Truth(traces, may=("lick_frames",))


# ------------------------------------------------------------ tables of traces


@a_file
def cells_in_rows_by_id(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces, ids = made(rng), np.arange(CELLS) * 3 + 2
    table = pd.DataFrame(traces.T)
    table.insert(0, "cell_id", ids)
    table.to_csv(path / "a.csv", index=False)
    return path / "a.csv", Truth(traces, ids=ids)


@a_file
def cells_in_rows_with_their_place(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng)
    table = pd.DataFrame(traces.T, columns=[f"t{i}" for i in range(FRAMES)])
    table.insert(0, "x", rng.random(CELLS))
    table.insert(0, "cell", np.arange(CELLS))
    table.to_csv(path / "a.csv", index=False)
    return path / "a.csv", Truth(traces, cells={"x": table["x"].to_numpy()})


@a_file
def long_format(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng, 200, 12)
    frame, cell = np.meshgrid(np.arange(200), np.arange(12), indexing="ij")
    table = pd.DataFrame({"cell": cell.ravel(), "frame": frame.ravel(), "dff": traces.ravel()})
    table.to_csv(path / "a.csv", index=False)
    return path / "a.csv", Truth(traces)


@a_file
def long_format_by_time(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng, 200, 12)
    time, cell = np.meshgrid(np.arange(200) / RATE, np.arange(12), indexing="ij")
    table = pd.DataFrame({"roi": cell.ravel(), "time": time.ravel(), "F": traces.ravel()})
    table.sort_values(["roi", "time"]).to_csv(path / "a.csv", index=False)
    return path / "a.csv", Truth(traces)


@a_file
def results_of_imagej(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng, FRAMES, 9)
    table = pd.DataFrame({" ": np.arange(1, FRAMES + 1)})
    for cell in range(9):
        table[f"Area{cell + 1}"], table[f"Mean{cell + 1}"] = 100 + cell, traces[:, cell]
    table.to_csv(path / "Results.csv", index=False)
    return path / "Results.csv", Truth(traces, may=tuple(f"Area{n}" for n in range(1, 10)),
                                       ids=range(1, 10))  # fmt: skip


@a_file
def neurons_by_name_with_time_and_frame(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng)
    table = pd.DataFrame(traces, columns=[f"Neuron {n}" for n in range(CELLS)])
    table.insert(0, "Frame", np.arange(1, FRAMES + 1))
    table.insert(1, "Time (s)", np.arange(FRAMES) / RATE)
    table.to_csv(path / "a.csv", index=False)
    return path / "a.csv", Truth(traces, rate=0.0)


@a_file
def speed_among_the_cells(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces, speed = made(rng, FRAMES, 5), slow(rng)
    table = pd.DataFrame(traces, columns=["soma", "dend a", "dend b", "spine", "bg"])
    table["speed_cm_s"] = speed
    table.to_csv(path / "a.csv", index=False)
    return path / "a.csv", Truth(traces, {"speed_cm_s": speed})


@a_file
def a_row_of_means_at_the_end(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng, FRAMES, 6)
    table = pd.DataFrame(traces, columns=[f"roi_{n}" for n in range(6)])
    lines = table.to_csv(index=False) + ",".join(["mean"] * 6) + "\n"
    (path / "a.csv").write_text(lines)
    return path / "a.csv", Truth(traces)


@a_file
def times_as_header_of_cells_in_rows(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng)
    pd.DataFrame(traces.T, columns=(np.arange(FRAMES) / RATE).round(3)).to_csv(
        path / "a.csv", index=False
    )
    return path / "a.csv", Truth(traces, rate=0.0)


@a_file
def spreadsheet_with_points_for_thousands(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = np.round(1000 * (made(rng, 300, 4) + 5))
    rows = [";".join(f"{v:,.0f}".replace(",", ".") for v in row) for row in traces]
    (path / "a.csv").write_text("\n".join(["a;b;c;d", *rows]) + "\n")
    return path / "a.csv", Truth(traces)


@a_file
def parquet_with_an_index_of_times(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng)
    index = pd.Index(np.arange(FRAMES) / RATE, name="time")
    table = pd.DataFrame(traces, index=index, columns=[f"c{n}" for n in range(CELLS)])
    table.to_parquet(path / "a.parquet")
    return path / "a.parquet", Truth(traces, rate=0.0)


# ------------------------------------------------------------ behaviour and its clock


def on_clock(
    name: str,
    entries: Callable[[np.ndarray], Any],
    per_second: float = RATE,
    seconds: float = FRAMES / RATE,
    **options: Any,
) -> None:
    """A table with a clock, and a variable that is a function of the time."""

    def write(path: Path, rng: Rng) -> tuple[Path, Truth]:
        times = np.arange(round(seconds * per_second)) / per_second
        column = entries(times)
        table = pd.DataFrame({**column, "x_cm": np.sin(times / 2.5) + 2})
        file, traces, behavior = with_table(path, rng, table)
        truth = np.sin(np.arange(FRAMES) / RATE / 2.5) + 2
        truth[np.arange(FRAMES) / RATE > times[-1] + 0.5 / per_second] = np.nan
        return file, Truth(traces, {"x_cm": truth}, behavior=behavior, **options)

    FILES[name] = write


def clocks() -> None:
    on_clock("times with a comma for milliseconds", lambda t: {
        "time": [f"{int(s // 3600):02d}:{int(s // 60) % 60:02d}:{s % 60:06.3f}".replace(".", ",")
                 for s in t]}, 25.0)  # fmt: skip
    on_clock(
        "ISO times with a zone and seven digits",
        lambda t: {
            "Timestamp": [
                f"{m:%Y-%m-%dT%H:%M:%S.%f}0+01:00"
                for m in pd.Timestamp("2026-03-01 10:00") + pd.to_timedelta(t, unit="s")
            ]
        },
    )
    on_clock("days of MATLAB", lambda t: {"time": 740_000.5 + t / 86400})
    on_clock("seconds since 1904", lambda t: {"time": 3.86e9 + t})
    on_clock("a column called ms", lambda t: {"ms": (1000 * t).round().astype(int)}, 20.0)
    on_clock("ticks of 30 kHz called time", lambda t: {"time": (30_000 * t).round().astype(int)})
    on_clock("microseconds in brackets", lambda t: {"Timestamp [µs]": (1e6 * t).round()}, 40.0)
    on_clock("ten times as often, in seconds", lambda t: {"t": t.round(4)}, 100.0)
    on_clock("ten times as often, without a clock", lambda t: {}, 100.0)
    on_clock("frames of a camera at 30 Hz", lambda t: {"camera_frame": np.arange(len(t))}, 30.0)
    on_clock("frames of a camera at its rate", lambda t: {"camera_frame": np.arange(len(t))},
             30.0, behavior_rate=30.0)  # fmt: skip
    on_clock("the first half alone", lambda t: {"time": t}, seconds=30.0)
    on_clock(
        "frames from 1, the first half alone",
        lambda t: {"frame": np.round(RATE * t).astype(int) + 1},
        seconds=30.0,
    )
    on_clock("every stamp twice", lambda t: {"time": np.repeat(t[::2], 2)[: len(t)]}, 40.0)
    on_clock("one row too few", lambda t: {}, seconds=(FRAMES - 1) / RATE)
    on_clock("one row too many", lambda t: {}, seconds=(FRAMES + 1) / RATE)
    on_clock("twice as many rows", lambda t: {}, 20.0)
    on_clock("a counter of 16 bits", lambda t: {"time_ms": (1000 * t).round().astype(int) % 65536})
    on_clock(
        "hours and minutes alone",
        lambda t: {"time": [f"14:{int(s // 60):02d}" for s in t]},
        may=("time",),
    )
    on_clock("minutes with decimals by name", lambda t: {"Elapsed (min)": t / 60})
    on_clock(
        "a clock of each trial beside that of the session",
        lambda t: {"trial_time": t % 6, "session_time": t},
        may=("trial_time",),
    )
    on_clock(
        "time and frame that agree", lambda t: {"frame": np.round(RATE * t).astype(int), "time": t}
    )
    on_clock("index of samples and time", lambda t: {"index": np.arange(len(t)), "time": t}, 50.0)


clocks()


@a_file
def negative_times(path: Path, rng: Rng) -> tuple[Path, Truth]:
    times = np.arange(-50, FRAMES) / RATE
    table = pd.DataFrame({"time": times, "x_cm": np.sin(times / 2.5)})
    file, traces, behavior = with_table(path, rng, table)
    truth = np.sin(np.arange(FRAMES) / RATE / 2.5)
    return file, Truth(traces, {"x_cm": truth}, behavior=behavior)


@a_file
def a_clock_of_another_computer(path: Path, rng: Rng) -> tuple[Path, Truth]:
    times = 500 + np.arange(FRAMES) / RATE
    table = pd.DataFrame({"time": times, "x_cm": np.sin(times)})
    file, traces, behavior = with_table(path, rng, table)
    return file, Truth(traces, {"x_cm": np.full(FRAMES, np.nan)}, behavior=behavior)


@a_file
def pulses_of_the_microscope(path: Path, rng: Rng) -> tuple[Path, Truth]:
    times = np.arange(0, 70, 0.002)
    begins = 4.0 + np.arange(FRAMES) / RATE
    sync = np.zeros(len(times))
    for begin in begins:
        sync[(times >= begin) & (times < begin + 0.02)] = 5.0
    table = pd.DataFrame({"Time[s]": times, "sync": sync, "x_cm": np.sin(times / 2.5)})
    file, traces, behavior = with_table(path, rng, table)
    return file, Truth(traces, {"x_cm": np.sin(begins / 2.5)}, behavior=behavior, trigger="sync")


@a_file
def behaviour_in_a_struct_with_its_times(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces, times = made(rng), np.arange(0, 60, 0.02)
    np.save(path / "frames_x_cells.npy", traces)
    pos = {"x": np.sin(times / 2.5), "y": np.cos(times / 2.5), "t": times}
    scipy.io.savemat(path / "b.mat", {"pos": pos})
    frames = np.arange(FRAMES) / RATE
    truth = {"x": np.sin(frames / 2.5), "y": np.cos(frames / 2.5)}
    return path / "frames_x_cells.npy", Truth(traces, truth, behavior=path / "b.mat")


@a_file
def behaviour_two_by_frames(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces, place = made(rng), np.stack([slow(rng), slow(rng)])
    np.save(path / "frames_x_cells.npy", traces)
    np.save(path / "place.npy", place)
    return path / "frames_x_cells.npy", Truth(
        traces, {"place": place.T}, behavior=path / "place.npy"
    )


@a_file
def two_columns_of_one_name(path: Path, rng: Rng) -> tuple[Path, Truth]:
    one, other = slow(rng), slow(rng)
    rows = [f"{a:.5f},{b:.5f}" for a, b in zip(one, other, strict=True)]
    file, traces, behavior = with_table(path, rng, "\n".join(["x,x", *rows]) + "\n")
    return file, Truth(traces, {"x": one, "x.1": other}, behavior=behavior)


@a_file
def nan_and_inf_of_matlab(path: Path, rng: Rng) -> tuple[Path, Truth]:
    x = slow(rng)
    x[5:9] = np.nan
    rows = ["NaN" if np.isnan(v) else f"{v:.5f}" for v in x]
    rows[20] = "Inf"
    x[20] = np.nan
    file, traces, behavior = with_table(path, rng, "\n".join(["x", *rows]) + "\n")
    return file, Truth(traces, {"x": x}, behavior=behavior)


@a_file
def trials_in_milliseconds(path: Path, rng: Rng) -> tuple[Path, Truth]:
    start = np.arange(0, 60_000, 6_000)
    table = pd.DataFrame({"start_ms": start, "stop_ms": start + 4000, "side": np.arange(10) % 2})
    file, traces, behavior = with_table(path, rng, table)
    side = np.full(FRAMES, np.nan)
    for i in range(10):
        side[60 * i : 60 * i + 40] = i % 2
    return file, Truth(traces, {"b_side": side}, behavior=behavior)


@a_file
def trials_in_milliseconds_without_a_unit(path: Path, rng: Rng) -> tuple[Path, Truth]:
    start = np.arange(0, 60_000, 6_000)
    table = pd.DataFrame({"start": start, "stop": start + 4000, "side": np.arange(10) % 2})
    file, traces, behavior = with_table(path, rng, table)
    return file, Truth(traces, {"side": np.full(FRAMES, np.nan)}, behavior=behavior)


@a_file
def a_unit_row(path: Path, rng: Rng) -> tuple[Path, Truth]:
    times = np.arange(0, 60, 0.02)
    rows = [f"{1000 * t:.0f},{np.sin(t / 2.5) + 2:.5f}" for t in times]
    file, traces, behavior = with_table(path, rng, "\n".join(["time,x", "ms,cm", *rows]) + "\n")
    truth = np.sin(np.arange(FRAMES) / RATE / 2.5) + 2
    return file, Truth(traces, {"x_cm": truth}, behavior=behavior)


def trials(home: Path, rng: random.Random) -> Iterator[Trial]:
    """Every file."""
    numbers = np.random.default_rng(rng.randrange(2**32))
    for case, write in FILES.items():
        path, truth = write(World.at(home).shared, numbers)
        options = {name.rstrip("_"): value for name, value in truth.options.items() if value != 0.0}
        yield Trial(case, path, truth.judge, options)


def family(home: Path, rng: random.Random, tally: Tally, everything: bool = True) -> None:
    """All files."""
    import_module("breaking.later")  # which brings `further`; both add their own
    judge_all(trials(home, rng), tally, until_told=not everything)
