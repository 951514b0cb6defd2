"""Crafted pickles in the places where suite2p and DeepLabCut have theirs: none may run anything."""

from __future__ import annotations

import io
import itertools
import pickle
import random
import shutil
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from breaking.opened import Window, count
from breaking.samples import SAMPLES, Sample
from breaking.tally import Tally, World, differences

MARKUP = '<img src="file:///etc/hostname"><a href="http://localhost:1">x</a>'


class Runs:
    """Calls what it is made with when it is unpickled."""

    def __init__(self, *called: Any) -> None:
        self.called = called

    def __reduce__(self) -> Any:
        return self.called


def call(module: str, name: str, *args: object) -> bytes:
    """A pickle that calls a function by its name (GLOBAL and REDUCE)."""
    return f"c{module}\n{name}\n".encode() + pickle.dumps(args, 2)[2:-1] + b"R."


def by_stack(module: str, name: str, *args: object) -> bytes:
    """The same by STACK_GLOBAL, with names that are computed."""
    names = b"".join(b"\x8c" + bytes([len(word)]) + word.encode() for word in (module, name))
    return b"\x80\x04" + names + b"\x93" + pickle.dumps(args, 4)[2:-1] + b"R."


def array(shape: object, code: object, values: object) -> bytes:
    """An array as numpy pickles it, of whatever shape, type and values."""
    made = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n"
    made += pickle.dumps((0,), 2)[2:-1] + b"U\x01b\x87R"
    dtype = b"cnumpy\ndtype\n" + pickle.dumps((code, False, True), 2)[2:-1] + b"R"
    state = [pickle.dumps(part, 3)[2:-1] for part in (1, shape, False, values)]
    return b"\x80\x03" + made + b"(" + state[0] + state[1] + dtype + b"".join(state[2:]) + b"tb."


def crafted(canary: Path) -> dict[str, bytes]:
    """Pickles by what they try."""
    touch = f"touch '{canary}'"
    code = f"__import__('pathlib').Path({str(canary)!r}).touch()"
    plain = {
        "os.system": call("os", "system", touch),
        "posix.system": by_stack("posix", "system", touch),
        "subprocess": by_stack("subprocess", "check_call", ["touch", str(canary)]),
        "eval": call("builtins", "eval", code),
        "exec": by_stack("builtins", "exec", code),
        "__builtin__ of Python 2": call("__builtin__", "eval", code),
        "getattr": call("builtins", "getattr", "x", "upper"),
        "io.open": call("io", "open", str(canary), "w"),
        "pathlib touch": by_stack("pathlib", "Path.touch", str(canary)),
        "numpy runstring": call("numpy.testing._private.utils", "runstring", code, {}),
        "numpy.load": call("numpy", "load", "/etc/passwd"),
        "importlib": call("importlib", "import_module", "this"),
        "instance": f"(S\"touch '{canary}'\"\nios\nsystem\n.".encode(),
        "object": f"(cos\nsystem\nS\"touch '{canary}'\"\no.".encode(),
        "build with __setstate__": b"\x80\x02ccollections\nOrderedDict\n)R}X\x0c\x00\x00\x00"
        b"__setstate__cos\nsystem\nsb.",
        "extension": b"\x80\x02\x82\x01.",
        "persistent": b"\x80\x02K\x01Q.",
        "buffer": b"\x80\x05\x97.",
    }
    claims = {
        "shape without values": array((10**12,), "f4", b""),
        "objects without a list": array((10**9,), "O8", []),
        "a negative shape": array((-1,), "i1", b""),
        "nested list as type": array((1,), [[[["f4"]]]], b"abcd"),
        "list of columns as type": array((1,), [("a", "O"), ("b", "f4")], b"abcdefgh"),
        "a deep list as type": array((1,), nested(50), b"abcd"),
        "a dictionary as type": array((1,), {"names": ["a"], "formats": ["O"]}, b"abcdefgh"),
        "a long type": array((1,), "f4," * 10**5, b"abcd"),
        "bytes by number": call("builtins", "bytearray", 10**12),
        "text that is not there": b"\x80\x04\x8d" + struct.pack("<Q", 10**12) + b".",
        "frame that is not there": b"\x80\x04\x95" + struct.pack("<Q", 10**12) + b"N.",
        "a place far away": b"\x80\x02Nr\xff\xff\xff\x7f.",
        "keys that take for ever": b"\x80\x02}K\x01" + b"2\x86" * 200 + b"Ns.",
        "deep lists": b"\x80\x02" + b"]" * 10**5 + b"a" * (10**5 - 1) + b".",
        "deep tuples": b"\x80\x02" + b"(" * 10**5 + b"t" * 10**5 + b".",
        "doubled lists": b"\x80\x02]q\x00" + b"(h\x00h\x00eq\x00" * 10**4 + b".",
        "one text many times": b"\x80\x02(X" + struct.pack("<I", 10**6) + b"x" * 10**6
        + b"q\x00c_codecs\nencode\nq\x01" + b"h\x01h\x00X\x06\x00\x00\x00latin1\x86R" * 10**4
        + b"t.",
        "a long number": b"\x80\x02\x8b" + struct.pack("<i", 10**7) + b"\x7f" * 10**7 + b".",
        "a number in text": b"L" + b"9" * 10**6 + b"L\n.",
    }  # fmt: skip
    return plain | claims


def nested(depth: int) -> Any:
    found: Any = "f4"
    for _ in range(depth):
        found = [found]
    return found


def hidden(canary: Path) -> Iterator[tuple[str, bytes]]:
    """Traps inside what suite2p writes, at any depth and by any protocol."""
    import os

    def trap() -> Runs:
        return Runs(os.system, (f"touch '{canary}'",))

    places = {
        "as a value": lambda: {"fs": trap()},
        "as a key": lambda: {(1, "x"): [trap()]},
        "in an array of objects": lambda: {"meanImg": np.array([trap()], object)},
        "as a field of view": lambda: {"Ly": trap(), "Lx": 10, "fs": 10.0},
        "deep": lambda: {"a": [({"b": [trap()]},)]},
    }
    for (name, make), protocol in itertools.product(places.items(), range(6)):
        yield f"{name}, protocol {protocol}", pickle.dumps(np.array(make(), object), protocol)


def values(rng: random.Random) -> Iterator[tuple[str, Any]]:
    """What is plain and yet not what suite2p writes."""
    odd = [MARKUP, -1, 2**70, float("nan"), None, [], {}, b"x", "9" * 5000, [[1]], 10**9, 1e308]
    for key in ("Ly", "Lx", "fs", "nplanes", "meanImg", "xrange", "yrange", "data_path",
                "save_path", "filelist", "nchannels", "baseline", MARKUP):  # fmt: skip
        yield f"ops {key}", {"Ly": 24, "Lx": 20, "fs": 10.0, key: rng.choice(odd)}
        yield f"ops {key}", {"Ly": 24, "Lx": 20, "fs": 10.0, key: rng.choice(odd)}


def as_npy(pickled: bytes, shape: tuple[int, ...] = ()) -> bytes:
    """A .npy file with these bytes in the place of its pickle."""
    file = io.BytesIO()
    header = {"descr": "|O", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + pickled


PLACES = {"ops.npy": (), "stat.npy": (5,), "iscell.npy": (5, 2)}
"""Files in which suite2p has pickles, or could have, and the shape of their arrays."""


def family(
    home: Path,
    rng: random.Random,
    tally: Tally,
    places: Mapping[str, tuple[int, ...]] = PLACES,
) -> None:
    """Every crafted pickle in each file of suite2p and as the header of a pose file."""
    world = World.at(home)
    plain = SAMPLES["suite2p"](world.shared)
    template = world.own / "template"
    shutil.copytree(plain.path, template)
    pose = SAMPLES["deeplabcut"](world.shared)
    before = world.outside()
    attacks = [*crafted(world.canary).items(), *hidden(world.canary)]
    with Window(world) as window:

        def tried(sample: Sample, case: str) -> None:
            outcome = window.opened(sample.path, sample.behavior)
            count(tally, outcome, case)
            for name in differences(before, world.outside()):
                tally.broke("outside", f"{case}: {name}")
                world.canary.unlink(missing_ok=True)

        for name, pickled in attacks:
            for file, shape in places.items():
                _fresh(template, plain.path)
                (plain.path / "plane0" / file).write_bytes(as_npy(pickled, shape))
                tried(plain, f"{name} in {file}")
            with h5py.File(pose.behavior[0], "r+") as opened:
                attributes = opened["df_with_missing/table"].attrs
                if len(pickled) < 60_000:
                    attributes["values_block_0_kind"] = np.void(pickled)
                    tried(pose, f"{name} in the header of poses")
        for name, about in values(rng):
            _fresh(template, plain.path)
            np.save(plain.path / "plane0" / "ops.npy", about, allow_pickle=True)  # type: ignore[arg-type]
            tried(plain, name)


def _fresh(template: Path, folder: Path) -> None:
    shutil.rmtree(folder)
    shutil.copytree(template, folder)
