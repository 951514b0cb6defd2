"""Traces in MATLAB's cells and lists of structs are found, listed and opened by name."""

import h5py
import numpy as np
import pytest
import scipy.io

from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording
from napari_xcebra.io.containers.matlab import joined, read_mat
from napari_xcebra.io.formats.array_roles import listed

RNG = np.random.default_rng(0)
TRIALS = [RNG.normal(size=(12, n)).cumsum(axis=1) for n in (80, 95, 70)]
"""Cells × frames of three trials."""
POSITIONS = [RNG.random((1, trial.shape[1])) for trial in TRIALS]
EVERY = np.concatenate(TRIALS, axis=1).T.astype(np.float32)


def cell(*elements):
    made = np.empty((1, len(elements)), object)
    made[0] = elements
    return made


def save_v5(path, variables):
    scipy.io.savemat(
        path, {n: cell(*v) if isinstance(v, list) else v for n, v in variables.items()}
    )
    return path


def save_v73(path, variables):
    """As MATLAB 7.3 does: cells are references to datasets elsewhere in the file."""
    with h5py.File(path, "w", userblock_size=512) as file:
        file.create_group("#refs#")
        for name, value in variables.items():
            if not isinstance(value, list):
                file[name] = np.asarray(value).T
                continue
            places = [f"#refs#/{name}{i}" for i in range(len(value))]
            for place, element in zip(places, value, strict=True):
                is_text = isinstance(element, str)
                codes = np.array([[ord(letter)] for letter in element], "u2") if is_text else None
                file[place] = codes if is_text else np.asarray(element).T
                if is_text:
                    file[place].attrs["MATLAB_class"] = np.bytes_("char")
            references = [[file[place].ref] for place in places]
            file.create_dataset(name, data=np.array(references, h5py.ref_dtype))
            file[name].attrs["MATLAB_class"] = np.bytes_("cell")
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")
    return path


SAVE = pytest.mark.parametrize("save", [save_v5, save_v73])


@SAVE
def test_a_matrix_for_each_trial_is_one_recording_of_trials(tmp_path, save):
    path = save(tmp_path / "a.mat", {"activity": TRIALS, "place": POSITIONS, "fs": [[20.0]]})
    recording = open_recording(path)
    np.testing.assert_array_equal(recording.traces, EVERY)
    np.testing.assert_array_equal(recording.starts, [0, 80, 175])
    np.testing.assert_allclose(
        recording.behavior["place"].values[:, 0], np.concatenate(POSITIONS, axis=1)[0]
    )


@SAVE
def test_a_vector_for_each_cell_is_a_matrix_and_words_name_the_cells(tmp_path, save):
    names = ["AVA", "RIB", "SMDV", "ASEL"]
    lines = [trace[None] for trace in RNG.normal(size=(4, 200)).cumsum(axis=1)]
    path = save(tmp_path / "worm.mat", {"ratio": lines, "neuron": names})
    recording = open_recording(path, rate=3.0)
    np.testing.assert_allclose(recording.traces.T, np.concatenate(lines), rtol=1e-6)
    assert list(recording.cells["neuron"]) == names


@SAVE
def test_one_element_of_a_cell_can_be_chosen(tmp_path, save):
    path = save(tmp_path / "a.mat", {"activity": TRIALS})
    recording = open_recording(path, rate=20.0, array="activity{2}")
    np.testing.assert_array_equal(recording.traces, TRIALS[1].T.astype(np.float32))


def test_fields_of_a_list_of_structs_are_put_together(tmp_path):
    days = np.zeros((1, 3), [("calcium", object), ("day", object)])
    for i, trial in enumerate(TRIALS):
        days[0, i] = (trial, float(i))
    scipy.io.savemat(tmp_path / "days.mat", {"mouse": {"session": days}})
    recording = open_recording(tmp_path / "days.mat", rate=20.0)
    np.testing.assert_array_equal(recording.traces, EVERY)
    second = open_recording(tmp_path / "days.mat", rate=20.0, array="mouse.session(2).calcium")
    assert second.n_frames == 95


@SAVE
def test_several_arrays_are_listed_with_their_sizes_and_one_can_be_named(tmp_path, save):
    ragged = [RNG.random((3, 7)), RNG.random((5, 9))]
    green, red = RNG.random((16, 750)), RNG.random((16, 750))
    path = save(tmp_path / "fly.mat", {"green": green, "red": red, "other": ragged})
    with pytest.raises(InputError) as error:
        open_recording(path, rate=11.0)
    sentence = str(error.value)
    assert "set `array`" in sentence
    assert "green 16 × 750, " in sentence
    assert "other{1} 3 × 7 to other{2} 5 × 9" in sentence
    recording = open_recording(path, rate=11.0, array="red")
    np.testing.assert_allclose(recording.traces.T, red, rtol=1e-6)
    assert any("green" in note and "`array`" in note for note in recording.notes)
    with pytest.raises(InputError, match=r"no array called blue .*`array`.*; it has: green"):
        open_recording(path, rate=11.0, array="blue")


def test_behaviour_in_a_struct_of_a_cell_is_found(tmp_path):
    track = cell({"x": RNG.random((1, 300)), "heading_deg": 360 * RNG.random((1, 300))})
    np.save(tmp_path / "F.npy", RNG.normal(size=(300, 5)))
    scipy.io.savemat(tmp_path / "track.mat", {"tracking": track})
    recording = open_recording(tmp_path / "F.npy", tmp_path / "track.mat", rate=30.0)
    assert set(recording.behavior) == {"x", "heading_deg"}


def test_a_behaviour_file_without_variables_says_what_it_has(tmp_path):
    np.save(tmp_path / "F.npy", RNG.normal(size=(300, 5)))
    scipy.io.savemat(tmp_path / "video.mat", {"video": RNG.random((4, 5, 6))})
    with pytest.raises(InputError, match=r"no variables.*it has: video 4 × 5 × 6"):
        open_recording(tmp_path / "F.npy", tmp_path / "video.mat", rate=30.0)


def test_a_list_of_a_thousand_arrays_is_told_in_a_line():
    arrays = {f"x{i}": np.zeros((i + 1, 4)) for i in range(1000)}
    assert listed(arrays).endswith("and 988 more")


@SAVE
def test_elements_that_do_not_fit_together_stay_apart(tmp_path, save):
    found = joined(read_mat(save(tmp_path / "a.mat", {"a": [np.ones((2, 3)), np.ones((4, 5))]})))
    assert set(found.arrays) == {"a{1}", "a{2}"}


@pytest.mark.parametrize("element", ["#refs#/a0", "list"])
def test_a_cell_that_holds_itself_ends(tmp_path, element):
    path = save_v73(tmp_path / "a.mat", {"list": [np.ones((2, 3))]})
    with h5py.File(path, "r+") as file:
        file["#refs#/a0"] = np.array([[file["list"].ref]], h5py.ref_dtype)
        file["#refs#/a0"].attrs["MATLAB_class"] = np.bytes_("cell")
        file["list"][0, 0] = file[element].ref
    assert read_mat(path) == {}
