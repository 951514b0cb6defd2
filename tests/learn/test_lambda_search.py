"""λ is raised until a factor gives way, and then held at what all factors bore."""

import numpy as np
import pytest
import torch
from quick_settings import quick

from napari_xcebra.learn import Fit, Training, fit
from napari_xcebra.learn.checkpoint import Checkpoint
from napari_xcebra.learn.lambda_search import (
    BORNE,
    HIGHEST,
    LOWEST,
    SMOOTHED,
    UNSEARCHED,
    LambdaSearch,
)
from napari_xcebra.learn.state import state_of
from napari_xcebra.simulate import box

SETTINGS = quick(lambda_="auto", steps=120, batch_size=256)


@pytest.fixture(scope="module")
def simulation():
    return box(frames=4000, cells=(12, 12))


@pytest.fixture(scope="module")
def whole_run(simulation):
    """A whole run; after every step of it λ, what was learned, and how many snapshots are kept."""
    training = Training(simulation.recording, simulation.factors, SETTINGS)
    seen = [
        (progress.lambda_, state_of(training), len(training.search.snapshots))
        for progress in training.run(1)
    ]
    return training, *zip(*seen, strict=True)


@pytest.fixture(scope="module")
def trained(whole_run):
    """A whole run, and λ at every step of it."""
    training, lambdas, *_ = whole_run
    return training, np.array(lambdas)


@pytest.fixture
def search(simulation):
    return LambdaSearch(Training(simulation.recording, simulation.factors, SETTINGS))


def see(search, lambdas, **goodness):
    """Let a search look at these values instead of an encoder."""
    search.looks = {"step": list(range(13, 13 + len(lambdas))), "lambda": list(lambdas)} | goodness
    search.watched = list(goodness)


def test_lambda_is_zero_at_first_then_rises_by_a_constant_factor_then_holds(trained):
    training, lambdas = trained
    settled = round(0.1 * SETTINGS.steps)
    assert (lambdas[:settled] == 0).all()
    held = np.flatnonzero(lambdas != lambdas[-1]).max() + 1
    rising = lambdas[settled:held]
    assert len(rising) > 10
    np.testing.assert_allclose(rising[1:] / rising[:-1], rising[1] / rising[0])
    assert (lambdas[held:] == training.search.chosen).all()
    assert LOWEST < training.search.chosen < rising.max()


def test_at_the_lambda_that_was_chosen_the_factor_kept_its_goodness(trained):
    search = trained[0].search
    looks = np.array(search.looks["lambda"])
    goodness = search.goodness("z2")
    assert goodness[looks <= search.chosen].max() > 0.95 * goodness.max()
    assert goodness[-1] < (1 - BORNE) * goodness.max()


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def steps_of(search):
    """Step at which λ was what is chosen, and step at which the search was over."""
    return int(search.looks["step"][search.chosen_look]), int(search.looks["step"][-1])


def test_weights_and_moments_go_back_to_what_they_were_at_the_lambda_that_was_borne(whole_run):
    """What a latent lost to a higher λ need not come back by itself."""
    training, _, states, _ = whole_run
    borne, over = steps_of(training.search)
    assert borne < over - 5
    assert same(states[over - 1], states[borne - 1])
    assert not same(states[over - 2], states[borne - 1])
    assert not same(states[over], states[borne])  # and the run goes on, on all frames


def test_steps_that_were_undone_are_done_again(whole_run):
    """Else a run that went back would end half trained, with the rate of a finished one."""
    training, lambdas, *_ = whole_run
    borne, over = steps_of(training.search)
    assert training.repeated == over - borne
    assert len(lambdas) == training.step == SETTINGS.steps + over - borne
    last = SETTINGS.learning_rate * SETTINGS.decay
    assert training._learning_rate() == pytest.approx(last)


def test_only_the_snapshots_that_may_still_be_chosen_are_kept(whole_run):
    training, *_, kept = whole_run
    _, over = steps_of(training.search)
    assert SMOOTHED < max(kept) <= len(training.search.watched) + SMOOTHED
    assert set(kept[over - 1 :]) == {0}


@pytest.mark.parametrize("seed", range(10))
def test_what_is_chosen_in_the_end_was_kept_whatever_goodness_did(simulation, monkeypatch, seed):
    training = Training(simulation.recording, simulation.factors, SETTINGS)
    search, rng = training.search, np.random.default_rng(seed)
    search.watched = ["one", "two", "time"]
    search.looks = {name: [] for name in ("step", "lambda", *search.watched)}
    walk = np.cumsum(rng.normal(scale=0.05, size=(SETTINGS.steps + 1, 3)), axis=0)
    monkeypatch.setattr(
        search, "_goodness", lambda t: dict(zip(search.watched, walk[t.step], strict=True))
    )
    found = []
    monkeypatch.setattr("napari_xcebra.learn.lambda_search.state_of", lambda t: t.step)
    monkeypatch.setattr("napari_xcebra.learn.lambda_search.put_state", lambda t, s: found.append(s))
    for training.step in range(1, SETTINGS.steps + 1):
        search.look(training)
    assert found == [search.looks["step"][search.chosen_look]]


@pytest.mark.parametrize("when", ["before", "within", "after"])
def test_a_run_resumed_around_the_end_of_the_search_goes_on_exactly(
    simulation, whole_run, tmp_path, when
):
    training, lambdas, states, _ = whole_run
    borne, over = steps_of(training.search)
    stop = {"before": borne - 7, "within": over - 1, "after": over + 1}[when]
    first = Training(simulation.recording, simulation.factors, SETTINGS)
    for progress in first.run(1):
        if progress.step == stop:
            break
    Checkpoint(tmp_path / "run", first).keep(now=True)
    again = Training(simulation.recording, simulation.factors, SETTINGS)
    assert Checkpoint(tmp_path / "run", again).restore()
    for progress in again.run(1):
        assert progress.lambda_ == lambdas[progress.step - 1]
        if progress.step == over + 10:
            break
    assert same(state_of(again), states[over + 9])


def test_frames_set_aside_are_not_trained_on_until_lambda_is_chosen(simulation):
    training = Training(simulation.recording, simulation.factors, SETTINGS)
    rest, aside, stretch = training.split.set_aside()
    rng = np.random.default_rng(0)
    first = training.sampler.draw(4000, rng)
    for frames in (first.reference, first.time, first.label["z2"]):
        assert not np.isin(frames, aside.anchors).any()
    list(training.run())
    assert np.isin(training.sampler.draw(4000, rng).reference, aside.anchors).mean() > 0.1
    assert np.isin(training.search.frames, aside.anchors).all()
    assert len(np.unique(stretch[aside.anchors])) == 2
    both = np.sort(np.concatenate([rest.anchors, aside.anchors]))
    assert both.tolist() == training.split.training.anchors.tolist()


def test_the_weakest_factor_decides(search):
    lambdas = np.geomspace(LOWEST, HIGHEST, 60)
    strong, weak = 2 / (1 + lambdas / 30), 0.2 / (1 + lambdas)
    see(search, lambdas, strong=list(strong), weak=list(weak))
    # 0.2 / (1 + λ) has lost a tenth at λ = 1/9
    assert search.chosen == pytest.approx(1 / 9, rel=0.4)
    assert search.reason.startswith(f"λ is {search.chosen:.2g}: raised further, weak loses more")


def test_a_factor_that_gains_from_the_penalty_does_not_hold_lambda_down(search):
    """On noisy recordings the penalty keeps the encoder from fitting the noise."""
    lambdas = np.geomspace(LOWEST, HIGHEST, 60)
    noisy = np.where(lambdas < 3, 0.1 * np.log(lambdas / LOWEST), 0.1)
    see(search, lambdas, noisy=list(noisy))
    assert search.chosen == pytest.approx(3, rel=0.4)


def test_a_factor_at_chance_has_nothing_to_lose(search):
    lambdas = np.geomspace(LOWEST, HIGHEST, 60)
    lost = list(1 / (1 + lambdas))
    see(search, lambdas, real=lost, nothing=list(np.linspace(0.01, -3, 60)))
    both = search.chosen
    see(search, lambdas, real=lost)
    assert search.chosen == both


def test_where_all_factors_are_at_chance_time_decides(search):
    lambdas = np.geomspace(LOWEST, HIGHEST, 60)
    lost = list(1 / (1 + lambdas))
    see(search, lambdas, nothing=list(np.linspace(0.01, -3, 60)), time=lost)
    assert search.chosen == pytest.approx(1 / 9, rel=0.4)
    see(search, lambdas, something=[1.0] * 60, time=lost)
    assert search.chosen == pytest.approx(HIGHEST)


def test_a_dip_while_much_is_learned_does_not_end_the_search(search):
    see(search, [0.01, 0.012, 0.015, 0.02], z2=[1.0, 1.0, 0.9, 0.7])
    assert not search.over
    assert search.reason == ""


def test_where_no_factor_gives_way_the_highest_lambda_is_taken_and_said(search):
    see(search, np.geomspace(LOWEST, HIGHEST, 60), z2=[1.0] * 60)
    assert search.over
    assert search.chosen == pytest.approx(HIGHEST)
    assert "no factor gave way" in search.reason


def test_the_fit_says_what_was_chosen_and_why(simulation, trained, tmp_path):
    done = fit(simulation.recording, simulation.factors, SETTINGS)
    assert done.lambda_ == done.history["lambda"][-1] == trained[0].search.chosen
    assert done.lambda_reason == trained[0].search.reason
    assert "z2 loses more than 10%" in done.summary()
    assert Fit.load(done.save(tmp_path)).lambda_reason == done.lambda_reason


@pytest.mark.parametrize("mode", ["behavior", "time", "supervised"])
def test_every_mode_finds_a_lambda(simulation, mode):
    factors = None if mode == "time" else simulation.factors
    settings = quick(lambda_="auto", steps=40, mode=mode)
    done = fit(simulation.recording, factors, settings)
    assert LOWEST <= done.lambda_ <= HIGHEST
    assert done.lambda_reason.startswith("λ is ")


def test_a_recording_too_short_to_set_frames_aside_says_so(simulation):
    settings = quick(lambda_="auto", blocks=2)
    done = fit(simulation.recording, simulation.factors, settings)
    assert done.lambda_ == UNSEARCHED
    assert any("too short to set frames aside" in note for note in done.notes)
