"""Cells of several days are proposed to be the same where they are, and nowhere else."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from napari_xcebra.errors import InputError
from napari_xcebra.io.sessions import read_matching
from napari_xcebra.recording import Recording
from napari_xcebra.recording.matching import MISSING, propose_matching

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from days import two_days


@pytest.fixture(scope="module")
def days():
    """Two days 5 µm apart, 30 % of the cells exchanged, and the cell behind each ROI."""
    return two_days(7, cells=150)


def test_pairs_are_right_and_others_are_left_alone(days):
    (one, first), (other, second) = days
    found = propose_matching({"1": one, "2": other})
    a, b = found.matching.ids.T
    right = first[a] == second[b]
    there = len(np.intersect1d(first, second))
    assert right.mean() >= 0.95
    assert right.sum() >= 0.9 * there
    assert len(right) <= there + 3  # 45 cells of each day have no partner
    assert found.pairs["confidence"].between(0.5, 1).all()
    assert "moved by" in found.notes[0]


def test_fields_that_have_nothing_in_common_are_not_matched(days):
    (one, _), _ = days
    (other, _), _ = two_days(8, cells=150)
    found = propose_matching({"1": one, "2": other})
    assert len(found.matching.ids) == 0
    assert "no alignment was found" in found.notes[0]


def test_a_cell_that_is_gone_for_a_day_is_known_when_it_is_back(days):
    (one, _), _ = days
    gone = replace(one, accepted=np.asarray(one.cell_ids) >= 20)
    found = propose_matching({"1": one, "2": gone, "3": one}).matching
    back = found.ids[found.ids[:, 0] < 20]
    assert len(back) == 20
    assert (back[:, 0] == back[:, 2]).all() and (back[:, 1] == MISSING).all()


def test_the_table_is_read_as_those_of_other_programs_are(days, tmp_path):
    (one, _), (other, _) = days
    found = propose_matching({"mon": one, "tue": other})
    path, confidence = found.to_csv(tmp_path / "matches.csv")
    again = read_matching(path)
    assert again.sessions == ("mon", "tue")
    np.testing.assert_array_equal(again.ids, found.matching.ids)
    assert len(confidence.read_text().splitlines()) == 1 + len(found.pairs)


def test_what_cannot_be_compared_is_refused(days):
    (one, _), (other, _) = days
    bare = Recording.from_arrays(np.zeros((5, 3), np.float32), 10.0)
    with pytest.raises(InputError, match="tue has no footprints"):
        propose_matching({"mon": one, "tue": bare})
    with pytest.raises(InputError, match="pixels of other sizes"):
        propose_matching({"mon": one, "tue": replace(other, pixel_size=2.0)})
    with pytest.raises(InputError, match="only one is given"):
        propose_matching({"mon": one})
