"""Embeddings are compared after affine alignment, and the largest consistent one is suggested."""

import numpy as np
import pytest
from quick_settings import quick

from napari_xcebra.errors import InputError
from napari_xcebra.learn.quality.consistency import (
    Dimensions,
    _Dimension,
    consistency,
    suggest_dimension,
)

RNG = np.random.default_rng(0)
LATENTS = RNG.normal(size=(400, 3))


def test_an_affine_map_of_an_embedding_is_the_same_embedding():
    moved = LATENTS @ RNG.normal(size=(3, 3)) + RNG.normal(size=3)
    np.testing.assert_allclose(consistency([LATENTS, moved]), 1)


def test_unrelated_embeddings_share_nothing():
    r2 = consistency([LATENTS, RNG.normal(size=(400, 3))])
    assert r2[0, 1] < 0.05
    assert r2[1, 0] < 0.05


def test_consistency_is_the_share_of_the_variance_that_is_explained():
    noisy = LATENTS + RNG.normal(size=LATENTS.shape)
    assert consistency([LATENTS, noisy])[0, 1] == pytest.approx(0.5, abs=0.05)
    larger = np.c_[LATENTS, RNG.normal(size=(400, 1))]
    r2 = consistency([LATENTS, larger])
    assert r2[1, 0] == pytest.approx(1)
    assert r2[0, 1] == pytest.approx(0.75, abs=0.05)


def test_a_small_latent_counts_as_much_as_a_large_one():
    one, other = (np.c_[LATENTS, 0.01 * RNG.normal(size=(400, 1))] for _ in "ab")
    assert consistency([one, other])[0, 1] == pytest.approx(0.75, abs=0.05)


def test_frames_that_one_embedding_lacks_are_left_out():
    gaps = LATENTS.copy()
    gaps[:50] = np.nan
    np.testing.assert_allclose(consistency([LATENTS, gaps]), 1)


def test_a_latent_that_collapsed_takes_no_part():
    np.testing.assert_allclose(consistency([LATENTS, np.c_[LATENTS, np.zeros(400)]]), 1)


def tried(*values):
    """Numbers of time latents 1, 2, … with the given consistency of three pairs."""
    return Dimensions(tuple(_Dimension(2, i + 1, v) for i, v in enumerate(values)))


def test_the_largest_embedding_at_the_peak_is_suggested_and_the_reason_said():
    found = tried((0.8, 0.82, 0.84), (0.98, 0.99, 0.97), (0.985, 0.97, 0.98), (0.6, 0.7, 0.8))
    assert found.suggested.words == "2 + 3"
    assert found.reason.startswith("2 + 3 latents: the most at which")
    assert "try more" not in found.reason
    assert found.table()["suggested"].tolist() == [False, False, True, False]


def test_a_peak_at_the_end_of_the_range_asks_for_more():
    assert tried((0.8, 0.8, 0.8), (0.9, 0.9, 0.9)).reason.endswith("try more latents.")


def test_every_number_of_latents_is_trained_with_every_seed(simulation):
    steps = []
    found = suggest_dimension(
        simulation.recording,
        simulation.factors,
        quick(steps=10),
        time_latents=(1, 2),
        factor_latents=(2,),
        seeds=3,
        on_progress=lambda done, total: steps.append((done, total)),
    )
    assert [d.words for d in found.tried] == ["2 + 1", "2 + 2"]
    assert [len(d.r2) for d in found.tried] == [3, 3]
    assert all(0 < d.mean <= 1 for d in found.tried)
    assert steps[-1] == (60, 60)


def test_a_stop_leaves_what_can_be_compared(simulation):
    steps = []

    def tried_until(last):
        steps.clear()
        return suggest_dimension(
            simulation.recording,
            simulation.factors,
            quick(steps=10),
            time_latents=(1, 2),
            seeds=2,
            on_progress=lambda done, _: steps.append(done),
            stop=lambda: len(steps) >= last,
        )

    assert len(tried_until(3).tried) == 1
    assert tried_until(1) is None


def test_what_cannot_be_tried_is_refused_with_a_sentence(simulation):
    with pytest.raises(InputError, match="2 or more are needed"):
        suggest_dimension(simulation.recording, simulation.factors, seeds=1)
    two = {"a": ["z2"], "b": ["z2"]}
    with pytest.raises(InputError, match="for one factor only"):
        suggest_dimension(simulation.recording, two, factor_latents=(1, 2))
