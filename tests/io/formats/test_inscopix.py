"""Exports of Inscopix become recordings with the decisions that were made about cells."""

import numpy as np
import pytest
import tifffile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording
from napari_xcebra.io.formats import inscopix

RNG = np.random.default_rng(0)
FRAMES = 40
TRACES = np.round(RNG.normal(size=(FRAMES, 3)), 6)
TIMES = np.round(0.05 + np.arange(FRAMES) / 10, 6)
HEAD = " , C00, C01, C05\nTime(s)/Cell Status, accepted, rejected, undecided\n"


def rows(times=TIMES, traces=TRACES):
    return "".join(
        ", ".join(f"{value:.6f}" for value in (time, *row)) + "\n"
        for time, row in zip(times, traces, strict=True)
    )


@pytest.fixture
def export(tmp_path):
    (tmp_path / "mouse.csv").write_text(HEAD + rows())
    return tmp_path / "mouse.csv"


def test_names_clock_and_decisions_are_kept(export):
    recording = open_recording(export)
    np.testing.assert_allclose(recording.traces, TRACES, rtol=1e-6)
    np.testing.assert_allclose(recording.times, TIMES)
    assert recording.rate == 10.0
    assert recording.cell_ids.tolist() == [0, 1, 5]
    assert recording.cells["name"].tolist() == ["C00", "C01", "C05"]
    assert recording.cells["status"].tolist() == ["accepted", "rejected", "undecided"]
    assert recording.accepted.tolist() == [True, False, True]
    assert any("1 cells are undecided and count as accepted" in n for n in recording.notes)
    assert any("Inscopix" in note for note in recording.notes)
    assert recording.footprints is None


@pytest.mark.parametrize("change", [lambda t: t.replace("\n", "\r\n"), lambda t: "\ufeff" + t,
                                    lambda t: t.replace(" ", "")])  # fmt: skip
def test_exports_on_other_systems_are_the_same(export, change):
    text = change(export.read_text()).replace("CellStatus", "Cell Status")
    export.write_text(text, encoding="utf-8", newline="")
    np.testing.assert_allclose(open_recording(export).traces, TRACES, rtol=1e-6)


def test_dropped_frames_are_left_out(export):
    traces = TRACES.copy()
    traces[7] = np.nan
    export.write_text(HEAD + rows(traces=traces).replace("nan", ""))
    recording = open_recording(export)
    assert np.flatnonzero(recording.excluded).tolist() == [7]
    assert recording.accepted.tolist() == [True, False, True]


def test_images_of_cells_beside_are_their_footprints(export):
    for i, name in enumerate(["C00", "C01", "C05"]):
        image = np.zeros((20, 30), np.float32)
        image[4 * i : 4 * i + 3, 5:9] = 8
        image[15, 15] = 1  # haze
        tifffile.imwrite(export.parent / f"cells_{name}.tif", image)
    tifffile.imwrite(export.parent / "other_C00.tif", np.ones((5, 5), np.float32))
    recording = open_recording(export)
    labels = recording.footprints.label_image()
    assert labels.shape == (20, 30)
    assert [(labels == i + 1).sum() for i in range(3)] == [12, 12, 12]


def test_centres_beside_become_discs(export):
    (export.parent / "mouse-props.csv").write_text(
        "Name, Status, CentroidX, CentroidY, Size\nC05, undecided, 40.2, 30, 9\n"
        "C00, accepted, 10, 20, 8\nC09, accepted, 1, 1, 1\n"
    )
    recording = open_recording(export)
    assert set(recording.footprints.cell) == {0, 2}
    labels = recording.footprints.label_image()
    assert (labels[20, 10], labels[30, 40]) == (1, 3)
    assert any("discs" in note for note in recording.notes)


def test_footprints_that_are_damaged_do_not_stop_the_traces(export):
    for name in ("C00", "C01"):
        (export.parent / f"cells_{name}.tif").write_bytes(b"II*\0damaged")
    recording = open_recording(export)
    assert recording.footprints is None
    assert any("No footprints were used" in note for note in recording.notes)


def test_other_tables_are_left_to_others(tmp_path):
    (tmp_path / "t.csv").write_text("time,cell_0\n0,1\n1,2\n")
    assert not inscopix.sniff(tmp_path / "t.csv")
    assert not inscopix.sniff(tmp_path)
    assert not inscopix.sniff(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (HEAD, "cannot be read"),
        (HEAD + "0.1, 1, 2\n0.2, 1, 2\n", "3 names, 3 statuses and 2 columns"),
        (HEAD + "0.1, 1, 2, x\n0.2, 1, 2, 3\n", "Column C05 of .* not numbers"),
        (HEAD + "a, 1, 2, 3\n0.2, 1, 2, 3\n", "Column of times of .* not numbers"),
        (HEAD + "0.2, 1, 2, 3\n0.1, 1, 2, 3\n", "do not increase"),
        (HEAD + ", 1, 2, 3\n0.1, 1, 2, 3\n", "do not increase"),
        (HEAD.replace("rejected", "lovely") + rows(), "status 'lovely'"),
        (HEAD.replace("C05", "C00") + rows(), "two cells with the same name"),
        (HEAD.replace(", undecided", "") + rows(), "3 names, 2 statuses"),
    ],
)
def test_an_export_that_is_damaged_is_refused(export, text, sentence):
    export.write_text(text)
    with pytest.raises(InputError, match=sentence):
        open_recording(export)


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(
    keep=st.floats(0, 1),
    flips=st.lists(st.tuples(st.floats(0, 0.999), st.integers(0, 255)), max_size=5),
    early=st.booleans(),
)
def test_damage_gives_one_sentence_or_a_recording(export, keep, flips, early):
    content = bytearray((HEAD + rows()).encode())
    reach = len(HEAD) if early else len(content)
    for place, value in flips:
        content[int(place * reach)] = value
    export.write_bytes(content if keep > 0.5 else content[: int(2 * keep * len(content))])
    try:
        open_recording(export, rate=1.0)
    except InputError as error:
        assert "\n" not in str(error)
