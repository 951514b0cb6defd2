"""Decisions written for other programs are found there again, by us and by them."""

import shutil
from dataclasses import replace

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from napari_xcebra.curation import Curation, merge_cells
from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording
from napari_xcebra.io.decisions.outputs import (
    OUTPUT_KINDS,
    accepted_labels,
    extractor_accepted,
    plan_output,
    possible_outputs,
)
from napari_xcebra.io.decisions.restoring import restore
from napari_xcebra.io.formats.imagej import read_rois
from napari_xcebra.io.formats.suite2p.folder import folders_at
from napari_xcebra.io.formats.suite2p.writing import write_suite2p
from napari_xcebra.recording import Footprints, Recording

RNG = np.random.default_rng(0)
CELLS = 6
RECORDING = Recording(
    RNG.random((30, CELLS)).astype(np.float32) + 1,
    rate=15.0,
    accepted=np.array([1, 1, 0, 1, 0, 1], bool),
    footprints=Footprints.on_a_grid(CELLS),
    cells={"probability": np.linspace(0, 1, CELLS)},
)
TABLE = pd.DataFrame(
    {
        "cell": np.arange(CELLS),
        "status": ["accepted", "rejected", "undecided", "accepted", "accepted", "undecided"],
        "by": ["hand", "hand", "", "hand", "threshold", ""],
        "tags": ["place;red", "", "", "", "speed", ""],
        "note": ["", 'bright, "round"', "", "", "", "zwei\nZeilen"],
        "curator": "me",
        "time": "2026-11-16T12:00:00",
    }
)
SCORES = pd.concat(
    pd.DataFrame(
        {
            "cell": np.arange(CELLS - 1),
            "factor": name,
            "score": np.arange(CELLS - 1) / 7 + shift,
            "z": np.arange(CELLS - 1) - 2.0,
            "q": 0.01,
        }
    )
    for shift, name in enumerate(("place", "head direction"))
)


def decided(recording, seed=0):
    """Decisions at random, unlike those of the extractor."""
    accepted = np.random.default_rng(seed).random(recording.n_cells) > 0.4
    assert (accepted != recording.accepted).any()
    return accepted


def assert_round_trip(kind, path, source=None, **more):
    """What is written reads back as it was decided; the place that was written to."""
    source = source or path
    recording = open_recording(source)
    accepted = decided(recording)
    written = plan_output(kind, recording, source, accepted, **more).write()
    again = open_recording(path or written.files[0])
    np.testing.assert_array_equal(again.accepted, accepted)
    np.testing.assert_array_equal(again.cell_ids, recording.cell_ids)
    return recording, accepted, written


# -- suite2p -------------------------------------------------------------------------------------


@pytest.fixture
def plane(tmp_path):
    return write_suite2p(RECORDING, tmp_path / "suite2p" / "plane0")


def test_the_probabilities_of_suite2p_stay(plane):
    before = np.load(plane / "iscell.npy")
    _, accepted, _ = assert_round_trip("suite2p", plane)
    after = np.load(plane / "iscell.npy", allow_pickle=False)
    assert after.dtype == np.float64 and after.shape == (CELLS, 2)
    np.testing.assert_array_equal(after[:, 1], before[:, 1])
    np.testing.assert_array_equal(after[:, 0], accepted)


def test_a_file_without_probabilities_is_kept_so(plane):
    np.save(plane / "iscell.npy", np.array([1, 0, 0, 1, 0, 1], np.uint8))
    recording = open_recording(plane)
    plan = plan_output("suite2p", recording, plane, decided(recording))
    assert "no column of probabilities and stays that way" in plan.warnings[0]
    plan.write()
    after = np.load(plane / "iscell.npy")
    assert after.shape == (CELLS,) and after.dtype == np.uint8
    np.testing.assert_array_equal(open_recording(plane).accepted, decided(recording))


def test_a_missing_file_is_made_and_taken_away_again(plane):
    (plane / "iscell.npy").unlink()
    assert_round_trip("suite2p", plane)
    restore(plane)
    assert not (plane / "iscell.npy").exists()


def test_decisions_survive_suite2p_being_run_again(plane):
    """suite2p removes iscell.npy; the table beside it says which ROI was where."""
    recording = open_recording(plane)
    accepted = decided(recording)
    plan_output("suite2p", recording, plane, accepted, TABLE, SCORES).write()
    (plane / "iscell.npy").unlink()
    table = pd.read_csv(plane / "napari-xcebra-decisions.csv")
    np.testing.assert_array_equal(table["accepted"], accepted)
    assert table[["y", "x"]].notna().all().all()
    assert table["note"][1] == 'bright, "round"'


def test_a_destination_elsewhere_leaves_the_folder_alone(plane, tmp_path):
    before = {path.name: path.read_bytes() for path in plane.iterdir()}
    recording = open_recording(plane)
    elsewhere = tmp_path / "mine"
    written = plan_output(
        "suite2p", recording, plane, decided(recording), destination=elsewhere
    ).write()
    assert {path.parent for path in written.files} == {elsewhere}
    np.testing.assert_array_equal(np.load(elsewhere / "iscell.npy")[:, 0], decided(recording))
    assert {path.name: path.read_bytes() for path in plane.iterdir()} == before


def test_what_is_as_decided_already_is_not_written(plane):
    recording = open_recording(plane)
    plan = plan_output("suite2p", recording, plane, recording.accepted)
    assert [change.path.name for change in plan.files] == ["napari-xcebra-decisions.csv"]
    assert "already agrees" in plan.warnings[0]


def test_a_folder_of_another_run_is_refused(plane):
    recording = open_recording(plane)
    for name in ("F", "Fneu", "spks"):
        np.save(plane / f"{name}.npy", np.load(plane / f"{name}.npy")[:-1])
    with pytest.raises(InputError, match="5 ROIs but the recording has 6: suite2p has been run"):
        plan_output("suite2p", recording, plane, decided(recording))


@pytest.fixture
def planes(shared_data, tmp_path):
    source = shared_data / "suite2p-1.1-two-planes"
    return shutil.copytree(source, tmp_path / "suite2p", copy_function=shutil.copyfile)


@pytest.mark.parametrize("opened", ["", "combined", "plane1"])
def test_planes_and_combined_agree_whichever_was_curated(planes, opened):
    _, accepted, written = assert_round_trip("suite2p", planes / opened)
    flags = {
        name: np.load(planes / name / "iscell.npy") for name in ("plane0", "plane1", "combined")
    }
    joined = np.concatenate([flags["plane0"], flags["plane1"]])
    np.testing.assert_array_equal(flags["combined"], joined)
    if opened == "plane1":
        np.testing.assert_array_equal(flags["combined"][36:, 0], accepted)
        assert {path.parent.name for path in written.files} == {"plane1", "combined"}
    else:
        np.testing.assert_array_equal(joined[:, 0], accepted)


def test_the_preview_says_that_planes_and_combined_are_written_together(planes):
    recording = open_recording(planes / "combined")
    plan = plan_output("suite2p", recording, planes / "combined", decided(recording))
    assert "combined, plane0 and plane1, which hold the same ROIs" in plan.warnings[0]
    assert len(plan.files) == 4
    kept = [line for line in plan.lines() if "kept as iscell.npy.original" in line]
    assert len(kept) == 3


@pytest.mark.parametrize("opened", ["", "combined", "plane1"])
def test_all_go_back_whichever_is_named(planes, opened):
    names = [planes / name / "iscell.npy" for name in ("plane0", "plane1", "combined")]
    before = [path.read_bytes() for path in names]
    recording = open_recording(planes)
    plan_output("suite2p", recording, planes, decided(recording)).write()
    assert [path.read_bytes() for path in names] != before
    restore(planes / opened)
    assert [path.read_bytes() for path in names] == before


def test_combined_of_another_run_is_refused_unless_left_out(planes):
    traces = np.load(planes / "plane1" / "F.npy")
    np.save(planes / "plane1" / "F.npy", traces[::-1])
    recording = open_recording(planes / "combined")
    accepted = decided(recording)
    with pytest.raises(InputError, match=r"does not have the 35 ROIs of plane1.*opened folder"):
        plan_output("suite2p", recording, planes / "combined", accepted)
    plan = plan_output("suite2p", recording, planes / "combined", accepted, together=False)
    plan.write()
    np.testing.assert_array_equal(open_recording(planes / "combined").accepted, accepted)


@pytest.mark.parametrize("opened", ["combined", "plane1"])
def test_a_plane_is_found_in_combined_where_others_are_missing(planes, opened):
    before = np.load(planes / "combined" / "iscell.npy")
    shutil.rmtree(planes / "plane0")
    assert_round_trip("suite2p", planes / opened)
    flags = np.load(planes / "combined" / "iscell.npy")
    np.testing.assert_array_equal(flags[36:], np.load(planes / "plane1" / "iscell.npy"))
    if opened == "plane1":
        np.testing.assert_array_equal(flags[:36], before[:36])


def test_combined_of_decisions_alone_follows_the_planes(planes):
    """suite2p's window makes such a folder when it is shown a folder of planes."""
    for path in (planes / "combined").iterdir():
        if path.name != "iscell.npy":
            path.unlink()
    _, accepted, _ = assert_round_trip("suite2p", planes)
    np.testing.assert_array_equal(np.load(planes / "combined" / "iscell.npy")[:, 0], accepted)


@pytest.mark.parametrize("name", ["suite2p-real-219-cells", "suite2p-0.14/plane0"])
def test_folders_that_suite2p_wrote_read_back(shared_data, tmp_path, name):
    folder = tmp_path / "suite2p" / "plane0"
    shutil.copytree(shared_data / name, folder, copy_function=shutil.copyfile)
    recording = open_recording(folder, rate=30.0)
    accepted = decided(recording)
    plan_output("suite2p", recording, folder, accepted).write()
    np.testing.assert_array_equal(open_recording(folder, rate=30.0).accepted, accepted)


def test_roiextractors_finds_the_decisions_in_suite2p_files(planes):
    roiextractors = pytest.importorskip("roiextractors")
    _, accepted, _ = assert_round_trip("suite2p", planes)
    extractor = roiextractors.Suite2pSegmentationExtractor(planes, plane_name="plane1")
    flags = extractor.get_property("iscell", extractor.get_roi_ids())
    np.testing.assert_array_equal(flags, accepted[36:])


# -- CaImAn --------------------------------------------------------------------------------------


@pytest.fixture
def caiman(tmp_path):
    path = tmp_path / "results.hdf5"
    masks = np.zeros((12, 9, 4))
    for cell in range(4):
        masks[2 * cell : 2 * cell + 3, cell : cell + 2, cell] = 1
    weights = scipy.sparse.csc_array(masks.reshape(-1, 4, order="F"))
    with h5py.File(path, "w") as file:
        file["estimates/C"] = RNG.random((4, 30))
        file["estimates/dims"] = (12, 9)
        file["estimates/idx_components"] = b"NoneType"
        for name in ("data", "indices", "indptr", "shape"):
            file[f"estimates/A/{name}"] = getattr(weights, name)
        file["params/data/fr"] = 20.0
    return path


def as_caiman_loads(path):
    """Accepted and rejected components: integer arrays, or None where the text stands for it."""
    with h5py.File(path) as file:
        found = [file[f"estimates/{name}"][()] for name in ("idx_components", "idx_components_bad")]
    assert all(chosen.dtype == np.int64 and chosen.ndim == 1 for chosen in found)
    return found


def test_caiman_finds_the_decisions_where_there_were_none(caiman):
    before = caiman.read_bytes()
    _, accepted, written = assert_round_trip("caiman", caiman)
    chosen, rejected = as_caiman_loads(caiman)
    np.testing.assert_array_equal(chosen, np.flatnonzero(accepted))
    np.testing.assert_array_equal(rejected, np.flatnonzero(~accepted))
    assert caiman.with_name("results.hdf5.original").read_bytes() == before
    written.restore()
    assert caiman.read_bytes() == before


def test_all_components_may_be_rejected(caiman):
    recording = open_recording(caiman)
    plan_output("caiman", recording, caiman, np.zeros(4, bool)).write()
    chosen, rejected = as_caiman_loads(caiman)
    assert (len(chosen), rejected.tolist()) == (0, [0, 1, 2, 3])
    assert not open_recording(caiman).accepted.any()


def test_a_copy_elsewhere_leaves_the_file_of_caiman_alone(caiman, tmp_path):
    before = caiman.read_bytes()
    copy = tmp_path / "curated.hdf5"
    assert_round_trip("caiman", copy, source=caiman, destination=copy)
    assert caiman.read_bytes() == before


def test_a_failure_while_copying_leaves_the_file_of_caiman_alone(caiman, monkeypatch):
    before = caiman.read_bytes()
    recording = open_recording(caiman)
    plan = plan_output("caiman", recording, caiman, decided(recording))

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(h5py.Group, "create_dataset", fail)
    with pytest.raises(InputError, match="No space left on device"):
        plan.write()
    assert caiman.read_bytes() == before
    assert list(caiman.parent.iterdir()) == [caiman]


def test_the_file_of_caiman_reads_back_with_all_else_as_it_was(shared_data, tmp_path):
    path = tmp_path / "cnmf.hdf5"
    shutil.copyfile(shared_data / "caiman" / "cnmf_results.hdf5", path)
    recording, accepted, _ = assert_round_trip("caiman", path)
    again = open_recording(path)
    np.testing.assert_array_equal(np.asarray(again.traces), np.asarray(recording.traces))
    with h5py.File(path) as new, h5py.File(shared_data / "caiman" / "cnmf_results.hdf5") as old:
        assert set(new["estimates"]) == set(old["estimates"])
        assert dict(new.attrs) == dict(old.attrs)
    roiextractors = pytest.importorskip("roiextractors")
    extractor = roiextractors.CaimanSegmentationExtractor(path)
    flags = extractor.get_property("is_accepted", extractor.get_roi_ids())
    np.testing.assert_array_equal(flags, accepted)


# -- NWB -----------------------------------------------------------------------------------------


@pytest.fixture
def nwb(shared_data, tmp_path):
    def copied(name):
        path = tmp_path / name
        shutil.copyfile(shared_data / "nwb" / name, path)
        return path

    return copied


def scores_of(recording):
    ids = np.asarray(recording.cell_ids)
    return pd.DataFrame({"cell": ids, "factor": "head direction", "score": ids / 10})


def plane_segmentation(file):
    return file.processing["ophys"]["ImageSegmentation"]["PlaneSegmentation"]


@pytest.mark.parametrize("name", ["nwb_imagemask_rate.nwb", "neuroconv_suite2p.nwb"])
def test_a_copy_of_an_nwb_file_has_decisions_and_scores(nwb, name):
    pynwb = pytest.importorskip("pynwb")
    path = nwb(name)
    before = path.read_bytes()
    recording = open_recording(path)
    _, accepted, written = assert_round_trip("nwb", None, path, scores=scores_of(recording))
    (copy,) = written.files
    assert copy == path.with_name(f"{path.stem}-curated.nwb")
    assert path.read_bytes() == before
    faults = {str(fault) for fault in pynwb.validate(path=str(path))}
    assert {str(fault) for fault in pynwb.validate(path=str(copy))} <= faults
    with pynwb.NWBHDF5IO(copy, "r") as reader:
        table = plane_segmentation(reader.read())
        np.testing.assert_array_equal(table["is_accepted"].data[:], accepted)
        scores = table["xcebra_score_head_direction"].data[:]
        np.testing.assert_allclose(scores, np.asarray(recording.cell_ids) / 10)
        frame = table.to_dataframe()
        assert len(frame) == recording.n_cells
        # the columns that the file had say the same
        if "iscell" in frame:
            np.testing.assert_array_equal(frame["iscell"], accepted)
        else:
            np.testing.assert_array_equal(frame["Accepted"], accepted)
            np.testing.assert_array_equal(frame["Rejected"], ~accepted)


def test_an_nwb_file_is_replaced_only_if_told_so(nwb):
    path = nwb("nwb_imagemask_rate.nwb")
    before = path.read_bytes()
    recording = open_recording(path)
    with pytest.raises(InputError, match="the file that was opened"):
        plan_output("nwb", recording, path, decided(recording), destination=path)
    assert_round_trip("nwb", path, in_place=True)
    assert path.with_name(f"{path.name}.original").read_bytes() == before
    restore(path)
    assert path.read_bytes() == before


def test_a_second_round_replaces_the_columns_of_the_first(nwb):
    path = nwb("neuroconv_suite2p.nwb")
    recording = open_recording(path)
    for seed in (1, 2):
        plan_output("nwb", recording, path, decided(recording, seed), in_place=True).write()
        with h5py.File(path) as file:
            table = file["processing/ophys/ImageSegmentation/PlaneSegmentation"]
            assert list(table.attrs["colnames"]) == [
                "roi_name",
                "pixel_mask",
                "iscell",
                "is_accepted",
            ]
        np.testing.assert_array_equal(open_recording(path).accepted, decided(recording, seed))


def test_the_probabilities_of_an_nwb_file_stay(nwb):
    path = nwb("neuroconv_suite2p.nwb")
    likely = np.linspace(0.05, 0.95, 36)
    column = "processing/ophys/ImageSegmentation/PlaneSegmentation/iscell"
    with h5py.File(path, "r+") as file:
        file[column][...] = likely
    recording = open_recording(path)
    plan = plan_output("nwb", recording, path, decided(recording), in_place=True)
    assert "iscell holds probabilities and is left as it is" in plan.warnings[0]
    plan.write()
    again = open_recording(path)
    np.testing.assert_array_equal(again.accepted, decided(recording))
    np.testing.assert_allclose(again.cells["probability"], likely)


def test_rois_without_traces_stay_as_they_were(nwb):
    path = nwb("nwb_imagemask_rate.nwb")
    with h5py.File(path, "r+") as file:
        ophys = file["processing/ophys"]
        del ophys["DfOverF"], ophys["Fluorescence/Deconvolved"]
        series = ophys["Fluorescence/RoiResponseSeries"]
        for name, values in (("rois", np.arange(5, 32)), ("data", series["data"][:, 5:])):
            attributes = dict(series[name].attrs)
            del series[name]
            series[name] = values
            series[name].attrs.update(attributes)
    recording = open_recording(path)
    assert recording.n_cells == 27
    plan_output("nwb", recording, path, ~recording.accepted, in_place=True).write()
    with h5py.File(path) as file:
        table = file["processing/ophys/ImageSegmentation/PlaneSegmentation"]
        flags = table["is_accepted"][()]
    np.testing.assert_array_equal(flags[5:], ~recording.accepted)
    assert flags[:5].all()  # as the file had them


# -- for everyone --------------------------------------------------------------------------------


def test_the_table_holds_all_that_is_known(tmp_path):
    path = tmp_path / "decisions.csv"
    accepted = decided(RECORDING)
    plan_output("csv", RECORDING, None, accepted, TABLE, SCORES, path).write()
    table = pd.read_csv(path, keep_default_na=False)
    assert table["cell"].tolist() == list(range(CELLS))
    for name in ("status", "by", "tags", "note", "curator", "time"):
        assert table[name].tolist() == TABLE[name].tolist()
    np.testing.assert_array_equal(table["accepted"], accepted)
    np.testing.assert_array_equal(table["extractor_accepted"], RECORDING.accepted)
    np.testing.assert_allclose(table["extractor_probability"], RECORDING.cells["probability"])
    assert table["q_place"].tolist() == ["0.01"] * 5 + [""]
    assert float(table["score_head direction"][2]) == pytest.approx(2 / 7 + 1)
    assert (table["y"][0], table["x"][0]) == (5.5, 5.5)


def test_scores_belong_to_cells_by_their_ids(tmp_path):
    recording = replace(RECORDING, cell_ids=np.array([9, 5, 3, 0, 1, 2]))
    path = tmp_path / "decisions.csv"
    plan_output("csv", recording, None, decided(recording), TABLE, SCORES, path).write()
    table = pd.read_csv(path, keep_default_na=False)
    assert table["status"].tolist() == [
        "",
        "undecided",
        "accepted",
        "accepted",
        "rejected",
        "undecided",
    ]
    assert table["z_place"].tolist() == ["", "", "1.0", "-2.0", "-1.0", "0.0"]


def test_imagej_has_the_pixels_of_the_accepted_cells_and_no_others(tmp_path):
    from roifile import ImagejRoi

    row, column = np.nonzero(np.ones((9, 9)))
    ring = (abs(row - 4) < 3) & (abs(column - 4) < 3) & ~((row == 4) & (column == 4))
    pieces = (row == 0) & ((column < 2) | (column > 5))
    cells = [np.flatnonzero(own) for own in (ring, pieces, row == 8, (row == 6) & (column == 0))]
    at = np.concatenate(cells)
    footprints = Footprints(
        (3, 9, 9),
        np.repeat(np.arange(4), [len(own) for own in cells]),
        row[at],
        column[at],
        np.ones(len(at), np.float32),
        np.repeat([2, 0, 1, 0], [len(own) for own in cells]),
    )
    ids = np.array([70, 8, 5, 1])
    recording = Recording(RNG.random((20, 4)), 1.0, cell_ids=ids, footprints=footprints)
    path = tmp_path / "RoiSet.zip"
    accepted = np.array([True, True, False, True])
    plan_output("imagej", recording, None, accepted, destination=path).write()
    rois = ImagejRoi.fromfile(path)
    assert [roi.name for roi in rois] == ["cell_70", "cell_8", "cell_1"]
    assert [roi.position for roi in rois] == [3, 1, 1]
    found = read_rois(path).footprints
    for roi, position in enumerate((0, 1, 3)):
        own, given = found.cell == roi, footprints.cell == position
        drawn = set(zip(found.row[own].tolist(), found.column[own].tolist(), strict=True))
        assert drawn == set(
            zip(footprints.row[given].tolist(), footprints.column[given].tolist(), strict=True)
        )


def test_labels_of_the_accepted_keep_their_numbers_and_get_shared_pixels():
    footprints = Footprints(
        (1, 5),
        np.array([0, 0, 0, 1, 1, 1, 2]),
        np.zeros(7, int),
        np.array([0, 1, 2, 1, 2, 3, 4]),
        np.array([1, 1, 1, 9, 9, 9, 1], np.float32),
    )
    recording = Recording(RNG.random((20, 3)), 1.0, footprints=footprints)
    labels = accepted_labels(recording, np.array([True, False, True]))
    assert labels.tolist() == [[1, 1, 1, 0, 3]]
    assert not accepted_labels(recording, np.zeros(3, bool)).any()


def test_what_cannot_be_written_is_said_with_the_reason(plane, tmp_path):
    from_suite2p = {o.kind: o for o in possible_outputs(open_recording(plane), plane)}
    assert tuple(from_suite2p) == OUTPUT_KINDS
    assert [kind for kind, o in from_suite2p.items() if o.possible] == ["suite2p", "csv", "imagej"]
    assert "was opened as suite2p" in from_suite2p["nwb"].why_not
    bare = replace(RECORDING, footprints=None)
    from_arrays = {output.kind: output for output in possible_outputs(bare, None)}
    assert [kind for kind, o in from_arrays.items() if o.possible] == ["csv"]
    assert "not opened from CaImAn: write a table" in from_arrays["caiman"].why_not
    assert "no footprints" in from_arrays["imagej"].why_not
    with pytest.raises(InputError, match="not opened from NWB"):
        plan_output("nwb", bare, None, bare.accepted)
    with pytest.raises(InputError, match="no output 'xls'"):
        plan_output("xls", bare, None, bare.accepted)


@pytest.mark.parametrize(
    ("accepted", "table", "sentence"),
    [
        (np.ones(3, bool), None, r"accepted has shape \(3,\)"),
        (np.ones(CELLS), None, "type float64: True or False"),
        (np.ones(CELLS, bool), pd.DataFrame({"id": [1]}), "table has no column 'cell'"),
    ],
)
def test_decisions_that_do_not_fit_are_refused(accepted, table, sentence):
    with pytest.raises(InputError, match=sentence):
        plan_output("csv", RECORDING, None, accepted, table)


# -- the extractor's own word --------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["suite2p", "caiman", "nwb"])
def test_what_the_extractor_said_is_known_after_decisions_were_written(kind, plane, caiman, nwb):
    path = {"suite2p": plane, "caiman": caiman}.get(kind) or nwb("nwb_imagemask_rate.nwb")
    options = {"in_place": True} if kind == "nwb" else {}
    before = open_recording(path)
    np.testing.assert_array_equal(extractor_accepted(before, path), before.accepted)
    for seed in (0, 2):
        recording = open_recording(path)
        plan_output(kind, recording, path, decided(before, seed), **options).write()
    after = open_recording(path)
    np.testing.assert_array_equal(extractor_accepted(after, path), before.accepted)
    table = path.parent / "table.csv"
    plan_output("csv", after, path, after.accepted, destination=table).write()
    found = pd.read_csv(table)
    np.testing.assert_array_equal(found["extractor_accepted"], before.accepted)
    np.testing.assert_array_equal(found["accepted"], decided(before, 2))


def test_a_large_file_is_kept_as_the_original_alone(caiman, monkeypatch):
    monkeypatch.setattr("napari_xcebra.io.decisions.backups.LARGE", 1000)
    original = caiman.read_bytes()
    for accepted in ([1, 0, 0, 0], [0, 1, 0, 0]):
        recording = open_recording(caiman)
        plan = plan_output("caiman", recording, caiman, np.array(accepted, bool))
        plan.write()
    assert "is too large to keep" in plan.files[0].sentence
    kept = {path.name for path in caiman.parent.glob("results.hdf5*")}
    assert kept == {"results.hdf5", "results.hdf5.original"}
    restore(caiman)
    assert caiman.read_bytes() == original


def test_a_destination_without_an_ending_is_a_folder(caiman, tmp_path):
    recording = open_recording(caiman)
    for kind in ("csv", "imagej", "caiman"):
        plan = plan_output(
            kind, recording, caiman, recording.accepted, destination=tmp_path / "new"
        )
        assert plan.files[0].path.parent == tmp_path / "new"
        plan.write()
    assert len([p for p in (tmp_path / "new").iterdir() if not p.name.startswith(".")]) == 3


def test_merged_cells_go_to_a_folder_of_their_own_and_are_taken_back(tmp_path):
    folder = write_suite2p(RECORDING, tmp_path / "plane0")
    for name, factor in (("Fneu.npy", 0.1), ("spks.npy", 2.0)):
        np.save(folder / name, factor * np.load(folder / "F.npy"))
    before = {file.name: file.read_bytes() for file in folder.glob("*.npy")}
    recording = open_recording(folder)
    curation = Curation(recording.cell_ids)
    curation.merge([0, 1], into=1)
    curation.merge([3, 4], how="sum")
    accepted = curation.accepted(recording.accepted)
    plan = plan_output("suite2p", recording, folder, accepted, curation.table())
    written = plan.write()
    merged = open_recording(tmp_path / "plane0-merged")
    wanted = merge_cells(recording, curation)
    np.testing.assert_array_equal(merged.accepted, accepted)
    np.testing.assert_array_equal(
        np.bincount(merged.footprints.cell), np.bincount(wanted.footprints.cell)
    )
    for name, factor in (("F.npy", 1), ("Fneu.npy", 0.1), ("spks.npy", 2)):
        plain, made = np.load(folder / "F.npy"), np.load(tmp_path / "plane0-merged" / name)
        np.testing.assert_allclose(made[3], factor * (plain[3] + plain[4]), rtol=1e-4)
        np.testing.assert_allclose(made[[0, 2, 4]], factor * plain[[0, 2, 4]], rtol=1e-4)
    # the folder that was opened keeps its traces, so that decisions still belong to it
    assert open_recording(folder).fingerprint == recording.fingerprint
    assert [p.name for p in folders_at(tmp_path)] == ["plane0"]
    table = pd.read_csv(folder / "napari-xcebra-decisions.csv", keep_default_na=False)
    assert table["merged_into"].astype(str).tolist()[:5] == ["1", "1", "", "3", "3"]
    written.restore()
    assert {file.name: file.read_bytes() for file in folder.glob("*.npy")} == before
    assert not list((tmp_path / "plane0-merged").glob("*.npy"))


def test_properties_of_cells_are_columns_of_the_table(tmp_path):
    cells = {"depth": np.arange(6.0), "region": np.array(["V1", "LM"] * 3), "status": np.ones(6)}
    recording = replace(RECORDING, cells={**RECORDING.cells, **cells})
    path = tmp_path / "decisions.csv"
    plan_output("csv", recording, None, decided(recording), TABLE, SCORES, path).write()
    table = pd.read_csv(path, keep_default_na=False)
    assert table["depth"].tolist() == cells["depth"].tolist()
    assert table["region"].tolist() == cells["region"].tolist()
    assert table["status"].tolist() == TABLE["status"].tolist()
    assert table["cell_status"].tolist() == [1.0] * 6


def test_red_cells_are_written_back_by_their_tags(tmp_path):
    folder = write_suite2p(RECORDING, tmp_path / "plane0")
    red = np.c_[[1, 0, 0, 1, 0, 0], np.linspace(0, 1, 6)]
    np.save(folder / "redcell.npy", red)
    recording = open_recording(folder)
    curation = Curation(recording.cell_ids)
    curation.tag(2, "red")
    curation.tag(3, "not red")
    accepted = np.asarray(recording.accepted)
    written = plan_output("suite2p", recording, folder, accepted, curation.table()).write()
    again = open_recording(folder)
    assert again.cells["red"].astype(int).tolist() == [1, 0, 1, 0, 0, 0]
    np.testing.assert_allclose(again.cells["red_probability"], red[:, 1], rtol=1e-6)
    written.restore()
    np.testing.assert_array_equal(np.load(folder / "redcell.npy"), red)
    # nothing is written where no tag says so
    plan = plan_output("suite2p", recording, folder, accepted, Curation(range(6)).table())
    assert "redcell.npy" not in [change.path.name for change in plan.files]
