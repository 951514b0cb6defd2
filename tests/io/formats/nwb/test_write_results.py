"""Results written as NWB are valid and complete, and leave the source as it was."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from scored import CELLS, METHOD, UNUSED, scored_recording, scored_run, scored_test

import napari_xcebra as xc
from napari_xcebra.attribution.result import Attribution
from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.factors import Part
from napari_xcebra.simulate import field

pynwb = pytest.importorskip("pynwb")
nwbinspector = pytest.importorskip("nwbinspector")

MOUSE = {
    "subject": {"subject_id": "m1", "species": "Mus musculus", "sex": "F", "age": "P90D"},
    "location": "CA1",
}


def complaints(path):
    """What the inspector calls more than a suggestion."""
    found = nwbinspector.inspect_nwbfile(nwbfile_path=str(path))
    return [m.message for m in found if "SUGGESTION" not in m.importance.name]


def tables(path):
    with pynwb.NWBHDF5IO(path, "r") as reader:
        module = reader.read().processing["xcebra"]
        return {
            name: each.to_dataframe(index=True)
            for name, each in module.data_interfaces.items()
            if isinstance(each, pynwb.core.DynamicTable)
        }


def made_up(recording):
    """A map with random scores of one factor."""
    scores = np.random.default_rng(0).random((2, recording.n_cells)).astype(np.float32)
    return Attribution(
        METHOD, "mean", (Part("place/1", ("x",), 0, 2, "euclidean", 1.0),),
        np.asarray(recording.cell_ids), scores, 10, {"place/1": True}, {"place/1": "Clear."},
    )  # fmt: skip


def test_scores_tests_and_settings_are_plain_tables_that_refer_to_the_rois(tmp_path):
    recording = scored_recording(pixel_size=0.8)
    run = scored_run().with_significance(scored_test())
    first = run.attributions[METHOD]
    gradient = replace(first, method="neuron-gradient")
    path = tmp_path / "results.nwb"
    assert xc.write_nwb(recording, path, [first, gradient], **MOUSE) == path
    assert not pynwb.validate(path=str(path))
    assert complaints(path) == []
    found = tables(path)
    place = found["scores_place"]
    np.testing.assert_array_equal(place["roi"], np.arange(CELLS))
    np.testing.assert_array_equal(place["cell"], recording.cell_ids)
    np.testing.assert_array_equal(place["score"], first.score("place"))
    np.testing.assert_array_equal(place["neuron_gradient"], first.score("place"))
    np.testing.assert_array_equal(place["q"], first.significance.q("place"))
    assert np.isnan(place["score"][UNUSED])
    assert "q" not in found["scores_time"]  # it could not be tested
    assert list(found["factors"]["factor"]) == ["place", "speed", "time"]
    assert list(found["factors"]["above_chance"]) == [True, False, True]
    settings = found["settings"].set_index("setting")["value"]
    assert settings["seed"] == "0" and settings["maps"] == f"{METHOD}, neuron-gradient"
    again = xc.open_recording(path)
    assert list(again.cells) == list(recording.cells) and not again.behavior
    assert again.pixel_size == 0.8
    np.testing.assert_array_equal(again.accepted, recording.accepted)


def test_the_embedding_is_a_time_series_that_is_not_read_as_behaviour(tmp_path):
    recording = field(cells=12, frames=300, shape=(64, 64), seed=0).recording
    fit = xc.fit(recording, {"place": ["position"]}, xc.FitSettings(steps=3, time_latents=1))
    result = xc.attribute(fit, recording, "neuron-gradient")
    path = xc.write_nwb(recording, tmp_path / "results.nwb", result, **MOUSE)
    assert not pynwb.validate(path=str(path)) and complaints(path) == []
    with pynwb.NWBHDF5IO(path, "r") as reader:
        series = reader.read().processing["xcebra"]["embedding"]
        assert series.data.shape == (300, 3) and series.rate == recording.rate
        assert "column 2: time 1" in series.description
    values = tables(path)["settings"].set_index("setting")["value"]
    assert values["version of torch"] and "lambda of place" in values
    again = xc.open_recording(path)
    assert set(again.behavior) == set(recording.behavior)
    for name, variable in recording.behavior.items():
        np.testing.assert_allclose(again.behavior[name].values, variable.values)
        assert again.behavior[name].unit == variable.unit
    np.testing.assert_array_equal(again.traces, recording.traces)


def test_decisions_are_written_and_count(tmp_path):
    recording = scored_recording()
    with xc.Curation(recording.cell_ids, curator="Ada") as curation:
        curation.decide([0], "rejected")
        curation.tag([0, 1], "dim")
        path = xc.write_nwb(recording, tmp_path / "a.nwb", decisions=curation.table())
    decisions = tables(path)["decisions"]
    assert list(decisions["status"][:2]) == ["rejected", "undecided"]
    assert list(decisions["tags"][:3]) == ["dim", "dim", ""]
    expected = np.asarray(recording.accepted).copy()
    expected[0] = False
    np.testing.assert_array_equal(xc.open_recording(path).accepted, expected)


def test_a_copy_of_a_file_of_another_program_keeps_all_it_had(shared_data, tmp_path):
    for name in ("neuroconv_suite2p.nwb", "nwb_imagemask_rate.nwb"):
        source = shared_data / "nwb" / name
        before = hashlib.sha256(source.read_bytes()).hexdigest()
        recording = xc.open_recording(source)
        seen = xc.Variable("lick", np.arange(recording.n_frames) % 7 == 0, "event")
        opened = recording.with_behavior(seen)
        path = tmp_path / name
        for _ in range(2):  # results of an earlier run are replaced
            xc.write_nwb(opened, path, made_up(recording))
            opened = replace(opened, source=str(path))
            path = tmp_path / f"again-{name}"
        path = tmp_path / f"again-{name}"
        assert hashlib.sha256(source.read_bytes()).hexdigest() == before
        assert len(pynwb.validate(path=str(path))) <= len(pynwb.validate(path=str(source)))
        assert {text for text in complaints(path) if "species" not in text} == set()
        again = xc.open_recording(path)
        assert set(again.behavior) == {*recording.behavior, "lick"}
        np.testing.assert_array_equal(np.asarray(again.traces), np.asarray(recording.traces))
        with pynwb.NWBHDF5IO(source, "r") as one, pynwb.NWBHDF5IO(path, "r") as other:
            old, new = one.read(), other.read()
            assert new.identifier == old.identifier
            assert set(old.objects) <= set(new.objects)
            table = new.processing["xcebra"]["scores_place_1"]
            roi = table["roi"].table
            assert roi.object_id in old.objects
            np.testing.assert_array_equal(roi.id[:][table["roi"].data[:]], recording.cell_ids)


def test_the_opened_file_is_never_written_to(shared_data, tmp_path):
    path = tmp_path / "a.nwb"
    path.write_bytes((shared_data / "nwb" / "nwb_imagemask_rate.nwb").read_bytes())
    before = path.read_bytes()
    recording = xc.open_recording(path)
    for new in (False, True):
        with pytest.raises(InputError, match="is the file that was opened"):
            xc.write_nwb(recording, path, made_up(recording), new=new)
    assert path.read_bytes() == before
    made = xc.write_nwb(recording, tmp_path / "b.nwb", made_up(recording), new=True)
    assert not pynwb.validate(path=str(made))


def test_scores_of_other_cells_are_refused_before_anything_is_written(tmp_path):
    recording = scored_recording(cell_ids=np.arange(CELLS))
    with pytest.raises(InputError, match="not those of the recording"):
        xc.write_nwb(recording, tmp_path / "a.nwb", scored_run().attributions[METHOD])
    assert list(tmp_path.iterdir()) == []


def test_trials_and_words_read_back(tmp_path):
    side = np.repeat([0.0, 1.0, np.nan, 1.0], 50)
    trials = xc.Trials([0, 50, 150], [50, 100, 200], {"side": [0, 1, 1]},
                       {"side": ("left", "right")})  # fmt: skip
    words = ("run", "rest")
    recording = scored_recording(trials=trials).with_behavior(
        xc.Variable("side", side, "discrete", words=("left", "right")),
        xc.Variable("mode", np.arange(200) // 9 % 2, "discrete", words=words),
    )
    again = xc.open_recording(xc.write_nwb(recording, tmp_path / "a.nwb", **MOUSE))
    assert set(again.behavior) - {"trials"} == {"side", "mode"}
    assert again.behavior["mode"].words == words
    assert again.behavior["side"].words == ("left", "right")
    np.testing.assert_array_equal(again.behavior["side"].values[:, 0], side)
    np.testing.assert_array_equal(again.trials.first, trials.first)
    np.testing.assert_array_equal(again.trials.columns["side"], [0, 1, 1])
    np.testing.assert_array_equal(again.starts, recording.starts)
