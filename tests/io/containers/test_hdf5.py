"""An HDF5 file is read without leaving it, without going in circles, and no larger than it is."""

import pickle
import struct

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from napari_xcebra.errors import InputError
from napari_xcebra.io.containers.hdf5 import (
    Hdf5Traces,
    attribute,
    child,
    dataset_at,
    footprints_of_masks,
    has_signature,
    open_hdf5,
    read,
    walk,
)

RNG = np.random.default_rng(0)
VALUES = RNG.random((20, 6))


@pytest.fixture
def secret(tmp_path):
    """A file beside the one that is opened."""
    path = tmp_path / "secret.h5"
    with h5py.File(path, "w") as file:
        file["values"] = VALUES
    return path


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "file.h5"
    with h5py.File(path, "w") as file:
        file["a/values"] = VALUES
        file["a/soft"] = h5py.SoftLink("/a/values")
        file["a/relative"] = h5py.SoftLink("values")
        file["a/names"] = ["one", "zwei", "drei"]
        file["a/fixed"] = np.array([b"one", b"two"])
        file["a/text"] = "a mouse"
        file["a"].attrs["kind"] = "traces"
        file["a"].attrs["columns"] = ["x", "y"]
    return path


def test_values_texts_and_attributes_are_read(path):
    with open_hdf5(path) as file:
        for name in ("a/values", "/a/soft", "a/relative"):
            np.testing.assert_array_equal(read(dataset_at(file, name)), VALUES)
        assert read(dataset_at(file, "a/names")).tolist() == ["one", "zwei", "drei"]
        assert read(dataset_at(file, "a/fixed")).tolist() == ["one", "two"]
        assert read(dataset_at(file, "a/text")) == "a mouse"
        assert attribute(file["a"], "kind") == "traces"
        assert attribute(file["a"], "columns") == ["x", "y"]
        assert attribute(file["a"], "none", 7) == 7
        assert child(file, "a/none") is None and child(file, "a/values/deeper") is None


def test_an_external_link_is_not_followed(path, secret):
    with h5py.File(path, "r+") as file:
        file["a/outside"] = h5py.ExternalLink("secret.h5", "/values")
        file["a/through"] = h5py.SoftLink("/elsewhere/values")
        file["elsewhere"] = h5py.ExternalLink("secret.h5", "/")
        np.testing.assert_array_equal(file["a/through"], VALUES)  # h5py does follow it
    for name in ("a/outside", "a/through", "elsewhere/values"):
        with pytest.raises(InputError, match="links to another file"), open_hdf5(path) as file:
            child(file, name)
    with open_hdf5(path) as file:
        assert "/elsewhere" not in [node.name for node in walk(file)]


def test_a_virtual_dataset_of_another_file_is_not_read(path, secret):
    layout = h5py.VirtualLayout(VALUES.shape, VALUES.dtype)
    layout[:] = h5py.VirtualSource("secret.h5", "values", VALUES.shape)
    with h5py.File(path, "r+") as file:
        file.create_virtual_dataset("outside", layout)
        np.testing.assert_array_equal(file["outside"], VALUES)
    with pytest.raises(InputError, match="assembled from other files"), open_hdf5(path) as file:
        read(file["outside"])


def test_a_virtual_dataset_of_the_same_file_is_read(path):
    layout = h5py.VirtualLayout(VALUES.shape, VALUES.dtype)
    layout[:] = h5py.VirtualSource(".", "/a/values", VALUES.shape)
    with h5py.File(path, "r+") as file:
        file.create_virtual_dataset("inside", layout)
    with open_hdf5(path) as file:
        np.testing.assert_array_equal(read(file["inside"]), VALUES)


def test_a_virtual_dataset_of_itself_is_refused(path):
    layout = h5py.VirtualLayout(VALUES.shape, VALUES.dtype)
    layout[:] = h5py.VirtualSource(".", "/itself", VALUES.shape)
    with h5py.File(path, "r+") as file:
        file.create_virtual_dataset("itself", layout)
    with pytest.raises(InputError), open_hdf5(path) as file:
        read(file["itself"])


def test_values_kept_in_another_file_are_not_read(path, tmp_path):
    (tmp_path / "hostname").write_bytes(b"a secret")
    with h5py.File(path, "r+") as file:
        # from the folder of this file or that of the program: HDF5 leaves it to the reader
        outside = str(tmp_path / "hostname")
        file.create_dataset("outside", (8,), "u1", external=[(outside, 0, 8)])
        assert bytes(file["outside"][:]) == b"a secret"
    with pytest.raises(InputError, match="in another file"), open_hdf5(path) as file:
        read(file["outside"])


@pytest.mark.parametrize("chunks", [None, (1000, 6)])
def test_a_size_that_the_file_cannot_hold_is_refused(path, chunks):
    with h5py.File(path, "r+") as file:
        file.create_dataset("huge", (10**12, 6), "f8", chunks=chunks, fillvalue=1.0)
    with open_hdf5(path) as file:
        with pytest.raises(InputError, match="claims 1,000,000,000,000 × 6 values"):
            read(file["huge"])
        with pytest.raises(InputError, match="claims"):
            Hdf5Traces.of(file["huge"], cells_first=False)


def test_a_chunk_that_the_file_cannot_hold_is_refused(path):
    with h5py.File(path, "r+") as file:
        file.create_dataset("huge", (10,), "f8", chunks=(10**8,), maxshape=(None,))
    with pytest.raises(InputError, match="holds only 0 bytes"), open_hdf5(path) as file:
        read(file["huge"])


def test_well_compressed_values_are_read(path):
    with h5py.File(path, "r+") as file:
        file.create_dataset("zeros", (2000, 5000), "f8", compression=9)
        file["zeros"][:] = 0
    with open_hdf5(path) as file:
        assert not read(file["zeros"]).any()


def test_what_is_neither_number_nor_text_is_refused(path):
    with h5py.File(path, "r+") as file:
        file["reference"] = np.array([file["a"].ref], h5py.ref_dtype)
        lists = file.create_dataset("lists", (2,), h5py.vlen_dtype(float))
        lists[0] = [1, 2, 3]
    for name in ("reference", "lists"):
        with pytest.raises(InputError, match="numbers or text"), open_hdf5(path) as file:
            read(file[name])


def test_an_attribute_that_claims_a_lot_is_refused(path):
    with h5py.File(path, "r+", libver="latest") as file:
        file.create_group("latest").attrs["huge"] = np.zeros(2**18)
    with pytest.raises(InputError, match="attribute huge"), open_hdf5(path) as file:
        attribute(file["latest"], "huge")


def text_of(path, place):
    with open_hdf5(path) as file:
        group = child(file, "group")
        return attribute(group, "text") if "attribute" in place else read(dataset_at(group, "text"))


@pytest.mark.parametrize("version", ["earliest", "latest"])
@pytest.mark.parametrize("place", ["attribute", "value", "chunk", "many attributes"])
def test_a_text_longer_than_its_file_is_a_sentence(tmp_path, version, place, guarded):
    path = tmp_path / "file.h5"
    text = "something or other"
    with h5py.File(path, "w", libver=version) as file:
        group = file.create_group("group")
        if "attribute" in place:
            for i in range(6 if "many" in place else 0):
                group.attrs[f"padding {i}"] = np.arange(20)
            group.attrs["text"] = text
        else:
            group.create_dataset("text", data=[text] * 3, chunks=(3,) if place == "chunk" else None)
    content = path.read_bytes()
    entry = struct.pack("<IQ", len(text), content.index(b"GCOL"))
    assert entry in content
    path.write_bytes(content.replace(entry, struct.pack("<IQ", 2**31, content.index(b"GCOL"))))
    with pytest.raises(InputError, match=r"file\.h5"):
        guarded(text_of, path, place)


def test_groups_in_a_circle_are_walked_once(path):
    with h5py.File(path, "r+") as file:
        for i in range(50):
            file[f"a/again{i}"] = file["a"]
            file[f"a/root{i}"] = file["/"]
        file["a/round"] = h5py.SoftLink("/a/round")
    with open_hdf5(path) as file:
        assert len(list(walk(file))) == 1 + 4
        with pytest.raises(InputError, match="is a circular link"):
            child(file, "a/round")


def test_whatever_fails_inside_becomes_a_sentence(path, tmp_path):
    for error in (KeyError("a"), MemoryError(), RecursionError("deep"), OSError("truncated")):
        with pytest.raises(InputError, match=r"file\.h5 cannot be read"), open_hdf5(path):
            raise error
    with pytest.raises(InputError, match="not an HDF5 file"):
        words = tmp_path / "words.h5"
        words.write_text("words")
        with open_hdf5(words):
            pass
    with pytest.raises(InputError, match="No such file"), open_hdf5(tmp_path / "none.h5"):
        pass
    assert not has_signature(tmp_path) and not has_signature(tmp_path / "none.h5")


def test_a_filter_that_is_not_there_is_named(path):
    with h5py.File(path, "r+") as file:
        file.create_dataset("packed", data=VALUES, chunks=VALUES.shape, compression="lzf")
    content = path.read_bytes().replace(b"\x00\x7d", b"\x07\x7d")  # lzf is number 32000
    path.write_bytes(content)
    with pytest.raises(InputError, match="lzf, which is not installed"), open_hdf5(path) as file:
        read(file["packed"])


def test_traces_are_read_as_far_as_asked_and_travel_to_other_processes(path):
    with h5py.File(path, "r+") as file:
        file["b/values"] = VALUES.T
        file["one"] = VALUES[:, 0]
    with open_hdf5(path) as file:
        plain = Hdf5Traces.of(file["a/values"], cells_first=False)
        turned = Hdf5Traces.of(file["b/values"], cells_first=True)
        alone = Hdf5Traces.of(file["one"], cells_first=False)
        picked = Hdf5Traces.of(
            file["a/values"], cells_first=False, columns=np.array([4, 1, 2]), factor=2, offset=1
        )
    for traces in (plain, turned, pickle.loads(pickle.dumps(turned))):
        assert traces.shape == VALUES.shape
        np.testing.assert_allclose(np.asarray(traces), VALUES, rtol=1e-6)
        np.testing.assert_allclose(traces[3:9, [5, 0]], VALUES[3:9][:, [5, 0]], rtol=1e-6)
    np.testing.assert_allclose(np.asarray(alone), VALUES[:, :1], rtol=1e-6)
    np.testing.assert_allclose(np.asarray(picked), 2 * VALUES[:, [4, 1, 2]] + 1, rtol=1e-6)
    np.testing.assert_allclose(picked[2, 1:], 2 * VALUES[2, [1, 2]] + 1, rtol=1e-6)


def test_traces_of_the_wrong_kind_are_refused(path):
    with h5py.File(path, "r+") as file:
        file["cube"] = np.zeros((2, 2, 2))
        file["none"] = np.zeros((0, 4))
    with open_hdf5(path) as file:
        for name in ("cube", "none", "a/fixed"):
            with pytest.raises(InputError, match=name):
                Hdf5Traces.of(file[name], cells_first=False)
        with pytest.raises(InputError, match="number 6 is used"):
            Hdf5Traces.of(file["a/values"], cells_first=False, columns=np.array([0, 6]))


def test_masks_become_footprints_some_at_a_time(path, monkeypatch):
    masks = RNG.random((5, 7, 9)) * (RNG.random((5, 7, 9)) > 0.8)
    masks[2] = 0
    with h5py.File(path, "r+") as file:
        file["masks"] = masks
    monkeypatch.setattr("napari_xcebra.io.containers.hdf5.BLOCK_BYTES", 2 * 7 * 9 * 8)
    with open_hdf5(path) as file:
        plain = footprints_of_masks(file["masks"], turned=False)
        some = footprints_of_masks(file["masks"], [4, 0, 1], turned=True)
    rebuilt = np.zeros(masks.shape)
    rebuilt[plain.cell, plain.row, plain.column] = plain.weight
    np.testing.assert_allclose(rebuilt, masks, rtol=1e-6)
    assert some.shape == (9, 7)
    rebuilt = np.zeros((3, 9, 7))
    rebuilt[some.cell, some.row, some.column] = some.weight
    np.testing.assert_allclose(rebuilt, masks[[4, 0, 1]].transpose(0, 2, 1), rtol=1e-6)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_file_is_read_or_gets_a_sentence(path, data):
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(0, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.one_of(st.just(len(content)), st.integers(0, len(content))))
    broken = path.with_name("broken.h5")
    broken.write_bytes(content[:end])
    try:
        with open_hdf5(broken) as file:
            for node in walk(file):
                attribute(node, "kind"), attribute(node, "columns")
                if isinstance(node, h5py.Dataset):
                    read(node)
    except InputError as error:
        assert "broken.h5" in str(error)
