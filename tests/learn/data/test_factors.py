import numpy as np
import pytest
from quick_settings import quick

from napari_xcebra.errors import InputError
from napari_xcebra.learn import Factor, Training, fit
from napari_xcebra.learn.data.factors import TIME
from napari_xcebra.recording import Recording


def by_name(training):
    return {part.name: part for part in training.parts}


@pytest.mark.parametrize("name", ["time", "step", "penalty", "lambda", ""])
def test_a_factor_may_not_take_a_name_the_program_uses(recording, name):
    with pytest.raises(InputError, match="it needs a name"):
        Training(recording, {name: ["z2"]}, quick())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"latents": 0}, "0 latents: 1 or more"),
        ({"latents": 2.5}, "2.5 latents: 1 or more"),
        ({"latents": "3"}, "'3' latents: 1 or more"),
        ({"similarity": "cosine"}, "similarity 'cosine': one of euclidean, dot, power"),
        ({"temperature": 0.0}, "temperature 0.0: > 0"),
        ({"temperature": -1.0}, "temperature -1.0: > 0"),
    ],
)
def test_an_odd_factor_gets_a_sentence(recording, change, words):
    with pytest.raises(InputError, match=words):
        Training(recording, {"z2": Factor(["z2"], **change)}, quick())


def test_factors_need_names(recording):
    with pytest.raises(InputError, match="a mapping of names to variables"):
        Training(recording, ["z2"], quick())


def test_a_variable_may_be_named_without_a_list(recording):
    assert Factor("z2").variables == ("z2",)
    assert by_name(Training(recording, {"a": "z2"}, quick()))["a"].variables == ("z2",)


def test_a_slow_label_steps_over_more_frames_than_a_fast_one():
    rng = np.random.default_rng(0)
    t = np.arange(3000)
    behavior = {"slow": np.sin(t / 100), "fast": np.sin(t / 4)}
    recording = Recording.from_arrays(rng.normal(size=(3000, 12)), 10.0, behavior)
    parts = by_name(Training(recording, {"a": ["slow"], "b": ["fast"]}, quick()))
    assert parts["a"].offset > 10 > parts["b"].offset
    assert parts[TIME].offset == parts["a"].offset
    # what moves further over a time pair counts less there
    assert parts["b"].time_weight < parts["a"].time_weight == 1


def test_a_fit_that_could_not_be_measured_is_refused_before_training():
    rng = np.random.default_rng(0)
    context = np.arange(3000) // 300
    recording = Recording.from_arrays(rng.normal(size=(3000, 12)), 10.0, {"context": context})
    reports = []
    with pytest.raises(InputError, match="no two held-out blocks share"):
        fit(recording, {"a": ["context"]}, quick(), on_progress=reports.append)
    assert not reports
