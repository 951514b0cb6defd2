"""Further files of labs, of kinds on which no rule was made: clocks, tables, matrices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import scipy.io
import tifffile

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

SECONDS = np.arange(FRAMES) / RATE
COURSE = np.sin(SECONDS / 2.5) + 2
"""The variable of tables here, at the frames."""


def course(times: Any) -> np.ndarray:
    return np.sin(np.asarray(times) / 2.5) + 2


def moments(times: Any, start: str) -> pd.DatetimeIndex:
    return pd.DatetimeIndex(pd.Timestamp(start) + pd.to_timedelta(times, unit="s"))


def as_text(path: Path, rng: Rng, lines: list[str], **options: Any) -> tuple[Path, Truth]:
    """A table whose column x is the course, one row a frame unless it has a clock."""
    file, traces, behavior = with_table(path, rng, "\n".join(lines) + "\n")
    return file, Truth(traces, {"x": COURSE}, behavior=behavior, **options)


# ------------------------------------------------------------ matrices


@a_file
def mat_of_cells_by_frames_with_tframe(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng, 250, 300)
    file = mat(path, FcellT=traces.T, tframe=np.arange(250)[None] / RATE)
    return file, Truth(traces, rate=0.0)


@a_file
def hdf5_with_labels_of_axes(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng, 200, 260)
    with h5py.File(path / "a.h5", "w") as file:
        file["data"] = traces.T
        file["data"].dims[0].label, file["data"].dims[1].label = "neuron", "time"
    return path / "a.h5", Truth(traces)


@a_file
def npz_with_names_of_cells(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces, names = made(rng, 300, 340), np.array([f"L{n % 3}_{n}" for n in range(340)])
    return npz(path, data=traces.T, names=names), Truth(traces)


@a_file
def npz_of_a_table(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng)
    columns = np.array([f"roi{n}" for n in range(CELLS)])
    return npz(path, values=traces, columns=columns, index=SECONDS), Truth(traces)


@a_file
def more_labels_than_traces(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces, labels = made(rng, 300, 60), np.zeros((64, 64), np.uint16)
    labels.ravel()[np.arange(80) * 50] = np.arange(80) + 1
    tifffile.imwrite(path / "labels.tif", labels)
    np.save(path / "dff.npy", traces.T)
    return path / "dff.npy", Truth(traces)


@a_file
def labels_of_the_cells_in_rows(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces, labels = made(rng, 300, 280), np.zeros((64, 64), np.uint16)
    labels.ravel()[np.arange(280) * 14] = np.arange(280) + 1
    tifffile.imwrite(path / "labels.tif", labels)
    np.save(path / "dff.npy", traces.T)
    return path / "dff.npy", Truth(traces)


@a_file
def trials_padded_with_nan(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = np.full((10, 70, CELLS), np.nan)
    for trial in traces:
        length = rng.integers(40, 70)
        trial[:length] = made(rng, int(length))
    return npz(path, trials=traces), Truth(None)


@a_file
def padded_trials_one_after_the_other(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng)
    traces[np.arange(FRAMES) % 60 > 50] = np.nan
    return npz(path, dff=traces.T, trial=np.arange(FRAMES) // 60), Truth(traces, may=("trial",))


@a_file
def nearly_square_with_speed(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces, speed = made(rng, 301, 299), slow(rng, 301)
    return npz(path, dff=traces.T, speed=speed, snr=rng.gamma(2, 1, 299)), Truth(
        traces, {"speed": speed}
    )


@a_file
def nearly_square_noise(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = rng.standard_normal((301, 299)).astype(np.float32)
    np.save(path / "a.npy", traces.T)
    return path / "a.npy", Truth(traces)


@a_file
def forty_frames_of_three_thousand_cells(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng, 40, 3000)
    traces = (traces - traces.mean(0)) / traces.std(0)
    np.save(path / "z.npy", traces)
    return path / "z.npy", Truth(traces)


@a_file
def very_sparse_events(path: Path, rng: Rng) -> tuple[Path, Truth]:
    events = ((rng.random((900, 150)) < 0.002) * rng.gamma(2, 1, (900, 150))).astype(np.float32)
    np.save(path / "events.npy", events.T)
    return path / "events.npy", Truth(events)


@a_file
def rois_numbered_from_one(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng)
    return npz(path, traces=traces, roi_id=np.arange(CELLS) + 1), Truth(
        traces, ids=range(1, CELLS + 1)
    )


@a_file
def groups_of_an_observatory(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces, ids = made(rng), 541_095_000 + np.sort(rng.choice(900, CELLS, replace=False))
    with h5py.File(path / "a.h5", "w") as file:
        file["dff/data"], file["dff/timestamps"] = traces.T, 9 + SECONDS
        file["dff/roi_names"] = [str(each).encode() for each in ids]
    return path / "a.h5", Truth(traces, rate=0.0)


@a_file
def rate_as_an_attribute(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng)
    with h5py.File(path / "a.h5", "w") as file:
        file["dff"], file.attrs["fs"] = traces.T, RATE
    return path / "a.h5", Truth(traces)


@a_file
def behaviour_on_its_own_clock_in_the_same_file(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces, times = made(rng), np.arange(0, 60, 0.02)
    file = npz(path, dff=traces.T, frame_times=SECONDS, behavior_time=times, speed=course(times))
    return file, Truth(traces, {"speed": COURSE}, rate=0.0)


@a_file
def speed_with_its_clock_in_the_same_mat(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces, times = made(rng), np.arange(0, 60, 0.02)
    file = mat(path, dff=traces.T, dff_t=SECONDS[:, None], speed=course(times)[:, None],
               speed_t=times[:, None])  # fmt: skip
    return file, Truth(traces, {"speed": COURSE}, rate=0.0)


@a_file
def dictionary_saved_as_npy(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng)
    saved: Any = {"dff": traces, "position": slow(rng)}
    np.save(path / "a.npy", saved, allow_pickle=True)
    return path / "a.npy", Truth(traces, may=("position",))


@a_file
def structured_array(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng)
    fields = np.zeros(FRAMES, [("time", "f8"), *((f"cell{n}", "f4") for n in range(CELLS))])
    fields["time"] = SECONDS
    for n in range(CELLS):
        fields[f"cell{n}"] = traces[:, n]
    np.save(path / "a.npy", fields)
    return path / "a.npy", Truth(traces)


@a_file
def traces_and_their_z_scores_either_way(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng, 350, 300)
    return npz(path, dff=traces.T, zscore=(traces - traces.mean(0)) / traces.std(0)), Truth(traces)


@a_file
def correlations_of_cells_beside(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng, 400, 320)
    file = npz(path, dff=traces.T, corr=np.corrcoef(traces.T), order=rng.permutation(320))
    return file, Truth(traces, cells=None, may=())


@a_file
def stimulus_frames_by_time(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces, onsets = made(rng, 320, 300), np.sort(rng.choice(320, 300, replace=False))
    return npz(path, dff=traces.T, stim_onset_frames=onsets), Truth(
        traces, may=("stim_onset_frames",)
    )


@a_file
def singleton_axes_of_matlab(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng)
    return mat(path, dff=traces.T[None], fs=RATE), Truth(traces)


@a_file
def complex_numbers(path: Path, rng: Rng) -> tuple[Path, Truth]:
    np.save(path / "a.npy", made(rng) + 1j * made(rng))
    return path / "a.npy", Truth(None)


@a_file
def a_covariance_matrix(path: Path, rng: Rng) -> tuple[Path, Truth]:
    np.save(path / "a.npy", np.cov(made(rng, 2000, 200).T))
    return path / "a.npy", Truth(None)


@a_file
def planes_in_one_mat(path: Path, rng: Rng) -> tuple[Path, Truth]:
    planes = np.empty((1, 3), object)
    traces = [made(rng, FRAMES, 20 + n) for n in range(3)]
    for n, plane in enumerate(traces):
        planes[0, n] = plane.T
    return mat(path, dff=planes), Truth(np.hstack(traces))


@a_file
def events_of_single_precision_with_minus_zero(path: Path, rng: Rng) -> tuple[Path, Truth]:
    events = -0.0 + (rng.random((700, 45)) < 0.03) * rng.gamma(2, 1, (700, 45))
    return npz(path, spks=events.T.astype(np.float32)), Truth(events)


@a_file
def position_as_wide_as_the_traces(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces, place = made(rng, FRAMES, 3), np.c_[slow(rng), slow(rng)]
    return npz(path, dff=traces, position=place), Truth(traces, {"position": place})


# ------------------------------------------------------------ tables of traces


@a_file
def semicolons_and_rois_from_one(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng)
    table = pd.DataFrame(traces, columns=np.arange(1, CELLS + 1))
    table.to_csv(path / "a.csv", sep=";", decimal=",", index=False)
    return path / "a.csv", Truth(traces, ids=range(1, CELLS + 1))


@a_file
def traces_with_a_row_of_units(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng, FRAMES, 5)
    heads = ["Time," + ",".join(f"ROI{n}" for n in range(1, 6)), "[ms]" + ",[dF/F]" * 5]
    rows = [",".join(f"{v:.6g}" for v in (1000 * t, *row))
            for t, row in zip(SECONDS, traces, strict=True)]  # fmt: skip
    (path / "a.csv").write_text("\n".join([*heads, *rows]) + "\n")
    return path / "a.csv", Truth(traces, rate=0.0)


@a_file
def tab_at_the_end_of_lines(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng, FRAMES, 6)
    heads = "Frame\t" + "\t".join(f"Mean({n})" for n in range(1, 7)) + "\t"
    rows = ["\t".join(f"{v:.6g}" for v in (n + 1, *row)) + "\t" for n, row in enumerate(traces)]
    (path / "a.txt").write_text("\n".join([heads, *rows]) + "\n")
    return path / "a.txt", Truth(traces)


@a_file
def header_of_planes_and_cells(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng, FRAMES, 8)
    columns = pd.MultiIndex.from_product([["plane0", "plane1"], range(4)], names=["plane", "cell"])
    pd.DataFrame(traces, columns=columns).to_csv(path / "a.csv")
    return path / "a.csv", Truth(traces)


@a_file
def comments_above_the_header(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng, FRAMES, 5)
    rows = [",".join(f"{v:.6g}" for v in row) for row in traces]
    heads = ["# mouse 12, day 3", "# rate: 10 Hz", "a1,a2,a3,a4,a5"]
    (path / "a.csv").write_text("\n".join([*heads, *rows]) + "\n")
    return path / "a.csv", Truth(traces)


@a_file
def utf_16_with_a_mark(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng, FRAMES, 5)
    pd.DataFrame(traces, columns=[*"abcde"]).to_csv(
        path / "a.csv", sep="\t", index=False, encoding="utf-16"
    )
    return path / "a.csv", Truth(traces)


@a_file
def frames_that_were_dropped(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng, FRAMES, 7)
    table = pd.DataFrame(traces, columns=[f"cell {n}" for n in range(7)])
    table.insert(0, "time (s)", SECONDS + 3.0 * (SECONDS > 30))
    table.to_csv(path / "a.csv", index=False)
    return path / "a.csv", Truth(traces, rate=0.0)


@a_file
def traces_on_dates(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng, FRAMES, 7)
    table = pd.DataFrame(traces, columns=[f"cell {n}" for n in range(7)])
    table.insert(0, "timestamp", [m.isoformat() for m in moments(SECONDS, "2026-03-01T10:00Z")])
    table.to_csv(path / "a.csv", index=False)
    return path / "a.csv", Truth(traces, rate=0.0)


@a_file
def traces_with_unix_milliseconds(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng, FRAMES, 7)
    table = pd.DataFrame(traces, columns=[f"C{n}" for n in range(7)])
    table.insert(0, "timestamp_ms", (1.77e12 + 1000 * SECONDS).astype("i8"))
    table.to_csv(path / "a.csv", index=False)
    return path / "a.csv", Truth(traces, rate=0.0)


@a_file
def rows_of_cells_numbered_without_a_header(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng)
    rows = np.c_[np.arange(1, CELLS + 1), traces.T]
    np.savetxt(path / "a.csv", rows, delimiter=",", fmt="%.6g")
    return path / "a.csv", Truth(traces, ids=range(1, CELLS + 1))


@a_file
def rows_of_cells_with_depth(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces, depth = made(rng, 200, 30), rng.random(30).round(4)
    table = pd.DataFrame(traces.T, columns=range(1, 201))
    table.insert(0, "depth_um", depth)
    table.insert(0, "ROI", range(1, 31))
    table.to_csv(path / "a.csv", index=False)
    return path / "a.csv", Truth(traces, cells={"depth_um": depth}, ids=range(1, 31))


@a_file
def long_table_from_one_with_entries_missing(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng, 200, 12)
    frame, cell = np.meshgrid(np.arange(200), np.arange(12), indexing="ij")
    table = pd.DataFrame({"frame": frame.ravel() + 1, "neuron_id": cell.ravel() + 1,
                          "value": traces.ravel()})  # fmt: skip
    gone = rng.choice(len(table), 50, replace=False)
    table.drop(index=gone).to_csv(path / "a.csv", index=False)
    truth = traces.copy()
    truth[frame.ravel()[gone], cell.ravel()[gone]] = np.nan
    return path / "a.csv", Truth(truth, ids=range(1, 13))


@a_file
def frames_of_traces_that_restart_each_trial(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng, FRAMES, 5)
    table = pd.DataFrame(traces, columns=[f"cell{n}" for n in range(5)])
    table.insert(0, "frame", np.arange(FRAMES) % 60)
    table.insert(0, "trial", np.arange(FRAMES) // 60 + 1)
    table.to_csv(path / "a.csv", index=False)
    return path / "a.csv", Truth(traces, may=("trial",))


@a_file
def a_workbook(path: Path, rng: Rng) -> tuple[Path, Truth]:
    import zipfile

    with zipfile.ZipFile(path / "a.xlsx", "w") as file:
        file.writestr("[Content_Types].xml", "<Types/>")
        file.writestr("xl/workbook.xml", "<workbook/>")
    return path / "a.xlsx", Truth(None)


@a_file
def behaviour_given_as_traces(path: Path, rng: Rng) -> tuple[Path, Truth]:
    table = pd.DataFrame({"time": SECONDS, "x_cm": COURSE, "y_cm": COURSE, "speed": COURSE})
    table.to_csv(path / "a.csv", index=False)
    return path / "a.csv", Truth(None)


# ------------------------------------------------------------ clocks of behaviour


def further_clocks() -> None:
    def of_day(t: np.ndarray, start: str, form: str) -> list[str]:
        return [m.strftime(form) for m in moments(t, start)]

    on_clock("milliseconds since midnight", lambda t: {"time": (5.4e7 + 1000 * t).round()}, 25.0)
    on_clock("ms since midnight by name", lambda t: {"time_ms": (5.4e7 + 1000 * t).round()}, 25.0)
    on_clock("ISO with two zones", lambda t: {"time": [
        m.isoformat() for m in moments(t, "2026-03-01T10:00:00+05:30")]}, 25.0)  # fmt: skip
    on_clock("ISO when summer time begins", lambda t: {"time": [
        m.tz_convert("Europe/Berlin").isoformat()
        for m in moments(t, "2026-03-29T00:59:30Z")]}, 25.0)  # fmt: skip
    on_clock("ISO with Z and nanoseconds", lambda t: {
        "time": of_day(t, "2026-03-01 10:00", "%Y-%m-%dT%H:%M:%S.%f000Z")}, 25.0)  # fmt: skip
    on_clock("day.month.year", lambda t: {
        "time": of_day(t, "2026-03-02 14:59:30", "%d.%m.%Y %H:%M:%S.%f")}, 25.0)  # fmt: skip
    on_clock("day/month/year across midnight", lambda t: {
        "time": of_day(t, "2026-03-02 23:59:30", "%d/%m/%Y %H:%M:%S.%f")}, 25.0)  # fmt: skip
    on_clock("month/day/year across midnight", lambda t: {
        "time": of_day(t, "2026-03-02 23:59:30", "%m/%d/%Y %H:%M:%S.%f")}, 25.0)  # fmt: skip
    on_clock("month/day/year of twelve hours", lambda t: {
        "time": of_day(t, "2026-03-02 11:59:30", "%m/%d/%Y %I:%M:%S.%f %p")}, 25.0)  # fmt: skip
    on_clock("a stamp without punctuation", lambda t: {
        "time": of_day(t, "2026-03-02 11:59:30", "%Y%m%d_%H%M%S.%f")}, 25.0)  # fmt: skip
    on_clock("date and time in two columns", lambda t: {
        "date": of_day(t, "2026-03-02 11:59:30", "%Y-%m-%d"),
        "time": of_day(t, "2026-03-02 11:59:30", "%H:%M:%S.%f")}, 25.0, may=("date",))  # fmt: skip
    on_clock("whole seconds of the day", lambda t: {
        "time": of_day(t, "2026-03-02 11:59:30", "%H:%M:%S")}, 25.0)  # fmt: skip
    on_clock("day of week before the date", lambda t: {
        "time": of_day(t, "2026-03-02 11:59:30", "%a %b %d %H:%M:%S.%f %Y")}, 25.0)  # fmt: skip
    on_clock("frames that restart each trial", lambda t: {
        "trial": (t // 6).astype(int), "frame": np.round(RATE * (t % 6)).astype(int)},
        may=("trial", "frame"))  # fmt: skip
    on_clock("seconds that restart each trial", lambda t: {
        "trial": (t // 6).astype(int), "time": (t % 6).round(4)}, 25.0, may=("trial",))  # fmt: skip
    on_clock("microseconds that wrap at 2^32", lambda t: {
        "time_us": (4.27e9 + 1e6 * t).astype("i8") % 2**32}, 25.0)  # fmt: skip
    on_clock("milliseconds of a signed short", lambda t: {
        "time_ms": ((1000 * t).astype("i8") + 2**15) % 2**16 - 2**15}, 25.0)  # fmt: skip
    on_clock("a clock set an hour later", lambda t: {"time": t + 3600 * (t > 30)}, 25.0)
    on_clock("a clock set back by two seconds", lambda t: {"time": t - 2 * (t > 30)}, 25.0)
    on_clock("one stamp of zero", lambda t: {"time": np.where(t == 30, 0, t)}, 25.0)
    on_clock("one stamp from the year 2000", lambda t: {"time": np.where(t == 30, 9.5e8, t)}, 25.0)
    on_clock("every tenth stamp twice", lambda t: {
        "time": np.where(np.arange(len(t)) % 10 == 9, np.roll(t, 1), t)}, 25.0)  # fmt: skip
    on_clock("unix seconds rounded to tens", lambda t: {"time": (1.77e9 + t).round(-1)}, 25.0)
    on_clock("unix time for imaging in seconds", lambda t: {"unix_time": 1.77e9 + t}, 25.0)
    on_clock("frames counted by a converter", lambda t: {
        "frame_count": np.floor(RATE * t + 1e-6).astype(int) + 1}, 200.0)  # fmt: skip
    on_clock("frames counted, and the time", lambda t: {
        "time_s": t, "scan_frame": np.floor(RATE * t + 1e-6).astype(int) + 1}, 200.0,
        may=("scan_frame",))  # fmt: skip
    on_clock("frames of the imaging from 1000", lambda t: {
        "frame": 1000 + np.round(RATE * t).astype(int)})  # fmt: skip
    on_clock("frames in thousands with points", lambda t: {
        "frame": [f"{int(RATE * s + 0.5):,}".replace(",", ".") for s in t]})  # fmt: skip
    on_clock("ticks of 10 MHz since the year 1", lambda t: {
        "ticks": (6.38e17 + 1e7 * t).astype("i8")}, 25.0, may=("ticks",))  # fmt: skip
    on_clock("time in another language", lambda t: {"Zeit": t}, 25.0)
    on_clock("time in another language, a row a frame", lambda t: {"Zeit": t}, may=("Zeit",))
    on_clock("seconds and the rest in two columns", lambda t: {
        "seconds": np.floor(t).astype(int), "microseconds": (1e6 * (t % 1)).round().astype(int)},
        25.0, may=("microseconds",))  # fmt: skip
    on_clock("minutes and seconds in two columns", lambda t: {
        "min": (t // 60).astype(int), "sec": t % 60}, 25.0, may=("min",))  # fmt: skip
    on_clock("twice as long, in frames of the imaging", lambda t: {
        "frame": np.round(RATE * t).astype(int)}, seconds=120.0)  # fmt: skip
    on_clock("percent of the session", lambda t: {"time": 100 * t / t[-1]}, 25.0)
    on_clock("a stamp missing here and there", lambda t: {
        "time": np.where(np.arange(len(t)) % 50 == 7, np.nan, t)}, 25.0)  # fmt: skip
    on_clock("stamps written in exponents", lambda t: {"time": [f"{s:.6E}" for s in t]}, 25.0)
    on_clock("stamps with their unit", lambda t: {"time": [f"{s:.3f} s" for s in t]}, 25.0)
    on_clock(
        "stamps in ms with their unit", lambda t: {"t": [f"{1000 * s:.0f}ms" for s in t]}, 25.0
    )
    on_clock("an hour of half-hourly minutes", lambda t: {"time_min": (t / 60).round(2)}, 25.0)
    on_clock("seconds rounded to whole", lambda t: {"time": np.floor(t)}, 25.0)


further_clocks()


@a_file
def ten_rows_written_late(path: Path, rng: Rng) -> tuple[Path, Truth]:
    order = np.r_[:300, 310:320, 300:310, 320:FRAMES]
    rows = [f"{SECONDS[n]:.2f},{COURSE[n]:.5f}" for n in order]
    return as_text(path, rng, ["time,x", *rows])


@a_file
def every_second_frame(path: Path, rng: Rng) -> tuple[Path, Truth]:
    rows = [f"{n},{COURSE[n]:.5f}" for n in range(0, FRAMES, 2)]
    file, traces, behavior = with_table(path, rng, "\n".join(["frame,x", *rows]) + "\n")
    known = np.where(np.arange(FRAMES) % 2, np.nan, COURSE)
    return file, Truth(traces, {"x": known}, behavior=behavior)


@a_file
def decimal_comma_and_dates(path: Path, rng: Rng) -> tuple[Path, Truth]:
    rows = [f"{m:%d.%m.%Y %H:%M:%S},{m.microsecond // 1000:03d};{x:.5f}".replace(".", ",", 0)
            for m, x in zip(moments(SECONDS, "2026-03-01 10:00"), COURSE, strict=True)]  # fmt: skip
    rows = [row[: row.rindex(".")] + "," + row[row.rindex(".") + 1 :] for row in rows]
    return as_text(path, rng, ["Zeitstempel;x", *rows], may=("Zeitstempel",))


@a_file
def words_without_header_and_spaces(path: Path, rng: Rng) -> tuple[Path, Truth]:
    times = np.arange(0, 60, 0.04)
    stamps = moments(times, "2026-03-01T10:00:00.000001Z")
    rows = [f"{m.isoformat()} {course(t):.5f}" for m, t in zip(stamps, times, strict=True)]
    file, traces, behavior = with_table(path, rng, "\n".join(rows) + "\n")
    return file, Truth(traces, behavior=behavior, may=("1",))


@a_file
def many_lines_above_the_header(path: Path, rng: Rng) -> tuple[Path, Truth]:
    times = np.arange(0, 60, 0.04)
    heads = ['"Number of header lines:";"6"', '"Experiment";"openfield"', '"Arena";"1"',
             '""', '"Trial time";"Recording time";"x";"Velocity"',
             '"s";"s";"cm";"cm/s"']  # fmt: skip
    rows = [f'{t:.3f};{t:.3f};{course(t):.5f};"-"' for t in times]
    file, traces, behavior = with_table(path, rng, "\n".join([*heads, *rows]) + "\n")
    return file, Truth(
        traces, {"x_cm": COURSE}, behavior=behavior, may=("Trial time_s", "Velocity_cm/s")
    )


@a_file
def poses_of_two_animals(path: Path, rng: Rng) -> tuple[Path, Truth]:
    parts = [("scorer", "net"), ("individuals", "m1"), ("bodyparts", "nose")]
    heads = [f"{name}" + f",{value}" * 3 for name, value in parts] + ["coords,x,y,likelihood"]
    rows = [f"{n},{100 * x:.3f},{50 * x:.3f},0.99" for n, x in enumerate(COURSE)]
    file, traces, behavior = with_table(path, rng, "\n".join([*heads, *rows]) + "\n")
    return file, Truth(
        traces, may=("nose", "m1_nose", "heading", "speed", "nose_x", "nose_y"), behavior=behavior
    )


@a_file
def two_rates_in_one_mat(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces, slowly, fast = made(rng), np.arange(0, 60, 0.05), np.arange(0, 60, 0.01)
    np.save(path / "frames_x_cells.npy", traces)
    scipy.io.savemat(path / "b.mat", {"pos": course(slowly), "pos_t": slowly,
                                      "wheel": course(fast), "wheel_t": fast})  # fmt: skip
    truth = {"pos": COURSE, "wheel": COURSE}
    return path / "frames_x_cells.npy", Truth(traces, truth, behavior=path / "b.mat")


@a_file
def two_rates_and_one_clock(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces, fast = made(rng), np.arange(0, 60, 0.01)
    np.save(path / "frames_x_cells.npy", traces)
    np.savez(path / "b.npz", time=fast, wheel=course(fast), x=COURSE)
    return path / "frames_x_cells.npy", Truth(
        traces, {"wheel": COURSE}, behavior=path / "b.npz", may=("x",)
    )


@a_file
def true_and_false_in_words(path: Path, rng: Rng) -> tuple[Path, Truth]:
    lick = np.arange(FRAMES) // 30 % 2
    rows = [f"{x:.5f},{('no', 'yes')[n]},{('False', 'TRUE')[n]}"
            for x, n in zip(COURSE, lick, strict=True)]  # fmt: skip
    file, traces, behavior = with_table(path, rng, "\n".join(["x,lick,run", *rows]) + "\n")
    return file, Truth(traces, {"x": COURSE, "lick": lick, "run": lick}, behavior=behavior)


@a_file
def unknown_rows_as_999(path: Path, rng: Rng) -> tuple[Path, Truth]:
    x = COURSE.copy()
    x[100:110] = np.nan
    rows = ["-999" if np.isnan(v) else f"{v:.5f}" for v in x]
    file, traces, behavior = with_table(path, rng, "\n".join(["x", *rows]) + "\n")
    return file, Truth(traces, {"x": np.where(np.isnan(x), -999, x)}, behavior=behavior)


@a_file
def trials_on_dates(path: Path, rng: Rng) -> tuple[Path, Truth]:
    start = moments(np.arange(0, 60, 6), "2026-03-01 10:00")
    table = pd.DataFrame({"start_time": start.astype(str), "side": np.arange(10) % 2,
                          "stop_time": (start + pd.Timedelta("4s")).astype(str)})  # fmt: skip
    file, traces, behavior = with_table(path, rng, table)
    side = np.full(FRAMES, np.nan)
    for i in range(10):
        side[60 * i : 60 * i + 40] = i % 2
    return file, Truth(traces, {"b_side": side}, behavior=behavior)


@a_file
def trials_in_frames_from_one(path: Path, rng: Rng) -> tuple[Path, Truth]:
    start = np.arange(0, FRAMES, 60)
    table = pd.DataFrame({"start_frame": start + 1, "end_frame": start + 60, "side": [0, 1] * 5})
    file, traces, behavior = with_table(path, rng, table)
    side = np.repeat([0.0, 1.0] * 5, 60)
    return file, Truth(traces, {"b_side": side}, behavior=behavior)


@a_file
def both_clocks_since_1970(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces, times = made(rng), np.arange(-5, 70, 0.02)
    file = npz(path, dff=traces.T, timestamps=1.77e9 + SECONDS)
    pd.DataFrame({"timestamp": 1.77e9 + times, "x": course(times)}).to_csv(
        path / "b.csv", index=False
    )
    return file, Truth(traces, {"x": COURSE}, rate=0.0, behavior=path / "b.csv")


@a_file
def imaging_since_1970_and_behaviour_on_dates(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces, times = made(rng), np.arange(-5, 70, 0.02)
    file = npz(path, dff=traces.T, timestamps=1_772_359_200 + SECONDS)
    stamps = [m.isoformat() for m in moments(times, "2026-03-01T10:00:00.000001Z")]
    pd.DataFrame({"timestamp": stamps, "x": course(times)}).to_csv(path / "b.csv", index=False)
    return file, Truth(traces, {"x": COURSE}, rate=0.0, behavior=path / "b.csv")


@a_file
def a_table_of_cells_given_as_behaviour(path: Path, rng: Rng) -> tuple[Path, Truth]:
    traces = made(rng)
    np.save(path / "frames_x_cells.npy", traces)
    table = pd.DataFrame({"roi": range(CELLS), "x": rng.random(CELLS), "depth": rng.random(CELLS)})
    table.to_csv(path / "cells.csv", index=False)
    return path / "frames_x_cells.npy", Truth(None, behavior=path / "cells.csv")


@a_file
def events_with_the_unit_in_the_file(path: Path, rng: Rng) -> tuple[Path, Truth]:
    at = np.sort(rng.choice(FRAMES, 40, replace=False)) / RATE
    table = pd.DataFrame({"event": ["lick"] * 40, "time (ms)": (1000 * at).round()})
    file, traces, behavior = with_table(path, rng, table)
    return file, Truth(traces, may=("lick",), behavior=behavior)
