"""Scores against a known truth."""

import numpy as np
import pytest

from napari_xcebra.attribution import auroc
from napari_xcebra.errors import InputError


def test_auroc_counts_the_pairs_in_the_right_order():
    assert auroc([1, 2, 3, 4], [0, 1, 0, 1]) == pytest.approx(0.75)
    assert auroc([2, 2], [0, 1]) == pytest.approx(0.5)


def test_cells_without_a_score_are_left_out():
    assert auroc([1, np.nan, 3, np.nan], [False, False, True, True]) == 1.0


@pytest.mark.parametrize("truth", [[True, True, False], [False, False, True]])
def test_a_truth_with_one_kind_of_cells_gets_a_sentence(truth):
    with pytest.raises(InputError, match="both cells that do and cells that do not"):
        auroc([1.0, 2.0, np.nan], truth)


def test_scores_and_truth_of_different_lengths_get_a_sentence():
    with pytest.raises(InputError, match="one value a cell"):
        auroc([1.0, 2.0], [True, False, True])
