"""Numbers in .mat files come as MATLAB shows them, and nothing else comes of such a file."""

import struct
import zlib

import h5py
import numpy as np
import pytest
import scipy.io
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from napari_xcebra.errors import InputError
from napari_xcebra.io.containers.matlab import is_mat, read_mat

RNG = np.random.default_rng(0)
TRACES = RNG.random((3, 50))


def save_v73(path, arrays):
    """As MATLAB 7.3 does: HDF5 after a header of 512 bytes, arrays transposed."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, array in arrays.items():
            file[name] = np.asarray(array).T
    header = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM"
    with path.open("r+b") as file:
        file.write(header)
    return path


@pytest.fixture
def v5(tmp_path):
    path = tmp_path / "v5.mat"
    inner = {"weights": TRACES, "label": "words", "deeper": {"rate": 30.0}}
    cells = np.empty((1, 2), object)
    cells[:] = [[TRACES, "word"]]
    contents = {"traces": TRACES, "neuron": inner, "list": cells, "name": "a mouse"}
    contents |= {"A": scipy.sparse.csc_array(np.eye(4)), "mask": TRACES > 0.5}
    scipy.io.savemat(path, contents, do_compression=True)
    return path


@pytest.fixture
def v73(tmp_path):
    return save_v73(tmp_path / "v73.mat", {"traces": TRACES, "neuron/deeper/rate": [[30.0]]})


def test_numbers_are_found_in_structs_and_cells_and_text_only_in_cells(v5):
    arrays = read_mat(v5)
    numbers = {"traces", "neuron.weights", "neuron.deeper.rate", "A", "mask"}
    assert set(arrays) == numbers | {"list{1}", "list{2}"}
    np.testing.assert_array_equal(arrays["list{1}"], TRACES)
    np.testing.assert_array_equal(arrays["traces"], TRACES)
    np.testing.assert_array_equal(arrays["neuron.weights"], TRACES)
    np.testing.assert_array_equal(arrays["A"], np.eye(4))
    assert arrays["neuron.deeper.rate"] == 30


@pytest.mark.parametrize("compressed", [False, True])
def test_every_type_of_numbers_is_read(tmp_path, compressed):
    kinds = ["f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?"]
    arrays = {f"x_{kind.strip('?')}": (100 * TRACES).astype(kind) for kind in kinds}
    arrays |= {"cube": RNG.random((2, 3, 4)), "none": np.zeros((0, 5)), "one": np.array([[7.0]])}
    arrays |= {"S": scipy.sparse.csc_array(TRACES * (TRACES > 0.8))}
    path = tmp_path / "x.mat"
    scipy.io.savemat(path, arrays, do_compression=compressed)
    found = read_mat(path)
    assert set(found) == set(arrays)
    for name, array in found.items():
        expected = arrays[name].toarray() if name == "S" else arrays[name]
        np.testing.assert_array_equal(array, expected)


def test_version_73_lies_the_same_way_round_as_version_5(v73):
    arrays = read_mat(v73)
    np.testing.assert_array_equal(arrays["traces"], TRACES)
    assert arrays["neuron.deeper.rate"].shape == (1, 1)


def test_version_73_without_text_and_with_sparse_matrices(tmp_path):
    path = save_v73(tmp_path / "more.mat", {"traces": TRACES, "name": np.array([[109], [97]])})
    matrix = scipy.sparse.csc_array(TRACES * (TRACES > 0.5))
    with h5py.File(path, "r+") as file:
        file["name"].attrs["MATLAB_class"] = np.bytes_("char")
        file["none"] = np.array([0, 0], np.uint64)
        file["none"].attrs["MATLAB_empty"] = 1
        file["list"] = np.array([file["traces"].ref], h5py.ref_dtype)
        for name, part in (("data", matrix.data), ("ir", matrix.indices), ("jc", matrix.indptr)):
            file[f"A/{name}"] = part
        file["A"].attrs["MATLAB_sparse"] = np.uint64(3)
    arrays = read_mat(path)
    assert set(arrays) == {"traces", "none", "A"}
    assert arrays["none"].size == 0
    np.testing.assert_array_equal(arrays["A"], matrix.toarray())


def test_a_mat_file_is_known_by_its_content(v5, v73, tmp_path):
    renamed = tmp_path / "renamed.csv"
    renamed.write_bytes(v5.read_bytes())
    assert is_mat(v5) and is_mat(v73) and is_mat(renamed)
    words = tmp_path / "words.mat"
    words.write_text("a,b\n1,2\n" * 100)
    assert not is_mat(words) and not is_mat(tmp_path) and not is_mat(tmp_path / "none.mat")
    with pytest.raises(InputError, match=r"not a \.mat file of MATLAB 5 or later"):
        read_mat(words)


def test_the_shared_files_hold_the_same_traces(shared_data):
    v5 = read_mat(shared_data / "generic" / "traces_v5.mat")
    v73 = read_mat(shared_data / "generic" / "traces_v73.mat")
    traces = np.load(shared_data / "generic" / "traces_cells_x_time.npy")
    np.testing.assert_allclose(v5["neuron.C"], traces)
    np.testing.assert_allclose(v73["C"], traces)
    assert v5["fs"] == v73["fs"] == 15


def element(kind, content):
    return struct.pack("<II", kind, len(content)) + content + bytes(-len(content) % 8)


def matrix(kind, shape, *parts, name=b"x"):
    flags = element(6, struct.pack("<II", kind, 0))
    dims = element(5, struct.pack(f"<{len(shape)}i", *shape))
    return element(14, b"".join([flags, dims, element(1, name), *parts]))


def crafted(path, variable, *, packed=False):
    if packed:
        squeezed = zlib.compress(variable)
        variable = struct.pack("<II", 15, len(squeezed)) + squeezed
    path.write_bytes(b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM" + variable)
    return path


NUMBERS = element(9, np.arange(6.0).tobytes())


def test_the_crafted_file_is_as_matlab_writes_it(tmp_path):
    for packed in (False, True):
        path = crafted(tmp_path / "x.mat", matrix(6, (2, 3), NUMBERS), packed=packed)
        np.testing.assert_array_equal(read_mat(path)["x"], np.arange(6.0).reshape(3, 2).T)


FIELD = element(5, struct.pack("<i", 32)), element(1, b"field".ljust(32, b"\0"))


def deep(levels, kind):
    inside = matrix(6, (2, 3), NUMBERS, name=b"")
    for _ in range(levels):
        inside = matrix(kind, (1, 1), *(FIELD if kind == 2 else ()), inside, name=b"")
    return matrix(2, (1, 1), *FIELD, inside)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    "variable",
    [
        pytest.param(matrix(6, (10**6, 10**6), NUMBERS), id="numbers"),
        pytest.param(matrix(5, (10**9, 10**9), NUMBERS), id="sparse"),
        pytest.param(matrix(6, (2, 3), NUMBERS)[:-16], id="cut"),
        pytest.param(element(99, b"12345678"), id="unknown"),
        pytest.param(matrix(6, (2, 3), element(200, bytes(48))), id="unknown numbers"),
        pytest.param(matrix(2, (1, 1), *FIELD), id="a struct without its field"),
        pytest.param(matrix(2, (1, 1), *FIELD, NUMBERS), id="a field that is no array"),
        pytest.param(matrix(2, (1, 1), *FIELD, matrix(1, (60_000, 60_000))), id="huge cells"),
        pytest.param(matrix(2, (60_000, 60_000), *FIELD), id="many structs"),
    ],
)
def test_impossible_claims_are_a_sentence(tmp_path, variable, packed, guarded):
    path = crafted(tmp_path / "x.mat", variable, packed=packed)
    with pytest.raises(InputError, match=r"x\.mat"):
        guarded(read_mat, path)


@pytest.mark.parametrize(
    "variable",
    [
        pytest.param(deep(10_000, 1), id="cells ten thousand deep"),
        pytest.param(deep(10_000, 2), id="structs ten thousand deep"),
        pytest.param(struct.pack("<II", 14, 2**31) + bytes(1000), id="more than can be packed"),
    ],
)
def test_what_takes_too_much_is_a_sentence(tmp_path, variable, guarded):
    with pytest.raises(InputError, match=r"x\.mat"):
        guarded(read_mat, crafted(tmp_path / "x.mat", variable, packed=True))


def test_complex_numbers_and_texts_are_left_out(tmp_path):
    scipy.io.savemat(tmp_path / "x.mat", {"z": TRACES * 1j, "numbers": TRACES, "text": "words"})
    assert list(read_mat(tmp_path / "x.mat")) == ["numbers"]


def test_a_sparse_matrix_with_indices_outside_is_a_sentence(tmp_path, guarded):
    rows, ends = (element(5, np.array(n, np.int32).tobytes()) for n in ([0, 10**9], [0, 1, 2]))
    variable = matrix(5, (2, 2), rows, ends, element(9, np.ones(2).tobytes()))
    with pytest.raises(InputError, match=r"x\.mat"):
        guarded(read_mat, crafted(tmp_path / "x.mat", variable))


def test_structs_that_contain_each_other_end(tmp_path):
    path = save_v73(tmp_path / "circle.mat", {"traces": TRACES, "a/b/x": [[1.0]]})
    # a child that is being started holds the locks of its parent for a moment
    with h5py.File(path, "r+", locking=False) as file:
        for i in range(200):
            file[f"a/b/{i}"] = file["a"]
    assert set(read_mat(path)) == {"traces", "a.b.x"}


@pytest.mark.parametrize("version", ["v5", "v73"])
@settings(max_examples=80, deadline=None,
          suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
@given(data=st.data())
def test_a_damaged_file_opens_or_gets_a_sentence(version, v5, v73, guarded, data):
    path = {"v5": v5, "v73": v73}[version]
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(0, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.one_of(st.just(len(content)), st.integers(0, len(content))))
    broken = path.with_name("broken.mat")
    broken.write_bytes(content[:end])
    assert is_mat(broken) in (True, False)
    try:
        guarded(read_mat, broken)
    except InputError as error:
        assert "broken.mat" in str(error)
