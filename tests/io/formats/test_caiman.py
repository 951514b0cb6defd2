"""CaImAn's files open with every component in its place."""

import h5py
import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from placement import brighter, drawn

from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording
from napari_xcebra.io.formats import caiman
from napari_xcebra.io.settings import OpenSettings

DIMS, FRAMES, CELLS = (12, 9), 40, 4
RNG = np.random.default_rng(0)


def write(path, shape=DIMS, **changes):
    """As `CNMF.save()`; a change of None takes an estimate away."""
    masks = np.zeros((*shape, CELLS))
    for cell in range(CELLS):
        masks[2 * cell : 2 * cell + 3, cell : cell + 2, ..., cell] = cell + 1
    traces = {name: RNG.random((CELLS, FRAMES)) for name in ("C", "F_dff", "S", "YrA")}
    estimates = {
        **traces,
        "dims": shape,
        "b": RNG.random((int(np.prod(shape)), 2)),
        "f": RNG.random((2, FRAMES)),
        "Cn": masks.sum(-1),
        "idx_components": np.array([0, 2]),
        "SNR_comp": np.arange(CELLS) * 1.0,
        "r_values": np.arange(CELLS) / 10,
        "cnn_preds": np.zeros(0),
        "A_thr": b"NoneType",
        **changes,
    }
    weights = scipy.sparse.csc_array(masks.reshape(-1, CELLS, order="F"))
    with h5py.File(path, "w") as file:
        for name, value in estimates.items():
            if value is not None:
                file[f"estimates/{name}"] = value
        for name in ("data", "indices", "indptr", "shape"):
            file[f"estimates/A/{name}"] = getattr(weights, name)
        file["params/data/fr"] = 20.0
    return masks, estimates


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.hdf5"


def test_every_component_is_there_in_its_place(path):
    masks, estimates = write(path)
    found = caiman.load(path, OpenSettings())
    for signal, name in (("dff", "F_dff"), ("denoised", "C"), ("events", "S")):
        np.testing.assert_allclose(np.asarray(found.signals[signal]), estimates[name].T, rtol=1e-6)
    raw = (estimates["C"] + estimates["YrA"]).T
    np.testing.assert_allclose(np.asarray(found.signals["traces"]), raw, rtol=1e-6)
    for cell in range(CELLS):
        np.testing.assert_array_equal(drawn(found.footprints, cell), masks[..., cell])
    assert found.rate == 20
    assert found.accepted.tolist() == [True, False, True, False]
    assert list(found.cells) == ["snr", "r"]
    np.testing.assert_array_equal(found.images["correlation"], estimates["Cn"])
    model = estimates["b"] @ estimates["f"] + masks.reshape(-1, CELLS, order="F") @ estimates["C"]
    mean = model.mean(1).reshape(DIMS, order="F")
    np.testing.assert_allclose(found.images["mean"], mean, rtol=1e-5)


def test_the_recording_has_the_relative_traces_of_the_file(path):
    _, estimates = write(path)
    recording = open_recording(path)
    np.testing.assert_allclose(recording.traces, estimates["F_dff"].T, rtol=1e-6)
    assert "ΔF/F as in the file" in recording.notes[-1]


@pytest.mark.parametrize(("dxy", "size"), [((0.9, 0.9), 0.9), ((1.0, 1.0), None)])
def test_the_size_of_a_pixel_is_read_unless_it_is_what_caiman_writes_by_itself(path, dxy, size):
    write(path)
    with h5py.File(path, "r+") as file:
        file["params/data/dxy"] = np.array(dxy)
    assert open_recording(path).pixel_size == size


def test_a_volume_has_planes(path):
    masks, estimates = write(path, shape=(12, 9, 3))
    found = caiman.load(path, OpenSettings())
    assert found.footprints.shape == (3, 12, 9)
    for cell in range(CELLS):
        volume = np.moveaxis(masks[..., cell], 2, 0)
        np.testing.assert_array_equal(drawn(found.footprints, cell), volume)
    np.testing.assert_array_equal(found.images["correlation"], np.moveaxis(estimates["Cn"], 2, 0))


def test_none_stands_for_nothing(path):
    none = b"NoneType"
    write(path, F_dff=none, S=none, YrA=none, b=none, f=none, Cn=none, idx_components=none)
    found = caiman.load(path, OpenSettings())
    assert set(found.signals) == {"denoised"}
    assert found.accepted is None and not found.images
    assert any("all count as cells" in note for note in found.notes)


def test_the_baseline_of_one_photon_files_is_the_background(path):
    masks, estimates = write(path, b=b"NoneType", f=b"NoneType", b0=np.arange(108.0))
    image = caiman.load(path, OpenSettings()).images["mean"]
    cells = masks.reshape(-1, CELLS, order="F") @ estimates["C"].mean(1)
    np.testing.assert_allclose(image.ravel(order="F"), np.arange(108) + cells, rtol=1e-5)


def test_relative_traces_of_other_components_are_left_out(path):
    write(path, F_dff=np.zeros((2, FRAMES)))
    found = caiman.load(path, OpenSettings())
    assert "dff" not in found.signals
    assert any("F_dff is left out" in note for note in found.notes)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"C": None}, "no traces"),
        ({"C": np.zeros((3, FRAMES))}, "for 3 components"),
        ({"dims": (9, 9)}, "9 × 9 pixels"),
        ({"dims": None}, "size of the field of view"),
        ({"idx_components": np.array([0, 4])}, "accepts component 4, but has 4"),
        ({"idx_components": np.array([-1])}, "accepts component"),
    ],
)
def test_what_does_not_fit_together_gets_a_sentence(path, changes, sentence):
    write(path, **changes)
    with pytest.raises(InputError, match=sentence):
        caiman.load(path, OpenSettings())


def test_other_files_are_not_taken_for_its(path, tmp_path):
    with h5py.File(path, "w") as file:
        file["estimates"] = 1
    assert not caiman.sniff(path)
    assert not caiman.sniff(tmp_path)
    words = tmp_path / "words.hdf5"
    words.write_text("words")
    assert not caiman.sniff(words)


def test_a_file_cut_short_is_said_to_be_incomplete(path):
    write(path)
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(InputError, match="damaged, incomplete"):
        open_recording(path)


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_file_opens_or_gets_a_sentence(path, data):
    if not path.exists():
        write(path)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    broken = path.with_name("broken.hdf5")
    broken.write_bytes(content)
    try:
        open_recording(broken)
    except InputError as error:
        assert str(error)


@pytest.fixture(scope="session")
def shared(shared_data):
    return open_recording(shared_data / "caiman" / "cnmf_results.hdf5")


def test_the_shared_file_has_32_components_of_which_24_are_accepted(shared):
    assert (shared.n_cells, shared.accepted.sum(), shared.n_frames) == (32, 24, 2000)
    assert shared.footprints.shape == (128, 100)
    assert shared.rate == 15


def test_accepted_cells_are_brighter_than_around_them(shared):
    """In Fortran order, as CaImAn has it, and not in C order."""
    footprints = shared.footprints
    pixel = footprints.column * 128 + footprints.row
    wrong = type(footprints)(
        footprints.shape, footprints.cell, pixel // 100, pixel % 100, footprints.weight
    )
    for image in shared.images.values():
        assert brighter(footprints, image)[shared.accepted].mean() > 0.95
        assert brighter(wrong, image)[shared.accepted].mean() < 0.7


def test_roiextractors_finds_the_same(shared, shared_data):
    roiextractors = pytest.importorskip("roiextractors")
    path = shared_data / "caiman" / "cnmf_results.hdf5"
    other = roiextractors.CaimanSegmentationExtractor(path)
    traces = other.get_traces(name="dff")
    np.testing.assert_allclose(shared.traces, traces, rtol=1e-5)
    accepted = other.get_property("is_accepted", other.get_roi_ids())
    np.testing.assert_array_equal(shared.accepted, accepted)
    masks = other.get_roi_image_masks()
    for cell in range(32):
        np.testing.assert_allclose(drawn(shared.footprints, cell), masks[..., cell], rtol=1e-5)
