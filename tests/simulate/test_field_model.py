"""An imaged field is a recording a lab could have made, and its truth is still in the traces."""

import numpy as np
import pytest

from napari_xcebra.errors import InputError
from napari_xcebra.simulate import arena, box, field


@pytest.fixture(scope="module")
def simulation():
    return field(cells=80, frames=8000, shape=(192, 192), junk=6)


def explained(values, traces, bins):
    """Share of each trace's variance between bins of a variable."""
    edges = [np.quantile(c, np.linspace(0, 1, bins + 1)[1:-1]) for c in values.T]
    columns = [np.digitize(c, e) for c, e in zip(values.T, edges, strict=True)]
    of_frame = np.ravel_multi_index(columns, [bins] * len(columns))
    count = np.maximum(np.bincount(of_frame), 1)
    centred = (traces - traces.mean(0)).astype(float)
    between = [(np.bincount(of_frame, cell) ** 2 / count).sum() for cell in centred.T]
    return np.array(between) / len(traces) / traces.var(0)


@pytest.mark.parametrize(
    ("factor", "variable", "bins"),
    [("place", "position", 6), ("direction", "direction", 12), ("speed", "speed", 12)],
)
def test_the_truth_survives_imaging(simulation, factor, variable, bins):
    """Among cells, those that carry a variable follow it more than nearly all that do not."""
    recording, carries = simulation.recording, simulation.truth[factor]
    share = explained(recording.behavior[variable].values, recording.traces, bins)
    others = share[~carries & recording.accepted]
    assert np.mean(share[carries][:, None] > others) > 0.95


def test_the_same_seed_gives_the_same_recording():
    one, same, other = (field(cells=8, frames=300, shape=(96, 96), seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.recording.traces, same.recording.traces)
    np.testing.assert_array_equal(one.recording.images["mean"], same.recording.images["mean"])
    assert not np.allclose(one.recording.traces, other.recording.traces)


def test_a_quarter_of_the_cells_is_of_each_kind(simulation):
    kinds, number = np.unique(simulation.cell_kinds, return_counts=True)
    assert dict(zip(kinds, number, strict=True)) == {
        "place": 20,
        "direction": 20,
        "speed": 20,
        "untuned": 20,
        "junk": 6,
    }


def test_rois_that_are_no_cells_are_rejected_and_carry_nothing(simulation):
    junk = simulation.cell_kinds == "junk"
    np.testing.assert_array_equal(simulation.recording.accepted, ~junk)
    assert not any(cells[junk].any() for cells in simulation.truth.values())
    cells = simulation.recording.traces[:, ~junk].max(0)
    assert np.median(simulation.recording.traces[:, junk].max(0)) < np.median(cells)


def test_every_roi_has_a_footprint_and_a_label(simulation):
    labels = simulation.recording.footprints.label_image()
    assert labels.shape == (192, 192)
    assert len(np.unique(labels)) == 87
    assert set(simulation.recording.images) == {"mean", "max"}


def test_imaging_leaves_behaviour_as_it_is():
    animal = arena(place=4, grid=0, direction=4, speed=4, frames=300)
    simulation = field(animal, shape=(96, 96))
    for name, variable in animal.recording.behavior.items():
        np.testing.assert_array_equal(simulation.recording.behavior[name].values, variable.values)


def test_traces_look_like_calcium_imaging(simulation):
    """Skewed towards transients, around a baseline near zero, and slower than the noise."""
    traces = simulation.recording.traces[:, simulation.recording.accepted]
    centred = traces - traces.mean(0)
    skew = (centred**3).mean(0) / traces.std(0) ** 3
    assert np.median(skew) > 0.4
    assert np.abs(np.percentile(traces, 8, axis=0)).max() < 0.1
    neighbouring = (centred[1:] * centred[:-1]).mean(0) / traces.var(0)
    assert np.median(neighbouring) > 0.5


def test_overlapping_cells_share_signal():
    """Two cells with nothing in common are correlated if their footprints overlap."""
    animal = arena(place=0, grid=0, direction=0, speed=0, untuned=60, frames=6000)
    simulation = field(animal, shape=(192, 192), overlap=0.5, snr=30.0)
    footprints = simulation.recording.footprints
    masks = np.zeros((60, 192 * 192), np.float32)
    masks[footprints.cell, footprints.row * 192 + footprints.column] = footprints.weight
    shared = (masks @ masks.T) / (masks**2).sum(1)
    pairs = np.triu_indices(60, 1)
    together, close = np.corrcoef(simulation.recording.traces.T)[pairs], shared[pairs] > 0.15
    assert close.sum() > 10
    assert np.median(together[close]) > np.median(together[~close]) + 0.05


def test_any_simulation_can_be_imaged():
    latents = box(frames=500, cells=(10, 10))
    simulation = field(latents, shape=(128, 128))
    np.testing.assert_array_equal(simulation.truth["z2"], latents.truth["z2"])
    assert simulation.factors == latents.factors
    assert set(simulation.hidden) == {"z1", "z2"}
    assert simulation.recording.n_cells == 20


def test_the_recording_says_what_was_simulated(simulation):
    assert simulation.recording.source == "simulated field, seed 0"
    notes = " ".join(simulation.recording.notes)
    assert "foraging" in notes
    assert "ΔF/F" in notes


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"cells": 0}, "cells is 0: a whole number of at least 1"),
        ({"frames": -5}, "frames is -5"),
        ({"rate": 0}, "rate is 0"),
        ({"overlap": 1.5}, "overlap is 1.5: a number from 0 to 1"),
        ({"snr": -1}, "snr is -1"),
        ({"junk": -1}, "junk is -1"),
        ({"shape": (10, 10)}, r"shape\[0\] is 10: a whole number of at least 40"),
        ({"shape": (100,)}, "two numbers, height and width"),
        ({"shape": (48, 48), "cells": 100}, "a larger field of view is needed"),
    ],
)
def test_bad_arguments_are_named_in_a_sentence(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        field(**{"cells": 4, "frames": 50, "shape": (96, 96), **arguments})


def test_a_given_simulation_brings_its_own_size():
    animal = arena(place=4, grid=0, direction=0, speed=0, frames=50)
    with pytest.raises(InputError, match="cells is 10 but a simulation was given"):
        field(animal, cells=10)
