"""Recordings that decisions are written to, and what is in their folders."""

import re
import shutil

import h5py
import numpy as np
import scipy.sparse

from napari_xcebra.io.formats.suite2p.writing import write_suite2p
from napari_xcebra.recording import Footprints, Recording

FRAMES, CELLS = 40, 5
RECORD = ".napari-xcebra-decisions.csv.written"


def suite2p_folder(folder):
    """Two planes and `combined`, as suite2p puts them."""
    rng = np.random.default_rng(0)
    for number in range(2):
        plane = Recording(
            rng.random((FRAMES, CELLS)).astype(np.float32) + 1,
            rate=15.0,
            accepted=rng.random(CELLS) > 0.5,
            footprints=Footprints.on_a_grid(CELLS),
            cells={"probability": rng.random(CELLS)},
        )
        write_suite2p(plane, folder / f"plane{number}")
    combined = folder / "combined"
    shutil.copytree(folder / "plane0", combined)
    for name in ("F", "Fneu", "spks", "iscell", "stat"):
        parts = [np.load(folder / f"plane{i}" / f"{name}.npy", allow_pickle=True) for i in (0, 1)]
        if name == "stat":
            for number, part in enumerate(parts):
                for roi in part:
                    roi["iplane"] = number
        np.save(combined / f"{name}.npy", np.concatenate(parts), allow_pickle=True)
    return folder


def caiman_file(path):
    """Ten components, none of them judged."""
    cells = 2 * CELLS
    masks = np.zeros((20, 9, cells))
    for cell in range(cells):
        masks[cell : cell + 3, 2:4, cell] = 1
    weights = scipy.sparse.csc_array(masks.reshape(-1, cells, order="F"))
    with h5py.File(path, "w") as file:
        file["estimates/C"] = np.random.default_rng(0).random((cells, FRAMES))
        file["estimates/dims"] = (20, 9)
        file["estimates/idx_components"] = b"NoneType"
        for name in ("data", "indices", "indptr", "shape"):
            file[f"estimates/A/{name}"] = getattr(weights, name)
        file["params/data/fr"] = 20.0
    return path


def state(folder):
    """Every file that is not a temporary one, with its content (but for the time of a record)."""
    return {
        str(path.relative_to(folder)): re.sub(rb'"time": "[^"]*"', b'"time": ""', path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not is_temporary(path)
    }


def temporary_files(folder):
    return [path for path in folder.rglob(".napari-xcebra*") if is_temporary(path)]


def is_temporary(path):
    """Whether it is there only while something is written; the record of our table stays."""
    return path.name.startswith(".napari-xcebra") and path.name != RECORD
