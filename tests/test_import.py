"""`import napari_xcebra` is cheap, and gives the names users type."""

import importlib.util
import subprocess
import sys

import pytest

import napari_xcebra

HEAVY = {"torch", "numpy", "napari", "magicgui", "qtpy", "PyQt5", "PyQt6", "PySide2", "PySide6"}


def modules_loaded_by(statement: str) -> set[str]:
    """Top-level modules in a fresh interpreter after `statement`."""
    program = f"{statement}; import sys; print(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=250
    )
    return set(done.stdout.split())


def test_importing_the_package_imports_neither_torch_nor_qt_nor_napari():
    assert modules_loaded_by("import napari_xcebra") & HEAVY == set()


def test_listing_the_public_names_imports_nothing_either():
    assert modules_loaded_by("import napari_xcebra; dir(napari_xcebra)") & HEAVY == set()


def test_statistics_of_cells_take_no_torch():
    loaded = modules_loaded_by("import napari_xcebra; napari_xcebra.cell_statistics")
    assert loaded & (HEAVY - {"numpy"}) == set()


def test_the_window_takes_no_torch():
    docks = ("recording", "train", "attribution", "curate", "cells")
    modules = [f"napari_xcebra.widgets.docks.{dock}.dock" for dock in docks]
    loaded = modules_loaded_by(f"import {', '.join(modules)}, napari_xcebra.widgets.app.workspace")
    assert "qtpy" in loaded
    assert "torch" not in loaded
    # what only a recording needs: a dock would take half as long again to open
    waits_for = loaded & {"pandas", "pyarrow", "matplotlib"}
    assert waits_for <= modules_loaded_by("import napari.viewer")


def test_running_things_elsewhere_takes_no_torch_here():
    loaded = modules_loaded_by("import napari_xcebra.jobs")
    assert loaded & (HEAVY - {"numpy"}) == set()


@pytest.mark.parametrize("name", napari_xcebra.__all__)
def test_every_public_name_exists(name):
    assert getattr(napari_xcebra, name) is not None


def test_every_public_name_is_listed():
    assert set(napari_xcebra.__all__) <= set(dir(napari_xcebra))


@pytest.mark.parametrize("name", napari_xcebra.__all__)
def test_no_submodule_is_called_like_a_public_name(name):
    assert importlib.util.find_spec(f"napari_xcebra.{name}") is None


def test_fit_stays_the_function_after_its_package_is_imported():
    import napari_xcebra.attribution
    import napari_xcebra.learn

    assert callable(napari_xcebra.fit)
    assert callable(napari_xcebra.attribute)


def test_an_unknown_name_is_an_attribute_error_that_says_the_name():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = napari_xcebra.no_such_name
