"""Movies of all formats are opened by their path, and give the frames that were written."""

import json
import pickle

import h5py
import numpy as np
import pytest
import tifffile
import zarr
from numcodecs import Blosc

from napari_xcebra.errors import InputError
from napari_xcebra.io.movie.finding import Like, _open_movie, is_movie

T, H, W = 23, 18, 30
PIXELS = np.random.default_rng(0).integers(-500, 500, (T, H, W)).astype(np.int16)
LIKE = Like(T, (H, W))


def suite2p(folder):
    plane = folder / "plane0"
    plane.mkdir()
    np.save(plane / "ops.npy", {"Ly": H, "Lx": W, "fs": 10.0})
    (plane / "data.bin").write_bytes(PIXELS.tobytes())
    return plane / "data.bin"


def without_options(folder):
    (folder / "data.bin").write_bytes(PIXELS.tobytes())
    return folder / "data.bin"


def caiman(order):
    def write(folder):
        path = folder / f"Yr_d1_{H}_d2_{W}_d3_1_order_{order}_frames_{T}.mmap"
        # (pixels, frames); pixels count down the columns
        values = PIXELS.astype(np.float32).transpose(0, 2, 1).reshape(T, -1).T
        path.write_bytes(values.tobytes(order))
        return path

    return write


def tiff(**how):
    def write(folder):
        tifffile.imwrite(folder / "movie.tif", PIXELS, **how)
        return folder / "movie.tif"

    return write


def by_page(folder):
    with tifffile.TiffWriter(folder / "movie.tif", bigtiff=True, byteorder=">") as file:
        for frame in PIXELS:
            file.write(frame, contiguous=False)
    return folder / "movie.tif"


def files(folder):
    home = folder / "frames"
    home.mkdir()
    for number in range(0, T, 2):
        tifffile.imwrite(home / f"frame_{number}.tif", PIXELS[number : number + 2])
    return home


def hdf5(order=(0, 1, 2), name="mov", **how):
    def write(folder):
        with h5py.File(folder / "movie.h5", "w") as file:
            file.create_dataset("other", data=np.zeros((4, 5)))
            file.create_dataset(f"group/{name}", data=PIXELS.transpose(order), **how)
        return folder / "movie.h5"

    return write


def zarr2(folder):
    zarr.create_array(
        folder / "movie.zarr",
        data=PIXELS,
        chunks=(5, H, 7),
        zarr_format=2,
        compressors=Blosc(),
    )
    return folder / "movie.zarr"


def zarr3(**how):
    def write(folder):
        zarr.create_array(folder / "movie.zarr", data=PIXELS, chunks=(5, H, 10), **how)
        return folder / "movie.zarr"

    return write


def ome(folder):
    group = zarr.create_group(folder / "movie.ome.zarr", zarr_format=2)
    group.create_array("0", data=PIXELS[:, None, None], chunks=(1, 1, 1, H, W))
    axes = [{"name": name} for name in "tcz"]
    axes += [{"name": name, "unit": "micrometer"} for name in "yx"]
    scale = {"type": "scale", "scale": [1, 1, 1, 0.8, 0.8]}
    level = {"path": "0", "coordinateTransformations": [scale]}
    group.attrs["multiscales"] = [{"axes": axes, "datasets": [level]}]
    return folder / "movie.ome.zarr"


def npy(order):
    def write(folder):
        np.save(folder / "movie.npy", np.asarray(PIXELS, order=order))
        return folder / "movie.npy"

    return write


FORMATS = {
    "suite2p": suite2p,
    "suite2p, without options": without_options,
    "CaImAn, order F": caiman("F"),
    "CaImAn, order C": caiman("C"),
    "TIFF": tiff(),
    "TIFF of ImageJ": tiff(imagej=True),
    "TIFF, page by page": by_page,
    "TIFF, compressed": tiff(compression="zlib"),
    "TIFF, tiled": tiff(tile=(16, 16)),
    "folder of TIFF files": files,
    "HDF5": hdf5(),
    "HDF5, compressed": hdf5(chunks=(4, H, W), compression="gzip"),
    "HDF5, frames last": hdf5((1, 2, 0), name="Y"),
    "HDF5, of MATLAB": hdf5((0, 2, 1), name="anything", chunks=(2, W, H)),
    "zarr 2": zarr2,
    "zarr 3": zarr3(),
    "zarr 3, in shards": zarr3(shards=(10, H, 30)),
    "OME-Zarr": ome,
    "array": npy("C"),
    "array in Fortran order": npy("F"),
}


@pytest.mark.parametrize("form", FORMATS)
def test_a_movie_is_recognised_and_gives_its_frames_here_and_elsewhere(tmp_path, form):
    path = FORMATS[form](tmp_path)
    assert is_movie(path)
    movie = _open_movie(path, LIKE)
    assert movie.shape == PIXELS.shape
    for number in (0, T - 1, 7, 8, 3):
        np.testing.assert_array_equal(movie.frame(number), PIXELS[number])
    clip = movie.crop([3, 20, 4], 0, slice(2, 9), slice(5, 25))
    np.testing.assert_array_equal(clip, PIXELS[[3, 20, 4], 2:9, 5:25])
    sent = pickle.dumps(movie)
    assert len(sent) < 6000
    np.testing.assert_array_equal(pickle.loads(sent).frame(11), PIXELS[11])
    low, high = movie.contrast
    assert -500 <= low < -450 and 450 < high <= 500


@pytest.mark.parametrize("form", ["TIFF", "TIFF of ImageJ", "HDF5", "TIFF, page by page"])
def test_pixels_that_are_not_compressed_are_read_without_a_library(tmp_path, form, monkeypatch):
    movie = _open_movie(FORMATS[form](tmp_path), LIKE)
    monkeypatch.setattr(h5py, "File", None)
    monkeypatch.setattr(tifffile, "TiffFile", None)
    np.testing.assert_array_equal(movie.frame(5), PIXELS[5])


@pytest.mark.parametrize("how", [{}, {"compression": "zlib"}])
@pytest.mark.parametrize("then", [np.float32, np.uint16, np.int32])
def test_frames_that_are_stored_in_another_way_from_some_page_on_are_refused(tmp_path, how, then):
    with tifffile.TiffWriter(tmp_path / "a.tif") as file:
        for number, frame in enumerate(PIXELS):
            file.write(frame if number < 9 else frame.astype(then), contiguous=False, **how)
    with pytest.raises(InputError, match="page 10 stores its pixels in another way"):
        _open_movie(tmp_path / "a.tif", LIKE)


STACK = np.random.default_rng(1).integers(0, 999, (8, 3, 2, H, W)).astype(np.uint16)
"""Times, planes, channels."""


@pytest.mark.parametrize("how", [{}, {"compression": "zlib"}])
@pytest.mark.parametrize(
    ("axes", "values"),
    [("TZCYX", STACK), ("TZYX", STACK[:, :, 0]), ("TCYX", STACK[:, 0]), ("ZYX", STACK[:, 0, 0])],
)
@pytest.mark.parametrize("ome", [False, True])
def test_planes_and_channels_of_a_stack_are_no_times(tmp_path, how, axes, values, ome):
    path = tmp_path / ("a.ome.tif" if ome else "a.tif")
    kind = {"ome": True} if ome else {"imagej": True}
    tifffile.imwrite(path, values, metadata={"axes": axes}, **kind, **how)
    movie = _open_movie(path, Like(8, (H, W)))
    planes = 3 if "TZ" in axes else 1
    assert (movie.n_frames, len(movie.planes), movie.stacked) == (8, planes, planes > 1)
    full = values.reshape(8, planes, -1, H, W)[:, :, 0]
    found = np.stack([np.reshape(movie.frame(t), (planes, H, W)) for t in range(8)])
    np.testing.assert_array_equal(found, full)


def test_times_that_follow_each_other_within_a_plane_are_refused(tmp_path):
    values = STACK[:, :, 0].swapaxes(0, 1)
    tifffile.imwrite(tmp_path / "a.ome.tif", values, metadata={"axes": "ZTYX"}, ome=True)
    with pytest.raises(InputError, match="3 planes and 1 channels at 8 times"):
        _open_movie(tmp_path / "a.ome.tif", Like(8, (H, W)))


def test_the_pixel_size_of_an_ome_image_is_known(tmp_path):
    assert _open_movie(ome(tmp_path), LIKE).pixel_size == 0.8


@pytest.mark.parametrize("order", "CF")
def test_planes_of_caiman_are_told_apart(tmp_path, order):
    volume = np.random.default_rng(1).random((5, H, W, 3)).astype(np.float32)
    path = tmp_path / f"Yr_d1_{H}_d2_{W}_d3_3_order_{order}_frames_5_.mmap"
    values = volume.transpose(0, 3, 2, 1).reshape(5, -1).T
    path.write_bytes(values.tobytes(order))
    movie = _open_movie(path, Like(5, (H, W), 3))
    assert movie.shape == (5, 3, H, W)
    np.testing.assert_array_equal(movie.frame(4), volume[4].transpose(2, 0, 1))


def test_planes_of_suite2p_are_stacked_or_side_by_side(tmp_path):
    other = PIXELS[::-1].copy()
    for number, pixels in enumerate((PIXELS, other)):
        plane = tmp_path / f"plane{number}"
        plane.mkdir()
        ops = {"Ly": H, "Lx": W, "fs": 10.0, "dx": number * W, "dy": 0}
        np.save(plane / "ops.npy", ops)
        np.save(plane / "F.npy", np.zeros((2, T), np.float32))
        (plane / "data.bin").write_bytes(pixels.tobytes())
        (plane / "data_raw.bin").write_bytes(bytes(4))
    movie = _open_movie(tmp_path, Like(T, (H, W), 2))
    assert movie.shape == (T, 2, H, W)
    np.testing.assert_array_equal(movie.frame(3), np.stack([PIXELS[3], other[3]]))
    (tmp_path / "combined").mkdir()
    np.save(tmp_path / "combined" / "F.npy", np.zeros((4, T), np.float32))
    tiled = _open_movie(tmp_path / "combined", Like(T, (H, 2 * W)))
    np.testing.assert_array_equal(tiled.frame(3), np.hstack([PIXELS[3], other[3]]))


WRONG = {
    "a few bytes are missing": (
        lambda folder: suite2p(folder).with_name("data.bin"),
        lambda path: path.write_bytes(PIXELS.tobytes()[:-2]),
        "not a whole number of frames of 18 × 30 pixels",
    ),
    "a memmap is incomplete": (
        caiman("F"),
        lambda path: path.write_bytes(b"1234"),
        "its name says 18 × 30 pixels",
    ),
    "a codec is unknown": (
        zarr2,
        lambda path: change_json(path / ".zarray", compressor={"id": "pickle"}),
        "packed by 'pickle'",
    ),
    "a codec of version 3 is unknown": (
        zarr3(),
        lambda path: change_json(path / "zarr.json", codecs=[{"name": "numcodecs.pickle"}]),
        "packed by 'numcodecs.pickle'",
    ),
    "a TIFF is cut": (
        tiff(),
        lambda path: path.write_bytes(path.read_bytes()[:200]),
        "movie.tif",
    ),
    "it is text": (
        lambda folder: folder / "movie.tif",
        lambda path: path.write_text("no movie"),
        "not a movie in a known format",
    ),
}


def change_json(path, **values):
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_movie_is_refused_in_a_sentence(tmp_path, what):
    write, spoil, sentence = WRONG[what]
    path = write(tmp_path)
    spoil(path)
    with pytest.raises(InputError, match=sentence):
        _open_movie(path, LIKE).frame(T - 1)


def test_a_chunk_that_leads_out_of_its_folder_is_not_followed(tmp_path):
    path = zarr3()(tmp_path)
    secret = tmp_path / "secret"
    chunk = next(file for file in (path / "c").rglob("*") if file.is_file())
    secret.write_bytes(chunk.read_bytes())
    chunk.unlink()
    chunk.symlink_to(secret)
    with pytest.raises(InputError, match="leads out of the folder"):
        _open_movie(path, LIKE)
