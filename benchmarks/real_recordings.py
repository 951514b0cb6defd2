"""Real recordings with what is known of them, where they are at hand.

They lie beside the project, in ``../shared/data/real``, and never in it: most have no licence.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import h5py
import numpy as np
from scipy.io import loadmat

from napari_xcebra.recording import Recording, Variable

PLACE = Path(__file__).resolve().parents[2] / "shared" / "data" / "real"


@dataclass(frozen=True)
class Real:
    """A real recording, and the factors that are worth fitting.

    Parameters
    ----------
    recording : Recording
    factors : dict of str to list of str
    carried : dict of str to bool
        Whether the variable is known to be in these cells.
    """

    recording: Recording
    factors: dict[str, list[str]]
    carried: dict[str, bool]


def ca1_events(active_only: bool = False) -> Real:
    """CA1 while running (Sheintuch et al. 2022): events of 472 cells, position in bins."""
    raw = PLACE / "ca1-running-events" / "raw"
    events = _matlab(raw / "spike_train.mat")["spike_train"]
    place = _matlab(raw / "stimulus_trace.mat")["stimulus_trace"].astype(float)
    if active_only:
        events = events[:, (events > 0).sum(0) >= 10]
    recording = Recording.from_arrays(events, 20.0, {"position": place})
    return Real(recording, {"position": ["position"]}, {"position": True})


def ca1_information() -> np.ndarray:
    """Bits that the authors find in each active cell, NaN if not significant: (cells,)."""
    raw = PLACE / "ca1-running-events" / "raw"
    found = _matlab(raw / "bias_correction_results.mat")["unbiased_information_estimation_results"]
    statistics = found.firing_statistics
    bits = np.full(_matlab(raw / "spike_train.mat")["spike_train"].shape[1], np.nan)
    bits[statistics.significant_active_cells_indexes - 1] = found.information.MI_SSR
    active: np.ndarray = bits[statistics.sufficiently_active_cells_indexes - 1]
    return active


def fly_heading() -> Real:
    """Ellipsoid body of a fly (Turner-Evans et al. 2017): 32 ROIs, five trials."""
    rois, angles, trials, rates = [], [], [], []
    for number in range(1, 6):
        found = _matlab(PLACE / "fly-heading" / "raw" / f"Fly4_1x_{number}.mat")
        behavior, green, red = found["positionDat"], found["GROIaveMax"], found["RROIaveMax"]
        planes = round(len(behavior.tFrameGrab) / green.shape[1])
        grabbed = behavior.tFrameGrab[::planes][: green.shape[1]]
        times = behavior.t[0] + (grabbed - behavior.tVR[0]) / 1e4
        inside = (times >= behavior.t[0]) & (times <= behavior.t[-1])
        turned = np.interp(times, behavior.t, np.unwrap(np.deg2rad(behavior.OffsetRot)))
        rois.append(np.vstack([green, red]).T[inside])
        angles.append(np.mod(turned, 2 * np.pi)[inside])
        trials.append(np.full(int(inside.sum()), number))
        rates.append(1 / np.median(np.diff(times)))
    recording = Recording.from_arrays(
        np.concatenate(rois),
        float(np.mean(rates)),
        {"heading": Variable("heading", np.concatenate(angles), "circular", "rad")},
        trials=np.concatenate(trials),
    )
    return Real(recording, {"heading": ["heading"]}, {"heading": True})


def v1_gratings() -> Real:
    """Gratings of eight directions, suite2p: 20 cells, 80 trials; between trials not known."""
    raw = PLACE / "v1-gratings-suite2p" / "raw"
    traces = np.load(raw / "F.npy") - 0.7 * np.load(raw / "Fneu.npy")
    cells = np.load(raw / "iscell.npy")[:, 0] > 0
    lines = (raw / "989-2023-08-21-134153.txt").read_text().split("\n")
    names = {v: k for k, v in json.loads(_begins(lines, "S ")[0][2:]).items()}
    entered = [tuple(map(int, line.split()[1:3])) for line in _begins(lines, "D ")]
    entered = [(at, state) for at, state in entered if state in names]
    direction = np.full(traces.shape[1], np.nan)
    for (begin, state), (end, _) in pairwise(entered):
        if names[state].startswith("degrees"):
            frames = slice(round(begin * 0.03), round(end * 0.03))
            direction[frames] = int(names[state][len("degrees_") :])
    recording = Recording.from_arrays(
        traces.T[:, cells], 30.0, {"direction": direction}, kinds={"direction": "discrete"}
    )
    return Real(recording, {"direction": ["direction"]}, {"direction": True})


def worm() -> Real:
    """Whole brain of a worm that moves (Dag et al. 2023): 136 neurons, 1,137 volumes."""
    with h5py.File(PLACE / "worm-whole-brain" / "raw" / "2022-05-02-01-data.h5") as file:
        traces, times = file["gcamp/trace_array"][()], file["timing/timestamp_confocal"][()]
        behavior = {n: file[f"behavior/{n}"][()] for n in ("velocity", "head_angle", "pumping")}
    rate = float(1 / np.median(np.diff(times)))
    recording = Recording.from_arrays(traces, rate, behavior)
    return Real(recording, {name: [name] for name in behavior}, dict.fromkeys(behavior, True))


RECORDINGS: dict[str, Callable[[], Real]] = {
    "CA1 events": ca1_events,
    "CA1 events, active cells": lambda: ca1_events(active_only=True),
    "fly heading": fly_heading,
    "V1 gratings": v1_gratings,
    "worm": worm,
}


def at_hand() -> dict[str, Callable[[], Real]]:
    """Those that can be read here; none without the folder."""
    return RECORDINGS if PLACE.is_dir() else {}


def _matlab(path: Path) -> dict:
    return loadmat(path, squeeze_me=True, struct_as_record=False)


def _begins(lines: list[str], start: str) -> list[str]:
    return [line for line in lines if line.startswith(start)]
