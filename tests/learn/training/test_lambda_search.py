"""λ of each part is raised until that part gives way, and then held at what it bore."""

import numpy as np
import pytest
import torch
from quick_settings import quick

from napari_xcebra.learn import Fit, Training, fit
from napari_xcebra.learn.training.checkpoint import Checkpoint, state_of
from napari_xcebra.learn.training.lambda_search import (
    BORNE,
    HIGHEST,
    IN_DOUBT,
    LOWEST,
    SMOOTHED,
    UNSEARCHED,
    LambdaSearch,
)
from napari_xcebra.simulate import box

SETTINGS = quick(lambda_="auto", steps=240, batch_size=128, stop_when_settled=False)


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


def see(search, lambdas, *, over=True, **goodness):
    """Let a search look at these values instead of an encoder, up to its last step or not."""
    last = search.last if over else search.last - 1
    steps = list(last - np.arange(len(lambdas))[::-1])
    search.looks = {"step": steps, "lambda": list(lambdas)}
    search.looks |= {name: list(values) for name, values in goodness.items()}
    search.parts = search.watched = list(goodness)
    search._known = 0, None


RISING = np.geomspace(LOWEST, HIGHEST, 60)
FALLING = 1 / (1 + RISING)
"""Goodness that has lost a twentieth of its best at λ = 0.16."""


def test_lambda_is_zero_at_first_then_rises_by_a_constant_factor_then_holds(trained):
    training, lambdas = trained
    settled = round(0.1 * SETTINGS.steps)
    assert (lambdas[:settled] == 0).all()
    held = np.flatnonzero(lambdas != lambdas[-1]).max() + 1
    rising = lambdas[settled:held]
    assert len(rising) > 10
    np.testing.assert_allclose(rising[1:] / rising[:-1], rising[1] / rising[0])
    highest = max(training.search.chosen.values())
    assert (lambdas[held:] == highest).all()
    assert LOWEST < highest <= HIGHEST


@pytest.mark.parametrize("name", ["z2", "time"])
def test_at_the_lambda_that_was_chosen_the_part_kept_its_goodness(trained, name):
    search = trained[0].search
    goodness, borne = search.goodness(name), search.borne_at(name)
    assert search.looks["lambda"][borne] == search.chosen[name]
    # each is the mean of the last few looks, of which the first had that λ
    assert goodness[: borne + SMOOTHED].max() >= (1 - BORNE) * goodness.max()
    assert (goodness[borne + SMOOTHED :] < (1 - BORNE) * goodness.max()).all()


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def steps_of(search):
    """Step at which λ was what is chosen, and step at which the search was over."""
    return int(search.looks["step"][search.end]), int(search.looks["step"][-1])


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
    assert SMOOTHED < max(kept) <= len(training.search.watched) + SMOOTHED + 1
    assert set(kept[over - 1 :]) == {0}


@pytest.mark.parametrize("seed", range(10))
def test_what_is_chosen_in_the_end_was_kept_whatever_goodness_did(simulation, monkeypatch, seed):
    training = Training(simulation.recording, simulation.factors, SETTINGS)
    search, rng = training.search, np.random.default_rng(seed)
    search.parts = search.watched = ["one", "two", "time"]
    search.averaged = set()
    search.looks = {name: [] for name in ("step", "lambda", *search.watched)}
    walk = np.cumsum(rng.normal(scale=0.05, size=(SETTINGS.steps + 1, 3)), axis=0)
    monkeypatch.setattr(
        search, "_goodness", lambda t: dict(zip(search.watched, walk[t.step], strict=True))
    )
    found = []
    monkeypatch.setattr("napari_xcebra.learn.training.lambda_search.state_of", lambda t: t.step)
    monkeypatch.setattr(
        "napari_xcebra.learn.training.lambda_search.put_state", lambda t, s: found.append(s)
    )
    for training.step in range(1, SETTINGS.steps + 1):
        search.look(training)
    assert found == [search.looks["step"][search.end]]


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


def test_each_part_is_judged_by_itself(search):
    see(search, RISING, strong=2 / (1 + RISING / 30), weak=0.2 / (1 + RISING))
    # the one has lost a twentieth at λ = 1.7, the other 0.01 nats at λ = 0.16
    assert search.chosen["strong"] == pytest.approx(1.7, rel=0.3)
    assert search.chosen["weak"] == pytest.approx(0.16, rel=0.3)
    for name, value in search.chosen.items():
        assert f"{value:.2g} ({name})" in search.reason
    assert search.end == search.borne_at("weak") < search.borne_at("strong")


def test_time_never_decides_for_a_behaviour(search):
    see(search, RISING, place=[1.0] * 60, time=FALLING)
    assert search.chosen["place"] == pytest.approx(HIGHEST)
    assert search.chosen["time"] == pytest.approx(0.16, rel=0.3)
    assert search.end == search.borne_at("place")
    see(search, RISING, place=FALLING, time=[1.0] * 60)
    assert search.chosen["time"] == pytest.approx(HIGHEST)
    assert search.end == search.borne_at("place")


def test_a_part_that_gave_way_goes_back_to_what_it_bore_while_the_others_are_raised(search):
    some = RISING[RISING < 2]
    see(search, some, over=False, clear=[1.0] * len(some), faint=1 / (1 + some))
    assert not search.over
    step = int(search.last) - 1
    found = search.lambdas_at(step)
    assert found["clear"] == search.raised(step) > 5
    assert found["faint"] == pytest.approx(0.16, rel=0.3)


def test_what_a_part_recovers_once_its_lambda_is_low_again_tells_nothing(search):
    lost = np.where((RISING > 1) & (RISING < 3), 0.3, 1.0)
    see(search, RISING, clear=[1.0] * 60, faint=lost)
    assert search.chosen["faint"] <= 1
    assert search.chosen["clear"] == pytest.approx(HIGHEST)


def test_a_part_that_gains_from_the_penalty_does_not_hold_lambda_down(search):
    """On noisy recordings the penalty keeps the encoder from fitting the noise."""
    see(search, RISING, noisy=np.where(RISING < 3, 0.1 * np.log(RISING / LOWEST), 0.1))
    assert search.chosen["noisy"] == pytest.approx(3, rel=0.4)


def test_a_factor_at_chance_has_nothing_to_lose_and_takes_what_the_others_bore(search):
    search.absent = {"nothing"}  # no regression predicts it
    see(search, RISING, real=FALLING, nothing=np.linspace(0.01, -3, 60))
    both = search.chosen
    assert search.found == ["real"]
    assert both["nothing"] == both["real"]
    see(search, RISING, real=FALLING)
    assert search.chosen["real"] == both["real"]


def test_where_only_time_is_above_chance_the_factors_take_what_is_taken_unsearched(search):
    search.absent = {"nothing"}
    see(search, RISING, nothing=np.linspace(0.01, -3, 60), time=FALLING)
    assert search.chosen["nothing"] == UNSEARCHED
    assert search.chosen["time"] == pytest.approx(0.16, rel=0.3)


def test_what_the_encoder_may_still_learn_is_not_extinguished_by_what_the_others_bear(search):
    step = int(search.last) - 1
    see(search, RISING, over=False, clear=[1.0] * 60, late=np.linspace(0.0, 0.01, 60))
    assert search.lambdas_at(step)["late"] == LOWEST
    assert search.chosen["late"] == LOWEST < search.chosen["clear"]


def test_where_nothing_is_above_chance_that_is_said(search):
    search.absent = {"nothing"}
    see(search, RISING, nothing=np.linspace(0.01, -3, 60))
    assert search.over
    assert search.chosen == {"nothing": UNSEARCHED}
    assert search.reason.endswith("nothing is above chance on frames set aside.")


def test_a_dip_while_much_is_learned_does_not_end_the_search(search):
    early = [0.1, 0.14, 0.2, 0.28]
    assert max(early) < IN_DOUBT
    see(search, early, over=False, z2=[1.0, 1.0, 0.6, 0.3])
    assert not search.over
    assert search.reason == ""


def test_the_search_ends_once_every_part_has_lost_beyond_doubt(search):
    see(search, RISING[:40], over=False, one=FALLING[:40], two=FALLING[:40])
    assert search.over
    see(search, RISING[:40], over=False, one=FALLING[:40], two=[1.0] * 40)
    assert not search.over


def test_where_no_part_gives_way_the_highest_lambda_is_taken_and_said(search):
    see(search, RISING, z2=[1.0] * 60)
    assert search.over
    assert search.chosen["z2"] == pytest.approx(HIGHEST)
    assert search.reason.endswith(", the highest that is tried.")


def test_the_fit_says_what_was_chosen_and_why(simulation, trained, tmp_path):
    done = fit(simulation.recording, simulation.factors, SETTINGS)
    chosen = trained[0].search.chosen
    assert {part.name: part.lambda_ for part in done.parts} == chosen
    assert done.lambda_ == done.history["lambda"][-1] == max(chosen.values())
    assert done.lambda_reason == trained[0].search.reason
    assert "Penalty λ, chosen automatically: " in done.summary()
    loaded = Fit.load(done.save(tmp_path))
    assert loaded.lambda_reason == done.lambda_reason
    assert loaded.parts == done.parts


@pytest.mark.parametrize("mode", ["behavior", "time", "supervised"])
def test_every_mode_finds_a_lambda(simulation, mode):
    factors = None if mode == "time" else simulation.factors
    settings = quick(lambda_="auto", steps=40, mode=mode)
    done = fit(simulation.recording, factors, settings)
    assert LOWEST <= done.lambda_ <= HIGHEST
    assert done.lambda_reason.startswith("Penalty λ, chosen automatically: ")


def test_a_recording_too_short_to_set_frames_aside_says_so(simulation):
    settings = quick(lambda_="auto", blocks=2)
    done = fit(simulation.recording, simulation.factors, settings)
    assert done.lambda_ == UNSEARCHED
    assert any("too short to set frames aside" in note for note in done.notes)
