"""The plugin as napari sees it."""

from pathlib import Path

from npe2 import PluginManifest

import napari_xcebra

MANIFEST = Path(napari_xcebra.__file__).with_name("napari.yaml")
ROOT_LINK = Path(__file__).parents[1] / "napari.yaml"


def test_the_installed_package_offers_a_valid_manifest():
    manifest = PluginManifest.from_distribution("napari-xcebra")

    assert manifest.display_name == "napari-xcebra"
    assert manifest.package_version == napari_xcebra.__version__


def test_every_command_points_at_something_that_can_be_imported():
    PluginManifest.from_file(MANIFEST).validate_imports()


def test_every_contribution_uses_a_command_of_this_manifest():
    contributions = PluginManifest.from_file(MANIFEST).contributions
    commands = {command.id for command in contributions.commands}
    used = [
        *contributions.sample_data,
        *contributions.widgets,
        *contributions.readers,
        *(item for items in contributions.menus.values() for item in items),
    ]

    assert {contribution.command for contribution in used} == commands


def test_the_plugins_menu_lists_the_docks_in_the_order_of_work():
    widgets = PluginManifest.from_file(MANIFEST).contributions.widgets

    names = [widget.display_name for widget in widgets]
    assert names == ["Workspace", "Recording", "Train", "Attribution", "Curate", "Cells", "Video"]


def test_no_reader_stands_between_napari_and_plain_images_or_tables():
    (reader,) = PluginManifest.from_file(MANIFEST).contributions.readers

    assert reader.accepts_directories
    assert not {"*.npy", "*.csv", "*.tif", "*.tiff", "*.zip", "*"} & set(reader.filename_patterns)


def test_the_link_at_the_root_is_the_manifest_that_is_installed():
    assert ROOT_LINK.is_symlink()
    assert not ROOT_LINK.readlink().is_absolute()
    assert ROOT_LINK.resolve() == MANIFEST.resolve()
