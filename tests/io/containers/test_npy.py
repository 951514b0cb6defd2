"""What a header claims is compared with the file before anything is allocated."""

import io
import tracemalloc
import zipfile

import numpy as np
import pytest

from napari_xcebra.errors import InputError
from napari_xcebra.io.containers.npy import mapped_header, read_npy, read_npz
from napari_xcebra.jobs import limits

CLAIMS = {
    "more than there is": {"descr": "<f4", "fortran_order": False, "shape": (10**12,)},
    "a product that overflows": {"descr": "<f4", "fortran_order": False, "shape": (2**33, 2**33)},
    "less than nothing": {"descr": "<f4", "fortran_order": False, "shape": (-1, 5)},
    "large items": {"descr": "|V2000000000", "fortran_order": False, "shape": (1000,)},
    "one value less": {"descr": "<f4", "fortran_order": False, "shape": (9,)},
}


def with_header(claim, values=bytes(40)):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, claim)
    return file.getvalue() + values


@pytest.fixture
def little_memory():
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=list(CLAIMS))
def test_a_header_that_claims_something_else_is_refused(tmp_path, little_memory, claim):
    (tmp_path / "F.npy").write_bytes(with_header(claim))
    with zipfile.ZipFile(tmp_path / "F.npz", "w") as archive:
        archive.writestr("traces.npy", with_header(claim))
    for read, name in ((mapped_header, "F.npy"), (read_npy, "F.npy"), (read_npz, "F.npz")):
        with pytest.raises(InputError, match=f"{name} cannot be read: it is damaged"):
            read(tmp_path / name)


def test_a_header_that_is_true_is_read(tmp_path):
    np.save(tmp_path / "F.npy", np.zeros((3, 4), ">i2"))
    header = mapped_header(tmp_path / "F.npy")
    assert header.shape == (3, 4)
    assert header.dtype == np.dtype(">i2")
    assert header.start + 24 == (tmp_path / "F.npy").stat().st_size


def test_objects_are_not_mapped(tmp_path):
    np.save(tmp_path / "F.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(InputError, match="holds Python objects"):
        mapped_header(tmp_path / "F.npy")


def test_an_archive_that_swells_is_a_sentence(tmp_path, monkeypatch, guarded):
    monkeypatch.setattr(limits, "MEMORY", 200 * 2**20)
    with zipfile.ZipFile(tmp_path / "F.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        claim = {"descr": "<f4", "fortran_order": False, "shape": (2**28,)}
        with archive.open("traces.npy", "w", force_zip64=True) as file:
            file.write(with_header(claim, b""))
            for _ in range(64):
                file.write(bytes(2**24))
    with pytest.raises(InputError, match=r"F\.npz.* memory"):
        guarded(read_npz, tmp_path / "F.npz")
