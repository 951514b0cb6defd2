"""Sparse matrices are checked before they are used."""

import numpy as np
import pytest
import scipy.sparse

from napari_xcebra.io.containers.hdf5 import sparse_matrix

MATRIX = np.random.default_rng(0).random((5, 4)) * [[0, 1, 1, 0]]
CSC = scipy.sparse.csc_array(MATRIX)


def test_a_matrix_is_as_it_was():
    found = sparse_matrix(CSC.data, CSC.indices, CSC.indptr, CSC.shape)
    np.testing.assert_array_equal(found.toarray(), MATRIX)


@pytest.mark.parametrize(
    ("rows", "ends"),
    [
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
    with pytest.raises(ValueError):
        sparse_matrix(CSC.data, rows, ends, CSC.shape)
