"""The animal is the unit: what chance gives, what so few animals can give, and what cells would."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ks_1samp, mannwhitneyu, permutation_test, uniform

from napari_xcebra.batch import permutation
from napari_xcebra.batch.permutation import compare_animals, enough, holm


def between(*groups):
    """A table of animals that each have one condition."""
    rows = [{name: value} for name, group in zip("abc", groups, strict=False) for value in group]
    return pd.DataFrame(rows, index=[f"m{i}" for i in range(len(rows))])


def within(*columns):
    return pd.DataFrame(dict(zip("abc", columns, strict=False)))


def difference(x, y, axis):
    return np.abs(x.mean(axis) - y.mean(axis))


def test_p_is_that_of_scipy_between_and_within_animals():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=5), rng.normal(size=6) + 1
    of_scipy = {
        kind: permutation_test((x[:n], y[:n]), difference, permutation_type=kind,
                               n_resamples=np.inf, alternative="greater").pvalue
        for kind, n in (("independent", 6), ("samples", 5))
    }  # fmt: skip
    found = compare_animals(between(x, y))
    assert found.exact
    assert found.arrangements == 462
    assert found.p == pytest.approx(of_scipy["independent"])
    assert compare_animals(within(x, y[:5])).p == pytest.approx(of_scipy["samples"])


@pytest.mark.parametrize("sizes", [(4, 4), (3, 5), (2, 3, 3)])
def test_without_an_effect_p_is_uniform_though_animals_differ_and_cells_would_cry_wolf(sizes):
    """Animals differ for reasons of their own, and each has a hundred cells."""
    rng = np.random.default_rng(1)
    found, over_cells = [], []
    for _ in range(300):
        animals = [0.3 + 0.1 * rng.normal(size=size) for size in sizes]
        cells = [rng.normal(each[:, None], 0.2, (len(each), 100)) for each in animals]
        found.append(compare_animals(between(*[each.mean(1) for each in cells])).p)
        over_cells.append(mannwhitneyu(cells[0].ravel(), cells[1].ravel()).pvalue)
    found = np.array(found)
    for level in (0.05, 0.1, 0.25, 0.5):
        # never more often than the level, and about as often where the steps of p allow it
        assert np.mean(found <= level) <= level + 3 * np.sqrt(level * (1 - level) / 300)
    assert np.mean(found <= 0.5) > 0.35
    assert np.mean(np.array(over_cells) < 0.05) > 0.5


def test_drawn_arrangements_give_a_uniform_p_as_well(monkeypatch):
    monkeypatch.setattr(permutation, "MOST", 500)
    rng = np.random.default_rng(2)
    tests = [compare_animals(within(*rng.normal(size=(2, 12))), seed=i) for i in range(300)]
    assert not any(test.exact for test in tests)
    assert ks_1samp([test.p for test in tests], uniform.cdf).pvalue > 0.001
    tests = [compare_animals(between(*rng.normal(size=(2, 9))), seed=i) for i in range(300)]
    assert ks_1samp([test.p for test in tests], uniform.cdf).pvalue > 0.001


def test_differences_between_animals_do_not_hide_one_within_them():
    animals = np.arange(6.0)
    found = compare_animals(within(animals, animals + 0.1))
    assert (found.design, found.p) == ("within animals", 2 / 64)
    assert compare_animals(between(animals, animals + 0.1)).p > 0.5


def test_an_effect_that_is_there_is_found():
    found = compare_animals(between([0.1, 0.12, 0.11, 0.13], [0.3, 0.33, 0.31, 0.4]))
    assert found.p == pytest.approx(2 / 70)
    assert found.p == found.smallest
    assert not found.too_few
    assert found.sentence == (
        "a 0.115, b 0.335 (4 and 4 animals; p = 0.029 by all 70 arrangements)."
    )


@pytest.mark.parametrize("sizes", list(product((1, 2, 3, 4), repeat=2)))
def test_the_smallest_p_is_what_the_clearest_result_has(sizes):
    low = np.arange(sizes[0]) * 0.01
    high = 10 + np.arange(sizes[1]) * 0.02
    found = compare_animals(between(low, high))
    assert found.p == pytest.approx(found.smallest)


def test_too_few_animals_are_told_plainly():
    three = compare_animals(between([1, 2, 3.5], [11, 12, 13]))
    assert three.p == pytest.approx(0.1)
    assert three.sentence.endswith(
        "Too few animals to tell: no result can have p below 0.1. For p < 0.05, 4 animals in each "
        "condition are needed."
    )
    assert "6 animals are needed" in compare_animals(within([1.0, 2], [3, 4])).sentence
    assert (enough(2, False), enough(2, True), enough(3, False)) == (4, 6, 3)
    alone = compare_animals(between([1.0], []))
    assert np.isnan(alone.p)
    assert compare_animals(between([1.0], [2.0])).p == 1


def test_animals_that_lack_a_condition_are_left_out_and_named():
    table = within([1.0, 2, 3], [2, np.nan, 5])
    table.index = ["m1", "m2", "m3"]
    found = compare_animals(table)
    assert found.left_out == ("m2",)
    assert found.animals == (2, 2)


def test_holm_keeps_order_and_unknown_values():
    assert holm([0.01, np.nan, 0.04])[::2] == [0.02, 0.04]
    assert np.isnan(holm([0.01, np.nan])[1])
