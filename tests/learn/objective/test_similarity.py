"""ψ: what the penalty is taken of on the sphere, and which temperatures are learned."""

from __future__ import annotations

import pytest
import torch
from quick_settings import quick

from napari_xcebra.learn.data.factors import Factor, Part
from napari_xcebra.learn.model import make_encoder
from napari_xcebra.learn.objective.loss import LEAST_TEMPERATURE, Psi, penalty_directions
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.learn.training.training import Training
from napari_xcebra.simulate import box


@pytest.fixture(scope="module")
def simulation():
    return box(frames=3000, seed=1)


def parts_of(*similarities):
    sizes = enumerate(similarities)
    return tuple(Part(f"p{n}", (), 2 * n, 2 * n + 2, kind, 0.3) for n, kind in sizes)


def test_on_the_sphere_the_penalty_is_of_the_unit_vectors_that_are_compared():
    parts = parts_of("dot", "euclidean")
    psi = Psi(parts, FitSettings(), torch.device("cpu"))
    encoder = make_encoder(6, 4, (16, 16, 8), bound=20.0)
    x = torch.randn(3, 6)

    def compared(frame):
        f = encoder(frame[None])[0]
        sphere = torch.nn.functional.normalize(f[:2], dim=0) / (2 * 0.3) ** 0.5
        return torch.cat([sphere, f[2:] / 0.3**0.5])

    expected = [torch.func.jacrev(compared)(frame).square().sum() for frame in x]
    embedding, activations = encoder.trace(x)
    directions = psi.tangent(penalty_directions(3, psi.scale()), embedding)
    found = encoder.pullback(directions, activations).square().flatten(1).sum(1)
    torch.testing.assert_close(found, torch.stack(expected))


def test_on_the_sphere_a_larger_output_costs_no_penalty(simulation):
    training = Training(simulation.recording, None, quick(mode="time", similarity="dot"))
    x = training.data[training.split.training.anchors[:40]]
    directions = penalty_directions(40, training.psi.scale())
    with torch.no_grad():
        before = training.objective.embed(x, directions)[1]
        training.encoder.weights[-1].mul_(0.1)
        training.encoder.layers[-1].bias.mul_(0.1)
        after = training.objective.embed(x, directions)[1]
    torch.testing.assert_close(after, before, rtol=0.05, atol=0.0)  # the bound bends a little


def test_a_temperature_that_was_given_is_not_learned(simulation):
    factors = {"z2": Factor(("z2",), temperature=0.7)}
    training = Training(simulation.recording, factors, quick(temperature="learned", steps=30))
    before = training.psi.log_temperature.detach().exp().tolist()
    for _ in training.run():
        pass
    after = training.psi.log_temperature.detach().exp().tolist()
    assert after[0] == pytest.approx(0.7)
    assert after[1] != pytest.approx(before[1])


def test_a_learned_temperature_has_a_floor(simulation):
    training = Training(simulation.recording, None, quick(mode="time", temperature="learned"))
    with torch.no_grad():
        training.psi.log_temperature.fill_(-50.0)
    assert training.psi.scale().max().item() == pytest.approx(LEAST_TEMPERATURE**-0.5)
