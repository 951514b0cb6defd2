"""Every file that another program wrote opens, with the numbers that program would tell."""

import numpy as np
import pytest

from napari_xcebra.cli import main
from napari_xcebra.io import open_recording

FOLDERS = [
    # path, choices, cells, frames, rate, accepted, field of view
    ("suite2p-real-219-cells", {"rate": 30.0}, 219, 2000, 30, 20, (607, 608)),
    ("suite2p-1.1-two-planes", {}, 71, 2000, 15, 60, (2, 128, 128)),
    ("suite2p-1.1-two-planes/plane1", {}, 35, 2000, 15, 30, (128, 128)),
    ("suite2p-1.1-two-planes/combined", {}, 71, 2000, 15, 60, (128, 256)),
    ("suite2p-0.14/plane0", {}, 36, 2000, 15, 30, (128, 128)),
    ("suite2p-0.14/combined", {}, 71, 2000, 15, 60, (128, 256)),
    ("caiman/cnmf_results.hdf5", {}, 32, 2000, 15, 24, (128, 100)),
    ("nwb/nwb_imagemask_rate.nwb", {}, 32, 2000, 15, 24, (128, 100)),
    ("nwb/neuroconv_suite2p.nwb", {}, 36, 2000, 15, 30, (128, 128)),
]
ARRAYS = (
    "traces.csv",
    "traces.npz",
    "traces_cells_x_time.npy",
    "traces_time_x_cells.npy",
    "traces_v5.mat",
    "traces_v73.mat",
)


@pytest.mark.parametrize(
    ("path", "choices", "cells", "frames", "rate", "accepted", "field"),
    FOLDERS,
    ids=[case[0] for case in FOLDERS],
)
def test_it_opens_with_the_right_numbers(
    shared_data, path, choices, cells, frames, rate, accepted, field
):
    recording = open_recording(shared_data / path, **choices)
    assert (recording.n_cells, recording.n_frames) == (cells, frames)
    assert recording.rate == pytest.approx(rate, rel=1e-3)
    assert int(recording.accepted.sum()) == accepted
    assert recording.footprints.shape == field
    assert len(np.unique(recording.footprints.label_image())) == cells + 1
    assert recording.notes[0].startswith("Opened ")


def test_an_array_is_the_same_recording_whichever_way_it_was_written(shared_data):
    first, *others = (open_recording(shared_data / "generic" / n, rate=15.0) for n in ARRAYS)
    assert (first.n_frames, first.n_cells) == (2000, 36)
    for other in others:
        # the table holds three digits
        np.testing.assert_allclose(other.traces, first.traces, atol=6e-4)
        np.testing.assert_array_equal(
            other.footprints.label_image(), first.footprints.label_image()
        )


def test_behaviour_on_a_clock_of_its_own_covers_the_recording(shared_data):
    folder = shared_data / "suite2p-1.1-two-planes"
    recording = open_recording(folder, folder / "behaviour_40hz.csv")
    assert list(recording.behavior) == ["position_cm", "speed_cm_s"]
    assert recording.variable("position_cm").known.mean() > 0.99


@pytest.mark.parametrize("path", ["suite2p-1.1-two-planes", "nwb/nwb_imagemask_rate.nwb"])
def test_info_shows_what_was_found(shared_data, capsys, path):
    assert main(["info", str(shared_data / path)]) == 0
    said = capsys.readouterr().out
    assert "2000" in said
    assert "▁" in said or "█" in said
