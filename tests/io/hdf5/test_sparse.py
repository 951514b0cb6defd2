"""Sparse matrices are checked before they are used."""

import numpy as np
import pytest
import scipy.sparse

from napari_xcebra.io.hdf5.traces import from_columns

MATRIX = np.random.default_rng(0).random((5, 4)) * [[0, 1, 1, 0]]
CSC = scipy.sparse.csc_array(MATRIX)


def test_a_matrix_is_as_it_was():
    found = from_columns(CSC.data, CSC.indices, CSC.indptr, CSC.shape)
    np.testing.assert_array_equal(found.dense(), MATRIX)
    np.testing.assert_allclose(found.times(np.arange(4.0)), MATRIX @ np.arange(4.0))


@pytest.mark.parametrize(
    ("rows", "ends"),
    [
        (CSC.indices, [0, 1, 2, 3, 0]),  # which scipy's own check lets pass
        (CSC.indices, [0, 5, 3, 10, 10]),
        (CSC.indices, [0, 0, 5, 10, 11]),
        (CSC.indices, [1, 1, 5, 10, 10]),
        (CSC.indices, [0, 0, 5, 10]),
        (CSC.indices + 1, CSC.indptr),
        (CSC.indices - 1, CSC.indptr),
        (CSC.indices[:-1], CSC.indptr),
    ],
)
def test_parts_that_do_not_belong_together_are_refused(rows, ends):
    with pytest.raises(ValueError, match="sparse matrix"):
        from_columns(CSC.data, rows, ends, CSC.shape)


def test_a_matrix_too_large_with_its_zeros_stays_sparse():
    assert from_columns([], [], np.zeros(10**5 + 1), (10**9, 10**5)).dense() is None
