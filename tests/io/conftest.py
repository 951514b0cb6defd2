"""Files that other programs wrote, where they are at hand, and the limited child for damaged ones.

Libraries may crash over those.
"""

from pathlib import Path

import pytest

from napari_xcebra.io import guard


@pytest.fixture(scope="session")
def guarded():
    """Calls a function of a path, and of what follows it, in the limited child."""

    def call(function, path, *more):
        return guard.read(function, path, *more, paths=(path,), guarded=True)

    return call


@pytest.fixture(scope="session")
def shared_data() -> Path:
    folder = Path(__file__).resolve().parents[2].parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the recordings of other programs are not at hand")
    return folder
