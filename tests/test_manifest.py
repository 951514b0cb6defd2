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
    commands = {command.id for command in contributions.commands or []}
    samples = contributions.sample_data or []

    assert [sample.display_name for sample in samples] == ["Simulated imaging field"]
    assert {sample.command for sample in samples} <= commands


def test_the_link_at_the_root_is_the_manifest_that_is_installed():
    assert ROOT_LINK.is_symlink()
    assert not ROOT_LINK.readlink().is_absolute()
    assert ROOT_LINK.resolve() == MANIFEST.resolve()
