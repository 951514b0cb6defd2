"""Adam moves parameters as torch's does."""

import subprocess
import sys

import torch
from torch import nn

from napari_xcebra.learn.training.training import _Adam


def parameters():
    generator = torch.Generator().manual_seed(0)
    shapes = [(3, 2), (3,), (1, 3)]
    drawn = [nn.Parameter(torch.randn(*shape, generator=generator)) for shape in shapes]
    drawn.append(nn.Parameter(torch.ones(2), requires_grad=False))
    return drawn


def loss_of(weight, bias, last, constant):
    return (last @ torch.tanh(weight @ constant + bias)).square().sum()


def taken(adam, given, steps):
    for rate in steps:
        adam.zero_grad()
        loss_of(*given).backward()
        adam.step(rate)


def test_steps_are_those_of_torch():
    ours, theirs = parameters(), parameters()
    rates = [0.1, 0.1, 0.01, 0.01, 0.2]
    taken(_Adam(ours), ours, rates)
    reference = torch.optim.Adam([p for p in theirs if p.requires_grad])
    for rate in rates:
        reference.param_groups[0]["lr"] = rate
        reference.zero_grad()
        loss_of(*theirs).backward()
        reference.step()
    for mine, other, first in zip(ours, theirs, parameters(), strict=True):
        torch.testing.assert_close(mine, other)
        assert torch.equal(mine, first) != mine.requires_grad


def test_a_parameter_may_have_a_share_of_the_rate():
    usual, slowed, before = parameters(), parameters(), parameters()
    taken(_Adam(usual), usual, [0.1])
    taken(_Adam(slowed, {slowed[0]: 0.25}), slowed, [0.1])
    torch.testing.assert_close(slowed[0] - before[0], 0.25 * (usual[0] - before[0]))
    torch.testing.assert_close(slowed[2], usual[2])


def test_a_state_that_is_put_back_goes_on_as_before():
    whole, parted = parameters(), parameters()
    taken(_Adam(whole), whole, [0.1] * 5)
    first = _Adam(parted)
    taken(first, parted, [0.1] * 2)
    second = _Adam(parted)
    second.load_state_dict(first.state_dict())
    taken(second, parted, [0.1] * 3)
    for mine, other in zip(parted, whole, strict=True):
        assert torch.equal(mine, other)


def test_a_training_does_without_the_compiler_of_torch():
    """Its import takes longer than a hundred steps."""
    run = (
        "import sys; from napari_xcebra.learn import FitSettings, fit;"
        "from napari_xcebra.simulate import box; simulation = box(frames=2000);"
        "fit(simulation.recording, simulation.factors, FitSettings(steps=2));"
        "sys.exit('torch._dynamo' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", run], check=False).returncode == 0
