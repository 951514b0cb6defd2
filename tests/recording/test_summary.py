"""What a dock says about a recording is right, brief, and never rounds a gap away."""

from dataclasses import replace

import numpy as np
import pytest

from napari_xcebra.cli.reporting import _recording_tables
from napari_xcebra.io import open_recording, save_recording
from napari_xcebra.recording import Origin, Recording, Trials, Variable
from napari_xcebra.recording.summary import facts, further_notes, look_at, look_into
from napari_xcebra.text import duration, percent


@pytest.fixture
def recording() -> Recording:
    rng = np.random.default_rng(0)
    traces = rng.random((4000, 6))
    traces[:, 2] = 1.5
    speed = rng.random(4000)
    speed[:2] = np.nan
    return Recording(
        traces,
        rate=20.0,
        behavior={
            "speed": Variable("speed", speed, unit="cm/s"),
            "place": Variable("place", rng.random((4000, 2))),
        },
        accepted=[True, True, True, True, False, False],
        starts=[0, 1000],
        excluded=np.arange(4000) < 100,
    )


def test_facts_count_what_matters(recording):
    told = dict(facts(recording, look_into(recording)))

    assert told == {
        "Cells": "4 accepted of 6, 1 constant",
        "Frames": "4,000 at 20 per second",
        "Duration": "3 min 20 s",
        "Footprints": "none: cells are drawn on a grid",
        "Segments": "2",
        "Left out": "100 frames (2.5 %)",
        "Behaviour": "2 variables, 99.9 % to 100 % of frames known",
    }


def test_trials_and_events_are_told_with_what_is_known_of_them(recording):
    trials = Trials([0, 100], [60, 160], {"side": [0, 1]}, {"side": ("left", "right")})
    lick = Variable("lick", np.arange(4000) % 500 == 0, "event")
    told = dict(facts(replace(recording, trials=trials).with_behavior(lick)))
    assert told["Trials"] == "2, 3 s long; side: left 1×, right 1×"
    assert told["Events"] == "lick 8×"


def test_a_recording_without_behaviour_says_so(recording):
    bare = Recording(recording.traces, 20.0)

    assert dict(facts(bare, look_into(bare)))["Behaviour"] == "none yet"


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([0.000173, 3.0, 6.2831], "0 … 6.28 rad"),
        ([0.00312, 0.3561], "0.003 … 0.356 rad"),
        ([-1500.4, 2300.2], "-1500 … 2300 rad"),
        ([2.0, 2.0], "2 … 2 rad"),
        ([np.nan, np.nan], "no values"),
    ],
)
def test_a_range_is_as_fine_as_it_is_wide(values, told):
    assert look_at(Variable("x", np.array(values), unit="rad"), 10.0).range == told


def test_a_minute_of_a_variable_is_drawn_where_it_has_values():
    values = np.full(10_000, np.nan)
    values[9000:] = np.linspace(0, 1, 1000)
    look = look_at(Variable("x", values), rate=10.0)
    (line,) = look.lines

    assert look.known == pytest.approx(0.1)
    assert np.isfinite(line).all()
    assert line[:, 0].min() == 0
    assert line[:, 0].max() == 1
    assert (line[:, 1] >= 0).all()
    assert (line[:, 1] <= 1).all()


def test_gaps_and_shares_are_not_rounded_away():
    assert percent(0.9999) == "99.9 %"
    assert percent(0.0001) == "0.1 %"
    assert duration(3725) == "1 h 2 min"


def test_nothing_is_read_from_notes(tmp_path):
    """Whoever rewords or drops a note must not change what is said or written elsewhere."""
    traces = np.random.default_rng(0).random((300, 4)).astype(np.float32)
    for name, array in (("F", traces.T), ("Fneu", traces.T / 2), ("spks", traces.T)):
        np.save(tmp_path / f"{name}.npy", array)
    opened = open_recording(tmp_path, rate=10.0, traces="dff")
    blank = replace(opened, notes=())

    assert opened.origin.format.startswith("suite2p")
    assert opened.origin.signal == "dff"
    assert opened.origin.traces.startswith("ΔF/F: fluorescence minus 0.7 × neuropil")
    assert facts(blank, look_into(blank)) == facts(opened, look_into(opened))
    told, told_blank = _recording_tables(opened), _recording_tables(blank)
    assert told.startswith(told_blank)
    left = told.removeprefix(told_blank).strip().splitlines()
    assert left and left == further_notes(opened)
    again = open_recording(save_recording(blank, tmp_path / "saved.npz"))
    assert again.origin == opened.origin


def test_what_stands_among_the_facts_is_not_told_again(recording):
    origin = Origin("suite2p", "raw", "raw fluorescence")
    notes = (*origin.notes("plane0"), "Mind the gap.")
    told = replace(recording, source="data/plane0", notes=notes, origin=origin)
    assert further_notes(told) == ["Mind the gap."]
