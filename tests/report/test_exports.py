"""Scores written for other programs: complete, or not at all."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from napari_xcebra.attribution.result import Attribution
from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.factors import Part
from napari_xcebra.report import exports
from napari_xcebra.simulate import field

FACTORS = ("place", "speed")


@pytest.fixture(scope="module")
def recording():
    return field(cells=14, frames=100, shape=(64, 64), junk=2, seed=0).recording


@pytest.fixture(scope="module")
def attribution(recording):
    scores = np.random.default_rng(0).random((2, recording.n_cells)).astype(np.float32)
    scores[:, ~np.asarray(recording.accepted)] = np.nan
    return Attribution(
        method="inverted-neuron-gradient",
        aggregate="mean",
        parts=tuple(Part(f, (f,), i, i + 1, "euclidean", 1.0) for i, f in enumerate(FACTORS)),
        cell_ids=np.asarray(recording.cell_ids),
        latent_scores=scores,
        n_frames=100,
        strengths={"place": "weak", "speed": "at chance"},
        verdicts=dict.fromkeys(FACTORS, ""),
    )


def test_the_table_has_every_cell_and_factor_by_the_threshold(attribution, tmp_path):
    path = exports.write_table(attribution, tmp_path / "scores.csv", threshold=1.0)
    table = pd.read_csv(path)
    assert len(table) == len(FACTORS) * len(attribution.cell_ids)
    place = table[table.factor == "place"]
    np.testing.assert_array_equal(place.selected, attribution.above("place", 1.0))


def test_scores_can_be_loaded_again(attribution, tmp_path):
    loaded = Attribution.load(exports.write_scores(attribution, tmp_path / "scores.npz"))
    np.testing.assert_array_equal(loaded.latent_scores, attribution.latent_scores)


def test_the_picture_is_a_picture(recording, attribution, tmp_path):
    path = exports.write_picture(recording, attribution, tmp_path / "painted.png", 1.0)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_an_unknown_kind_of_picture_is_a_sentence_and_leaves_nothing(
    recording, attribution, tmp_path
):
    with pytest.raises(InputError, match=r"painted\.docx could not be written"):
        exports.write_picture(recording, attribution, tmp_path / "painted.docx")
    assert list(tmp_path.iterdir()) == []


def test_the_hue_is_what_suite2p_takes(recording, attribution, tmp_path):
    scores = attribution.score("place")
    hue = np.load(exports.write_hue(recording, scores, tmp_path / "hue.npy"), allow_pickle=False)
    assert hue.shape == (recording.n_cells,)
    assert hue.dtype == np.float32  # suite2p changes it in place, which whole numbers refuse
    assert np.isfinite(hue).all()
    assert hue.min() == 0 and hue.max() == 1
    assert (hue[~np.asarray(recording.accepted)] == 0).all()
    assert np.nanargmax(scores) == hue.argmax()


def test_the_hue_goes_by_the_rois_own_numbers():
    np.testing.assert_array_equal(
        exports.hue(np.array([2, 0, 1]), np.array([10.0, 0.0, 5.0])), [0.0, 0.5, 1.0]
    )
    # ids that do not number the ROIs say nothing about their order
    np.testing.assert_array_equal(
        exports.hue(np.array([20, 10]), np.array([4.0, np.nan])), [0.0, 0.0]
    )


def test_a_screenshot_is_written_as_it_is(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 255, (20, 30, 4)).astype(np.uint8)
    pixels[..., 3] = 255
    path = exports.write_pixels(pixels, tmp_path / "canvas.png")
    from matplotlib.image import imread

    np.testing.assert_array_equal((imread(path) * 255).round().astype(np.uint8), pixels)


def test_a_folder_that_cannot_be_written_is_a_sentence(recording, attribution, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    for write in (
        lambda to: exports.write_table(attribution, to),
        lambda to: exports.write_scores(attribution, to),
        lambda to: exports.write_picture(recording, attribution, to),
        lambda to: exports.write_hue(recording, attribution.score("place"), to),
        lambda to: exports.write_pixels(np.zeros((2, 2, 4), np.uint8), to),
    ):
        with pytest.raises(InputError, match="choose another folder"):
            write(blocked / "out.png")


def test_files_go_beside_the_recording_under_names_that_say_what_they_are(recording, tmp_path):
    source = tmp_path / "suite2p" / "plane0"
    source.mkdir(parents=True)
    here = replace(recording, source=str(source))
    path = exports.default_path(here, "run 1: final?", "place", "hue", suffix=".npy")
    assert path == tmp_path / "suite2p" / "plane0-run_1_final-place-hue.npy"


def test_a_recording_from_nowhere_goes_to_the_users_home(recording):
    path = exports.default_path(replace(recording, source=""), "run 1", suffix=".csv")
    assert path.name == "recording-run_1.csv"
    assert path.parent.is_dir()


def test_writing_a_picture_takes_no_torch():
    code = """
import sys
import napari_xcebra.report.exports, napari_xcebra.report.figures.field
print('torch' in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
