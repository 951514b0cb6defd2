"""`info` says what was found, at a glance and without reading everything."""

import contextlib
import io
import re

import numpy as np
import pandas as pd
import pytest

from napari_xcebra.cli import main
from napari_xcebra.cli.reporting import BLOCKS, _in_bins, _picked, _recording_tables, _sparkline
from napari_xcebra.learn import FitSettings, fit
from napari_xcebra.recording import Footprints, Origin, Recording, Variable
from napari_xcebra.recording.traces import LazyTraces

FRAMES = 400


def recording(**changes):
    rng = np.random.default_rng(0)
    traces = rng.normal(size=(FRAMES, 6)).astype(np.float32)
    traces[FRAMES // 2 :] += 5
    traces[:, 4] = 1.0
    speed = np.linspace(0, 10, FRAMES)
    speed[:100] = np.nan
    behavior = {
        "speed": Variable("speed", speed, unit="cm/s"),
        "cue": Variable("cue", np.arange(FRAMES) // 200, "discrete"),
        "heading": Variable("heading", np.linspace(0, 6, FRAMES) % 3, "circular", "rad"),
        "xy": Variable("xy", np.c_[speed, speed], unit="cm"),
        "never": Variable("never", np.full(FRAMES, np.nan)),
    }
    about = {
        "traces": traces, "rate": 2.0, "behavior": behavior, "accepted": np.arange(6) != 1,
        "footprints": Footprints.on_a_grid(6), "images": {"mean": np.zeros((5, 5))},
        "source": "here", "cells": {"plane": np.arange(6) % 2},
        "notes": ("Opened here as suite2p.", "Traces are raw fluorescence.", "Mind the gap."),
        "origin": Origin("suite2p", "raw", "raw fluorescence"),
    }  # fmt: skip
    return Recording(**about | changes)


def fact(text, name):
    (line,) = re.findall(rf"^{name}  +(.*)$", text, re.MULTILINE)
    return line


def test_facts_are_found_under_their_names():
    text = _recording_tables(recording())
    assert fact(text, "source") == "here"
    assert fact(text, "format") == "suite2p"
    assert fact(text, "frames") == "400"
    assert fact(text, "frames per second") == "2"
    assert fact(text, "duration") == "3 min 20 s"
    assert fact(text, "cells") == "6 (5 accepted, 1 constant)"
    assert fact(text, "planes") == "2"
    assert fact(text, "footprints") == "24 × 36 pixels"
    assert fact(text, "images") == "mean"
    assert fact(text, "traces") == "raw fluorescence"
    assert text.endswith("\n\nMind the gap.")


def test_activity_is_seen_to_rise():
    curve = fact(_recording_tables(recording()), "mean activity")
    assert len(curve) == 40
    levels = [BLOCKS.index(block) for block in curve]
    assert max(levels[:20]) < min(levels[20:])


def test_every_variable_has_a_row_with_its_curve():
    text = _recording_tables(recording())
    rows = {line.split()[0]: line for line in text.splitlines() if re.search("[▁█]", line)}
    assert re.search(r"continuous +cm/s +1 +2.506 to 10 +75 % +(.*)$", rows["speed"])
    assert rows["speed"].endswith(" ▁▁▁▂▂▂▂▃▃▃▃▄▄▄▄▅▅▅▅▆▆▆▆▇▇▇▇███")
    assert rows["cue"].endswith("▁" * 20 + "█" * 20)
    assert re.search(r"xy +continuous +cm +2 ", rows["xy"])
    assert re.search(r"^never +continuous +– +1 +– +0 % ", text, re.MULTILINE)


def test_how_far_behaviour_covers_the_imaging_is_said():
    known = {name: v for name, v in recording().behavior.items() if name != "never"}
    text = _recording_tables(recording(behavior=known))
    assert fact(text, "behaviour") == (
        "every variable known at 75 % of the frames, 50 to 199.5 s (imaging 0 to 199.5 s)"
    )
    assert "no frame" in fact(_recording_tables(recording()), "behaviour")
    text = _recording_tables(recording(behavior={}))
    assert fact(text, "behaviour") == "none"
    assert "give --behavior FILE" in text


def test_a_recording_with_nothing_but_traces_is_described():
    text = _recording_tables(Recording(np.zeros((3, 1)), 1.0))
    assert fact(text, "footprints") == "none"
    assert fact(text, "cells") == "1 (1 accepted, 1 constant)"
    assert "planes" not in text


def test_cells_without_footprint_are_counted():
    text = _recording_tables(recording(footprints=Footprints.on_a_grid(4)))
    assert fact(text, "footprints").endswith(", 2 cells without")


class Endless(LazyTraces):
    """Traces of a terabyte that count what is read."""

    shape = (1_000_000, 250_000)

    def __init__(self):
        self.read = 0

    def block(self, frames, cells):
        size = frames.stop - frames.start, cells.stop - cells.start
        self.read += size[0] * size[1]
        rising = np.arange(frames.start, frames.stop, dtype=np.float32)[:, None]
        return rising * (np.arange(cells.start, cells.stop) % 16 > 0)


def test_of_traces_on_disk_only_a_sample_is_read():
    traces = Endless()
    text = _recording_tables(Recording(traces, 30.0))
    assert traces.read < 100_000
    assert "of a sample of 64 constant" in fact(text, "cells")
    curve = fact(text, "mean activity")
    assert [curve[0], curve[-1]] == ["▁", "█"]
    assert list(curve) == sorted(curve)


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (1000, 64), (1001, 65), (30, 1000)])
def test_a_sample_of_few_is_all_of_them(shape):
    class Small(LazyTraces):
        def block(self, frames, cells):
            return np.add.outer(np.arange(frames.start, frames.stop),
                                np.arange(cells.start, cells.stop)).astype(np.float32)  # fmt: skip

    Small.shape = shape
    text = _recording_tables(Recording(Small(), 1.0))
    assert f"of a sample of {min(shape[1], 64)} constant" in text


def test_gaps_in_traces_on_disk_do_not_stop_the_report():
    class Gaps(LazyTraces):
        shape = (100, 4)

        def block(self, frames, cells):
            block = np.ones((frames.stop - frames.start, cells.stop - cells.start), np.float32)
            block[:, 0] = np.nan
            return block

    assert "cells" in _recording_tables(Recording(Gaps(), 1.0))


def test_a_sparkline_spans_what_is_known():
    assert _sparkline(np.arange(8.0)) == BLOCKS
    assert _sparkline(np.array([np.nan, 3, 3])) == " ▁▁"
    assert _sparkline(np.array([np.nan])) == " "
    assert _sparkline(np.zeros(0)) == ""
    assert _sparkline(np.array([-1.7e308, 0, 1.7e308])) == "▁▅█"


def test_bins_average_what_is_known():
    values = np.r_[np.full(10, np.nan), np.arange(10.0)]
    np.testing.assert_array_equal(_in_bins(values, 4), [np.nan, np.nan, 2, 7])
    np.testing.assert_array_equal(_in_bins(np.arange(3.0), 40), [0, 1, 2])
    np.testing.assert_array_equal(_picked(np.arange(100), 4), [12, 37, 62, 87])


def test_info_shows_a_recording_of_another_program_and_its_behaviour(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "cells_x_time.npy", rng.normal(size=(5, 300)))
    table = pd.DataFrame({"time": np.arange(300) / 10, "lick": rng.integers(0, 2, 300)})
    table.to_csv(tmp_path / "behaviour.csv", index=False)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code = main(["info", str(tmp_path / "cells_x_time.npy"), "--rate", "10",
                     "--behavior", str(tmp_path / "behaviour.csv")])  # fmt: skip
    assert code == 0
    text = said.getvalue()
    assert fact(text, "cells").startswith("5 (5 accepted")
    assert re.search(r"^lick +discrete ", text, re.MULTILINE)


def test_info_of_a_run_shows_its_verdicts_beside_the_regression(tmp_path):
    rng = np.random.default_rng(0)
    speed = np.sin(np.arange(1200) / 15) + 0.1 * rng.normal(size=1200)
    traces = rng.normal(size=(1200, 6)) + speed[:, None]
    done = fit(Recording.from_arrays(traces, 10.0, {"speed": speed}), {"speed": ["speed"]},
               FitSettings(steps=20))  # fmt: skip
    done.save(tmp_path / "out" / "fit")
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        assert main(["info", str(tmp_path / "out")]) == 0
    header, *_ = said.getvalue().splitlines()
    assert "ridge" in header
    assert done.goodness["speed"].verdict in said.getvalue()
