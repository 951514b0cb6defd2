"""The summary over frames, progress and stopping."""

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from napari_xcebra.attribution import AttributionStopped, attribute, scoring
from napari_xcebra.attribution import stream as streaming
from napari_xcebra.learn.model.encoder import CUT_OFF, inverse


@pytest.mark.parametrize("aggregate", ["mean", "median", "max"])
def test_the_aggregate_is_that_of_the_absolute_local_scores(trained, recording, aggregate):
    result = attribute(
        trained, recording, "inverted-neuron-gradient", aggregate=aggregate, frames=slice(0, 500)
    )
    stream = streaming.make_stream(trained, recording, slice(0, 500))
    jacobian = stream.encoder.jacobian(stream.inputs(stream.frames))
    local = np.abs(inverse(jacobian, stream.scale, CUT_OFF).numpy())
    scores = result.latent_scores[:, trained.inputs.columns(recording)]
    np.testing.assert_allclose(scores, getattr(np, aggregate)(local, axis=0), rtol=1e-3)


def test_a_median_that_does_not_fit_is_taken_over_evenly_spaced_frames(
    trained, recording, monkeypatch
):
    exact = attribute(trained, recording, "inverted-neuron-gradient", aggregate="median")
    assert exact.notes == ()
    assert exact.n_frames == 2990
    monkeypatch.setattr(scoring, "MEDIAN_BYTES", exact.latent_scores.size * 4 * 600)
    thinned = attribute(trained, recording, "inverted-neuron-gradient", aggregate="median")
    assert 600 <= thinned.n_frames < 700
    assert thinned.notes == (f"Taken over {thinned.n_frames} evenly spaced frames of 2990.",)
    correlation = np.corrcoef(
        thinned.score("z2")[~np.isnan(thinned.score("z2"))],
        exact.score("z2")[~np.isnan(exact.score("z2"))],
    )
    assert correlation[0, 1] > 0.95


def test_it_stops_after_the_chunk_at_hand(trained, recording, monkeypatch):
    monkeypatch.setattr(streaming, "CHUNK_BYTES", streaming.CHUNK_BYTES // 50)
    done = []
    with pytest.raises(AttributionStopped, match="of 2990 frames"):
        attribute(
            trained,
            recording,
            on_progress=lambda frames, _: done.append(frames),
            stop=lambda: len(done) == 3,
        )
    assert len(done) == 3


def test_the_number_of_threads_is_that_of_the_settings_and_is_put_back(trained, recording):
    def threads():
        return {torch.get_num_threads()} | {
            library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
        }

    torch.set_num_threads(2)
    try:
        with threadpool_limits(2, user_api="blas"):
            seen = []
            attribute(trained, recording, on_progress=lambda *_: seen.append(threads()))
            assert seen[0] == {trained.settings.threads} == {1}
            assert threads() == {2}
    finally:
        torch.set_num_threads(1)
