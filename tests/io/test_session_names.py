"""Sessions are called by their day rather than by files that have the same name everywhere."""

import pytest

from napari_xcebra.io.sessions import session_names


@pytest.mark.parametrize(
    ("sources", "names"),
    [
        (["/m1/2024-05-01/suite2p", "/m1/2024-05-02/suite2p"], ["2024-05-01", "2024-05-02"]),
        (["m1_20240501.nwb", "m1_20240502.nwb"], ["20240501", "20240502"]),
        (["m1/day 1/F.npy", "m1/day 12/F.npy"], ["day 1", "day 12"]),
        (["m1/before/F.npy", "m1/after/F.npy"], ["before", "after"]),
        (["a.nwb", "b.nwb"], ["a", "b"]),
        (["a.nwb", "a.nwb"], ["a.nwb (1)", "a.nwb (2)"]),
        (["m1/2024-05-01/a.nwb", "m1/2024-05-01/b.nwb"], ["a", "b"]),
    ],
)
def test_sessions_are_called_by_what_tells_them_apart(sources, names):
    assert session_names(sources) == names
