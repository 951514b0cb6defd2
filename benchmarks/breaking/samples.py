"""Makes a small valid recording in every format, and what is opened along with recordings."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import scipy.io
import scipy.sparse
import tifffile

from napari_xcebra.io.decisions.outputs import plan_output
from napari_xcebra.io.formats.native import save_recording
from napari_xcebra.io.formats.nwb.writing import write_nwb
from napari_xcebra.io.formats.suite2p.writing import write_suite2p
from napari_xcebra.recording import Footprints, Recording

FRAMES, CELLS, SHAPE = 60, 5, (24, 20)
RNG = np.random.default_rng(0)
TRACES = RNG.random((FRAMES, CELLS)).astype(np.float32) + 1
MASKS = np.zeros((CELLS, *SHAPE), np.float32)
for _cell in range(CELLS):
    MASKS[_cell, 4 * _cell : 4 * _cell + 3, 3 * _cell : 3 * _cell + 4] = _cell + 1
LABELS = (MASKS > 0).argmax(0).astype(np.uint16) + (MASKS > 0).any(0)


@dataclass(frozen=True)
class Sample:
    """What is opened together: a recording, behaviour, footprints."""

    path: Path
    behavior: tuple[Path, ...] = ()
    footprints: Path | None = None

    def files(self) -> list[Path]:
        """Files that can be damaged: those of the format, not the traces that go with them."""
        given = [*self.behavior, *filter(None, [self.footprints])] or [self.path]
        found = [file for path in given for file in _files(path)]
        return [file for file in found if file.stat().st_size]


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from sorted(file for file in path.rglob("*") if file.is_file())
    else:
        yield path


def recording() -> Recording:
    """Five cells with footprints, an image and two variables."""
    cell, row, column = np.nonzero(MASKS)
    place = np.c_[np.linspace(0, 9, FRAMES), np.linspace(3, 0, FRAMES)]
    return Recording.from_arrays(
        TRACES,
        rate=10.0,
        footprints=Footprints(SHAPE, cell, row, column, MASKS[cell, row, column]),
        images={"mean": MASKS.sum(0)},
        behavior={"position": place, "speed": RNG.random(FRAMES)},
    )


def suite2p(folder: Path) -> Sample:
    return Sample(write_suite2p(recording(), folder / "suite2p" / "plane0").parent)


def caiman(folder: Path) -> Sample:
    path = folder / "results.hdf5"
    weights = scipy.sparse.csc_array(MASKS.transpose(1, 2, 0).reshape(-1, CELLS, order="F"))
    with h5py.File(path, "w") as file:
        for name in ("C", "F_dff", "S", "YrA"):
            file[f"estimates/{name}"] = TRACES.T
        file["estimates/dims"] = SHAPE
        file["estimates/b"] = RNG.random((SHAPE[0] * SHAPE[1], 1))
        file["estimates/f"] = RNG.random((1, FRAMES))
        file["estimates/Cn"] = MASKS.sum(0)
        file["estimates/idx_components"] = np.array([0, 2])
        file["estimates/A_thr"] = "NoneType"
        for name in ("data", "indices", "indptr", "shape"):
            file[f"estimates/A/{name}"] = getattr(weights, name)
        file["params/data/fr"] = 20.0
        file["params/data/fnames"] = np.array(["a.tif", "b.tif"], h5py.string_dtype())
    return Sample(path)


def nwb(folder: Path) -> Sample:
    return Sample(write_nwb(recording(), folder / "mouse.nwb"))


def minian(folder: Path) -> Sample:
    import zarr

    home = folder / "minian"
    units, axes = np.arange(CELLS), ("unit_id", "height", "width")
    arrays = {"A": (axes, MASKS), "C": (("unit_id", "frame"), TRACES.T)}
    coordinates = dict(zip(axes, map(np.arange, MASKS.shape), strict=True))
    coordinates |= {"unit_id": units, "frame": np.arange(FRAMES)}
    for name, (own, values) in arrays.items():
        group = zarr.open_group(home / f"{name}.zarr", mode="w", zarr_format=2)
        for key, part, parts in [(name, values, own), *((a, coordinates[a], (a,)) for a in own)]:
            part = np.asarray(part)
            array = group.create_array(key, shape=part.shape, chunks=part.shape, dtype=part.dtype)
            array[...] = part
            array.attrs["_ARRAY_DIMENSIONS"] = list(parts)
    return Sample(home)


def extract_5(folder: Path) -> Sample:
    output = {"spatial_weights": MASKS.transpose(1, 2, 0), "temporal_weights": TRACES,
              "config": {"preprocess": 1.0}, "info": {"summary_image": MASKS.sum(0)}}  # fmt: skip
    scipy.io.savemat(folder / "extract.mat", {"output": output}, do_compression=True)
    return Sample(folder / "extract.mat")


def cnmfe_73(folder: Path) -> Sample:
    path = folder / "cnmfe.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        file["cnmfeAnalysisOutput/extractedImages"] = MASKS.transpose(0, 2, 1)
        file["cnmfeAnalysisOutput/extractedSignals"] = TRACES
        file["cnmfeAnalysisOutput/inputOptions/Fs"] = [[12.0]]
    return Sample(path)


def inscopix(folder: Path) -> Sample:
    home = folder / "inscopix"
    home.mkdir()
    names = [f"C{i}" for i in range(CELLS)]
    head = [" , " + ", ".join(names), "Time(s)/Cell Status, " + ", ".join(["accepted"] * CELLS)]
    rows = [", ".join(f"{v:.5f}" for v in (i / 10, *row)) for i, row in enumerate(TRACES)]
    (home / "mouse.csv").write_text("\n".join([*head, *rows]) + "\n")
    props = [f"{n}, accepted, {3 * i + 2}, {4 * i + 2}, 4" for i, n in enumerate(names)]
    head = ["Name, Status, CentroidX, CentroidY, Size"]
    (home / "mouse-props.csv").write_text("\n".join([*head, *props]) + "\n")
    return Sample(home / "mouse.csv")


def native(folder: Path) -> Sample:
    return Sample(save_recording(recording(), folder / "recording.npz"))


def npy(folder: Path) -> Sample:
    np.save(folder / "traces.npy", TRACES)
    return Sample(folder / "traces.npy")


def npz(folder: Path) -> Sample:
    np.savez_compressed(folder / "traces.npz", traces=TRACES, speed=TRACES[:, 0])
    return Sample(folder / "traces.npz")


def csv(folder: Path) -> Sample:
    names = [f"cell_{i}" for i in range(CELLS)]
    pd.DataFrame(TRACES, columns=names).to_csv(folder / "traces.csv")
    return Sample(folder / "traces.csv")


def parquet(folder: Path) -> Sample:
    names = [f"cell_{i}" for i in range(CELLS)]
    pd.DataFrame(TRACES, columns=names).to_parquet(folder / "traces.parquet")
    return Sample(folder / "traces.parquet")


def mat_5(folder: Path) -> Sample:
    scipy.io.savemat(folder / "traces.mat", {"traces": TRACES})
    return Sample(folder / "traces.mat")


def behavior_table(folder: Path) -> Sample:
    times = {"time": np.arange(120) / 20, "x_cm": RNG.random(120), "lick": np.arange(120) % 7 < 1}
    pd.DataFrame(times).to_csv(folder / "behaviour.csv", index=False)
    return Sample(npy(folder).path, (folder / "behaviour.csv",))


def deeplabcut(folder: Path) -> Sample:
    path = folder / "video.h5"
    names = [("DLC", part, c) for part in ("nose", "tail") for c in ("x", "y", "likelihood")]
    rows = np.zeros(FRAMES, [("index", "i8"), ("values_block_0", "f8", (len(names),))])
    rows["index"], rows["values_block_0"] = np.arange(FRAMES), RNG.random((FRAMES, len(names)))
    with h5py.File(path, "w") as file:
        frame = file.create_group("df_with_missing")
        frame.attrs["pandas_type"] = np.bytes_(b"frame_table")
        table = frame.create_dataset("table", data=rows)
        table.attrs["values_block_0_kind"] = np.bytes_(pickle.dumps(names, 0))
    return Sample(npy(folder).path, (path,))


def sleap(folder: Path) -> Sample:
    path = folder / "sleap.h5"
    with h5py.File(path, "w") as file:
        file["tracks"] = RNG.random((1, 2, 2, FRAMES))
        file["tracks"].attrs["dims"] = json.dumps(["track", "xy", "node", "frame"])
        file["point_scores"] = RNG.random((1, 2, FRAMES))
        file["node_names"] = np.array(["nose", "tail"], h5py.string_dtype())
        file["track_names"] = np.array(["mouse"], h5py.string_dtype())
    return Sample(npy(folder).path, (path,))


def label_image(folder: Path) -> Sample:
    tifffile.imwrite(folder / "cells.tif", LABELS, compression="zlib")
    return Sample(npy(folder).path, footprints=folder / "cells.tif")


def roi_set(folder: Path) -> Sample:
    made, accepted = recording(), np.ones(CELLS, bool)
    plan = plan_output("imagej", made, None, accepted, destination=folder / "RoiSet.zip")
    return Sample(npy(folder).path, footprints=plan.write().files[0])


SAMPLES: dict[str, Callable[[Path], Sample]] = {
    made.__name__.replace("_", " "): made
    for made in (suite2p, caiman, nwb, minian, extract_5, cnmfe_73, inscopix, native, npy, npz,
                 csv, parquet, mat_5, behavior_table, deeplabcut, sleap, label_image, roi_set)
}  # fmt: skip
