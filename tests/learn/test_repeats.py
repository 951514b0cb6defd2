"""Several fits through an executor come in their order, and end when they are stopped."""

from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace

import pytest

from napari_xcebra.learn import FitSettings
from napari_xcebra.learn.fitting import Repeat, fit_each
from napari_xcebra.simulate import box


@pytest.fixture(scope="module")
def simulation():
    return box(frames=1500, cells=(8, 8))


@pytest.fixture(scope="module")
def repeats(simulation):
    settings = FitSettings(steps=6, batch_size=64, hidden_units=16, smoothing=0, lambda_=0.05)
    return [Repeat(simulation.factors, replace(settings, seed=seed)) for seed in (2, 0, 1)]


def test_fits_through_an_executor_come_in_their_order(simulation, repeats):
    told = []
    with ThreadPoolExecutor(1) as executor:
        found = list(
            fit_each(
                simulation.recording,
                repeats,
                executor=executor,
                on_progress=lambda *done: told.append(done),
            )
        )
    assert [each.settings.seed for each in found] == [2, 0, 1]
    here = list(fit_each(simulation.recording, repeats[:1]))
    assert found[0].goodness["z2"].goodness == pytest.approx(here[0].goodness["z2"].goodness)
    assert {total for _, total in told} == {18}


class Stalled(Executor):
    """Takes calls, and never comes to them."""

    def __init__(self):
        self.futures = []

    def submit(self, *_, **__):
        self.futures.append(Future())
        return self.futures[-1]


def test_a_stop_abandons_what_waits(simulation, repeats):
    executor = Stalled()
    found = list(fit_each(simulation.recording, repeats, executor=executor, stop=lambda: True))
    assert found == []
    assert all(future.cancelled() for future in executor.futures)
