"""Rows lie on the frames that their times or numbers name, or the program asks."""

import numpy as np
import pandas as pd
import pytest

from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording
from napari_xcebra.io.clocks.timestamps import _order_of

RATE, FRAMES = 10.0, 300
FRAME = np.arange(FRAMES)
RNG = np.random.default_rng(0)


@pytest.fixture
def opened(tmp_path):
    np.save(tmp_path / "traces_time_x_cells.npy", RNG.random((FRAMES, 7), np.float32))

    def open_(name, entries, frame=FRAME, **choices):
        pd.DataFrame({name: entries, "x": frame}).to_csv(tmp_path / "b.csv", index=False)
        path = tmp_path / "traces_time_x_cells.npy"
        return open_recording(path, tmp_path / "b.csv", rate=RATE, **choices)

    return open_


def place_of(recording):
    return recording.behavior["x"].values[:, 0]


@pytest.mark.parametrize("name", ["frame", "Frame", "frame_number", "FrameIdx", "Imaging frame #"])
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize(
    "rows",
    [FRAME, FRAME[::-1], RNG.permutation(FRAME), FRAME[50:], np.r_[FRAME[:90], FRAME[140:]]],
    ids=["all", "reversed", "shuffled", "from 50 on", "gap"],
)
def test_a_frame_number_is_a_clock(opened, name, first, rows):
    recording = opened(name, rows + first, rows)
    expected = np.full(FRAMES, np.nan)
    expected[rows] = rows
    np.testing.assert_allclose(place_of(recording), expected, atol=1e-6)
    assert [*recording.behavior] == ["x"]


def test_where_the_range_does_not_tell_the_first_number_it_is_called_a_guess(opened):
    recording = opened("frame", FRAME[50:200], FRAME[50:200])
    assert any("guess" in note and "frames-from-1" in note for note in recording.notes)
    later = opened("frame", FRAME[50:200], FRAME[50:200], behavior_clock="frames-from-1")
    np.testing.assert_allclose(place_of(later)[49:199], FRAME[50:200], atol=1e-6)
    assert not any("guess" in note for note in later.notes)


def test_numbers_of_another_camera_are_asked_about_and_placed_by_its_rate(opened):
    number = np.arange(3 * FRAMES)
    with pytest.raises(InputError, match=r"numbers frames 0 to 899.*`behavior_rate`"):
        opened("frame", number, number / 3)
    recording = opened("frame", number, number / 3, behavior_rate=3 * RATE)
    np.testing.assert_allclose(place_of(recording), FRAME, atol=0.5)


def test_several_rows_of_a_frame_are_averaged(opened):
    number = np.repeat(FRAME, 2)
    recording = opened("frame", number, number + np.tile([0.0, 0.5], FRAMES))
    np.testing.assert_allclose(place_of(recording), FRAME + 0.25, atol=1e-6)


@pytest.mark.parametrize("order", [slice(None, None, -1), RNG.permutation(FRAMES)])
@pytest.mark.parametrize(
    ("name", "entries"),
    [
        ("time", FRAME / RATE),
        ("time_ms", 100 * FRAME),
        ("time", [f"{f // 600}:{f % 600 / 10:04.1f}" for f in FRAME]),
        ("time", (pd.Timestamp("2026-03-01 23:59:50") + pd.to_timedelta(FRAME / 10, "s")).strftime(
            "%H:%M:%S.%f")),
        ("sample", 2500 * FRAME),
    ],
    ids=["seconds", "ms", "m:ss.s", "across midnight", "samples"],
)  # fmt: skip
def test_rows_in_any_order_are_sorted_by_their_clock(opened, name, entries, order):
    recording = opened(name, np.asarray(entries)[order], FRAME[order])
    np.testing.assert_allclose(place_of(recording), FRAME, atol=0.01)


def test_a_clock_in_no_order_is_asked_about_unless_rows_are_frames(opened):
    jumbled = RNG.permutation(np.repeat(np.arange(30), 10)) / RATE
    with pytest.raises(InputError, match=r"time is named as a clock.*`behavior_clock` to rows"):
        opened("time", jumbled)
    np.testing.assert_array_equal(place_of(opened("time", jumbled, behavior_clock="rows")), FRAME)


@pytest.mark.parametrize(("bits", "start"), [(16, 50_000), (32, 2**32 - 9_000)])
@pytest.mark.parametrize("low", [0, -1], ids=["from 0", "signed"])
def test_a_counter_that_ran_over_is_counted_on(opened, bits, start, low):
    low *= 2 ** (bits - 1)
    counts = (start + 100 * FRAME) % 2**bits + low
    recording = opened("time_ms", counts, FRAME, offset=-counts[0] / 1000)
    np.testing.assert_allclose(place_of(recording), FRAME, atol=0.01)
    assert any(f"counter of {bits} bits that ran over" in note for note in recording.notes)


def test_a_clock_that_was_set_back_is_neither_sorted_nor_believed(opened):
    time = np.arange(2 * FRAMES) / (2 * RATE)
    time[FRAMES:] -= 1.0
    with pytest.raises(InputError, match=r"Column time does not run forward .* been set back"):
        opened("time", time, np.arange(2 * FRAMES) / 2)


def test_a_few_rows_written_late_are_sorted(opened):
    late = np.r_[FRAME[:100], FRAME[110:120], FRAME[100:110], FRAME[120:]]
    np.testing.assert_allclose(place_of(opened("time", late / RATE, late)), FRAME, atol=0.01)


def test_a_clock_that_starts_again_is_neither_sorted_nor_believed():
    once = np.arange(50) / 10
    assert _order_of(np.tile(once, 4)) == "again"
    assert _order_of(np.tile(once, 4)[::-1]) == "jumbled"
    assert _order_of(np.r_[once + 5, once]) == "sortable"
    assert _order_of(RNG.normal(36, 1, 200)) == "jumbled"


@pytest.mark.parametrize("rows", [FRAME, FRAME[33:], FRAME[:-7]])
def test_minutes_and_seconds_are_no_hours_and_rows_of_a_second_are_spread_over_it(opened, rows):
    texts = [f"{f // 600}:{f // 10 % 60:02d}" for f in rows]
    place = place_of(opened("time", texts, rows))
    np.testing.assert_allclose(place[rows], rows, atol=0.6)


@pytest.mark.parametrize(
    ("entries", "unit"),
    [
        (FRAME, "frames"),
        (100 * FRAME, "ms"),
        (100 * FRAME[:150], "ms"),
        (FRAME / RATE / 60, "min"),
        (1e8 * FRAME, "ns"),
    ],
)
def test_a_unit_that_would_fit_is_asked_about_and_can_be_said(opened, entries, unit):
    rows = FRAME[: len(entries)]
    with pytest.raises(InputError, match=f"look like {unit}.*`behavior_clock` to {unit}"):
        opened("time", entries, rows)
    recording = opened("time", entries, rows, behavior_clock=unit)
    np.testing.assert_allclose(place_of(recording)[rows], rows, atol=1e-5)


def test_lengths_that_differ_are_warned_of_with_both_clocks(opened):
    row = np.arange(4 * FRAMES)
    recording = opened("time", row / RATE, row)
    (warning,) = recording.warnings
    assert (
        "120 s (0 s to 119.9 s), 4 times longer than the imaging, 30 s (0 s to 29.9 s)" in warning
    )
    assert opened("time", FRAME[30:] / RATE, FRAME[30:]).warnings == ()
    assert "shorter than" in opened("time_s", FRAME / 100).warnings[0]
    assert opened("time", FRAME, behavior_clock="s").warnings != ()


def test_dates_say_that_the_first_is_taken_for_the_first_frame(opened):
    dates = pd.Timestamp("2026-03-31 23:59:50") + pd.to_timedelta(FRAME / RATE, "s")
    recording = opened("time", dates.strftime("%d/%m/%Y %H:%M:%S.%f"))
    np.testing.assert_allclose(place_of(recording), FRAME, atol=0.01)
    assert any("first frame: if that is wrong, set `offset`" in note for note in recording.notes)


def test_a_clock_that_runs_backwards_is_said(opened):
    recording = opened("time", (FRAMES - 1 - FRAME) / RATE, FRAME[::-1])
    np.testing.assert_allclose(place_of(recording), FRAME, atol=1e-6)
    assert "runs backwards" in recording.warnings[0]
    assert opened("frame", FRAME[::-1], FRAME[::-1]).warnings == ()


def test_behaviour_as_long_as_the_imaging_but_elsewhen_is_said(opened):
    (warning,) = opened("time", FRAME / RATE + 8).warnings
    assert "runs from 8 s to 37.9 s, the imaging from 0 s to 29.9 s" in warning
    assert "set `offset` to -8." in warning
    assert opened("time", FRAME / RATE + 8, offset=-8).warnings == ()
    assert opened("time", FRAME / RATE + 1).warnings == ()


def test_times_that_only_number_the_rows_are_asked_about(opened):
    row = np.arange(3 * FRAMES)
    with pytest.raises(InputError, match=r"numbers its rows .*`behavior_rate` to 30, which would"):
        opened("time", row, row / 3)
    recording = opened("time", row, row / 3, behavior_clock="samples", behavior_rate=3 * RATE)
    np.testing.assert_allclose(place_of(recording), FRAME, atol=0.5)


@pytest.mark.parametrize("other", ["camera_time", "pc_time", "unix"])
def test_of_two_clocks_that_of_the_microscope_counts(opened, tmp_path, other):
    table = pd.DataFrame({other: FRAME / RATE + 500, "scope_time": FRAME / RATE, "x": FRAME})
    table.to_csv(tmp_path / "c.csv", index=False)
    traces = tmp_path / "traces_time_x_cells.npy"
    recording = open_recording(traces, tmp_path / "c.csv", rate=RATE)
    np.testing.assert_allclose(place_of(recording), FRAME, atol=1e-6)


def test_a_column_that_may_be_the_clock_is_named(opened):
    with pytest.raises(InputError, match="If gps, which rises, is its clock, call it time"):
        opened("gps", np.arange(450) / 15, np.zeros(450))


@pytest.mark.parametrize(
    ("index", "rows"),
    [(FRAME / RATE, FRAME[40:]), (FRAME, np.r_[FRAME[:90], FRAME[140:]]),
     (pd.Timestamp("2026-03-01 10:00:00.001") + pd.to_timedelta(FRAME / RATE, "s"), FRAME)],
    ids=["times", "rows that were kept", "dates"],
)  # fmt: skip
def test_an_index_without_a_name_is_a_clock(opened, tmp_path, index, rows):
    pd.DataFrame({"x": FRAME}, index=index).iloc[rows].to_csv(tmp_path / "c.csv")
    traces = tmp_path / "traces_time_x_cells.npy"
    recording = open_recording(traces, tmp_path / "c.csv", rate=RATE)
    expected = np.full(FRAMES, np.nan)
    expected[rows] = rows
    np.testing.assert_allclose(place_of(recording), expected, atol=0.02)


def test_times_of_the_imaging_in_another_unit_than_its_rate_are_asked_about(tmp_path):
    arrays = {"dff_time_x_cells": RNG.random((FRAMES, 7)), "time": 1000 * FRAME / RATE}
    np.savez(tmp_path / "a.npz", **arrays, fs=RATE)
    with pytest.raises(InputError, match=r"seem to count ms\. Set `rate` to 10"):
        open_recording(tmp_path / "a.npz", layout="frames-cells")
    assert open_recording(tmp_path / "a.npz", layout="frames-cells", rate=RATE).warnings == ()
    np.savez(tmp_path / "a.npz", **arrays)
    (warning,) = open_recording(tmp_path / "a.npz", layout="frames-cells").warnings
    assert "0.01 frames per second, but 10 if it counts ms" in warning
