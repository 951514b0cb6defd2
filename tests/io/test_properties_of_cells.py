"""What a file says about each cell is kept with the cells, through saving, tables and exports."""

from dataclasses import replace

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse

from napari_xcebra.attribution import attribute
from napari_xcebra.cli import main
from napari_xcebra.io import open_recording, save_recording
from napari_xcebra.io.formats.nwb.writing import write_nwb
from napari_xcebra.io.formats.suite2p.writing import write_suite2p
from napari_xcebra.learn import FitSettings, fit
from napari_xcebra.recording import Footprints, Recording, Variable

RNG = np.random.default_rng(0)
FRAMES, CELLS = 300, 12
X = np.cumsum(RNG.normal(size=FRAMES))
TRACES = (RNG.normal(size=(FRAMES, CELLS)) + np.outer(X / 5, RNG.random(CELLS))).astype(np.float32)
DEPTH, SNR = np.repeat([100.0, 200.0], 6), RNG.gamma(3, 1, CELLS)
PLACE = RNG.random((CELLS, 3)) * 500
REGION = np.array(["V1", "LM", "V1"] * 4)
KNOWN = {"depth": DEPTH, "coordinates": PLACE, "snr": SNR, "skew": SNR / 2, "red": SNR > 3}


def in_mat(path):
    scipy.io.savemat(path / "a.mat", {"dff": TRACES.T, **KNOWN}, oned_as="column")
    return path / "a.mat"


def in_npz(path):
    np.savez(path / "a.npz", dff=TRACES, region=REGION, **KNOWN)
    return path / "a.npz"


def in_hdf5(path):
    with h5py.File(path / "a.h5", "w") as file:
        file["im/dff"] = TRACES.T
        for name, values in KNOWN.items():
            file[f"cells/{name}"] = values
    return path / "a.h5"


def in_nwb(path):
    recording = Recording(TRACES, 10.0, cells={"depth": DEPTH, "region": REGION, "snr": SNR})
    write_nwb(recording, path / "a.nwb")
    with h5py.File(path / "a.nwb", "r+") as file:
        table = file["processing/ophys/ImageSegmentation/PlaneSegmentation"]
        table["coordinates"] = PLACE
        table.attrs["colnames"] = [*table.attrs["colnames"], "coordinates"]
    return path / "a.nwb"


ARRAYS = {"depth": DEPTH, "snr": SNR, "coordinates_1": PLACE[:, 0], "coordinates_3": PLACE[:, 2]}


@pytest.mark.parametrize("write", [in_mat, in_npz, in_hdf5, in_nwb])
def test_an_entry_for_each_cell_is_a_property_of_the_cells(tmp_path, write):
    recording = open_recording(write(tmp_path), rate=10.0)
    assert recording.traces.shape == TRACES.shape and not recording.behavior
    for name, values in ARRAYS.items():
        np.testing.assert_array_equal(recording.cells[name], values)
    if write in (in_npz, in_nwb):
        assert list(recording.cells["region"]) == list(REGION)
    if write is not in_nwb:
        np.testing.assert_array_equal(recording.cells["red"].astype(bool), SNR > 3)


def test_what_suite2p_measures_of_each_roi_is_kept_with_its_red_channel(tmp_path):
    made = Recording(TRACES - TRACES.min(), 10.0, footprints=Footprints.on_a_grid(CELLS))
    write_suite2p(made, tmp_path / "plane0")
    np.save(tmp_path / "plane0" / "redcell.npy", np.c_[SNR > 3, SNR / 10])
    cells = open_recording(tmp_path / "plane0").cells
    assert {"skew", "npix", "compactness", "radius"} <= set(cells)
    np.testing.assert_array_equal(cells["red"], SNR > 3)
    np.testing.assert_allclose(cells["red_probability"], SNR / 10, rtol=1e-6)


def test_what_caiman_measures_of_each_component_is_kept(tmp_path):
    weights = scipy.sparse.csc_array(np.eye(20 * 9)[:, :CELLS])
    with h5py.File(tmp_path / "a.hdf5", "w") as file:
        file["estimates/C"], file["estimates/dims"] = TRACES.T, (20, 9)
        for name in ("data", "indices", "indptr", "shape"):
            file[f"estimates/A/{name}"] = getattr(weights, name)
        file["params/data/fr"] = 20.0
        for name in ("SNR_comp", "r_values", "cnn_preds"):
            file[f"estimates/{name}"] = SNR
    cells = open_recording(tmp_path / "a.hdf5").cells
    for name in ("snr", "r", "cnn"):
        np.testing.assert_array_equal(cells[name], SNR)


@pytest.fixture(scope="module")
def recording():
    cells = {"depth": DEPTH, "region": REGION, "score": SNR}
    return Recording(TRACES, 10.0, {"x": Variable("x", X)}, cells=cells)


def test_properties_survive_saving_and_are_exported(recording, tmp_path, capsys):
    save_recording(recording, tmp_path / "a.npz")
    again = open_recording(tmp_path / "a.npz")
    made = fit(again, {"x": ["x"]}, FitSettings(steps=10, batch_size=64, lambda_=0.1))
    result = attribute(made, again, "neuron-gradient")
    result.to_csv(tmp_path / "attribution.csv")
    table = pd.read_csv(tmp_path / "attribution.csv")
    of_x = table[table.factor == "x"]
    assert list(of_x.depth) == list(DEPTH) and list(of_x.region) == list(REGION)
    np.testing.assert_allclose(of_x.cell_score, SNR)
    np.testing.assert_allclose(of_x.score, result.score("x"), rtol=1e-5)
    write_nwb(replace(again, source=""), tmp_path / "a.nwb")
    cells = open_recording(tmp_path / "a.nwb").cells
    np.testing.assert_array_equal(cells["depth"], DEPTH)
    assert list(cells["region"]) == list(REGION)
    assert main(["info", str(tmp_path / "a.npz")]) == 0
    assert "depth, region, score" in capsys.readouterr().out
