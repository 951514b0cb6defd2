"""EXTRACT and CNMF-E open from both kinds of .mat files, each cell in its place."""

import h5py
import numpy as np
import pytest
import scipy.io
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from placement import drawn

from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording
from napari_xcebra.io.formats import matlab_structs
from napari_xcebra.io.settings import OpenSettings

HEIGHT, WIDTH, FRAMES, CELLS = 9, 7, 30, 4
RNG = np.random.default_rng(0)
MASKS = RNG.random((HEIGHT, WIDTH, CELLS)) * (RNG.random((HEIGHT, WIDTH, CELLS)) > 0.7)
MASKS[8, 6] = 1
IMAGE = RNG.random((HEIGHT, WIDTH))
TRACES = RNG.random((FRAMES, CELLS))

EXTRACT = {
    "spatial_weights": MASKS,
    "temporal_weights": TRACES,
    "config": {"preprocess": 1.0, "skip_dff": 0.0},
    "info": {"summary_image": IMAGE, "F_per_pixel": IMAGE + 1},
}
CNMFE = {
    "extractedImages": MASKS,
    "extractedSignals": TRACES.T,
    "extractedSignalsEst": TRACES.T / 2,
    "Cn": IMAGE,
    "inputOptions": {"Fs": 12.0},
}
DEFAULTS = OpenSettings()


def save(path, version, name, fields):
    if version == "v5":
        scipy.io.savemat(path, {name: fields, "other": 1.0}, do_compression=True)
        return path
    with h5py.File(path, "w", userblock_size=512) as file:
        put(file, {name: fields})
    return path


def put(group, fields):
    for name, value in fields.items():
        if isinstance(value, dict):
            put(group.require_group(name), value)
        else:
            group[name] = np.atleast_2d(value).T


@pytest.fixture(params=["v5", "v73"])
def version(request):
    return request.param


@pytest.fixture
def path(tmp_path):
    return tmp_path / "output.mat"


def assert_in_place(footprints):
    assert footprints.shape == (HEIGHT, WIDTH)
    for cell in range(CELLS):
        np.testing.assert_allclose(drawn(footprints, cell), MASKS[..., cell], rtol=1e-6)


def test_extract_opens_with_cells_traces_and_images(path, version):
    save(path, version, "output", EXTRACT)
    recording = open_recording(path, rate=10.0)
    assert "EXTRACT" in recording.notes[0]
    np.testing.assert_allclose(recording.traces, TRACES, rtol=1e-6)
    assert any("ΔF/F as in the file" in note for note in recording.notes)
    assert_in_place(recording.footprints)
    np.testing.assert_allclose(recording.images["max"], IMAGE, rtol=1e-6)
    np.testing.assert_allclose(recording.images["mean"], IMAGE + 1, rtol=1e-6)


@pytest.mark.parametrize("config", [{"preprocess": 0.0}, {"preprocess": 1.0, "skip_dff": 1.0}])
def test_extract_without_preprocessing_gives_traces_as_they_are(path, version, config):
    save(path, version, "any_name", {**EXTRACT, "config": config})
    assert list(matlab_structs.load(path, DEFAULTS).signals) == ["traces"]


def test_cnmfe_opens_with_cells_traces_and_image(path, version):
    save(path, version, "cnmfeAnalysisOutput", CNMFE)
    recording = open_recording(path, traces="raw")
    assert "CNMF-E" in recording.notes[0]
    assert recording.rate == 12
    np.testing.assert_allclose(recording.traces, TRACES, rtol=1e-6)
    assert_in_place(recording.footprints)
    np.testing.assert_allclose(recording.images["correlation"], IMAGE, rtol=1e-6)
    denoised = open_recording(path, traces="denoised").traces
    np.testing.assert_allclose(denoised, TRACES / 2, rtol=1e-6)


def test_the_user_can_exchange_rows_and_columns(path, version):
    save(path, version, "output", EXTRACT)
    swapped = matlab_structs.load(path, OpenSettings(swap_axes=True)).footprints
    assert swapped.shape == (WIDTH, HEIGHT)
    np.testing.assert_allclose(drawn(swapped, 1), MASKS[..., 1].T, rtol=1e-6)


def test_one_is_not_taken_for_the_other(path, version, tmp_path):
    save(path, version, "output", EXTRACT)
    assert matlab_structs.sniff(path)
    assert "EXTRACT" in matlab_structs.load(path, DEFAULTS).notes[0]
    save(path, version, "output", CNMFE)
    assert matlab_structs.sniff(path)
    assert "CNMF-E" in matlab_structs.load(path, DEFAULTS).notes[0]
    save(path, version, "output", {"traces": TRACES})
    assert not matlab_structs.sniff(path)
    assert not matlab_structs.sniff(tmp_path) and not matlab_structs.sniff(tmp_path / "none.mat")
    with pytest.raises(InputError, match="no struct with spatial_weights and temporal_weights"):
        matlab_structs.load(path, DEFAULTS)


def test_two_runs_in_one_file_are_told(path, version):
    save(path, version, "output", {**EXTRACT, "temporal_weights": TRACES[:, :2]})
    with pytest.raises(InputError, match="4 cells in spatial_weights and 2 in temporal_weights"):
        matlab_structs.load(path, DEFAULTS)
    save(path, version, "output", {**CNMFE, "extractedSignals": TRACES.T[:2]})
    with pytest.raises(InputError, match="4 cells in extractedImages and 2 in extractedSignals"):
        matlab_structs.load(path, DEFAULTS)


def test_sparse_weights_get_a_sentence(path):
    save(path, "v73", "output", {**EXTRACT, "spatial_weights": {"data": 1.0}})
    with pytest.raises(InputError, match=r"full\(output\.spatial_weights\)"):
        matlab_structs.load(path, DEFAULTS)


def test_without_a_rate_the_user_is_asked_for_it(path):
    save(path, "v73", "output", EXTRACT)
    with pytest.raises(InputError, match="set `rate`"):
        open_recording(path)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_file_opens_or_gets_a_sentence(path, version, guarded, data):
    if not path.exists():
        save(path, version, "output", {**EXTRACT, **CNMFE})
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    broken = path.with_name("broken.mat")
    broken.write_bytes(content)
    assert matlab_structs.sniff(broken) in (True, False)
    try:
        guarded(matlab_structs.load, broken, DEFAULTS)
    except InputError as error:
        assert "broken.mat" in str(error)


def test_roiextractors_finds_the_same(path):
    """Of EXTRACT; of CNMF-E it has rows and columns exchanged."""
    roiextractors = pytest.importorskip("roiextractors")
    save(path, "v73", "output", EXTRACT)
    with h5py.File(path, "r+") as file:
        file["output/info/version"] = np.array([[ord(c)] for c in "1.1.0"], np.uint16)
    other = roiextractors.ExtractSegmentationExtractor(path, sampling_frequency=10.0)
    found = matlab_structs.load(path, DEFAULTS)
    np.testing.assert_allclose(np.asarray(found.signals["dff"]), other.get_traces(name="dff"))
    masks = other.get_roi_image_masks()
    other.close()
    for cell in range(CELLS):
        np.testing.assert_allclose(drawn(found.footprints, cell), masks[..., cell], rtol=1e-6)
