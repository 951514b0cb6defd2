"""Variables are decoded from held-out frames, in their own units, and beside what chance gives."""

import json

import numpy as np
import pytest
from quick_settings import quick

from napari_xcebra.learn import fit
from napari_xcebra.learn.quality.decoding import (
    _linear_decoder,
    _nearest,
    _neighbour_decoder,
    _shifts,
    _Target,
    embedding_quality,
)
from napari_xcebra.recording import Recording, Variable

RNG = np.random.default_rng(0)
HALF = np.arange(500), np.arange(500, 1000)


def decoded(target, latents, decoder):
    seen, held = HALF
    decode = (
        _neighbour_decoder(_nearest(latents, seen, held)[:, :9])
        if decoder == "kNN"
        else _linear_decoder(latents, seen, held)
    )
    return decode(target.coordinates[seen])


@pytest.mark.parametrize("decoder", ["kNN", "linear"])
def test_an_angle_is_decoded_around_the_circle_in_its_own_unit(decoder):
    degrees = RNG.uniform(0, 360, 1000)
    target = _Target.of(Variable("heading", degrees, "circular", unit="°", period=360))
    turn = np.deg2rad(degrees)
    latents = np.c_[np.cos(turn), np.sin(turn)]
    predicted = decoded(target, latents, decoder)
    assert target.error(predicted, HALF[1]) < 3
    opposite = target.errors(-predicted, HALF[1])
    assert opposite.max() <= 180
    assert np.median(opposite) > 175


@pytest.mark.parametrize("decoder", ["kNN", "linear"])
def test_the_error_of_a_place_is_its_distance(decoder):
    place = RNG.uniform(0, 100, (1000, 2))
    target = _Target.of(Variable("position", place, unit="cm"))
    predicted = decoded(target, place, decoder)
    assert target.error(predicted, HALF[1]) < 4
    assert target.r2(predicted, HALF[1], place[:500].mean(0)) > 0.97
    moved = place[500:] + np.array([3.0, 4.0])
    assert target.error(moved, HALF[1]) == pytest.approx(5)


def test_a_discrete_value_is_right_or_wrong_and_has_no_r2():
    choice = RNG.integers(0, 3, 1000)
    target = _Target.of(Variable("choice", choice * 5, "discrete"))
    latents = np.eye(3)[choice] + 0.1 * RNG.normal(size=(1000, 3))
    assert decoded(target, latents, "kNN").shape == (500, 3)
    assert target.error(decoded(target, latents, "kNN"), HALF[1]) < 0.02
    unrelated = decoded(target, RNG.normal(size=(1000, 3)), "kNN")
    assert target.error(unrelated, HALF[1]) > 0.5
    assert np.isnan(target.r2(unrelated, HALF[1], np.zeros(3)))


@pytest.mark.parametrize("decoder", ["kNN", "linear"])
def test_frames_without_a_value_take_no_part(decoder):
    place = RNG.uniform(0, 100, 1000)
    place[::3] = np.nan
    target = _Target.of(Variable("x", place))
    latents = np.nan_to_num(place, nan=50.0)[:, None]
    predicted = decoded(target, latents, decoder)
    errors = target.errors(predicted, HALF[1])
    assert np.isnan(errors[(HALF[1] % 3) == 0]).all()
    assert np.nanmedian(errors) < 2


@pytest.fixture(scope="module")
def trained():
    """Cells that follow x and know nothing of the coin; a run of a few seconds."""
    frames, rng = 3000, np.random.default_rng(1)
    x = np.cumsum(rng.normal(size=frames)) % 40
    x = np.minimum(x, 40 - x)
    cells = np.exp(-((x[:, None] - np.linspace(0, 20, 12)) ** 2) / 18)
    cells += 0.1 * rng.normal(size=cells.shape)
    coin = np.repeat(rng.integers(0, 2, frames // 10), 10)
    recording = Recording.from_arrays(
        cells, 10.0, {"x": Variable("x", x, unit="cm"), "coin": Variable("coin", coin, "discrete")}
    )
    settings = quick(mode="behavior", steps=60)
    return recording, fit(recording, {"place": ["x"], "coin": ["coin"]}, settings)


def test_what_is_in_the_cells_is_decoded_and_what_is_not_is_at_chance(trained):
    recording, run = trained
    found = embedding_quality(run, recording).table().set_index(["variable", "decoder"])
    for decoder in ("kNN", "linear"):
        place, coin = found.loc[("x", decoder)], found.loc[("coin", decoder)]
        assert place["error"] < 0.5 * place["chance"]
        # no shift that makes another label of it comes as close
        assert place["p"] == pytest.approx(1 / (1 + len(_shifts(recording, "x"))))
        assert place["p"] < 0.02
        assert place["unit"] == "cm"
        assert place["r2"] > 0.7 > 0.2 > place["chance_r2"]
        assert coin["error"] == pytest.approx(coin["chance"], abs=0.12)
        assert coin["p"] > 0.01
        assert coin["unit"] == "share wrong"


def test_the_decoder_is_measured_on_frames_the_encoder_never_saw(trained):
    """Other labels in the held-out blocks change the error; they did not change the encoder."""
    recording, run = trained
    from napari_xcebra.learn.training.training import Training

    held = Training(recording, {"place": ["x"], "coin": ["coin"]}, run.settings).split.held_out
    x = recording.variable("x").values[:, 0].copy()
    x[held.anchors] = RNG.permutation(x[held.anchors])
    changed = recording.with_behavior(Variable("x", x, unit="cm"))
    worse, before = (embedding_quality(run, r).of("place")[1].r2 for r in (changed, recording))
    assert worse < 0.2 < before


def test_a_run_agrees_with_itself_and_the_result_can_be_written(trained, tmp_path):
    recording, run = trained
    found = embedding_quality(run, recording, [run])
    assert found.consistency == pytest.approx(1)
    assert "Consistency between 2 runs: R² 1.000" in found.summary()
    assert "x from place (kNN): median error" in found.summary()
    assert found.to_csv(tmp_path / "quality.csv").read_text().count("\n") == 5
    assert json.loads(json.dumps(found.as_dict(), allow_nan=False))["runs"] == 2
