"""Recordings to write to."""

import shutil

import pytest
from written_files import suite2p_folder


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    return suite2p_folder(tmp_path_factory.mktemp("template") / "suite2p")


@pytest.fixture
def folder(template, tmp_path):
    return shutil.copytree(template, tmp_path / "suite2p")
