"""Still further files of labs: names in rows, indices, axes in attributes, two clocks, NWB."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import scipy.io

from breaking.further import COURSE, SECONDS, course, moments
from breaking.labs import (
    CELLS,
    FRAMES,
    RATE,
    Rng,
    Truth,
    a_file,
    made,
    mat,
    npz,
    on_clock,
    slow,
    with_table,
)

# ------------------------------------------------------------ matrices


@a_file
def savez_without_names(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng)
    np.savez(path / "a.npz", traces.T, COURSE, np.arange(CELLS) * 1.5)
    return path / "a.npz", Truth(traces, may=("arr_1",))


@a_file
def times_of_the_edges_of_frames(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng)
    return npz(path, dff=traces.T, time=np.arange(FRAMES + 1) / RATE), Truth(traces)


@a_file
def a_struct_for_each_cell(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng)
    cells = np.zeros((1, CELLS), [("trace", object), ("id", object)])
    for i in range(CELLS):
        cells[0, i] = (traces[:, i][:, None], float(i + 3))
    return mat(path, ROI=cells), Truth(traces)


@a_file
def frames_that_were_not_taken(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng, 200, 300)
    traces[::3] = np.nan
    np.save(path / "a.npy", traces.T)
    return path / "a.npy", Truth(traces)


@a_file
def cells_that_were_not_seen(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng, 200, 300)
    traces[:, ::3] = np.nan
    np.save(path / "a.npy", traces.T)
    return path / "a.npy", Truth(traces)


@a_file
def hum_of_the_mains(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng, 500, 300) + 2 * (-1.0) ** np.arange(500)[:, None] * rng.random(300)
    np.save(path / "a.npy", traces)
    return path / "a.npy", Truth(traces)


@a_file
def averages_of_trials(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng, 400, 2000)[::5]
    np.save(path / "a.npy", traces.T)
    return path / "a.npy", Truth(traces)


@a_file
def axes_in_an_attribute(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng, 256, 300)
    with h5py.File(path / "a.h5", "w") as file:
        file["traces"] = traces.T
        file["traces"].attrs["dims"] = ["cell", "time"]
    return path / "a.h5", Truth(traces)


@a_file
def ids_by_another_name(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng)
    file = mat(path, dFF=traces.T, frameRate=RATE, cellID=np.arange(CELLS)[None] + 11)
    return file, Truth(traces, ids=range(11, 11 + CELLS), rate=0.0)


@a_file
def times_in_ms_beside_the_rate(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng)
    file = npz(path, dff=traces.T, fs=RATE, time=1000 * SECONDS, speed=slow(rng))
    return file, Truth(traces, may=("speed",), rate=0.0)


# ------------------------------------------------------------ tables


@a_file
def names_of_cells_in_rows(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng)
    rows = pd.DataFrame(traces.T, index=[f"ROI_{n + 1}" for n in range(CELLS)])
    rows.to_csv(path / "a.csv")
    return path / "a.csv", Truth(traces, ids=range(1, CELLS + 1))


@a_file
def words_in_rows_without_a_header(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng, FRAMES, 6)
    rows = pd.DataFrame(traces.T, index=["soma", "dend1", "dend2", "spine", "bg", "axon"])
    rows.to_csv(path / "a.csv", header=False)
    return path / "a.csv", Truth(traces)


@a_file
def names_in_rows_below_times(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng)
    names = pd.Index([f"ROI_{n + 1}" for n in range(CELLS)], name="time")
    pd.DataFrame(traces.T, index=names, columns=SECONDS.round(3)).to_csv(path / "a.csv")
    return path / "a.csv", Truth(traces, rate=0.0)


def indexed(path: Path, rng: Rng, index: Any, rows: Any = slice(None)) -> tuple[Path, Truth]:
    """Behaviour whose index pandas wrote in front, without a name."""
    table = pd.DataFrame({"x": COURSE}, index=index).iloc[rows]
    file, traces, behavior = with_table(path, rng, table.to_csv())
    known = np.full(FRAMES, np.nan)
    known[rows] = COURSE[rows]
    return file, Truth(traces, {"x": known}, behavior=behavior)


@a_file
def an_index_of_rows(path: Path, rng: Rng) -> tuple[Path, Truth]:
    return indexed(path, rng, None)


@a_file
def an_index_of_the_rows_that_were_kept(path: Path, rng: Rng) -> tuple[Path, Truth]:
    return indexed(path, rng, None, np.r_[0:200, 240:FRAMES])


@a_file
def an_index_of_times(path: Path, rng: Rng) -> tuple[Path, Truth]:
    return indexed(path, rng, SECONDS, slice(100, 400))


@a_file
def an_index_of_dates(path: Path, rng: Rng) -> tuple[Path, Truth]:
    return indexed(path, rng, moments(SECONDS, "2026-03-01 10:00:00.001"))


@a_file
def the_id_of_an_animal(path: Path, rng: Rng) -> tuple[Path, Truth]:
    table = pd.DataFrame({"id": 7, "x": COURSE, "y": 2 * COURSE})
    file, traces, behavior = with_table(path, rng, table)
    truth = {"x": COURSE, "y": 2 * COURSE}
    return file, Truth(traces, truth, behavior=behavior, may=("id",))


@a_file
def intervals_of_an_observer(path: Path, rng: Rng) -> tuple[Path, Truth]:
    heads = ["Behavior", "Start (s)", "Stop (s)"]
    table = pd.DataFrame([("rearing", 3, 6), ("grooming", 10, 14.5), ("rearing", 20, 22)],
                         columns=heads)  # fmt: skip
    file, traces, behavior = with_table(path, rng, table)
    return file, Truth(traces, behavior=behavior, may=("b_Behavior", "Behavior", "b"))


def still_further_clocks() -> None:
    heads = {
        "clock": 1.0, "Time since start (s)": 1.0, "pc_time": 1.0, "TimeStamp (ms)": 1e3,
        "Timestamp(ns)": 1e9, "time_usec": 1e6, "time_hours": 1 / 3600, "ts": 1.0,
        "FrameTime": 1.0,
    }  # fmt: skip
    for head, factor in heads.items():
        on_clock(f"under {head}", lambda t, h=head, f=factor: {h: f * t}, 25.0, may=(head,))
    on_clock("days of a spreadsheet", lambda t: {"time": 45_000.5 + t / 86_400}, 25.0)
    on_clock("counting down", lambda t: {"time": 60 - t}, 25.0)
    on_clock("spans of pandas", lambda t: {
        "time": [str(pd.Timedelta(s, unit="s")) for s in t.round(4)]}, 25.0)  # fmt: skip
    on_clock("frames of a film behind the seconds", lambda t: {
        "time": [f"00:00:{int(s):02d}:{round(25 * (s % 1)):02d}" for s in t]}, 25.0)  # fmt: skip
    on_clock("camera and scope", lambda t: {"camera_time": t + 100, "scope_time": t}, 25.0,
             may=("camera_time",))  # fmt: skip
    on_clock("computer and scope", lambda t: {"pc_time": 1.77e9 + t, "scope_time": t}, 25.0,
             may=("pc_time",))  # fmt: skip
    on_clock("rows counted under time", lambda t: {"time": np.arange(len(t))}, 30.0)
    on_clock("half of the frames counted under time", lambda t: {"time": np.round(RATE * t)},
             seconds=30.0)  # fmt: skip
    on_clock("as long, 20 s later", lambda t: {"time": t + 20}, 25.0)
    on_clock("frames of a slower camera", lambda t: {"frame": np.arange(len(t))}, 5.0)
    on_clock("45 s in ms without a unit", lambda t: {"time": (1000 * t).round()}, 25.0, 45.0)


still_further_clocks()


@a_file
def a_matrix_with_dates_in_its_first_row(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces, times = made(rng), np.arange(0, 60, 0.02)
    np.save(path / "frames_x_cells.npy", traces)
    scipy.io.savemat(path / "b.mat", {"data": np.stack([740_000.5 + times / 86_400,
                                                       course(times)])})  # fmt: skip
    return path / "frames_x_cells.npy", Truth(traces, behavior=path / "b.mat")


# ------------------------------------------------------------ NWB


def an_nwb(path: Path, traces: np.ndarray, *, turned: bool = False, **clock: Any) -> Path:
    """A file of one plane; `turned` writes the ROIs first, as some programs do."""
    import pynwb
    from pynwb.behavior import Position, SpatialSeries
    from pynwb.ophys import DfOverF, ImageSegmentation, OpticalChannel, RoiResponseSeries

    file = pynwb.NWBFile("a session", "a", datetime(2026, 3, 1, tzinfo=UTC))
    plane = file.create_imaging_plane(
        name="plane", optical_channel=OpticalChannel(
            name="green", description="green", emission_lambda=500.0
        ), description="",
        device=file.create_device("scope"), excitation_lambda=920.0, indicator="GCaMP",
        location="V1", imaging_rate=RATE,
    )  # fmt: skip
    cells = traces.shape[1]
    ophys = file.create_processing_module("ophys", "imaging")
    ophys.add(segmentation := ImageSegmentation())
    table = segmentation.create_plane_segmentation(name="rois", description="", imaging_plane=plane)
    for cell in range(cells):
        table.add_roi(pixel_mask=[(3 * (cell % 13), 3 * (cell // 13), 1.0)])
    region = table.create_roi_table_region("all", region=list(range(cells)))
    ophys.add(share := DfOverF())
    share.add_roi_response_series(
        RoiResponseSeries(
            name="dff", data=traces, rois=region, unit="1", **(clock or {"rate": RATE})
        )
    )
    times = np.arange(0, 90, 0.02)
    place = SpatialSeries(name="pos", data=np.c_[course(times), course(times)], timestamps=times,
                          reference_frame="the room", unit="cm")  # fmt: skip
    file.create_processing_module("behavior", "place").add(Position(spatial_series=place))
    with pynwb.NWBHDF5IO(str(path / "a.nwb"), "w") as opened:
        opened.write(file)
    if turned:
        with h5py.File(path / "a.nwb", "r+") as stored:
            group = stored["processing/ophys/DfOverF/dff"]
            attributes = dict(group["data"].attrs)
            del group["data"]
            group["data"] = traces.T
            group["data"].attrs.update(attributes)
    return path / "a.nwb"


def on_nwb(name: str, frames: int, *, turned: bool = False, late: float = 0, **clock: Any) -> None:
    def write(path: Path, rng: Rng) -> tuple[Path, Truth]:
        traces = made(rng, frames, CELLS)
        place = course(np.arange(frames) / RATE + late)
        return an_nwb(path, traces, turned=turned, **clock), Truth(
            traces, {"pos": np.c_[place, place]}, rate=0.0
        )

    write.__name__ = name.replace(" ", "_")
    a_file(write)


on_nwb("NWB as it should be", FRAMES)
on_nwb("NWB with the ROIs first", FRAMES, turned=True)
on_nwb("NWB of as many ROIs as frames", CELLS)
on_nwb("NWB of as many ROIs as frames with the ROIs first", CELLS, turned=True)
on_nwb("NWB that begins later", FRAMES, late=10.0, rate=RATE, starting_time=10.0)
on_nwb("NWB with times in ms", FRAMES, timestamps=1000 * SECONDS)
on_nwb("NWB with times in s", FRAMES, timestamps=SECONDS)
