"""Cells are hidden at random, frame by frame, and what is seen keeps its size on average."""

import numpy as np
import pytest
import torch
from quick_settings import quick

from napari_xcebra.learn import Training
from napari_xcebra.learn.device import FrameData


def hidden_from(x, most, seed, window=1):
    """What is seen of all frames that have a whole window."""
    data = FrameData(x.numpy(), window, torch.device("cpu"))
    return data.seen(np.arange(window // 2, len(x) - window // 2), most, seed).clone()


def ones(frames=4000, cells=30):
    return torch.ones(frames, cells)


def test_the_same_seed_hides_the_same_cells_and_another_seed_others():
    first, again, other = (hidden_from(ones(50), 0.5, seed) for seed in (3, 3, 4))
    torch.testing.assert_close(first, again, rtol=0, atol=0)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("most", [0.2, 0.5, 0.9])
def test_on_average_every_cell_keeps_its_value(most):
    found = hidden_from(ones(), most, 0)
    assert float(found.mean()) == pytest.approx(1, abs=0.01)
    error = float(found.std()) / 4000**0.5
    assert (found.mean(0) - 1).abs().max() < 5 * error


def test_the_share_that_is_hidden_is_drawn_for_every_frame_up_to_the_largest():
    share = (hidden_from(ones(2000, 1000), 0.5, 0) == 0).float().mean(1)
    assert float(share.max()) < 0.57
    assert float(share.min()) < 0.02
    assert float(share.mean()) == pytest.approx(0.25, abs=0.02)


def test_nothing_is_hidden_where_the_share_is_zero():
    x = torch.randn(40, 12)
    torch.testing.assert_close(hidden_from(x, 0.0, 0), x, rtol=0, atol=0)


def test_a_cell_is_hidden_at_all_lags_of_a_window():
    found = hidden_from(ones(300, 20), 0.9, 0, window=5)
    assert (found == found[:, :, :1]).all()
    assert (found == 0).any()


def test_the_seed_of_the_user_is_left_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    hidden_from(ones(20), 0.5, 0)
    torch.testing.assert_close(torch.rand(3), expected, rtol=0, atol=0)


def test_every_step_hides_other_cells_and_the_same_step_the_same(simulation, monkeypatch):
    training = Training(simulation.recording, None, quick(mode="time"))
    frames = training.split.training.anchors[:40]
    gather, hidden = training.data.seen, []

    def watched(batch, hide, seed):
        hidden.append((hide, seed))
        return gather(batch, hide, seed)

    monkeypatch.setattr(training.data, "seen", watched)
    for step in (0, 0, 1):
        training.step = step
        training._train_step()
    first, again, other = (gather(frames, *each).clone() for each in hidden)
    torch.testing.assert_close(again, first, rtol=0, atol=0)
    assert not torch.equal(other, first)


def test_fewer_cells_are_hidden_where_a_regression_tells_nearly_everything(simulation):
    """Without noise every cell counts."""
    clean = Training(simulation.recording, simulation.factors, quick())
    assert 0 < clean.hide < quick().hide
    unseen = Training(simulation.recording, simulation.factors, quick(hide=0.0))
    frames = unseen.split.training.anchors[:40]
    assert unseen.hide == 0
    torch.testing.assert_close(
        unseen.data.seen(frames, unseen.hide, 0), unseen.data[frames], rtol=0, atol=0
    )
