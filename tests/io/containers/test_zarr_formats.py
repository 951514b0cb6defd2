"""Recordings and footprints in zarr folders open as those in files do, in both versions."""

import json

import h5py
import numpy as np
import pytest
from numcodecs import VLenUTF8

from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording
from napari_xcebra.io.containers import zarr as zarr_arrays

zarr = pytest.importorskip("zarr")
RNG = np.random.default_rng(0)
TRACES = RNG.normal(size=(400, 6)).cumsum(axis=0).astype(np.float32)
LABELS = np.zeros((20, 30), np.int32)
for cell in range(6):
    LABELS[3 * cell : 3 * cell + 2, 4:9] = cell + 1
VERSIONS = pytest.mark.parametrize("version", [2, 3])


def save(group, name, values, version, **more):
    array = group.create_array(name, data=np.asarray(values), **more)
    assert array.metadata.zarr_format == version


@VERSIONS
def test_arrays_in_a_zarr_folder_are_found_by_name_and_size(tmp_path, version):
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=version)
    save(group, "imaging/calcium", TRACES.T, version, chunks=(4, 100))
    save(group, "behavior/speed", np.sin(np.arange(400)), version)
    recording = open_recording(tmp_path / "a.zarr", rate=10.0)
    np.testing.assert_array_equal(recording.traces, TRACES)
    assert set(recording.behavior) == {"speed"}
    save(group, "imaging/other", TRACES.T, version)
    with pytest.raises(InputError, match=r"no array called nothing .*imaging/calcium 6 × 400"):
        open_recording(tmp_path / "a.zarr", rate=10.0, array="nothing")


@VERSIONS
def test_large_traces_stay_in_the_folder(tmp_path, version, monkeypatch):
    monkeypatch.setattr(zarr_arrays, "IN_MEMORY", 100)
    array = zarr.create_array(
        tmp_path / "C.zarr", data=TRACES.T, chunks=(2, 150), zarr_format=version
    )
    assert array.metadata.zarr_format == version
    recording = open_recording(tmp_path / "C.zarr", rate=10.0)
    np.testing.assert_array_equal(recording.traces, TRACES)


@VERSIONS
@pytest.mark.parametrize("whole", [True, False])
def test_a_label_image_of_ome_gives_the_footprints_and_the_pixel_size(tmp_path, version, whole):
    np.save(tmp_path / "traces.npy", TRACES)
    image = zarr.open_group(tmp_path / "field.ome.zarr", mode="w", zarr_format=version)
    labels = image.create_group("labels")
    cells = labels.create_group("cells")
    save(cells, "0", LABELS[None, None], version)
    axes = [{"name": n, "unit": "micrometer"} if n in "yx" else {"name": n} for n in "czyx"]
    change = [{"type": "scale", "scale": [1.0, 1.0, 0.8, 0.8]}]
    levels = [{"path": "0", "coordinateTransformations": change}]
    about = {"multiscales": [{"axes": axes, "datasets": levels}]}
    names = {"labels": ["cells"]}
    labels.attrs.update({"ome": names} if version == 3 else names)
    cells.attrs.update({"ome": about} if version == 3 else about)
    given = tmp_path / "field.ome.zarr"
    given = given if whole else given / "labels" / "cells"
    recording = open_recording(tmp_path / "traces.npy", rate=10.0, footprints=given)
    assert recording.footprints.shape == (20, 30)
    np.testing.assert_array_equal(np.bincount(recording.footprints.cell), np.full(6, 10))
    assert recording.pixel_size == pytest.approx(0.8)


def test_label_images_to_choose_from_are_listed(tmp_path):
    np.save(tmp_path / "traces.npy", TRACES)
    labels = zarr.open_group(tmp_path / "f.zarr" / "labels", mode="w", zarr_format=2)
    for name in ("cells", "vessels"):
        labels.create_group(name)
    labels.attrs["labels"] = ["cells", "vessels"]
    with pytest.raises(InputError, match=r"these label images: cells, vessels\. Choose"):
        open_recording(tmp_path / "traces.npy", rate=10.0, footprints=tmp_path / "f.zarr")


def as_hdmf_zarr(path, folder):
    """Write an NWB file as hdmf-zarr does, in version 2."""

    def attributes(node, more=None):
        found = dict(more or {})
        for name, value in node.attrs.items():
            if isinstance(value, h5py.Reference):
                target = {"source": ".", "path": node.file[value].name}
                found[name] = {"value": target, "zarr_dtype": "object"}
            elif isinstance(value, np.ndarray | np.generic):
                found[name] = value.tolist()
            else:
                found[name] = value
        return json.dumps(found)

    def text(place, texts):
        place.mkdir(parents=True)
        about = {"chunks": [len(texts)], "compressor": None, "dtype": "|O", "fill_value": 0}
        about |= {"filters": [{"id": "vlen-utf8"}], "order": "C", "zarr_format": 2}
        (place / ".zarray").write_text(json.dumps(about | {"shape": [len(texts)]}))
        (place / "0").write_bytes(VLenUTF8().encode(np.array(texts, object)))

    def copied(name, node):
        place = folder / name
        if isinstance(node, h5py.Group):
            place.mkdir(parents=True, exist_ok=True)
            (place / ".zgroup").write_text('{"zarr_format": 2}')
            (place / ".zattrs").write_text(attributes(node))
            return
        is_text = h5py.check_string_dtype(node.dtype) is not None
        values = np.atleast_1d(node.asstr()[()] if is_text else node[()])
        if is_text:
            text(place, [str(value) for value in values])
        else:
            zarr.create_array(place, data=values, zarr_format=2)
        scalar = {"zarr_dtype": "scalar"} if node.shape == () else {}
        (place / ".zattrs").write_text(attributes(node, scalar))

    with h5py.File(path) as file:
        copied("", file)
        file.visititems(copied)
    return folder


@pytest.mark.parametrize("name", ["nwb_imagemask_rate.nwb", "neuroconv_suite2p.nwb"])
def test_nwb_in_zarr_opens_as_nwb_in_hdf5_does(shared_data, tmp_path, name):
    source = shared_data / "nwb" / name
    folder = as_hdmf_zarr(source, tmp_path / f"{name}.zarr")
    expected, found = open_recording(source), open_recording(folder)
    assert found.origin.format == "Neurodata Without Borders in zarr (.nwb.zarr)"
    np.testing.assert_array_equal(found.traces, np.asarray(expected.traces))
    np.testing.assert_array_equal(found.accepted, expected.accepted)
    np.testing.assert_array_equal(found.times, expected.times)
    np.testing.assert_array_equal(found.footprints.row, expected.footprints.row)
    assert list(found.behavior) == list(expected.behavior)
    assert set(found.images) == set(expected.images)


def test_objects_that_could_run_code_are_not_read(tmp_path):
    folder = tmp_path / "a.nwb.zarr"
    place = folder / "general" / "notes"
    place.mkdir(parents=True)
    (folder / ".zgroup").write_text('{"zarr_format": 2}')
    (folder / ".zattrs").write_text('{"nwb_version": "2.7.0"}')
    about = {"chunks": [1], "compressor": None, "dtype": "|O", "fill_value": 0, "shape": [1]}
    about |= {"filters": [{"id": "pickle"}], "order": "C", "zarr_format": 2}
    (place / ".zarray").write_text(json.dumps(about))
    marker = tmp_path / "ran"
    (place / "0").write_bytes(b"cbuiltins\nopen\n(S'%s'\nS'w'\ntR." % str(marker).encode())
    with pytest.raises(InputError, match="has no"):
        open_recording(folder)
    assert not marker.exists()
