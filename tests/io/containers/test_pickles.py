"""Pickles are read as far as they hold plain values, and nothing in them is ever run."""

import builtins
import copyreg
import datetime
import io
import os
import pathlib
import pickle
import struct
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from napari_xcebra.errors import InputError
from napari_xcebra.io.containers.npy import loads, read_object_npy
from napari_xcebra.jobs import limits

RNG = np.random.default_rng(0)
PLAIN = {
    "text": "mean image",
    "Greek": "ΔF/F",
    "numbers": [1, -(2**70), 1.5, True, None, 2 + 1j],
    "bytes": [b"", b"ab\xff", bytearray(b"cd")],
    "containers": [(1, (2, 3)), {1, 2}, frozenset({"a"}), OrderedDict(b=1, a=2), {(0, "x"): 1}],
    "slice": slice(1, None, 2),
    "date": datetime.datetime(2026, 11, 15, 23, 38, tzinfo=datetime.UTC),
    "scalars": [np.float32(0.1), np.int64(-3), np.bool_(True), np.str_("y")],
    "empty": np.zeros((0, 5)),
    "image": RNG.random((40, 30)).astype(np.float32),
    "columns first": np.asfortranarray(RNG.random((4, 3))),
    "turned": RNG.random((2, 3, 4)).transpose(1, 2, 0),
    "big-endian": np.arange(5, dtype=">i2"),
    "flags": RNG.random(2000) > 0.5,
    "words": np.array(["soma", "axon"]),
    "objects": np.array([{"ypix": np.arange(3)}, None], dtype=object),
}


def npy(tmp_path, pickled, shape=(), name="ops.npy"):
    """A .npy file with any bytes in the place of its pickle."""
    file = io.BytesIO()
    header = {"descr": "|O", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    (tmp_path / name).write_bytes(file.getvalue() + pickled)
    return tmp_path / name


@pytest.fixture
def alarm(monkeypatch):
    """Whatever the crafted pickles below want to run."""
    rung = []
    for owner, name in (
        (os, "system"),
        (builtins, "eval"),
        (builtins, "exec"),
        (np, "load"),
        (np, "fromfile"),
        (copyreg, "_reconstructor"),
    ):
        monkeypatch.setattr(owner, name, lambda *args, name=name: rung.append(name))
    yield rung
    assert rung == []


def assert_same(found, given):
    assert type(found) is type(given)
    if isinstance(given, np.ndarray):
        assert found.dtype == given.dtype.newbyteorder("=")
        assert found.shape == given.shape
        for f, g in zip(found.ravel().tolist(), given.ravel().tolist(), strict=True):
            assert_same(f, g)
    elif isinstance(given, dict):
        assert list(found) == list(given)
        for name in given:
            assert_same(found[name], given[name])
    elif isinstance(given, list | tuple):
        for f, g in zip(found, given, strict=True):
            assert_same(f, g)
    else:
        assert found == given


@pytest.mark.parametrize("protocol", range(6))
def test_plain_values_are_read_as_they_were_written(protocol):
    assert_same(loads(pickle.dumps(PLAIN, protocol), "attribute"), PLAIN)


def test_old_and_new_names_of_numpy_are_the_same(tmp_path):
    np.save(tmp_path / "ops.npy", PLAIN, allow_pickle=True)
    written = (tmp_path / "ops.npy").read_bytes()
    header = written.index(b"\x80\x04")
    new = pickle.dumps(np.array(PLAIN, dtype=object), 2)
    old = new.replace(b"numpy._core.", b"numpy.core.")
    assert old != new
    for pickled in (new, old, written[header:]):
        assert_same(read_object_npy(npy(tmp_path, pickled)), PLAIN)


def test_one_object_is_given_as_it_is_and_several_as_an_array(tmp_path):
    rois = np.array([{"npix": 3}, {"npix": 4}])
    np.save(tmp_path / "stat.npy", rois, allow_pickle=True)
    assert_same(read_object_npy(tmp_path / "stat.npy"), rois)
    np.save(tmp_path / "ops.npy", {"fs": 30.0}, allow_pickle=True)
    assert read_object_npy(tmp_path / "ops.npy") == {"fs": 30.0}


@pytest.mark.parametrize("module", ["pathlib", "pathlib._local"])
@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("WindowsPath", pathlib.PureWindowsPath("D:\\data", "plane0")),
        ("PosixPath", pathlib.PurePosixPath("/data", "plane0")),
    ],
)
def test_paths_of_any_system_and_python_lose_their_hold_on_the_disk(module, name, path):
    first, last = ("D:\\data" if name == "WindowsPath" else "/data"), "plane0"
    pickled = f"c{module}\n{name}\n(V{first}\nV{last}\ntR.".encode().replace(b"D:\\", b"D:\\u005c")
    found = loads(pickled, "ops.npy")
    assert found == path
    assert not isinstance(found, pathlib.Path)


def short_text(text):
    return pickle.SHORT_BINUNICODE + bytes([len(text)]) + text.encode()


def call(module, name, *args):
    """The bytes of a pickle that calls a function (GLOBAL and REDUCE)."""
    return f"c{module}\n{name}\n".encode() + pickle.dumps(args, 2)[2:-1] + b"R."


class Trap:
    """Calls whatever it is made with when it is unpickled."""

    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call


CRAFTED = {
    "os.system": call("os", "system", "echo trapped"),
    "posix.system": call("posix", "system", "echo trapped"),
    "builtins.eval": call("builtins", "eval", "1 + 1"),
    "builtins.getattr": call("builtins", "getattr", "x", "upper"),
    "copyreg._reconstructor": call("copyreg", "_reconstructor", 1, 2, 3),
    "numpy.load": call("numpy", "load", "other.npy"),
    "numpy.fromfile": call("numpy", "fromfile", "/etc/passwd"),
    "numpy.testing._private.utils.runstring": call(
        "numpy.testing._private.utils", "runstring", "1 + 1", {}
    ),
    "numpy.zeros": call("numpy", "zeros", 10**12),
    "numpy.ndarray.tofile": b"\x80\x04" + short_text("numpy.ndarray") + short_text("tofile")
    + pickle.STACK_GLOBAL + b".",
    "os.getcwd": b"\x80\x04" + short_text("os") + short_text("getcwd") + pickle.STACK_GLOBAL
    + pickle.EMPTY_TUPLE + pickle.REDUCE + b".",
    "os.abort": b"(ios\nabort\n.",
    "subprocess.Popen": b"(csubprocess\nPopen\nVls\no.",
    "pathlib.Path.unlink": b"\x80\x04" + short_text("pathlib") + short_text("Path.unlink")
    + pickle.STACK_GLOBAL + b".",
}  # fmt: skip


@pytest.mark.parametrize("wanted", CRAFTED)
def test_a_pickle_that_wants_to_run_something_is_reported_and_runs_nothing(tmp_path, alarm, wanted):
    sentence = f"wants to use {wanted.replace('.', '[.]')}, .* nothing in it was run"
    with pytest.raises(InputError, match=f"ops.npy {sentence}"):
        read_object_npy(npy(tmp_path, CRAFTED[wanted]))


@pytest.mark.parametrize("protocol", range(6))
def test_a_trap_inside_plain_values_is_found(tmp_path, protocol):
    for hidden in ([Trap(os.getpid, ())], {"a": np.array([Trap(os.getpid, ())])}):
        with pytest.raises(InputError, match=r"wants to use (posix|nt)[.]getpid"):
            read_object_npy(npy(tmp_path, pickle.dumps(np.array([hidden], object), protocol)))


@pytest.mark.parametrize(
    "pickled",
    [
        # an object of a class that may be named
        b"\x80\x02ccollections\nOrderedDict\n)\x81.",
        # a class itself, given other methods
        b"\x80\x02ccollections\nOrderedDict\n}X\x05\x00\x00\x00itemsK\x01sb.",
        # an array that is called
        call("numpy", "ndarray", (10**12,)),
        b"\x80\x02]K\x01\x85R.",
        # what numpy would believe of a type: that numbers are pointers to objects
        b"\x80\x02cnumpy\ndtype\nX\x02\x00\x00\x00f8\x85R(K\x03X\x01\x00\x00\x00?NNNJ\xff\xff\xff"
        b"\xffJ\xff\xff\xff\xffK?tb.",
        # a type with columns outside its own size
        call("numpy", "dtype", "V8"),
        call("numpy", "dtype", [("a", "O")]),
        # extensions, persistent names, buffers from elsewhere
        b"\x80\x02\x82\x01.",
        b"\x80\x02K\x01Q.",
        b"\x80\x05\x97.",
    ],
)
def test_operations_that_plain_values_do_not_need_are_refused(pickled):
    with pytest.raises(InputError, match="cannot be read: it is damaged"):
        loads(pickled, "attribute")


def array_pickle(shape, code, values):
    """An array as numpy pickles it, of whatever shape and values."""
    made = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n"
    made += pickle.dumps((0,), 2)[2:-1] + b"U\x01b\x87R"
    dtype = b"cnumpy\ndtype\n" + pickle.dumps((code, False, True), 2)[2:-1] + b"R"
    state = [pickle.dumps(part, 3)[2:-1] for part in (1, shape, False, values)]
    return b"\x80\x03" + made + b"(" + state[0] + state[1] + dtype + b"".join(state[2:]) + b"tb."


BOMBS = {
    "shape without values": array_pickle((10**12,), "f4", b""),
    "objects without a list": array_pickle((10**9,), "O8", []),
    "a shape that overflows": array_pickle((2**40, 2**40), "i1", b""),
    "a negative shape": array_pickle((-1,), "i1", b""),
    "values of no size": array_pickle((10**12,), "S0", b""),
    "a shape to be reconstructed": b"\x80\x02cnumpy.core.multiarray\n_reconstruct\n"
    b"cnumpy\nndarray\n(J\xff\xff\xff\x7ftU\x01b\x87RK\x01b.",
    "bytes by number": call("builtins", "bytearray", 10**12),
    "bytes that are not there": b"\x80\x04\x8e" + struct.pack("<Q", 10**12) + b".",
    "bytearray that is not there": b"\x80\x05\x96" + struct.pack("<Q", 10**12) + b".",
    "text that is not there": b"\x80\x04\x8d" + struct.pack("<Q", 10**12) + b".",
    "frame that is not there": b"\x80\x04\x95" + struct.pack("<Q", 10**12) + b"N.",
    "one text encoded many times": b"\x80\x02(" + b"X" + struct.pack("<I", 10**5) + b"x" * 10**5
    + b"q\x00" + b"c_codecs\nencode\nq\x01" + b"h\x01h\x00X\x06\x00\x00\x00latin1\x86R" * 10**4
    + b"t.",
    "keys that take for ever": b"\x80\x02}K\x01" + b"2\x86" * 200 + b"Ns.",
    "members that take for ever": b"\x80\x04\x8f(K\x01" + b"2\x86" * 200 + b"\x90.",
}  # fmt: skip


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_pickle_that_claims_too_much_is_a_sentence(tmp_path, bomb, guarded, monkeypatch):
    monkeypatch.setattr(limits, "COMPUTING", 2.0)
    monkeypatch.setattr(limits, "MEMORY", 300 * 2**20)
    with pytest.raises(InputError, match=r"\.npy"):
        guarded(read_object_npy, npy(tmp_path, BOMBS[bomb]))


def test_a_place_in_memory_far_away_costs_nothing():
    # C's reader makes room for all the places before it: 32 GB
    assert loads(b"\x80\x02Nr\xff\xff\xff\x7f.", "attribute") is None


def test_depth_is_no_danger(tmp_path):
    depth = 20_000
    found = loads(b"\x80\x02" + b"]" * depth + b"a" * (depth - 1) + b".", "attribute")
    assert isinstance(found, list)
    with pytest.raises(InputError):
        read_object_npy(npy(tmp_path, b"\x80\x02" + b"(" * depth + b"t" * depth + b"."))


def test_plain_numbers_are_not_taken_for_objects(tmp_path):
    np.save(tmp_path / "ops.npy", np.arange(3))
    with pytest.raises(InputError, match="holds plain numbers"):
        read_object_npy(tmp_path / "ops.npy")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"stat.npy cannot be read: No such file"):
        read_object_npy(tmp_path / "stat.npy")


STAT = np.array(
    [{"ypix": np.arange(4), "lam": np.ones(4, np.float32), "med": [np.int64(3), 4]}] * 2 + [PLAIN]
)


def written(protocol):
    file = io.BytesIO()
    header = {"descr": "|O", "fortran_order": False, "shape": STAT.shape}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + pickle.dumps(STAT, protocol)


@given(st.data())
def test_a_damaged_pickle_gives_a_sentence_or_values(tmp_path_factory, data):
    whole = written(data.draw(st.sampled_from([2, 3, 4, 5])))
    damaged = bytearray(whole[: data.draw(st.integers(0, len(whole)) | st.just(len(whole)))])
    for place, byte in data.draw(st.lists(st.tuples(st.integers(0, 10**4), st.integers(0, 255)))):
        if place < len(damaged):
            damaged[place] = byte
    path = tmp_path_factory.getbasetemp() / "damaged.npy"
    path.write_bytes(damaged)
    try:
        found = read_object_npy(path)
    except InputError as error:
        assert "damaged.npy" in str(error)
    else:
        assert found is not None


def test_lists_that_hold_each_other_are_not_written_out(tmp_path):
    """As the type of an array: written out they would have 2 to the power of 60 parts."""
    nested = b"]q\x00"
    for i in range(60):
        nested += b"]q" + bytes([i + 1]) + b"(h" + bytes([i]) + b"h" + bytes([i]) + b"e"
    pickled = b"\x80\x02" + nested + b"cnumpy\ndtype\nh<\x85R."
    with pytest.raises(InputError, match="arrays of type a list"):
        loads(pickled, "ops.npy")
