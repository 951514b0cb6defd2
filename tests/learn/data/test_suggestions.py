"""The form begins with factors that make sense for the recording."""

import numpy as np
import pytest

from napari_xcebra.learn.data.factors import latents_for, suggested_factors, why_not
from napari_xcebra.recording import Recording, Variable


def recording_of(**behavior):
    rng = np.random.default_rng(0)
    variables = {
        name: values if isinstance(values, Variable) else rng.normal(size=100)
        for name, values in behavior.items()
    }
    return Recording.from_arrays(rng.normal(size=(100, 4)), 10.0, variables)


def suggested(*names):
    recording = recording_of(**dict.fromkeys(names))
    return {name: list(f.variables) for name, f in suggested_factors(recording).items()}


@pytest.mark.parametrize(
    ("names", "factors"),
    [
        (("x_cm", "y_cm"), {"position": ["x_cm", "y_cm"]}),
        (("x", "y", "z"), {"position": ["x", "y", "z"]}),
        (("pos_x", "pos_y"), {"pos": ["pos_x", "pos_y"]}),
        (("nose_x_px", "nose_y_px"), {"nose": ["nose_x_px", "nose_y_px"]}),
        (("heading_rad",), {"heading": ["heading_rad"]}),
        (("speed_cm_s",), {"speed": ["speed_cm_s"]}),
        (("lick",), {"lick": ["lick"]}),
        (("xylem",), {"xylem": ["xylem"]}),
        # what is called by its unit alone is no position
        (("degrees",), {"degrees": ["degrees"]}),
        (("rad",), {"rad": ["rad"]}),
        (("_deg", "mV"), {"_deg": ["_deg"], "mV": ["mV"]}),
        (("x_cm_s", "y_cm_s"), {"x_y_cm_s": ["x_cm_s", "y_cm_s"]}),
        (("x_deg", "y_deg"), {"x_y_deg": ["x_deg", "y_deg"]}),
    ],
)
def test_axes_of_one_place_go_together_and_units_are_left_out(names, factors):
    assert suggested(*names) == factors


def test_a_name_that_has_a_meaning_of_its_own_is_avoided():
    assert list(suggested("time")) == ["time variable"]


def test_two_factors_never_share_a_name():
    assert sorted(suggested("speed_cm_s", "speed_m_s")) == ["speed", "speed 2"]


def test_what_never_changes_is_not_suggested():
    recording = recording_of(still=Variable("still", np.ones(100)), moving=None)
    assert list(suggested_factors(recording)) == ["moving"]
    assert why_not(recording.variable("still")) == "never changes"


def test_what_is_hardly_known_is_not_suggested():
    values = np.full(100, np.nan)
    values[:3] = [0, 1, 2]
    recording = recording_of(rare=Variable("rare", values))
    assert suggested_factors(recording) == {}
    assert "5 %" in why_not(recording.variable("rare"))


def test_an_angle_takes_two_latents():
    angle = Variable("angle", np.linspace(0, 6, 100), "circular")
    recording = recording_of(angle=angle, x=None)
    assert latents_for(recording, ["angle", "x"]) == 3


def test_a_category_takes_one_less_than_its_values():
    context = Variable("context", np.arange(100) % 3, "discrete")
    recording = recording_of(context=context)
    assert latents_for(recording, ["context"]) == 2
