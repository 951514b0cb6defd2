"""InfoNCE and the similarities, against plain formulas."""

import math

import pytest
import torch

from napari_xcebra.learn.objective import loss as objective
from napari_xcebra.learn.objective.loss import (
    _LogSumExp,
    cross_similarity,
    euclidean_info_nce,
    info_nce,
    pair_similarity,
)


def random(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def plain_info_nce(positive, negatives, include_positive):
    terms = [math.exp(n) for n in negatives] + ([math.exp(positive)] if include_positive else [])
    return -positive + math.log(sum(terms))


@pytest.mark.parametrize("include_positive", [False, True])
def test_info_nce_is_the_formula_of_the_paper(include_positive):
    positive, negative = random(7), random(7, 11, seed=1)
    expected = [
        plain_info_nce(p, n, include_positive)
        for p, n in zip(positive.tolist(), negative.tolist(), strict=True)
    ]
    found = info_nce(positive, negative, include_positive).tolist()
    assert found == pytest.approx(expected, rel=1e-12)


def test_counting_the_positive_pair_bounds_the_loss_below_by_zero():
    positive, negative = torch.full((5,), 30.0), random(5, 11).float()
    assert (info_nce(positive, negative) < -20).all()
    assert (info_nce(positive, negative, include_positive=True) >= 0).all()


def test_an_encoder_that_knows_nothing_reaches_log_n():
    zeros = torch.zeros(4, 64)
    assert info_nce(zeros[:, 0], zeros).tolist() == pytest.approx([math.log(64)] * 4)


def test_a_pair_at_minus_infinity_is_not_in_the_sum():
    positive, negative = random(5), random(5, 11)
    expected = info_nce(positive, negative[:, 1:])
    for out in (-math.inf, -1e9):
        negative[:, 0] = out
        torch.testing.assert_close(info_nce(positive, negative), expected)


@pytest.mark.parametrize("size", [1.0, 1000.0], ids=["near", "where exp underflows"])
def test_the_sum_and_its_gradient_are_those_of_torch(size):
    x = (size * random(6, 20)).requires_grad_()
    direction = random(6, seed=2)
    ours, torchs = _LogSumExp.apply(x), torch.logsumexp(x, 1)
    torch.testing.assert_close(ours, torchs)
    torch.testing.assert_close(
        torch.autograd.grad(ours, x, direction)[0], torch.autograd.grad(torchs, x, direction)[0]
    )


A = torch.tensor([[3.0, 0.0], [1.0, 1.0]])
B = torch.tensor([[0.0, 4.0], [1.0, -1.0]])


@pytest.mark.parametrize(
    ("kind", "power", "expected"),
    [
        ("euclidean", 1.0, [[-25.0, -5.0], [-10.0, -4.0]]),
        ("power", 1.0, [[-7.0, -3.0], [-4.0, -2.0]]),
        ("power", 2.0, [[-25.0, -5.0], [-10.0, -4.0]]),
        ("power", 3.0, [[-91.0, -9.0], [-28.0, -8.0]]),
        ("dot", 1.0, [[0.0, math.sqrt(0.5)], [math.sqrt(0.5), 0.0]]),
    ],
)
def test_similarities_are_those_worked_out_by_hand(kind, power, expected):
    expected = torch.tensor(expected)
    cross = cross_similarity(A, B, kind, power)
    torch.testing.assert_close(cross, expected, rtol=1e-4, atol=1e-5)
    pair = pair_similarity(A, B, kind, power)
    torch.testing.assert_close(pair, expected.diagonal(), rtol=1e-4, atol=1e-5)


def test_on_the_sphere_only_the_direction_counts():
    a, b = random(5, 3), random(5, 3, seed=1)
    expected = cross_similarity(a, b, "dot")
    torch.testing.assert_close(cross_similarity(100 * a, b / 7, "dot"), expected)
    torch.testing.assert_close(pair_similarity(a, 3 * a, "dot"), torch.ones(5).double())


@pytest.mark.parametrize(
    ("kind", "power"), [("euclidean", 1.0), ("dot", 1.0), ("power", 0.5), ("power", 1.0)]
)
def test_pairs_are_the_diagonal_of_all_with_all(kind, power):
    a, b = random(5, 3), random(5, 3, seed=1)
    cross = cross_similarity(a, b, kind, power)
    torch.testing.assert_close(pair_similarity(a, b, kind, power), cross.diagonal())


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_a_frame_like_itself_has_a_finite_gradient(power):
    a = random(5, 3).requires_grad_()
    cross_similarity(a, a.detach(), "power", power).sum().backward()
    assert torch.isfinite(a.grad).all()


@pytest.mark.parametrize("include_positive", [False, True])
@pytest.mark.parametrize("at_a_time", [1, 40, 10_000], ids=["a row", "three rows", "all"])
def test_the_quick_way_to_the_euclidean_loss_has_its_value_and_gradient(
    monkeypatch, include_positive, at_a_time
):
    monkeypatch.setattr(objective, "SIMILARITIES", at_a_time)
    a, b = random(13, 3).requires_grad_(), random(13, 3, seed=1).requires_grad_()
    negative = cross_similarity(a, a, "euclidean").fill_diagonal_(-1e9)
    expected = info_nce(pair_similarity(a, b, "euclidean"), negative, include_positive).mean()
    found = euclidean_info_nce(a, b, include_positive)
    torch.testing.assert_close(found, expected)
    for ours, plain in zip(
        torch.autograd.grad(3 * found, [a, b]),
        torch.autograd.grad(3 * expected, [a, b]),
        strict=True,
    ):
        torch.testing.assert_close(ours, plain)


def test_a_frame_far_from_all_others_has_a_finite_loss_and_gradient():
    a = random(13, 3).float()
    a[0] += 1e4
    a.requires_grad_()
    loss = euclidean_info_nce(a, a.detach() + 0.1, include_positive=True)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(a.grad).all()
