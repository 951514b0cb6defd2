"""A simulation is only worth something if its truth fits its recording."""

import numpy as np
import pytest

from napari_xcebra.errors import InputError
from napari_xcebra.recording import Recording, Variable
from napari_xcebra.simulate import Simulation


@pytest.fixture
def recording():
    speed = Variable("speed", np.arange(20.0))
    return Recording(traces=np.ones((20, 3)), rate=10.0, behavior={"speed": speed})


def test_truth_has_one_answer_for_each_cell(recording):
    with pytest.raises(InputError, match=r"truth\['speed'\] has shape \(4,\).*\(3,\) is needed"):
        Simulation(recording, {"speed": np.ones(4, bool)}, {"speed": ("speed",)})


def test_hidden_states_are_on_the_clock_of_the_recording(recording):
    with pytest.raises(InputError, match="hidden"):
        Simulation(recording, {}, {}, hidden={"arousal": np.zeros(19)})


def test_suggested_factors_exist_in_the_recording(recording):
    with pytest.raises(InputError, match="position"):
        Simulation(recording, {}, {"place": ("position",)})


def test_the_truth_cannot_be_exchanged_by_accident(recording):
    simulation = Simulation(recording, {"speed": np.ones(3, bool)}, {"speed": ("speed",)})
    with pytest.raises(TypeError):
        simulation.truth["speed"] = np.zeros(3, bool)
