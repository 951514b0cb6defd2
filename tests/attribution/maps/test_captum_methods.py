"""Captum's methods, streamed."""

import numpy as np
import pytest
import torch

from napari_xcebra.attribution import attribute, auroc
from napari_xcebra.attribution.methods import method_named
from napari_xcebra.attribution.stream import make_stream

SLOW = ("integrated-gradients", "feature-ablation", "shapley-zeros", "shapley-shuffled")


@pytest.mark.parametrize("method", SLOW)
def test_every_method_ranks_the_cells_that_carry_z2_above_the_others(trained, simulation, method):
    result = attribute(trained, simulation.recording, method, frames=slice(None, None, 30))
    assert auroc(result.score("z2"), simulation.truth["z2"]) > 0.8


def joined(method, stream):
    with torch.no_grad():
        return torch.cat(list(method_named(method).compute(stream)))


@pytest.mark.parametrize("name", ["trained", "windowed"])
def test_integrated_gradients_add_up_to_the_change_of_the_embedding(name, request, recording):
    stream = make_stream(request.getfixturevalue(name), recording, slice(100, 120))
    x = stream.inputs(stream.frames)
    change = stream.encoder(x) - stream.encoder(torch.zeros_like(x))
    total = joined("integrated-gradients", stream).flatten(2).sum(2)
    torch.testing.assert_close(total, change, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", ["trained", "windowed"])
def test_feature_ablation_puts_one_cell_with_all_its_lags_at_its_mean(name, request, recording):
    stream = make_stream(request.getfixturevalue(name), recording, slice(100, 110))
    local = joined("feature-ablation", stream)
    x = stream.inputs(stream.frames)
    for cell in (0, 11):
        without = x.clone()
        without[:, cell] = 0
        change = stream.encoder(x) - stream.encoder(without)
        found = local[:, :, cell]
        expected = change if found.ndim == 2 else change[..., None].expand_as(found)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("method", ["shapley-zeros", "shapley-shuffled"])
def test_the_same_seed_gives_the_same_shapley_values(trained, recording, method):
    def scores(seed):
        return attribute(trained, recording, method, frames=slice(0, 60), seed=seed).latent_scores

    np.testing.assert_array_equal(scores(1), scores(1))
    assert not np.allclose(scores(1), scores(2), equal_nan=True)


def test_the_global_generators_are_left_as_they_were(trained, recording):
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    expected = torch.rand(1).item(), np.random.rand()  # noqa: NPY002
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    attribute(trained, recording, "shapley-shuffled", frames=slice(0, 60))
    assert (torch.rand(1).item(), np.random.rand()) == expected  # noqa: NPY002
