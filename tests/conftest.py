"""What every test relies on."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import settings

# The first call may import torch; how long an example takes says nothing about the code.
# A change is judged by the same examples each time; --hypothesis-profile=search looks for others.
settings.register_profile("napari-xcebra", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=2000)
settings.load_profile("napari-xcebra")

_OWN_SCREEN = Path(__file__).parents[1] / ".ci" / "own-screen"


def pytest_configure(config):
    """A screen for each process: windows of others would take its keyboard and clipboard."""
    if hasattr(config, "workerinput") and shutil.which("Xvfb"):
        # it ends when its input is closed, however this process ends
        screen = subprocess.Popen(_OWN_SCREEN, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        config.add_cleanup(lambda: screen.communicate())
        os.environ["DISPLAY"] = screen.stdout.readline().decode().strip()


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """One thread, here and in child processes: the same seed gives the same numbers, and a busy
    machine does not make a step many times slower."""
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch  # here, because collecting tests should not wait for it

    torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def files_read_here():
    """Files are read in the process of the test, to be quick; `tests/io/test_guard.py` has the
    limited child read them, as users do."""
    os.environ["NAPARI_XCEBRA_GUARDED"] = "0"


@pytest.fixture(scope="session", autouse=True)
def logs_of_tests(tmp_path_factory):
    """Logs go to a folder of the tests, here and in child processes."""
    os.environ["NAPARI_XCEBRA_LOGS"] = str(tmp_path_factory.mktemp("logs"))


@pytest.fixture(scope="session", autouse=True)
def scores_kept_by_tests(tmp_path_factory):
    """Scores over time are kept in a folder of the tests, here and in child processes."""
    os.environ["NAPARI_XCEBRA_CACHE"] = str(tmp_path_factory.mktemp("scores"))


@pytest.fixture(scope="session", autouse=True)
def lists_of_tests(tmp_path_factory):
    """What is being written is remembered in a folder of the tests, here and in child processes."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
