"""Files that other programs wrote, where they are at hand."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data() -> Path:
    folder = Path(__file__).resolve().parents[2].parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the recordings of other programs are not at hand")
    return folder
