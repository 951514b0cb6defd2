"""Every knob knows its bounds, its choices and its help, and says what is wrong in a sentence."""

import dataclasses

import pytest

from napari_xcebra.errors import InputError
from napari_xcebra.learn.settings import PRESETS, FitSettings

KNOBS = dataclasses.fields(FitSettings)
BOUNDED = [k for k in KNOBS if k.metadata["low"] is not None]
CHOICES = [k for k in KNOBS if FitSettings.choices(k.name)]


def the_sentence(**values):
    with pytest.raises(InputError) as caught:
        FitSettings(**values)
    message = str(caught.value)
    assert message.endswith("needed.") or message.endswith("exceed 1.")
    assert ". " not in message
    return message


@pytest.mark.parametrize("knob", KNOBS, ids=lambda k: k.name)
def test_every_knob_has_help_of_one_line(knob):
    assert len(knob.metadata["help"]) > 8
    assert "\n" not in knob.metadata["help"]


@pytest.mark.parametrize("knob", KNOBS, ids=lambda k: k.name)
def test_every_number_is_bounded_and_its_default_lies_within(knob):
    if knob.type in ("int", "float"):
        assert knob.metadata["low"] <= knob.default <= knob.metadata["high"]


@pytest.mark.parametrize("knob", BOUNDED, ids=lambda k: k.name)
def test_a_number_beyond_its_bounds_is_refused_with_the_bound(knob):
    low, high = knob.metadata["low"], knob.metadata["high"]
    step = 1 if knob.type == "int" else 1e-3 * max(1.0, low)
    assert the_sentence(**{knob.name: low - step}) == (
        f"`{knob.name}` is {low - step}: {low:g} or more is needed."
    )
    assert f"{high:g} or less is needed." in the_sentence(**{knob.name: high + max(step, 1)})


@pytest.mark.parametrize("knob", BOUNDED, ids=lambda k: k.name)
def test_the_bounds_themselves_are_admitted(knob):
    others = {"settle": 0.0, "ramp": 0.0, "lambda_": 1.0}
    for bound in (knob.metadata["low"], knob.metadata["high"]):
        assert getattr(FitSettings(**(others | {knob.name: bound})), knob.name) == bound


@pytest.mark.parametrize("knob", CHOICES, ids=lambda k: k.name)
def test_a_choice_takes_what_it_lists_and_refuses_the_rest(knob):
    for choice in FitSettings.choices(knob.name):
        assert getattr(FitSettings(**{knob.name: choice}), knob.name) == choice
    message = the_sentence(**{knob.name: "Hybrid "})
    assert "'Hybrid '" in message
    assert all(choice in message for choice in FitSettings.choices(knob.name))


def test_the_choices_are_those_of_the_paper_and_more():
    assert FitSettings.choices("mode") == ("hybrid", "behavior", "time", "supervised")
    assert FitSettings.choices("similarity") == ("euclidean", "dot", "power")
    assert FitSettings.choices("steps") == ()


@pytest.mark.parametrize(
    ("knob", "value"),
    [
        ("steps", "many"),
        ("steps", None),
        ("steps", 2.5),
        ("steps", [3]),
        ("learning_rate", "fast"),
        ("learning_rate", None),
        ("seed", float("nan")),
        ("mode", None),
        ("mode", ["hybrid"]),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_with_the_name_and_the_value(knob, value):
    message = the_sentence(**{knob: value})
    assert message.startswith(f"`{knob}` is {value!r}: ")


def test_not_a_number_is_within_no_bounds():
    assert the_sentence(lambda_=float("nan")).startswith("`lambda_` is nan")


def test_whole_numbers_may_come_as_floats_and_floats_as_whole_numbers():
    settings = FitSettings(steps=200.0, lambda_=1)
    assert isinstance(settings.steps, int)
    assert isinstance(settings.lambda_, float)


def test_settling_and_raising_take_no_more_than_all_steps():
    assert "`settle` + `ramp` is 1.3" in the_sentence(settle=0.6, ramp=0.7, lambda_=1)
    assert FitSettings(settle=0.6, ramp=0.4, lambda_=1).ramp == 0.4
    assert "`settle` + `search` is 1.3" in the_sentence(settle=0.6, search=0.7, lambda_="auto")


def test_a_knob_may_take_a_word_beside_numbers():
    assert FitSettings(lambda_="auto").lambda_ == "auto"
    assert FitSettings(lambda_="0.5").lambda_ == 0.5
    assert the_sentence(lambda_="Auto") == "`lambda_` is 'Auto': auto or a number is needed."


def test_settings_survive_their_file():
    settings = FitSettings(mode="time", steps=7, lambda_=0.25, accepted_only=False)
    assert FitSettings.from_dict(settings.as_dict()) == settings


def test_a_file_of_a_later_version_is_read_without_the_knobs_not_known_here():
    values = FitSettings(steps=7).as_dict() | {"quantum": True}
    assert FitSettings.from_dict(values) == FitSettings(steps=7)


def test_a_file_of_an_earlier_version_gets_the_defaults_of_new_knobs():
    values = FitSettings(steps=7).as_dict()
    del values["time_latents"], values["bound"]
    assert FitSettings.from_dict(values) == FitSettings(steps=7)


def test_settings_cannot_be_changed_after_they_were_checked():
    with pytest.raises(dataclasses.FrozenInstanceError):
        FitSettings().steps = -1


@pytest.mark.parametrize(
    ("knob", "value"),
    [
        ("accepted_only", "no"),
        ("accepted_only", None),
        ("device", None),
        ("steps", float("inf")),
        ("learning_rate", 10**400),
    ],
)
def test_a_value_of_another_kind_is_refused_not_converted(knob, value):
    with pytest.raises(InputError, match=f"`{knob}` is .* is needed"):
        FitSettings(**{knob: value})


def test_the_published_algorithm_has_none_of_what_was_added():
    paper = FitSettings.paper()
    assert (paper.readout, paper.hide, paper.smoothing, paper.decay) == (0, 0, 0, 1)
    assert not (paper.include_positive or paper.deconvolve or paper.balance)
    assert (paper.temperature, paper.time_weights, paper.network) == (
        "fixed", "fixed", "published",
    )  # fmt: skip
    assert paper.time_offset == paper.label_offset == paper.temperature_value == 1
    assert FitSettings.paper(steps=20_000, batch_size=5000).batch_size == 5000


def test_every_preset_takes_what_is_to_be_different():
    for preset in PRESETS.values():
        assert preset(seed=7).seed == 7
    assert PRESETS["default"]() == FitSettings()
