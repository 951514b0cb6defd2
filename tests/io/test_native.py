"""A recording that is saved comes back as it was, or not at all."""

import json
import zipfile

import numpy as np
import pytest

from napari_xcebra.io import open_recording, save_recording
from napari_xcebra.recording import Footprints, InputError, Recording, Variable

RNG = np.random.default_rng(0)


def full_recording():
    values = RNG.normal(size=(50, 2))
    values[3] = np.nan
    return Recording(
        traces=RNG.normal(size=(50, 4)).astype(np.float32),
        rate=7.3,
        behavior={
            "position": Variable("position", values, unit="cm"),
            "odd/key é": Variable("heading", RNG.uniform(0, 360, 50), "circular", "deg", 360.0),
            "choice": Variable("choice", RNG.integers(0, 2, 50), "discrete"),
        },
        cell_ids=np.array([9, 2, 700, 1]),
        accepted=np.array([True, False, True, True]),
        starts=np.array([0, 20]),
        excluded=np.arange(50) == 7,
        footprints=Footprints.on_a_grid(4),
        images={"mean": RNG.random((24, 24)).astype(np.float32), "max": RNG.random((3, 5))},
        source="folder/λ",
        notes=("One sentence.", "Another: é."),
    )


def same(a, b):
    for name in ("traces", "cell_ids", "accepted", "starts", "excluded"):
        one, other = getattr(a, name), getattr(b, name)
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    assert (a.rate, a.source, a.notes) == (b.rate, b.source, b.notes)
    assert list(a.behavior) == list(b.behavior)
    for one, other in zip(a.behavior.values(), b.behavior.values(), strict=True):
        np.testing.assert_array_equal(one.values, other.values)
        about = [(v.name, v.kind, v.unit, v.period) for v in (one, other)]
        assert about[0] == about[1]
    assert list(a.images) == list(b.images)
    for name, image in a.images.items():
        assert image.dtype == b.images[name].dtype
        np.testing.assert_array_equal(image, b.images[name])
    assert (a.footprints is None) == (b.footprints is None)
    if a.footprints is not None:
        assert a.footprints.shape == b.footprints.shape
        for name in ("cell", "row", "column", "weight"):
            np.testing.assert_array_equal(
                getattr(a.footprints, name), getattr(b.footprints, name), strict=True
            )
    return True


@pytest.fixture
def saved(tmp_path):
    return save_recording(full_recording(), tmp_path / "recording.npz")


def test_everything_comes_back(tmp_path):
    recording = full_recording()
    assert same(recording, open_recording(save_recording(recording, tmp_path / "r.npz")))


def test_a_bare_recording_comes_back(tmp_path):
    recording = Recording(RNG.random((5, 2)), 1.0, source="memory")
    assert same(recording, open_recording(save_recording(recording, tmp_path / "no-ending")))


def test_numpy_alone_reads_it_without_pickle(saved):
    with np.load(saved, allow_pickle=False) as file:
        assert json.loads(str(file["about"]))["format"] == 2
        assert all(file[name].dtype != object for name in file.files)


def test_a_rate_that_is_given_stands_above_the_file(saved):
    assert open_recording(saved, rate=30.0).rate == 30.0


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.9, 0.999])
def test_a_truncated_file_is_refused_in_one_sentence(saved, share):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(share * len(content))])
    with pytest.raises(InputError, match=r"recording\.npz"):
        open_recording(saved)


def test_a_flipped_byte_never_passes_as_other_data(saved):
    """Every byte that matters is covered by a checksum, a name or a check of the whole."""
    recording, content = open_recording(saved), saved.read_bytes()
    for position in np.random.default_rng(1).integers(len(content), size=300):
        damaged = bytearray(content)
        damaged[position] ^= 0x10
        saved.write_bytes(damaged)
        try:
            opened = open_recording(saved)
        except InputError as error:
            assert "\n" not in str(error)
        else:
            assert same(recording, opened)  # a byte without meaning, such as a date


def test_a_later_version_is_told_apart_from_damage(saved, tmp_path):
    with np.load(saved) as file:
        arrays = dict(file)
    about = json.loads(str(arrays["about"])) | {"format": 3}
    np.savez(tmp_path / "later.npz", **arrays | {"about": np.array(json.dumps(about))})
    with pytest.raises(InputError, match="later version"):
        open_recording(tmp_path / "later.npz")


def test_a_missing_part_is_refused(saved, tmp_path):
    with np.load(saved) as file:
        arrays = {name: file[name] for name in file.files if name != "behavior_1"}
    np.savez(tmp_path / "part.npz", **arrays)
    with pytest.raises(InputError, match=r"complete recording.*behavior_1"):
        open_recording(tmp_path / "part.npz")


def test_a_save_that_fails_leaves_the_earlier_file(saved):
    recording = full_recording()
    object.__setattr__(recording, "images", {"mean": np.array([object()])})
    with pytest.raises(InputError, match="Python objects"):
        save_recording(recording, saved)
    assert zipfile.is_zipfile(saved)
    assert [path.name for path in saved.parent.iterdir()] == ["recording.npz"]
