"""napari's Preferences show our settings, keep them, and the docks take them up."""

import os
from pathlib import Path

import pytest
from npe2 import PluginManifest
from qtpy.QtWidgets import QApplication, QPushButton

import napari_xcebra
from napari_xcebra.curation.journal import DATA_DIRECTORY
from napari_xcebra.support.logs import LEVEL, LEVELS
from napari_xcebra.widgets.controls.notice import Notice
from napari_xcebra.widgets.docks.curate.dock import CurateDock
from napari_xcebra.widgets.docks.curate.keys import (
    ACTIONS,
    _chosen_keys,
    _default_keys,
    _keep_keys,
)
from napari_xcebra.widgets.docks.train.dock import TrainDock
from napari_xcebra.widgets.state import preferences
from napari_xcebra.widgets.state.shown import COLORMAP, COLORMAPS
from napari_xcebra.widgets.window import services_of

pytestmark = [pytest.mark.gui, pytest.mark.usefixtures("warm_child")]
MANIFEST = Path(napari_xcebra.__file__).with_name("napari.yaml")
ASKED = preferences._shown_by_napari


@pytest.fixture
def shown(plugin_settings, npe2pm, monkeypatch):
    """Settings as napari keeps them, in a folder of this test."""
    npe2pm.register(PluginManifest.from_file(MANIFEST))
    monkeypatch.setattr(preferences, "_shown_by_napari", ASKED)
    settings = ASKED()
    assert settings is not None
    return settings


def test_the_manifest_has_the_defaults_and_choices_of_the_program():
    groups = PluginManifest.from_file(MANIFEST).contributions.configurations
    general, keys = groups["general"].properties, groups["keys"].properties
    assert general["device"].default == "auto"
    assert tuple(general["colormap"].enum) == COLORMAPS
    assert general["colormap"].default == COLORMAP
    assert tuple(general["log_level"].enum) == LEVELS
    assert {n: p.default for n, p in keys.items()} == {a.setting: a.key for a in ACTIONS}
    assert {n: p.title for n, p in keys.items()} == {a.setting: a.meaning for a in ACTIONS}


def test_docks_begin_with_what_is_preferred(shown, make_napari_viewer, monkeypatch, tmp_path):
    monkeypatch.delenv(DATA_DIRECTORY, raising=False)
    shown.general.device = "cpu"
    shown.general.colormap = "magma"
    shown.general.data_directory = str(tmp_path / "decisions")
    viewer = make_napari_viewer()
    state = services_of(viewer).state
    dock = TrainDock(viewer)
    viewer.window.add_dock_widget(dock, name="Train")
    assert dock.form.value.device == "cpu"
    assert state.shown.colormap == "magma"
    assert os.environ[DATA_DIRECTORY] == str(tmp_path / "decisions")
    shown.general.log_level = "error"  # taken up while the window is open
    assert os.environ[LEVEL] == "error"
    shown.general.data_directory = ""
    assert DATA_DIRECTORY not in os.environ
    services_of(state.viewer).close()


def test_keys_are_the_same_in_the_dock_and_in_the_preferences(shown, make_napari_viewer):
    viewer = make_napari_viewer()
    dock = CurateDock(viewer)
    viewer.window.add_dock_widget(dock, name="Curate")
    assert _chosen_keys() == _default_keys()
    dock.keys.list.changed.emit({**_default_keys(), "accept": "Y", "reject": "A"})
    assert (shown.keys.accept, shown.keys.reject) == ("Y", "A")
    shown.keys.reject = "X"
    assert dock.keys.list.buttons["reject"].text() == "X"
    assert dock.keys.list.buttons["accept"].text() == "Y"
    services_of(viewer).close()


def test_keys_that_are_none_or_do_not_go_together_fall_back(shown):
    shown.keys.accept = "no key at all"
    assert _chosen_keys()["accept"] == "A"
    shown.keys.accept = "Space"  # presses buttons all over the window
    assert _chosen_keys()["accept"] == "A"
    shown.keys.accept = "R"
    assert _chosen_keys() == _default_keys()


def test_a_napari_that_shows_no_settings_of_plugins_keeps_keys_all_the_same():
    assert preferences._shown_by_napari() is None
    _keep_keys({**_default_keys(), "accept": "Y"})
    assert _chosen_keys()["accept"] == "Y"


def test_an_unforeseen_error_offers_diagnostics_to_copy(qtbot):
    notice = Notice()
    qtbot.addWidget(notice)
    notice.say("The file has no cells.", "problem")
    (button,) = [b for b in notice.findChildren(QPushButton) if b.text() == "Copy diagnostics"]
    assert button.isHidden()
    notice.say("Something unforeseen went wrong.", "problem", 'File "/home/ann/x.py", line 1')
    assert not button.isHidden()
    button.click()
    copied = QApplication.clipboard().text()
    assert "Something unforeseen went wrong." in copied
    assert 'File "x.py", line 1' in copied
    assert button.text() == "Copied"
