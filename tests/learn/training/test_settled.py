"""A run that has settled stops by itself, says so, and is otherwise as reproducible as any."""

from dataclasses import replace

import numpy as np
import pytest
from quick_settings import quick

from napari_xcebra.learn import fit
from napari_xcebra.learn.result import Fit
from napari_xcebra.learn.training import settled
from napari_xcebra.learn.training.settled import Settled, agreement
from napari_xcebra.learn.training.training import Training
from napari_xcebra.simulate import box

STEPS = 300


@pytest.fixture(scope="module")
def simulation():
    return box(frames=2500, cells=(12, 12))


@pytest.fixture
def content(monkeypatch):
    """Anything counts as the same, so that a run settles as soon as it may."""
    monkeypatch.setattr(settled, "ALIKE", -1.0)
    monkeypatch.setattr(settled, "FLAT", np.inf)


def trained(simulation, **given):
    settings = quick(steps=STEPS, batch_size=64, stop_when_settled=True)
    return fit(simulation.recording, simulation.factors, settings, **given)


def test_it_stops_says_why_and_counts_as_complete(simulation, content, tmp_path):
    reports = []
    result = trained(simulation, on_progress=reports.append)
    # λ is held from step 60 on, and looked at there: the fifth look is the first that compares
    looks = settled.APART + settled.IN_A_ROW - 1
    assert result.steps == 60 + looks * settled.EVERY + settled.LAST
    assert result.complete
    assert f"Stopped after {result.steps} steps" in result.stop_reason
    assert result.stop_reason in result.summary()
    assert not any("Stopped" in note for note in result.notes)
    assert (reports[-1].step, reports[-1].steps) == (result.steps, result.steps)
    assert reports[0].steps == STEPS
    loaded = Fit.load(result.save(tmp_path))
    assert loaded.complete and loaded.stop_reason == result.stop_reason


def test_a_run_that_still_changes_does_all_steps(simulation, monkeypatch):
    monkeypatch.setattr(settled, "ALIKE", 2.0)
    result = trained(simulation)
    assert result.steps == STEPS
    assert result.stop_reason == ""


def test_until_it_stops_it_learns_what_it_would_have_learned(simulation, content):
    stopped = trained(simulation)
    whole = fit(simulation.recording, simulation.factors, quick(steps=STEPS, batch_size=64))
    same = stopped.history["step"] <= stopped.steps - settled.LAST
    np.testing.assert_array_equal(stopped.history["z2"][same], whole.history["z2"][: same.sum()])


@pytest.mark.parametrize("at", [90, 180])
def test_resumed_before_or_after_it_settled_it_ends_the_same(simulation, content, tmp_path, at):
    alone = trained(simulation)
    file, reached = tmp_path / "state", []

    def stop():
        reached.append(1)
        return 10 * len(reached) == at

    broken_off = trained(simulation, stop=stop, checkpoint=file)
    assert broken_off.steps == at and not broken_off.complete
    resumed = trained(simulation, checkpoint=file)
    assert resumed.steps == alone.steps
    assert not file.exists()
    for name, weights in alone.weights.items():
        np.testing.assert_array_equal(resumed.weights[name], weights)


def test_how_often_it_reports_does_not_decide_when_it_stops(simulation, monkeypatch):
    monkeypatch.setattr(settled, "ALIKE", -1.0)
    often, rarely = (trained(simulation, every=every) for every in (3, 50))
    assert often.steps == rarely.steps


def test_the_learning_rate_goes_down_to_its_end_before_it_stops(simulation, content):
    settings = quick(steps=STEPS, batch_size=64, stop_when_settled=True)
    training = Training(simulation.recording, simulation.factors, settings)
    rates = []
    for _ in training.run(1):
        rates.append(training._learning_rate())
    assert (np.diff(rates) <= 0).all()
    end = settings.decay * settings.learning_rate
    assert rates[-1] == pytest.approx(end)


def test_nothing_is_looked_at_before_lambda_is_held(simulation):
    settings = replace(
        quick(steps=STEPS, batch_size=64, stop_when_settled=True), settle=0.5, ramp=0.5
    )
    training = Training(simulation.recording, simulation.factors, settings)
    for _ in training.run():
        pass
    assert isinstance(training.settled, Settled)
    assert len(training.settled.maps) <= 1
    assert training.step == STEPS


def test_agreement_is_the_rank_correlation_of_each_factor():
    rng = np.random.default_rng(0)
    one = rng.random((2, 50))
    other = np.stack([one[0] ** 3, -one[1]])
    np.testing.assert_allclose(agreement(one, other), [1, -1])
