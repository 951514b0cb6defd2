"""The samples open in napari as what they claim to be, ready to train on."""

import threading
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from napari.layers import Image, Labels, Layer
from qtpy.QtCore import QTimer

from napari_xcebra import readers
from napari_xcebra.readers import SAMPLES
from napari_xcebra.widgets.state.state import KEY, role_of


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """What is claimed here does not take as many frames as training does."""
    monkeypatch.setattr(readers, "FRAMES", 300)


@pytest.fixture(params=SAMPLES)
def layers(request):
    return [Layer.create(*layer) for layer in getattr(readers, request.param)()]


def test_every_sample_has_cells_on_top_and_behaviour_to_train_on(layers):
    cells = layers[-1]
    recording = cells.metadata[KEY]["value"]

    assert isinstance(cells, Labels)
    np.testing.assert_array_equal(np.unique(cells.data), np.arange(recording.n_cells + 1))
    assert recording.behavior
    for variable in recording.behavior.values():
        # within a trial, a choice is known from when it is made
        assert variable.known.all() or recording.trials is not None
        assert variable.known.any()
    for image in (layer for layer in layers if role_of(layer) != "outlines"):
        assert isinstance(image, Labels if image is cells else Image)
        assert image.data.shape[-2:] == cells.data.shape


def test_pointing_at_a_cell_tells_what_it_was_made_to_carry(layers):
    carries = layers[-1].features["carries"]

    assert pd.isna(carries[0])
    assert set(carries[1:]) > {"nothing"}


def test_the_animal_has_rois_that_are_no_cells_and_they_are_drawn_grey():
    cells = Layer.create(*readers.navigating_animal()[-1])
    accepted = np.asarray(cells.metadata[KEY]["value"].accepted)

    assert accepted.sum() == 200
    assert (~accepted).sum() == 20
    colors = np.asarray(cells.colormap.colors)[1:]
    assert (np.ptp(colors[~accepted, :3], axis=1) == 0).all()
    assert (colors[~accepted, 3] < colors[accepted, 3].min()).all()


def test_variables_of_the_hard_case_go_together():
    recording = readers.SAMPLES["hard_case"].make()
    position = recording.behavior["position"].values
    from_wall = np.minimum(position, 1 - position).min(axis=1)

    assert np.corrcoef(from_wall, recording.behavior["speed"].values[:, 0])[0, 1] > 0.4


@pytest.mark.parametrize(
    ("sample", "cells", "variables"),
    [
        ("belt_task", 120, ["position", "speed", "lick"]),
        ("choice_task", 110, ["stimulus", "choice", "outcome", "running"]),
    ],
)
def test_a_task_has_its_cells_and_variables(sample, cells, variables):
    recording = SAMPLES[sample].make()

    assert recording.n_cells == cells
    assert f"{cells} cells" in SAMPLES[sample].help
    assert [n for n, v in recording.behavior.items() if v.kind != "event"] == variables
    assert set(variables) < set(" and ".join(recording.cells["carries"]).split(" and "))


def test_the_menus_and_the_dock_call_the_samples_the_same():
    from pathlib import Path

    from npe2 import PluginManifest

    manifest = PluginManifest.from_file(Path(readers.__file__).with_name("napari.yaml"))
    named = {sample.key: sample.display_name for sample in manifest.contributions.sample_data}

    assert named == {key: sample.title for key, sample in SAMPLES.items()}


@pytest.mark.gui
def test_a_sample_of_the_menu_is_made_while_the_window_stays_alive(make_napari_viewer, monkeypatch):
    viewer, drawn, sample = make_napari_viewer(show=True), threading.Event(), SAMPLES["box_model"]

    def make():
        assert drawn.wait(30), "the window does nothing while it waits"
        return sample.make()

    monkeypatch.setitem(SAMPLES, "box_model", replace(sample, make=make))
    QTimer.singleShot(500, drawn.set)
    viewer.open_sample("napari-xcebra", "box_model")
    assert "cells" in viewer.layers
