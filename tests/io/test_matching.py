"""Which cells of several sessions are the same, from tables, CellReg and ROICaT."""

import json
import pickle
from dataclasses import replace

import h5py
import numpy as np
import pytest
from scipy.io import savemat

from napari_xcebra.errors import InputError
from napari_xcebra.io.sessions import read_matching
from napari_xcebra.recording import Recording
from napari_xcebra.recording.matching import Matching


def recording(ids):
    return Recording(np.zeros((5, len(ids)), np.float32), 10.0, cell_ids=np.array(ids))


SESSIONS = {"mon": recording([10, 20, 30]), "tue": recording([5, 6, 7, 8])}
EXPECTED = [[10, 6], [20, -1], [30, 5]]


def test_a_table_has_a_column_a_session_by_name(tmp_path):
    file = tmp_path / "cells.csv"
    file.write_text("tue,mon\n6,10\n,20\n5,30\n")
    found = read_matching(file).of(SESSIONS)
    assert found.sessions == ("mon", "tue")
    assert found.ids.tolist() == EXPECTED
    assert found.between("mon", "tue") == {10: 6, 30: 5}
    assert found.repeated().ids.tolist() == [[10, 6], [30, 5]]


def test_columns_of_other_names_are_taken_in_their_order(tmp_path):
    file = tmp_path / "cells.tsv"
    file.write_text("a\tb\n10\t6\n20\t-1\n30\t5\n")
    assert read_matching(file).of(SESSIONS).ids.tolist() == EXPECTED


@pytest.mark.parametrize("version", ["7", "7.3"])
def test_cellreg_counts_rois_from_one(tmp_path, version):
    counted = np.array([[1, 2], [2, 0], [3, 1]], float)
    file = tmp_path / "cellRegistered_20260101.mat"
    if version == "7":
        savemat(file, {"cell_registered_struct": {"cell_to_index_map": counted, "other": "text"}})
    else:
        with h5py.File(file, "w", userblock_size=512) as made:
            struct = made.create_group("cell_registered_struct")
            struct["cell_to_index_map"] = counted.T  # as MATLAB lays it down
        with file.open("r+b") as opened:
            opened.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    assert read_matching(file).of(SESSIONS).ids.tolist() == EXPECTED


def test_roicat_gives_every_roi_a_cluster(tmp_path):
    file = tmp_path / "mouse.tracking.results_clusters.json"
    labels = [[3, 8, 1], [1, 3, -1, -1]]
    file.write_text(json.dumps({"labels": [*labels[0], *labels[1]], "labels_bySession": labels}))
    found = read_matching(file).of(SESSIONS)
    assert sorted(found.ids.tolist()) == EXPECTED
    file.write_text(json.dumps({"clusters": {"labels_bySession": labels}}))
    assert sorted(read_matching(file).of(SESSIONS).ids.tolist()) == EXPECTED


def test_files_that_could_run_code_are_not_opened(tmp_path):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("code of a file was run",))

    for name in ("roicat.tracking.results.pkl", "x.richfile"):
        (tmp_path / name).write_bytes(pickle.dumps(Trap()))
        with pytest.raises(InputError, match=r"results_clusters\.json beside it"):
            read_matching(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "mon,tue\n10,6\n10,5\n", "has cell 10 of session 'mon' in 2 rows"),
        ("a.csv", "mon,tue\n10,six\n", "has text in column 'tue'"),
        ("a.csv", "mon,tue\n10.5,6\n", "not whole"),
        ("a.csv", "mon,tue\n11,6\n", "names cell 11 of session 'mon'"),
        ("a.csv", "mon,wed\n10,6\n", "is for the sessions mon, wed, but these are mon, tue"),
        ("a.csv", "a,b,c\n1,2,3\n", "the same names are needed, or as many sessions"),
        ("a.json", "[1, 2", "cannot be read as JSON"),
        ("a.json", '{"labels": [1]}', "has no labels_bySession"),
        ("a.json", '{"labels_bySession": [[1, 1], [2]]}', "has cluster 1 twice in session 1"),
        ("a.json", '{"labels_bySession": [[0, 1, 2, 3], [0]]}', "names cell 3 of session 'mon'"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=said):
        read_matching(tmp_path / name).of(SESSIONS)


def test_a_mat_file_of_something_else_is_refused(tmp_path):
    savemat(tmp_path / "other.mat", {"traces": np.zeros((3, 4))})
    with pytest.raises(InputError, match="no cell_to_index_map"):
        read_matching(tmp_path / "other.mat")
    with pytest.raises(InputError, match="does not exist"):
        read_matching(tmp_path / "nothing.csv")


def test_a_matching_needs_a_column_a_session():
    with pytest.raises(InputError, match="a column for each of 3 sessions"):
        replace(Matching(("a", "b"), np.zeros((1, 2), int)), sessions=("a", "b", "c"))
