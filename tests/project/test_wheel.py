"""The wheel as it goes to the index: everything that is needed, and nothing else."""

import subprocess
import sys
from email.message import Message
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
QT_BINDINGS = ("pyqt5", "pyqt6", "pyside2", "pyside6")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of this working tree, built with what is installed: no network is needed."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", str(folder)]
    done = subprocess.run([*command, str(ROOT)], capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def names(wheel) -> set[str]:
    return set(ZipFile(wheel).namelist())


@pytest.fixture(scope="module")
def metadata(wheel, names) -> Message:
    (name,) = (name for name in names if name.endswith(".dist-info/METADATA"))
    return Parser().parsestr(ZipFile(wheel).read(name).decode())


def test_every_module_of_the_source_is_in_the_wheel(names):
    source = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*.py")}

    assert source <= names
    assert "napari_xcebra/readers.py" in source


def test_manifest_and_typing_marker_are_in_the_wheel(names):
    assert {"napari_xcebra/napari.yaml", "napari_xcebra/py.typed"} <= names


def test_no_tests_benchmarks_or_pictures_are_in_the_wheel(names):
    other = {name for name in names if not name.startswith(("napari_xcebra/", "napari_xcebra-"))}

    assert other == set()
    assert not [name for name in names if name.endswith((".png", ".npy", ".npz", ".pyc"))]


def test_the_licence_is_in_the_wheel(names):
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_napari_and_the_shell_find_the_plugin_by_its_entry_points(wheel, names):
    (name,) = (name for name in names if name.endswith("entry_points.txt"))
    entries = ZipFile(wheel).read(name).decode()

    assert "[napari.manifest]\nnapari-xcebra = napari_xcebra:napari.yaml" in entries
    assert "[console_scripts]\nnapari-xcebra = napari_xcebra.cli:main" in entries


def test_which_qt_binding_is_used_stays_the_choice_of_the_user(metadata):
    plain = [need for need in metadata.get_all("Requires-Dist", []) if "extra ==" not in need]

    assert plain
    assert not [need for need in plain if need.lower().startswith(QT_BINDINGS)]


def test_the_hub_finds_what_it_shows(metadata):
    assert "Framework :: napari" in metadata.get_all("Classifier", [])
    labels = {url.split(",")[0] for url in metadata.get_all("Project-URL", [])}
    assert {"Source Code", "Documentation", "Bug Tracker", "User Support"} <= labels
    assert metadata["Summary"]
    assert metadata["License-Expression"] == "BSD-3-Clause"
    assert metadata["Description-Content-Type"] == "text/markdown"


def test_the_index_can_render_the_description(wheel):
    check = [sys.executable, "-m", "twine", "check", "--strict", str(wheel)]
    done = subprocess.run(check, capture_output=True, text=True, timeout=250)

    assert done.returncode == 0, done.stdout + done.stderr
