"""Threads are found by trying, if that is asked for, and given back."""

import numpy as np
import pytest
import torch

from napari_xcebra.learn import FitSettings, Training
from napari_xcebra.learn.device import TRIED_STEPS, ThreadTrial


@pytest.fixture(autouse=True)
def threads_of_torch():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def tried(seconds, most):
    """Threads of every step, if a step takes so long on so many threads."""
    now = 0.0
    trial = ThreadTrial(most, lambda: now)
    taken = []
    for _ in range(TRIED_STEPS * (len(seconds) + 2)):
        with trial.step():
            taken.append(torch.get_num_threads())
            now += seconds[taken[-1]]
    assert trial.over
    return taken


def test_a_short_step_stays_on_one_thread():
    assert set(tried({1: 0.008, 2: 0.004}, most=2)) == {1}


def test_more_threads_are_tried_until_they_are_no_faster_and_the_fastest_kept():
    taken = tried({1: 1.0, 2: 0.6, 4: 0.5, 8: 0.7, 16: 0.1}, most=16)
    expected = [1] * TRIED_STEPS + [2] * TRIED_STEPS + [4] * TRIED_STEPS + [8] * TRIED_STEPS
    assert taken[: 4 * TRIED_STEPS] == expected
    assert set(taken[4 * TRIED_STEPS :]) == {4}


def test_a_busy_computer_on_which_two_threads_are_slower_gets_one():
    assert set(tried({1: 1.0, 2: 5.0}, most=2)[2 * TRIED_STEPS :]) == {1}


def test_no_more_threads_are_taken_than_there_are():
    assert max(tried({1: 1.0, 2: 0.6}, most=3)) == 2


def test_a_training_that_tries_threads_learns_the_same_and_gives_them_back(simulation, monkeypatch):
    monkeypatch.setattr("napari_xcebra.learn.device.LONG_STEP", 0.0)
    torch.set_num_threads(2)
    settings = FitSettings(steps=12, batch_size=64, lambda_=0.1, threads=0)
    tries = Training(simulation.recording, simulation.factors, settings)
    list(tries.run())
    assert torch.get_num_threads() == 2
    usual = Training(
        simulation.recording, simulation.factors, FitSettings(**{**vars(settings), "threads": 1})
    )
    list(usual.run())
    for mine, other in zip(tries.encoder.parameters(), usual.encoder.parameters(), strict=True):
        np.testing.assert_allclose(mine.detach(), other.detach(), atol=1e-3)
