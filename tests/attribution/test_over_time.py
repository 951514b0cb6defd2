"""What is computed a stretch at a time is what would be computed at once."""

import numpy as np
import pytest

from napari_xcebra.attribution import AttributionStopped, attribute
from napari_xcebra.attribution import stream as streaming
from napari_xcebra.attribution.over_time import embedding_by_frame, scores_by_frame


@pytest.mark.parametrize("name", ["trained", "windowed"])
def test_an_embedding_in_stretches_is_the_embedding(name, request, recording, monkeypatch):
    fit = request.getfixturevalue(name)
    monkeypatch.setattr(streaming, "ROW_BYTES", 4 * recording.n_cells * 100)
    whole = fit.embed(recording)
    np.testing.assert_allclose(embedding_by_frame(fit, recording), whole, rtol=1e-4, atol=1e-4)
    some = np.array([990, 5, 2001, 1003])
    np.testing.assert_allclose(
        embedding_by_frame(fit, recording, some), whole[np.sort(some)], rtol=1e-4, atol=1e-4
    )


def test_frames_that_cannot_be_seen_have_no_embedding(trained, recording):
    assert np.isnan(embedding_by_frame(trained, recording, slice(2000, 2010))).all()


def test_scores_of_some_latents_are_their_mean(trained, recording):
    part, frames = trained.part("time"), slice(0, 40)
    each = [
        scores_by_frame(trained, recording, slice(i, i + 1), frames=frames)
        for i in range(part.start, part.stop)
    ]
    together = attribute(trained, recording).over_time("time", frames)
    np.testing.assert_allclose(np.mean(each, axis=0), together, rtol=1e-4)


def test_both_report_and_can_be_stopped(trained, recording, monkeypatch):
    monkeypatch.setattr(streaming, "ROW_BYTES", 4 * recording.n_cells * 100)
    seen = []

    def watch(done, total):
        seen.append((done, total))

    def stop():
        return len(seen) % 3 == 0

    with pytest.raises(AttributionStopped, match="300 of 1000"):
        embedding_by_frame(trained, recording, slice(0, 1000), on_progress=watch, stop=stop)
    with pytest.raises(AttributionStopped, match="300 of 1000"):
        scores_by_frame(
            trained,
            recording,
            slice(0, 1),
            "inverted-neuron-gradient",
            slice(0, 1000),
            on_progress=watch,
            stop=stop,
        )
    assert seen == [(100, 1000), (200, 1000), (300, 1000)] * 2
