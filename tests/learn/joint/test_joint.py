"""Sessions with different cells are trained into one embedding, each with a fit of its own."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from damage import damaged_copies
from quick_settings import quick

from napari_xcebra.attribution import attribute
from napari_xcebra.errors import InputError
from napari_xcebra.learn import Fit
from napari_xcebra.learn.data.sampling import Batch
from napari_xcebra.learn.joint.consistency import session_consistency
from napari_xcebra.learn.joint.fitting import _in_order, _JointFrames, _JointTraining, fit_sessions
from napari_xcebra.learn.result import JointFit
from napari_xcebra.recording import Variable
from napari_xcebra.simulate import arena

FACTORS = {"place": ["position"], "direction": ["direction"]}


def session(seed, frames=2000, cells=10, **more):
    """An animal of its own: other cells, another path."""
    return arena(
        place=cells, grid=0, direction=cells, speed=0, frames=frames, noise=0.3, seed=seed, **more
    ).recording


@pytest.fixture(scope="module")
def recordings():
    return {"monday": session(0), "tuesday": session(1, frames=1500, cells=7)}


@pytest.fixture(scope="module")
def joint(recordings):
    return fit_sessions(recordings, FACTORS, quick(steps=80))


@pytest.fixture(scope="module")
def training(recordings):
    return _JointTraining(recordings, FACTORS, quick())


def test_every_session_has_a_fit_that_works_on_its_own_cells(joint, recordings):
    for name, recording in recordings.items():
        fit = joint[name]
        assert len(fit.inputs.cell_ids) == recording.n_cells
        assert fit.goodness["place"].strength != "at chance"
        assert fit.goodness["place"].r2 > 0.5
        result = attribute(fit, recording)
        assert len(result.table("place")) == recording.n_cells
    assert joint["monday"].notes[0] == "Trained together with tuesday."
    assert joint["monday"].together == ("tuesday",)


def test_all_layers_but_the_first_are_the_same_in_every_session(joint):
    one, other = joint["monday"].weights, joint["tuesday"].weights
    assert one["layers.0.weight"].shape[1] == 20
    assert other["layers.0.weight"].shape[1] == 14
    for name in one:
        if not name.startswith("layers.0"):
            np.testing.assert_array_equal(one[name], other[name])


def test_a_session_may_have_a_whole_encoder_of_its_own(recordings):
    joint = fit_sessions(recordings, FACTORS, quick(steps=5), own="encoder")
    one, other = joint["monday"].weights, joint["tuesday"].weights
    assert not np.array_equal(one["layers.2.weight"], other["layers.2.weight"])


def test_windowed_encoders_share_what_follows_the_first_convolution(recordings):
    joint = fit_sessions(recordings, FACTORS, quick(steps=5, window=5))
    one, other = joint["monday"].weights, joint["tuesday"].weights
    np.testing.assert_array_equal(one["last.weight"], other["last.weight"])
    assert one["first.weight"].shape[1] == 20


def test_it_is_one_embedding_without_any_alignment(joint, recordings):
    found = session_consistency(joint.fits, recordings)
    assert found.unaligned["direction"][0, 1] > 0.8
    assert found.mean("direction") > 0.9 > found.chance["direction"]


class TestPairs:
    def test_labels_reach_from_session_to_session_and_time_does_not(self, training):
        batch = training.sampler.draw(2000, np.random.default_rng(0))
        session = training.pool.session_of
        reference = session(batch.reference)
        np.testing.assert_array_equal(session(batch.time), reference)
        assert 0.2 < (session(batch.label["place"]) != reference).mean() < 0.8

    def test_sessions_of_any_length_give_as_many_references(self, training):
        batch = training.sampler.draw(4000, np.random.default_rng(0))
        assert training.pool.session_of(batch.reference).mean() == pytest.approx(0.5, abs=0.03)

    def test_a_positive_is_near_in_the_units_of_all_sessions(self, training):
        batch = training.sampler.draw(500, np.random.default_rng(0))
        place = training.pool.behavior.variable("position").values
        apart = np.linalg.norm(place[batch.reference] - place[batch.label["place"]], axis=1)
        assert np.median(apart) < 0.25

    def test_pairs_keep_off_the_held_out_blocks_of_every_session(self, training):
        batch = training.sampler.draw(2000, np.random.default_rng(0))
        block = training.split.block
        for frames in (batch.reference, batch.time, *batch.label.values()):
            assert (block[frames] == -1).all()
        assert len(np.unique(block)) - 1 == 2 * training.settings.blocks

    def test_labels_are_standardised_over_all_sessions(self, training):
        linear = training.labels["place"].linear
        assert linear.std() == pytest.approx(1)
        own = training.sessions["monday"].labels["place"].linear
        np.testing.assert_array_equal(own, linear[:2000])

    def test_inputs_are_those_of_each_session(self, training, recordings):
        frames = np.array([2100, 5, 2000, 7])
        gathered = training.data[frames]
        assert isinstance(gathered, _JointFrames)
        tuesday = training.sessions["tuesday"]
        expected = tuesday.inputs.of(recordings["tuesday"])[[100, 0]]
        np.testing.assert_allclose(gathered.inputs[1].numpy(), expected)
        embedding = training.encoder(gathered)
        alone = tuesday.encoder(torch.as_tensor(expected))
        torch.testing.assert_close(embedding[[0, 2]], alone)

    def test_rows_come_back_in_their_order(self):
        places = [torch.tensor([1, 3]), torch.tensor([0, 2])]
        values = [torch.tensor([[10.0], [30.0]]), torch.tensor([[0.0], [20.0]])]
        assert _in_order(values, places)[:, 0].tolist() == [0, 10, 20, 30]


def test_the_penalty_is_that_of_each_sessions_own_cells(recordings):
    """Doubling the input weights of one session quadruples its half of the penalty."""

    def penalty(factor):
        training = _JointTraining(recordings, FACTORS, quick(lambda_=1.0, settle=0, ramp=0))
        with torch.no_grad():
            training.encoder[1].layers[0].weight.mul_(factor)
            training.encoder[1].layers[0].bias.mul_(0)
            training.encoder[0].layers[0].weight.mul_(0)
        training.step = 1
        return float(training._train_step()[-1])

    assert penalty(1e-3) == pytest.approx(penalty(2e-3) / 4, rel=0.05)


def test_time_pairs_have_negatives_of_their_session_alone(recordings):
    """Sessions moved apart in the embedding are no easier: the loss stays as it is."""
    shared = _JointTraining(recordings, FACTORS, quick(lambda_=0.0))
    reference = torch.randn(40, shared.encoder.latents)
    positive, far = reference + 0.1, reference.clone()
    far[20:] += 50
    part, objective = shared.parts[-1], shared.objective
    frames = np.r_[:20, len(shared.data) - 20 : len(shared.data)]
    batch = Batch(frames, frames, {})
    near = objective._info_nce(part, reference, positive, batch, None)
    apart = torch.cat([positive[:20], far[20:] + 0.1])
    moved = objective._info_nce(part, far, apart, batch, None)
    torch.testing.assert_close(near, moved, rtol=1e-3, atol=1e-3)


def test_lambda_is_found_for_all_sessions_at_once(recordings):
    joint = fit_sessions(recordings, FACTORS, quick(steps=60, lambda_="auto"))
    assert joint["monday"].lambda_ == joint["tuesday"].lambda_
    assert "λ, chosen automatically" in joint.summary()


def test_supervised_sessions_share_an_encoder_too(recordings):
    joint = fit_sessions(recordings, {"place": ["position"]}, quick(steps=60, mode="supervised"))
    assert joint["tuesday"].goodness["place"].r2 > 0.3


class TestRuns:
    def test_a_stopped_run_goes_on_from_its_checkpoint(self, recordings, tmp_path):
        path = tmp_path / "checkpoint.safetensors"
        asked = iter([False, True])
        settings = quick(steps=30)
        stopped = fit_sessions(
            recordings, FACTORS, settings, stop=lambda: next(asked), checkpoint=path
        )
        assert stopped.steps == 20
        resumed = fit_sessions(recordings, FACTORS, settings, checkpoint=path)
        assert not path.exists()
        whole = fit_sessions(recordings, FACTORS, settings)
        for name in recordings:
            for weight, values in whole[name].weights.items():
                np.testing.assert_array_equal(values, resumed[name].weights[weight])

    def test_progress_is_reported(self, recordings):
        seen = []
        fit_sessions(recordings, FACTORS, quick(steps=20), on_progress=seen.append)
        assert [p.step for p in seen] == [10, 20]

    def test_what_is_saved_is_loaded(self, joint, recordings, tmp_path):
        joint.save(tmp_path / "joint")
        joint.save(tmp_path / "joint")  # again: the earlier fits make room
        loaded = JointFit.load(tmp_path / "joint")
        assert loaded.sessions == joint.sessions
        assert loaded.summary() == joint.summary()
        assert len(list((tmp_path / "joint" / "fits").iterdir())) == 2
        for name, recording in recordings.items():
            assert isinstance(loaded[name], Fit)
            np.testing.assert_array_equal(
                loaded[name].embed(recording), joint[name].embed(recording)
            )

    def test_a_save_that_fails_leaves_the_earlier_one(self, joint, tmp_path, monkeypatch):
        joint.save(tmp_path)
        broken = JointFit({**joint.fits, "wednesday": None}, joint.own)
        with pytest.raises(AttributeError):
            broken.save(tmp_path)
        assert JointFit.load(tmp_path).sessions == joint.sessions

    def test_saving_removes_only_fits_of_an_earlier_save(self, joint, tmp_path):
        thesis = tmp_path / "fits" / "thesis" / "chapter.tex"
        thesis.parent.mkdir(parents=True)
        thesis.write_text("years of work")
        named = {"fits/thesis/fit.json": {"sha256": "0" * 64, "size": 1}}
        (tmp_path / "joint.json").write_text(json.dumps({"files": named}))
        for _ in range(2):
            joint.save(tmp_path)
        assert thesis.read_text() == "years of work"
        assert len(list((tmp_path / "fits").iterdir())) == 3

    def test_a_damaged_file_gets_a_sentence(self, joint, tmp_path):
        joint.save(tmp_path / "joint")
        for copy in damaged_copies(tmp_path / "joint", tmp_path / "copy", rounds=100):
            try:
                found = JointFit.load(copy)
            except InputError as error:
                assert str(error).endswith(".")
            else:
                assert (found.sessions, found.own) == (joint.sessions, joint.own)
                assert found.summary() == joint.summary()

    def test_a_folder_without_a_joint_fit_is_refused(self, tmp_path):
        with pytest.raises(InputError, match="holds no joint fit"):
            JointFit.load(tmp_path)

    def test_an_unknown_session_is_named(self, joint):
        with pytest.raises(InputError, match="no session 'friday' here; there are: monday"):
            joint["friday"]


class TestRefused:
    def refused(self, match, *recordings, factors=FACTORS):
        with pytest.raises(InputError, match=match):
            _JointTraining(list(recordings), factors, quick())

    def test_one_session_alone(self, recordings):
        self.refused("1 session was given: joint training needs 2", recordings["monday"])

    def test_a_variable_that_a_session_lacks(self, recordings):
        monday, tuesday = recordings.values()
        without = replace(tuesday, behavior={"position": tuesday.behavior["position"]})
        self.refused("'session 2' has no variable 'direction'", monday, without)

    def test_a_variable_of_another_kind_or_unit(self, recordings):
        monday, tuesday = recordings.values()
        place = tuesday.variable("position").values
        other = tuesday.with_behavior(Variable("position", place * 100, unit="cm"))
        self.refused("unit 'm' in session 'session 1' and 'cm'", monday, other)
        other = tuesday.with_behavior(Variable("direction", place[:, 0]))
        self.refused("kind 'circular' in session 'session 1' and 'continuous'", monday, other)

    def test_sessions_at_different_rates(self, recordings):
        monday, tuesday = recordings.values()
        faster = replace(tuesday, rate=30.0, times=None)
        self.refused("has 10 frames per second and 'session 2' has 30", monday, faster)

    def test_what_is_wrong_with_one_session_names_it(self, recordings):
        monday, tuesday = recordings.values()
        nobody = replace(tuesday, accepted=np.zeros(tuesday.n_cells, bool))
        self.refused("Session 'session 2': No cell is accepted", monday, nobody)


def test_consistency_needs_sessions_that_can_be_compared(joint, recordings):
    swapped = dict(reversed(list(recordings.items())))
    with pytest.raises(InputError, match="in the same order"):
        session_consistency(joint.fits, swapped)
    with pytest.raises(InputError, match="other factors"):
        only_place = fit_sessions(recordings, {"place": ["position"]}, quick(steps=2))
        session_consistency({**joint.fits, "tuesday": only_place["tuesday"]}, recordings)


def test_consistency_is_written_a_row_a_pair(joint, recordings, tmp_path):
    found = session_consistency(joint.fits, recordings)
    table = found.table()
    assert len(table) == 2 * 2
    assert set(table.columns) == {"factor", "from", "to", "r2", "r2_unaligned", "chance"}
    assert found.to_csv(tmp_path / "consistency.csv").read_text().startswith("factor,from,to,r2")
    assert "place: consistency between sessions R²" in found.summary()
