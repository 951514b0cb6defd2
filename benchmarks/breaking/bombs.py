"""Small files that claim or unpack to gigabytes, paths that are no files, links that lead away."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import os
import random
import shutil
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import h5py
import numpy as np
import tifffile

from breaking.opened import Window, count
from breaking.samples import CELLS, SAMPLES, SHAPE, Sample
from breaking.tally import Tally, World, differences

GIGABYTE, BLOCK = 2**30, 2**26
Bomb = Callable[[World], Sample]


def deflated(block: bytes, times: int) -> bytes:
    """A block many times over as one raw stream, packed once: each repetition begins afresh."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    return packed * times + b"\x03\x00"


def zlib_zeros(size: int) -> bytes:
    """Zeros as zlib packs them."""
    checksum = (size % 65521) << 16 | 1
    return b"\x78\xda" + deflated(bytes(BLOCK), size // BLOCK) + struct.pack(">I", checksum)


def zip_member(path: Path, name: str, block: bytes, times: int, before: bytes = b"") -> None:
    """Add a member to an archive of ours: `before`, and a block many times over."""
    checksum, size = zlib.crc32(before), len(before) + len(block) * times
    for _ in range(times):
        checksum = zlib.crc32(block, checksum)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(before) + packer.flush(zlib.Z_FULL_FLUSH) + deflated(block, times)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(name, packed)
        info = archive.getinfo(name)
    # the same bytes, now said to be packed
    content = path.read_bytes()
    stored = struct.pack("<III", info.CRC, len(packed), len(packed))
    told = struct.pack("<III", checksum, len(packed), size)
    assert content.count(stored) == 2
    content = content.replace(stored, told)
    for mark, place in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        start = content.rindex(mark)
        content = content[: start + place] + b"\x08\x00" + content[start + place + 2 :]
    path.write_bytes(content)


def zarr_chunk(packing: str) -> Bomb:
    def make(world: World) -> Sample:
        sample = SAMPLES["minian"](world.shared)
        home = sample.path / "C.zarr" / "C"
        about = json.loads((home / ".zarray").read_text())
        about |= {"compressor": {"id": packing, "level": 9}, "filters": None}
        (home / ".zarray").write_text(json.dumps(about))
        pack = {"bz2": bz2.compress, "gzip": gzip.compress}[packing]
        # both kinds of files may consist of several, one after the other
        (home / "0.0").write_bytes(pack(bytes(BLOCK)) * (8 * GIGABYTE // BLOCK))
        return sample

    make.__name__ = f"zarr {packing} to 8 GB"
    return make


def labels_to_10_gb(world: World) -> Sample:
    """An image that says how large it is."""
    return _labels(world, (149 * 1024, 2**16), 1024, zlib_zeros(2**26))


def labels_with_a_strip_of_10_gb(world: World) -> Sample:
    """An image of 1 MB whose only strip unpacks to 10 GB."""
    return _labels(world, (1024, 1024), 1024, zlib_zeros(10 * GIGABYTE))


def labels_beside_the_traces(world: World) -> Sample:
    """The same, found by its name without being asked for."""
    return Sample(labels_with_a_strip_of_10_gb(world).path)


def _labels(world: World, shape: tuple[int, int], rows: int, strip: bytes) -> Sample:
    path = world.shared / "labels.tif"
    with tifffile.TiffWriter(path) as writer:
        writer.write(iter([strip] * (shape[0] // rows)), shape=shape, dtype=np.uint8,
                     compression="zlib", rowsperstrip=rows)  # fmt: skip
    return Sample(SAMPLES["npy"](world.shared).path, footprints=path)


def nwb_masks(world: World) -> Sample:
    sample = SAMPLES["nwb"](world.shared)
    with h5py.File(sample.path, "r+") as file:
        table = file["processing/ophys/ImageSegmentation"]
        table = next(iter(table.values()))
        for name in ("pixel_mask", "pixel_mask_index"):
            if name in table:
                del table[name]
        table.attrs["colnames"] = ["image_mask"]
        masks = table.create_dataset(
            "image_mask", (CELLS, 20_000, 20_000), "f4", chunks=(1, 2000, 20_000),
            compression="gzip", compression_opts=9,
        )  # fmt: skip
        chunk = zlib.compress(bytes(2000 * 20_000 * 4), 9)
        for cell in range(CELLS):
            for row in range(10):
                masks.id.write_direct_chunk((cell, 2000 * row, 0), chunk)
        masks.attrs.update({"neurodata_type": "VectorData", "namespace": "hdmf-common",
                            "object_id": "1", "description": "masks"})  # fmt: skip
    return sample


def caiman_traces(world: World) -> Sample:
    sample = SAMPLES["caiman"](world.shared)
    frames = 50_000_000
    with h5py.File(sample.path, "r+") as file:
        for name in ("C", "F_dff", "S", "YrA"):
            del file[f"estimates/{name}"]
            data = file.create_dataset(
                f"estimates/{name}", (CELLS, frames), "f8", chunks=(1, frames // 50),
                compression="gzip", compression_opts=9,
            )  # fmt: skip
            chunk = zlib.compress(bytes(frames // 50 * 8), 9)
            for cell in range(CELLS):
                for part in range(50):
                    data.id.write_direct_chunk((cell, frames // 50 * part), chunk)
    return sample


def caiman_chunk(world: World) -> Sample:
    """One chunk that says 1 MB and unpacks to 4 GB."""
    sample = SAMPLES["caiman"](world.shared)
    with h5py.File(sample.path, "r+") as file:
        del file["estimates/Cn"]
        data = file.create_dataset(
            "estimates/Cn", SHAPE, "f8", chunks=SHAPE, compression="gzip", compression_opts=9
        )
        data.id.write_direct_chunk((0, 0), zlib_zeros(4 * GIGABYTE))
    return sample


def texts_of_any_length(world: World) -> Sample:
    """Many entries that all refer to one long text."""
    sample = SAMPLES["sleap"](world.shared)
    path = sample.behavior[0]
    with h5py.File(path, "r+") as file:
        del file["node_names"]
        kind = h5py.string_dtype()
        names = file.create_dataset("node_names", (1,), kind)
        names[0] = "x" * 10**6
        place = names.id.get_offset()
    entry = path.read_bytes()[place : place + 16]
    with h5py.File(path, "r+") as file:
        del file["node_names"]
        many = file.create_dataset("node_names", (5000,), kind)
        many[...] = "y"
        place = many.id.get_offset()
        file.flush()
    content = bytearray(path.read_bytes())
    content[place : place + 16 * 5000] = entry * 5000
    path.write_bytes(content)
    return sample


def parquet(world: World) -> Sample:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = world.shared / "traces.parquet"
    block = pa.array(np.zeros(2**24))
    schema = pa.schema([(f"cell_{i}", pa.float64()) for i in range(3)])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for _ in range(8):
            writer.write_table(pa.table([block] * 3, schema=schema))
    return Sample(path)


def npz_to_3_gb(world: World) -> Sample:
    return _with_traces(world.shared / "traces.npz")


def native_to_3_gb(world: World) -> Sample:
    """A recording of ours whose traces unpack to 3 GB."""
    sample = SAMPLES["native"](world.shared)
    kept = sample.path.rename(world.shared / "kept.npz")
    with zipfile.ZipFile(kept) as old, zipfile.ZipFile(sample.path, "w") as new:
        for name in old.namelist():
            if name != "traces.npy":
                new.writestr(name, old.read(name))
    return _with_traces(sample.path)


def _with_traces(path: Path) -> Sample:
    head = io.BytesIO()
    frames, times = 3 * GIGABYTE // (4 * 8), 3 * GIGABYTE // BLOCK
    about = {"descr": "<f4", "fortran_order": False, "shape": (frames, 8)}
    np.lib.format.write_array_header_1_0(head, about)
    zip_member(path, "traces.npy", bytes(BLOCK), times, head.getvalue())
    return Sample(path)


def polyglot(world: World) -> Sample:
    """An archive that is called a table, and unpacks to 3 GB of one."""
    path = world.shared / "traces.csv"
    zip_member(path, "traces.csv", b"1,2,3\n" * 10**6, 500)
    return Sample(path)


def packed_table(world: World) -> Sample:
    path = world.shared / "behaviour.csv.gz"
    path.write_bytes(gzip.compress(b"time,x\n") + gzip.compress(b"1,2\n" * 10**6) * 800)
    return Sample(SAMPLES["npy"](world.shared).path, (path,))


def one_line(world: World) -> Sample:
    """A table of a single line."""
    path = world.shared / "traces.csv"
    path.write_bytes(b"1," * 10**7)
    return Sample(path)


def roi_archive(world: World) -> Sample:
    path = world.shared / "RoiSet.zip"
    for cell in range(CELLS):
        zip_member(path, f"{cell}.roi", bytes(BLOCK), GIGABYTE // BLOCK, b"Iout")
    return Sample(SAMPLES["npy"](world.shared).path, footprints=path)


def mat_packed(world: World) -> Sample:
    path = world.shared / "traces.mat"
    head = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H2s", 0x0100, b"IM")
    body = zlib_zeros(4 * GIGABYTE)
    path.write_bytes(head + struct.pack("<II", 15, len(body)) + body)
    return Sample(path)


def deep_json(world: World) -> Sample:
    sample = SAMPLES["minian"](world.shared)
    deep = b'{"_ARRAY_DIMENSIONS": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    (sample.path / "C.zarr" / "C" / ".zattrs").write_bytes(deep)
    return sample


def deep_json_of_poses(world: World) -> Sample:
    sample = SAMPLES["sleap"](world.shared)
    with h5py.File(sample.behavior[0], "r+") as file:
        file["tracks"].attrs["dims"] = "[" * 60_000
    return sample


def npy_header(world: World) -> Sample:
    """A header of parentheses, which are parsed as Python."""
    path = world.shared / "traces.npy"
    text = b"{'descr': '<f4', 'fortran_order': False, 'shape': " + b"(" * 60_000
    path.write_bytes(b"\x93NUMPY\x02\x00" + struct.pack("<I", len(text)) + text)
    return Sample(path)


def npy_hole(world: World) -> Sample:
    """A file with a hole of 40 GB that takes no room on disk."""
    path = world.shared / "traces.npy"
    with path.open("wb") as file:
        about = {"descr": "<f4", "fortran_order": False, "shape": (200_000, 50_000)}
        np.lib.format.write_array_header_1_0(file, about)
        file.truncate(file.tell() + 40_000_000_000)
    return Sample(path)


def suite2p_hole(world: World) -> Sample:
    """Traces of 0.8 GB a file that take no room on disk."""
    sample = SAMPLES["suite2p"](world.shared)
    for name in ("F.npy", "Fneu.npy", "spks.npy"):
        with (sample.path / "plane0" / name).open("wb") as file:
            about = {"descr": "<f4", "fortran_order": False, "shape": (CELLS, 40_000_000)}
            np.lib.format.write_array_header_1_0(file, about)
            file.truncate(file.tell() + CELLS * 160_000_000)
    return sample


def many_planes(world: World) -> Sample:
    sample = SAMPLES["suite2p"](world.shared)
    for number in range(1, 300):
        (sample.path / f"plane{number}").symlink_to("plane0")
    return sample


def pipe(place: str) -> Bomb:
    def make(world: World) -> Sample:
        traces, path = SAMPLES["npy"](world.shared).path, world.shared / place
        if place.startswith("suite2p"):
            SAMPLES["suite2p"](world.shared)
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        if place.startswith("suite2p"):
            return Sample(world.shared / "suite2p")
        if place.startswith("behaviour"):
            return Sample(traces, (path,))
        return Sample(traces, footprints=path) if place.endswith("tif") else Sample(path)

    make.__name__ = f"pipe as {place}"
    return make


def device(name: str) -> Bomb:
    def make(world: World) -> Sample:
        sample = SAMPLES["suite2p"](world.shared)
        file = sample.path / "plane0" / name
        file.unlink()
        file.symlink_to("/dev/zero")
        return sample

    make.__name__ = f"{name} is /dev/zero"
    return make


def link_out(name: str) -> Bomb:
    """A link in a suite2p folder to a file of somebody else."""

    def make(world: World) -> Sample:
        sample = SAMPLES["suite2p"](world.shared)
        file = sample.path / "plane0" / name
        secret = world.thesis / name
        shutil.move(file, secret)
        file.symlink_to(secret)
        return sample

    make.__name__ = f"{name} is a link out"
    return make


def circle(world: World) -> Sample:
    sample = SAMPLES["suite2p"](world.shared)
    (sample.path / "plane1").symlink_to(sample.path)
    (sample.path / "plane0" / "plane0").symlink_to(sample.path)
    return sample


def all_bombs() -> Iterator[Bomb]:
    yield from (zarr_chunk("bz2"), zarr_chunk("gzip"), labels_to_10_gb, nwb_masks)
    yield from (labels_with_a_strip_of_10_gb, labels_beside_the_traces)
    yield from (caiman_traces, caiman_chunk, texts_of_any_length, parquet, npz_to_3_gb)
    yield native_to_3_gb
    yield from (polyglot, packed_table, one_line, roi_archive, mat_packed, deep_json)
    yield from (deep_json_of_poses, npy_header, npy_hole, suite2p_hole, many_planes, circle)
    yield from map(pipe, ("traces.npy", "traces.csv", "traces.mat", "traces.nwb", "RoiSet.tif",
                          "behaviour.csv", "behaviour.h5", "suite2p/plane0/ops.npy",
                          "suite2p/plane0/F.npy", "recording.npz"))  # fmt: skip
    yield from map(device, ("ops.npy", "F.npy", "stat.npy"))
    yield from map(link_out, ("ops.npy", "stat.npy"))


def family(
    home: Path, rng: random.Random, tally: Tally, bombs: Iterable[Bomb] | None = None
) -> None:
    """Each bomb in a world of its own."""
    for bomb in all_bombs() if bombs is None else bombs:
        world = World.at(home)
        name = bomb.__name__.replace("_", " ")
        sample = bomb(world)
        before = world.outside()
        with Window(world) as window:
            count(tally, window.opened(sample.path, sample.behavior, sample.footprints), name)
        for touched in differences(before, world.outside()):
            tally.broke("outside", f"{name}: {touched}")
