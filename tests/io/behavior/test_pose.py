"""Poses of DeepLabCut and SLEAP become one variable a body part."""

import json
import pickle
from contextlib import suppress

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording
from napari_xcebra.io.behavior.poses import load, sniff
from napari_xcebra.io.clocks.placing import on_frames
from napari_xcebra.io.settings import OpenSettings

FRAMES = 50
PARTS = ("nose", "tail base")
RNG = np.random.default_rng(0)
SURE = OpenSettings(likelihood=0.5)


def poses(animals):
    """Names of the columns, and (frames, columns): x, y, likelihood of each part."""
    names = [
        ("DLC_resnet50", *((animal,) if animal else ()), part, coord)
        for animal in animals
        for part in PARTS
        for coord in ("x", "y", "likelihood")
    ]
    values = RNG.random((FRAMES, len(names))) * np.tile([100, 100, 1], len(names) // 3)
    return names, values


def expected(values):
    """(parts, frames, 2), NaN where less likely than 0.5."""
    each = values.reshape(FRAMES, -1, 3).transpose(1, 0, 2)
    return np.where(each[..., 2:] < 0.5, np.nan, each[..., :2])


def write_csv(path, names, values, *, row_names=True):
    titles = ["scorer", "individuals", "bodyparts", "coords"]
    titles = titles if len(names[0]) == 4 else [titles[0], *titles[2:]]
    rows = [
        ",".join([title if row_names else "", *level])
        for title, level in zip(titles, zip(*names, strict=True), strict=True)
    ]
    rows += [",".join(map(repr, [i, *row.tolist()])) for i, row in enumerate(values)]
    path.write_text("\n".join(rows) + "\n")


def write_table(path, names, values):
    """As `DataFrame.to_hdf(format="table")` does, with PyTables."""
    with h5py.File(path, "w") as file:
        frame = file.create_group("df_with_missing")
        frame.attrs["pandas_type"] = np.bytes_(b"frame_table")
        rows = np.zeros(
            len(values), [("index", "i8"), ("values_block_0", "f8", (values.shape[1],))]
        )
        rows["index"], rows["values_block_0"] = np.arange(len(values)), values
        table = frame.create_dataset("table", data=rows)
        table.attrs["values_block_0_kind"] = np.bytes_(pickle.dumps(list(names), 0))


def write_fixed(path, names, values):
    """As `DataFrame.to_hdf(format="fixed")` does, with PyTables."""
    with h5py.File(path, "w") as file:
        frame = file.create_group("keypoints")
        frame.attrs["pandas_type"] = np.bytes_(b"frame")
        frame.attrs["nblocks"] = 1
        frame.attrs["block0_items_nlevels"] = len(names[0])
        for axis in ("axis0", "block0_items"):
            for i, level in enumerate(zip(*names, strict=True)):
                words = sorted(set(level))
                frame[f"{axis}_level{i}"] = np.array(words, "S")
                frame[f"{axis}_label{i}"] = np.array([words.index(w) for w in level], "i1")
        frame["block0_values"] = values


WRITERS = {"csv": write_csv, "h5": write_table, "fixed.h5": write_fixed}


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("animals", [("",), ("m1", "m2"), ("only",)])
def test_deeplabcut_gives_a_variable_a_part_and_drops_unlikely_points(tmp_path, ending, animals):
    names, values = poses(animals)
    path = tmp_path / f"video.{ending}"
    WRITERS[ending](path, names, values)
    assert sniff(path)
    behavior = load(path, SURE)
    prefixes = [f"{animal}_" if len(animals) > 1 else "" for animal in animals]
    labels = [f"{prefix}{part}" for prefix in prefixes for part in PARTS]
    assert [series.name for series in behavior.series] == labels
    for series, points in zip(behavior.series, expected(values), strict=True):
        np.testing.assert_allclose(series.values, points)
        assert (series.unit, series.kind, series.times) == ("px", "continuous", None)
    assert "less likely than 0.5" in behavior.notes[0]


def test_headers_without_row_names_are_recognised(tmp_path):
    names, values = poses(("",))
    write_csv(tmp_path / "v.csv", names, values, row_names=False)
    assert sniff(tmp_path / "v.csv")
    np.testing.assert_allclose(load(tmp_path / "v.csv", SURE).series[0].values, expected(values)[0])


def write_sleap(path, tracks, scores, dims=None):
    """`tracks` is (frames, tracks, nodes, xy)."""
    dims = dims or ["track", "xy", "node", "frame"]
    has = ["frame", "track", "node", "xy"]
    of_scores = [d for d in dims if d != "xy"]
    with h5py.File(path, "w") as file:
        file["tracks"] = tracks.transpose([has.index(d) for d in dims])
        file["point_scores"] = scores.transpose([has.index(d) for d in of_scores])
        if dims != ["track", "xy", "node", "frame"]:
            file["tracks"].attrs["dims"] = json.dumps(dims)
            file["point_scores"].attrs["dims"] = json.dumps(of_scores)
        file["node_names"] = np.array(PARTS, "S")
        file["track_names"] = np.array(["m1", "m2"], "S")


@pytest.mark.parametrize("dims", [None, ["frame", "track", "node", "xy"]])
def test_sleap_tracks_lie_either_way_round(tmp_path, dims):
    tracks, scores = RNG.random((FRAMES, 2, 2, 2)) * 60, RNG.random((FRAMES, 2, 2))
    write_sleap(tmp_path / "a.h5", tracks, scores, dims)
    assert sniff(tmp_path / "a.h5")
    behavior = load(tmp_path / "a.h5", SURE)
    assert [s.name for s in behavior.series] == [
        "m1_nose",
        "m1_tail base",
        "m2_nose",
        "m2_tail base",
    ]
    points = np.where(scores[..., None] < 0.5, np.nan, tracks)
    np.testing.assert_allclose(behavior.series[1].values, points[:, 0, 1])
    np.testing.assert_allclose(behavior.series[2].values, points[:, 1, 0])


def test_sleap_rows_may_leave_out_frames(tmp_path):
    lines = ["track,frame_idx,instance.score,nose.x,nose.y,nose.score"]
    lines += [f"m1,{i},0.9,{i},{2 * i},0.95" for i in range(0, FRAMES - 10, 2)]
    lines += ["m2,4,0.9,7,8,0.95", "m2,6,0.9,7,8,0.1"]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(lines))
    assert sniff(path)
    np.save(tmp_path / "traces.npy", RNG.random((FRAMES, 3)))
    recording = open_recording(tmp_path / "traces.npy", path, rate=10.0, layout="frames-cells")
    nose = recording.behavior["m1_nose"]
    np.testing.assert_array_equal(np.flatnonzero(nose.known), np.arange(0, FRAMES - 10, 2))
    np.testing.assert_array_equal(nose.values[8], [8, 16])
    np.testing.assert_array_equal(np.flatnonzero(recording.behavior["m2_nose"].known), [4])


def test_a_video_faster_than_the_imaging_follows_its_rate(tmp_path):
    names, values = poses(("",))
    values[:, 2::3] = 1.0
    values[:, 0] = np.arange(FRAMES)
    write_csv(tmp_path / "v.csv", names, values)
    np.save(tmp_path / "traces.npy", RNG.random((24, 3)))
    opened = open_recording(
        tmp_path / "traces.npy", tmp_path / "v.csv", rate=10.0, behavior_rate=20.0,
        layout="frames-cells",
    )  # fmt: skip
    np.testing.assert_allclose(opened.behavior["nose"].values[:, 0], 2 * np.arange(24))


def test_poses_that_cannot_be_used_get_a_sentence(tmp_path):
    names, values = poses(("",))
    values[:, 2::3] = 0.2
    write_csv(tmp_path / "v.csv", names, values)
    with pytest.raises(
        InputError,
        match=r"likelihood of 0\.9 or more in any frame: lower `likelihood`",
    ):
        load(tmp_path / "v.csv", OpenSettings())
    write_table(tmp_path / "v.h5", ["a", "b"], np.zeros((5, 2)))
    with pytest.raises(InputError, match="no poses"):
        load(tmp_path / "v.h5", SURE)
    (tmp_path / "s.csv").write_text("frame_idx,nose.x,nose.y\n3000000000,1,2\n")
    with pytest.raises(InputError, match="frame number"):
        load(tmp_path / "s.csv", SURE)
    (tmp_path / "s.csv").write_text("frame_idx,a.x,a.y,b.x,b.y\n190000000,1,2,1,2\n")
    with pytest.raises(InputError, match="that is too much"):
        load(tmp_path / "s.csv", SURE)


class Trap:
    sprung = False

    def __reduce__(self):
        return (setattr, (Trap, "sprung", True))


def test_names_that_are_a_program_are_not_run(tmp_path):
    names, values = poses(("",))
    write_table(tmp_path / "v.h5", names, values)
    with h5py.File(tmp_path / "v.h5", "a") as file:
        table = file["df_with_missing/table"]
        table.attrs["values_block_0_kind"] = np.bytes_(pickle.dumps([Trap()], 0))
    with pytest.raises(InputError):
        load(tmp_path / "v.h5", SURE)
    assert not Trap.sprung


@pytest.mark.parametrize("kind", [*WRITERS, "sleap.h5", "sleap.csv"])
@given(
    cut=st.floats(0, 1) | st.just(1.0), place=st.floats(0, 1), byte=st.integers(0, 255),
    renamed=st.booleans(),
)  # fmt: skip
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_file_of_poses_gets_a_sentence(tmp_path, kind, cut, place, byte, renamed):
    path = tmp_path / f"v.{kind}"
    if kind == "sleap.csv":
        path.write_text("frame_idx,nose.x,nose.y\n" + "".join(f"{i},1,2\n" for i in range(20)))
    elif kind == "sleap.h5":
        write_sleap(path, np.ones((20, 2, 2, 2)), np.ones((20, 2, 2)))
    else:
        names, values = poses(("m1", "m2"))
        WRITERS[kind](path, names, values)
    content = bytearray(path.read_bytes())
    content[int(place * (len(content) - 1))] = byte
    path = path.with_name("other.csv") if renamed else path
    path.write_bytes(content[: int(cut * len(content)) + 1])
    sniff(path)
    with suppress(InputError):
        on_frames(load(path, SURE), np.arange(FRAMES) / 10, SURE)
