"""A fit on disk is complete, is the fit that was saved, and needs no pickle."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from quick_settings import quick
from safetensors.numpy import load_file

from napari_xcebra.attribution import attribute
from napari_xcebra.errors import InputError
from napari_xcebra.learn import Fit, fit


@pytest.fixture(scope="module")
def trained(simulation):
    return fit(simulation.recording, simulation.factors, quick(window=3, smoothing=0.1))


@pytest.fixture(scope="module")
def another(simulation):
    return fit(simulation.recording, simulation.factors, quick(seed=1, steps=20))


@pytest.fixture
def folder(trained, tmp_path):
    return trained.save(tmp_path / "fit")


def edit(folder, **changes):
    path = folder / "fit.json"
    path.write_text(json.dumps(unsealed(path) | changes), encoding="utf-8")


def unsealed(path):
    """A description as another version, or a person, writes it: without a checksum."""
    about = json.loads(path.read_text(encoding="utf-8"))
    return {key: value for key, value in about.items() if key not in ("checksum", "files")}


def weights_file(folder):
    (found,) = folder.glob("*.safetensors")
    return found


def the_sentence(folder):
    with pytest.raises(InputError) as caught:
        Fit.load(folder)
    message = str(caught.value)
    assert str(folder) in message
    assert message.endswith(".")
    return message


def assert_same(a, b):
    assert (a.settings, a.parts, a.steps, a.source) == (b.settings, b.parts, b.steps, b.source)
    assert (a.notes, dict(a.versions)) == (b.notes, dict(b.versions))
    assert a.inputs.smoothing == b.inputs.smoothing
    for field in ("cell_ids", "mean", "scale"):
        np.testing.assert_array_equal(getattr(a.inputs, field), getattr(b.inputs, field))
    np.testing.assert_array_equal(a.scale, b.scale)
    for field in ("weights", "history"):
        np.testing.assert_equal(dict(getattr(a, field)), dict(getattr(b, field)))
    assert a.summary() == b.summary()
    for name, goodness in a.goodness.items():
        # R² of the time latents is not a number, and stays so
        np.testing.assert_equal(goodness.as_dict(), b.goodness[name].as_dict())


def test_what_is_loaded_is_what_was_saved(trained, folder):
    assert_same(Fit.load(folder), trained)


def test_a_loaded_fit_embeds_and_attributes_identically(trained, folder, recording):
    loaded = Fit.load(folder)
    np.testing.assert_array_equal(loaded.embed(recording), trained.embed(recording))
    scores = [attribute(each, recording).latent_scores for each in (trained, loaded)]
    np.testing.assert_array_equal(*scores)


def test_a_fit_stopped_early_stays_marked_as_such_on_disk(simulation, tmp_path):
    stopped = fit(simulation.recording, simulation.factors, quick(), stop=lambda: True)
    loaded = Fit.load(stopped.save(tmp_path))
    assert loaded.steps == 10
    assert loaded.notes[0] == "Stopped after 10 of 30 steps."


def test_nothing_is_pickled(folder):
    assert {path.suffix for path in folder.iterdir()} == {".json", ".safetensors"}
    json.loads((folder / "fit.json").read_text(encoding="utf-8"))
    assert all(tensor.dtype.kind in "fi" for tensor in load_file(weights_file(folder)).values())


def test_the_description_is_json_that_every_language_reads(folder):
    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    json.loads((folder / "fit.json").read_text(encoding="utf-8"), parse_constant=refuse)


def test_a_fit_of_a_later_format_is_refused_and_says_to_update(folder):
    edit(folder, format=99)
    message = the_sentence(folder)
    assert "format 99" in message
    assert "update napari-xcebra" in message


def test_settings_that_this_version_does_not_know_are_passed_over(trained, folder):
    edit(folder, settings=trained.settings.as_dict() | {"quantum": True})
    assert_same(Fit.load(folder), trained)


def test_a_fit_from_before_a_knob_was_there_gets_its_default(trained, folder):
    values = trained.settings.as_dict()
    del values["power"]
    edit(folder, settings=values)
    assert Fit.load(folder).settings.power == 1


def test_a_fit_that_does_not_say_its_format_is_refused(folder):
    edit(folder, format="2")
    assert "which format" in the_sentence(folder)


def test_what_a_later_version_adds_to_goodness_and_parts_is_passed_over(trained, folder):
    goodness = {n: g.as_dict() | {"new": 1} for n, g in trained.goodness.items()}
    parts = [part.as_dict() | {"new": 1} for part in trained.parts]
    edit(folder, goodness=goodness, parts=parts)
    assert_same(Fit.load(folder), trained)


def test_a_fit_without_its_weights_is_refused(folder):
    weights_file(folder).unlink()
    assert "complete fit" in the_sentence(folder)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_a_fit_with_truncated_weights_is_refused(folder, share):
    weights = weights_file(folder)
    packed = weights.read_bytes()
    weights.write_bytes(packed[: int(share * len(packed))])
    assert "complete fit" in the_sentence(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"kind": "a cake"}'])
def test_a_description_that_is_not_of_a_fit_is_refused(folder, text):
    (folder / "fit.json").write_text(text, encoding="utf-8")
    the_sentence(folder)


def test_a_description_with_a_part_missing_is_refused(folder):
    path = folder / "fit.json"
    about = unsealed(path)
    # fits were saved before λ was found by itself, before they were timed, and before they stopped
    later = {"lambda_reason", "repeated", "seconds", "stop_reason", "together", "filter", "clip"}
    later.add("architecture")  # of an encoder that was opened
    for key in set(about) - {"kind", "format"} - later:
        path.write_text(json.dumps({k: v for k, v in about.items() if k != key}), encoding="utf-8")
        assert key in the_sentence(folder)


def test_a_fit_saved_before_lambda_was_found_is_read(folder):
    path = folder / "fit.json"
    about = unsealed(path)
    del about["lambda_reason"]
    path.write_text(json.dumps(about), encoding="utf-8")
    assert Fit.load(folder).lambda_reason == ""


def test_a_folder_that_holds_no_fit_is_refused(tmp_path):
    assert "holds no fit" in the_sentence(tmp_path)
    assert "holds no fit" in the_sentence(tmp_path / "nowhere")


def test_the_weights_named_in_a_description_are_only_looked_for_beside_it(folder, tmp_path):
    weights = weights_file(folder)
    elsewhere = weights.rename(tmp_path / weights.name)
    edit(folder, weights=str(elsewhere))
    assert "complete fit" in the_sentence(folder)


@pytest.mark.parametrize("ending", [".safetensors", ".json"])
def test_an_interrupted_save_leaves_the_earlier_fit(trained, another, folder, ending, monkeypatch):
    replace_file = Path.replace

    def interrupt(self, target):
        if Path(target).suffix == ending:
            raise KeyboardInterrupt
        return replace_file(self, target)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Path, "replace", interrupt)
        another.save(folder)
    assert_same(Fit.load(folder), trained)
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]
    # ... and does not stand in the way of the next
    assert_same(Fit.load(another.save(folder)), another)
    assert len(list(folder.iterdir())) == 2


def test_a_fit_takes_the_place_of_an_earlier_one(another, folder):
    assert_same(Fit.load(another.save(folder)), another)
    assert len(list(folder.iterdir())) == 2


def test_a_recording_without_the_cells_of_the_fit_is_refused(trained, recording):
    fewer = replace(
        recording,
        traces=recording.traces[:, 2:],
        cell_ids=np.asarray(recording.cell_ids)[2:],
        accepted=np.asarray(recording.accepted)[2:],
    )
    words = "lacks 2 of the 24 cells this fit was trained on"
    for use in (lambda: attribute(trained, fewer), lambda: trained.embed(fewer)):
        with pytest.raises(InputError, match=words):
            use()


def test_cells_are_found_by_their_ids_in_whatever_order(trained, recording):
    order = np.random.default_rng(0).permutation(recording.n_cells)
    mixed = replace(
        recording,
        traces=recording.traces[:, order],
        cell_ids=np.asarray(recording.cell_ids)[order],
        accepted=np.asarray(recording.accepted)[order],
    )
    np.testing.assert_allclose(trained.embed(mixed), trained.embed(recording), rtol=1e-5)


def test_an_unknown_factor_is_named_with_those_there_are(trained):
    with pytest.raises(InputError, match=r"no factor 'place' here; there are: z2, time\."):
        trained.part("place")


def test_a_fit_of_an_earlier_version_is_read_without_filter_clip_and_a_lambda_a_part(folder):
    path = folder / "fit.json"
    about = unsealed(path)
    del about["filter"], about["clip"]
    for part in about["parts"]:
        del part["lambda_"]
    for knob in ("readout", "hide", "deconvolve"):
        del about["settings"][knob]
    about["settings"]["warm_up"] = 0.05
    path.write_text(json.dumps(about), encoding="utf-8")
    old = Fit.load(folder)
    assert old.inputs.filter.does_nothing
    assert old.inputs.clip == np.inf
    assert all(np.isnan(part.lambda_) for part in old.parts)
    again = Fit.load(old.save(folder / "again"))
    assert again.parts == old.parts
    assert again.inputs.clip == np.inf
