"""Conditional encoding, on cells of which it is known what they follow."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.ndimage import gaussian_filter1d

from napari_xcebra.attribution import Attribution, AttributionStopped, attribute, auroc
from napari_xcebra.attribution.encoding.basis import _Basis
from napari_xcebra.attribution.encoding.model import BLOCKS, cut, make_encoding
from napari_xcebra.attribution.encoding.predictors import Predictors
from napari_xcebra.attribution.encoding.ridge import BlockSums, fit_held_out
from napari_xcebra.attribution.maps.conditional import geometric_mean, shares
from napari_xcebra.attribution.stream import make_stream
from napari_xcebra.attribution.watching import Watch
from napari_xcebra.errors import InputError
from napari_xcebra.learn import FitSettings, fit
from napari_xcebra.recording import Recording, Variable
from napari_xcebra.recording.traces import NpyTraces

FRAMES, EACH = 4000, 6
METHOD = "conditional-encoding"
UNTRAINED = FitSettings(mode="behavior", steps=1, batch_size=64, smoothing=0)
"""Without time latents the encoder plays no part."""


def slow(rng, frames=FRAMES, columns=1, over=15):
    """Noise that forgets itself within a few seconds."""
    wave = gaussian_filter1d(rng.normal(size=(frames, columns)), over, axis=0)
    return wave / wave.std(0)


@pytest.fixture(scope="module")
def correlated():
    """Cells of place, of speed, of heading and of nothing; the animal is fast in the middle."""
    rng = np.random.default_rng(0)
    place = slow(rng)[:, 0]
    speed = 1.5 * np.exp(-(place**2)) + 0.5 * slow(rng)[:, 0]
    heading = np.cumsum(0.2 * slow(rng)[:, 0]) % (2 * np.pi)
    centres = np.linspace(-1, 1, EACH)
    clean = np.hstack(
        [
            np.exp(-((place[:, None] - centres) ** 2)),
            np.tanh(np.outer(speed - speed.mean(), np.linspace(0.5, 2, EACH))),
            np.exp(np.cos(heading[:, None] - np.linspace(0, 2 * np.pi, EACH))),
            slow(rng, columns=EACH),
        ]
    )
    traces = clean / clean.std(0) + rng.normal(size=clean.shape)
    recording = Recording(
        traces,
        10.0,
        behavior={
            "x": Variable("x", place),
            "speed": Variable("speed", speed),
            "heading": Variable("heading", heading, "circular"),
            "fast": Variable("fast", speed > 1, "discrete"),
        },
    )
    factors = {"place": ["x"], "speed": ["speed"], "heading": ["heading"]}
    return recording, fit(recording, factors, UNTRAINED)


PLACE, SPEED, HEADING, NOTHING = (slice(i * EACH, (i + 1) * EACH) for i in range(4))


@pytest.fixture(scope="module")
def result(correlated):
    recording, untrained = correlated
    return attribute(untrained, recording, METHOD)


def test_a_place_cell_gets_no_score_for_the_speed_that_goes_with_place(correlated, result):
    recording, _ = correlated
    speed = recording.behavior["speed"].values[:, 0]
    alone = [abs(np.corrcoef(speed, trace)[0, 1]) for trace in recording.traces[:, PLACE].T]
    assert max(alone) > 0.3
    assert result.score("speed")[PLACE].max() < 0.1 * result.score("speed")[SPEED].min()


def test_cells_get_the_share_of_variance_that_their_own_factor_explains(result):
    # noise is half of the variance of every cell
    assert 0.2 < result.score("place")[PLACE].min() < result.score("place")[PLACE].max() < 0.55
    assert result.score("place")[SPEED].max() < 0.01
    assert result.score("speed")[HEADING].max() < 0.01


def test_an_angle_has_no_seam(result):
    """The first and the last cell prefer the seam itself, the others what lies between."""
    scores = result.score("heading")[HEADING]
    assert scores.min() > 0.35
    assert np.ptp(scores) < 0.1


def test_a_slow_cell_is_not_explained_by_a_slow_variable_it_has_nothing_to_do_with(result):
    for factor in result.factors:
        assert result.score(factor)[NOTHING].max() < 0.03


def test_without_held_out_blocks_the_same_cell_would_seem_explained():
    rng = np.random.default_rng(1)
    x, y = slow(rng, 1000, 20, over=30), slow(rng, 1000, 50, over=30)
    sums = BlockSums.empty(BLOCKS, 20, 50)
    for block, positions in enumerate(cut(np.arange(1000), 10)):
        sums.add(block, x[positions], y[positions])
    residual = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    assert np.median(1 - residual.var(0) / y.var(0)) > 0.5
    assert np.median(fit_held_out(sums).r2) < 0.05


def test_blocks_are_contiguous_and_apart_from_each_other():
    frames = np.r_[0:600, 700:1500]
    blocks = cut(frames, 10)
    assert len(blocks) == BLOCKS
    for before, after in pairwise(blocks):
        assert (np.diff(before) == 1).all()
        assert frames[after[0]] - frames[before[-1]] >= 10


def test_a_discrete_variable_is_compared_and_not_ordered(correlated):
    recording, _ = correlated
    rng = np.random.default_rng(2)
    odor = np.repeat(rng.integers(4, size=FRAMES // 20), 20)
    height = np.array([0.0, 2.0, 0.0, 2.0])
    traces = np.c_[height[odor], np.zeros((FRAMES, 3))] + rng.normal(size=(FRAMES, 4))
    recording = Recording(traces, 10.0, behavior={"odor": Variable("odor", odor, "discrete")})
    scored = attribute(fit(recording, {"odor": ["odor"]}, UNTRAINED), recording, METHOD)
    assert scored.score("odor")[0] > 0.4
    assert scored.score("odor")[1:].max() < 0.01


def test_a_value_that_is_lost_for_a_moment_changes_little(correlated, result):
    recording, untrained = correlated
    values = np.array(recording.behavior["speed"].values)
    values[::7] = np.nan
    gappy = recording.with_behavior(Variable("speed", values))
    scored = attribute(untrained, gappy, METHOD)
    for factor in ("place", "speed"):
        np.testing.assert_allclose(scored.score(factor), result.score(factor), atol=0.05)


def test_frames_at_which_a_variable_is_not_known_are_left_to_the_others(correlated, result):
    recording, untrained = correlated

    def cut(variable: Variable) -> Variable:
        values = np.array(variable.values)
        values[100:] = np.nan
        return replace(variable, values=values)

    gappy = recording.with_behavior(cut(recording.behavior["speed"]))
    tuned = result.score("place") > 0.2
    assert (attribute(untrained, gappy, METHOD).score("place")[tuned] > 0.15).all()
    nowhere = recording.with_behavior(*map(cut, recording.behavior.values()))
    with pytest.raises(InputError, match=r"known at 105 of the 4000 frames.*at least 200"):
        attribute(untrained, nowhere, METHOD)


def test_the_indicator_is_recognised_by_how_traces_lag_behind_the_variable():
    rng = np.random.default_rng(3)
    behavior = {"x": Variable("x", slow(rng, over=4))}
    noise = 0.5 * rng.normal(size=(FRAMES, 6))
    recording = Recording(noise, 10.0, behavior=behavior)
    untrained = fit(recording, {"x": ["x"]}, UNTRAINED)
    predictors = replace(Predictors.of(recording, untrained.parts, 0.0), decay=10.0)
    shown = predictors.rows(np.arange(FRAMES))[0][:, 4:10]
    recording = Recording(shown / shown.std(0) + noise, 10.0, behavior=behavior)
    assert encoding_of(untrained, recording).predictors.decay == 10.0


def test_predictors_do_not_depend_on_how_frames_are_cut(correlated):
    recording, untrained = correlated
    recording = replace(recording, starts=[0, 1000])
    predictors = replace(Predictors.of(recording, untrained.parts, 1.5), decay=5.0)
    for lag in (-5, 0, 5):
        (whole,) = predictors.rows(np.arange(900, 1100), (lag,))
        pieces = [predictors.rows(np.arange(i, i + 50), (lag,))[0] for i in range(900, 1100, 50)]
        np.testing.assert_allclose(np.vstack(pieces), whole, atol=0.02)


def encoding_of(trained, recording):
    stream = make_stream(trained, recording)
    return make_encoding(stream, Watch(len(stream.frames), None, None))


def test_a_cell_is_scored_beside_latents_that_do_not_know_it(trained, recording):
    before = encoding_of(trained, recording)
    traces = np.array(recording.traces)
    columns = trained.inputs.columns(recording)
    traces[:, columns[before.groups[0]]] += np.random.default_rng(0).normal(size=(len(traces), 1))
    after = encoding_of(trained, replace(recording, traces=traces))
    np.testing.assert_allclose(after.latents[0], before.latents[0], atol=1e-4)
    assert np.abs(after.latents[1] - before.latents[1]).max() > 0.01


def test_no_majority_of_cells_takes_the_variable_for_the_state():
    """Most cells rise with a variable, the others with a state that is independent of it."""
    rng = np.random.default_rng(4)
    state, speed = slow(rng)[:, 0], slow(rng)[:, 0]
    carries = np.arange(40) < 28
    clean = np.where(carries, np.tanh(speed)[:, None], np.tanh(state)[:, None])
    traces = clean / clean.std(0) + rng.normal(size=clean.shape)
    recording = Recording(traces, 10.0, behavior={"speed": Variable("speed", speed)})
    settings = FitSettings(steps=100, batch_size=256)
    scored = attribute(fit(recording, {"speed": ["speed"]}, settings), recording, METHOD)
    assert scored.score("speed")[carries].min() > 0.2
    assert scored.score("speed")[~carries].max() < 0.05


def test_a_cell_must_follow_the_variable_beside_the_others_and_beside_the_state():
    one, other = np.array([0.4, 0.4, 0.4, -0.1]), np.array([0.4, 0.1, -0.01, 0.2])
    np.testing.assert_allclose(geometric_mean(one, other), [0.4, 0.2, -0.01, -0.1])


def test_what_was_visited_for_a_moment_does_not_spoil_another_block():
    """A column that is hardly there while weights are found, and often where they are used."""
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(1000, 3)), rng.normal(size=(1000, 8))
    x[:, 2] = 0
    x[:2, 2], x[900:, 2] = 0.01, 1
    sums = BlockSums.empty(BLOCKS, 3, 8)
    for block in range(BLOCKS):
        sums.add(block, x[block * 100 :][:100], y[block * 100 :][:100])
    assert fit_held_out(sums).r2.min() > -0.2


def test_the_hidden_latents_of_the_box_are_found_in_the_cells_they_reach(trained, simulation):
    scored = attribute(trained, simulation.recording, METHOD)
    z2 = simulation.truth["z2"]
    # in 3,000 frames, 0.88 to 0.93 over eight seeds; 1.00 in 20,000
    assert auroc(scored.score("z2"), z2) > 0.85
    assert np.nanmedian(scored.score("z2")[z2]) > 0.1
    assert np.nanmax(scored.score("z2")[~z2]) < 0.1
    assert np.nanmedian(scored.score("time")) > 0.05


def test_cells_that_were_not_used_get_no_score(trained, recording, unused):
    scored = attribute(trained, recording, METHOD)
    assert list(np.flatnonzero(~scored.used)) == unused


def test_there_are_no_scores_for_latents_and_it_says_so(result):
    with pytest.raises(InputError, match="no scores for single latents"):
        result.latent("place", 0)


def test_over_time_it_is_the_generative_gradient(correlated, result):
    recording, untrained = correlated
    other = attribute(untrained, recording, "generative-gradient")
    frames = slice(0, 50)
    np.testing.assert_array_equal(
        result.over_time("place", frames), other.over_time("place", frames)
    )


def test_it_comes_back_from_its_file(result, tmp_path):
    back = Attribution.load(result.to_npz(tmp_path / "attribution.npz"))
    np.testing.assert_array_equal(back.score("speed"), result.score("speed"))
    assert not back.has_latents
    assert "shares of variance" in back.notes[0]
    pd.testing.assert_frame_equal(back.table("speed"), result.table("speed"))


def test_traces_on_disk_give_the_same_scores(correlated, result, tmp_path):
    recording, untrained = correlated
    np.save(tmp_path / "traces.npy", recording.traces)
    lazy = replace(recording, traces=NpyTraces(tmp_path / "traces.npy", cells_first=False))
    scored = attribute(untrained, lazy, METHOD)
    np.testing.assert_allclose(scored.score("place"), result.score("place"), rtol=1e-5)


def test_it_reports_and_can_be_stopped(correlated):
    recording, untrained = correlated
    told = []
    attribute(untrained, recording, METHOD, on_progress=lambda *at: told.append(at))
    assert told == sorted(told)
    assert told[-1] == (FRAMES, FRAMES)
    with pytest.raises(AttributionStopped, match="of 4000 frames"):
        attribute(untrained, recording, METHOD, stop=lambda: True)


def test_a_sharp_field_keeps_its_share_of_the_variance():
    """10 cm of a track of 2 m, and a grid of 5 bumps: coarse columns hold little of either."""
    rng = np.random.default_rng(7)
    track = np.mod(np.cumsum(1.5 + 0.5 * slow(rng, columns=1)[:, 0]), 200.0)
    away = np.abs(track - 80)
    clean = np.c_[np.exp(-0.5 * (away / 5) ** 2), np.cos(2 * np.pi * track / 40)]
    traces = clean / clean.std(0) + rng.normal(size=clean.shape)
    recording = Recording(traces, 10.0, behavior={"x": Variable("x", track)})
    untrained = fit(recording, {"x": ["x"]}, UNTRAINED)
    scored = attribute(untrained, recording, METHOD)
    assert scored.score("x").min() > 0.4  # noise is half of the variance


def test_a_cell_that_leads_or_follows_keeps_its_score_and_tells_its_lag():
    rng = np.random.default_rng(8)
    speed = slow(rng, FRAMES + 40, over=3)[:, 0]
    lags = np.array([-5, -3, 0, 3, 5])  # frames by which the cell follows
    clean = np.stack([speed[20 - lag : 20 - lag + FRAMES] for lag in lags], axis=1)
    traces = clean + rng.normal(size=clean.shape)
    behavior = {"speed": Variable("speed", speed[20 : 20 + FRAMES])}
    recording = Recording(traces, 10.0, behavior=behavior)
    untrained = fit(recording, {"speed": ["speed"]}, UNTRAINED)
    table = attribute(untrained, recording, METHOD).table("speed")
    assert table["score"].min() > 0.4
    np.testing.assert_allclose(table["lag"], lags / 10, atol=0.11)
    assert table["lag_error"].max() < 0.1


def test_a_cell_in_which_speed_scales_a_place_field_is_found_for_both(correlated):
    recording, _ = correlated
    rng = np.random.default_rng(9)
    place, other = slow(rng, columns=2).T
    speed = np.exp(0.5 * slow(rng)[:, 0])
    clean = np.c_[speed * np.exp(-2 * (place - 0.5) ** 2), np.exp(-2 * (place - 0.5) ** 2), other]
    traces = clean / clean.std(0) + 0.5 * rng.normal(size=clean.shape)
    behavior = {"x": Variable("x", place), "speed": Variable("speed", speed)}
    recording = Recording(traces, 10.0, behavior=behavior)
    untrained = fit(recording, {"place": ["x"], "speed": ["speed"]}, UNTRAINED)
    result = attribute(untrained, recording, METHOD)
    both_, place_only, neither = result.table("speed")["interaction"]
    assert both_ > 0.03 and abs(place_only) < 0.01 and abs(neither) < 0.01
    assert result.score("speed")[0] > 5 * max(result.score("speed")[1:])
    assert (
        "In 1 cell with mixed selectivity, speed scales the tuning to another factor"
        in " ".join(result.notes)
    )


def test_the_interval_holds_the_score_and_what_is_not_noise_is_told(result):
    table = result.table("place")
    used = slice(0, EACH)
    assert (table["low"] <= table["score"] + 1e-6).all()
    assert (table["high"] >= table["score"] - 1e-6).all()
    assert table["low"][used].min() > 0.1
    # noise from frame to frame is half of the variance of every cell
    np.testing.assert_allclose(
        table["of_explainable"][used], np.minimum(2 * table["score"][used], 1), atol=0.1
    )


def test_a_cell_that_rises_or_falls_has_a_sign(correlated):
    recording, _ = correlated
    speed = recording.behavior["speed"].values[:, 0]
    rng = np.random.default_rng(10)
    clean = np.c_[speed, -speed, (speed - speed.mean()) ** 2]
    traces = clean / clean.std(0) + 0.5 * rng.normal(size=clean.shape)
    recording = replace(recording, traces=traces, cell_ids=None, accepted=None)
    signs = attribute(fit(recording, {"s": ["speed"]}, UNTRAINED), recording, METHOD).table("s")
    assert list(signs["sign"][:2]) == [1, -1]
    heading = attribute(fit(recording, {"h": ["heading"]}, UNTRAINED), recording, METHOD)
    assert heading.table("h")["sign"].isna().all()


def test_sparse_events_are_scored_as_they_were_learned():
    """Frame by frame a place cell of few events has hardly any variance that a field explains."""
    rng = np.random.default_rng(11)
    place = slow(rng)[:, 0]
    events = rng.poisson(0.4 * np.exp(-4 * (place - 0.5) ** 2))[:, None] * np.ones(2)
    events[:, 1] = rng.permutation(events[:, 1])
    recording = Recording(events, 10.0, behavior={"x": Variable("x", place)})
    scores = [
        attribute(
            fit(recording, {"x": ["x"]}, replace(UNTRAINED, smoothing=seconds)), recording, METHOD
        ).score("x")
        for seconds in (0.0, 0.5)
    ]
    assert scores[1][0] > 2 * scores[0][0] > 0
    assert scores[1][1] < 0.05


def test_columns_of_a_basis_are_uncorrelated_and_rise_with_the_variable_first(correlated):
    recording, untrained = correlated
    predictors = Predictors.of(recording, untrained.parts, 0.0)
    frames = np.arange(FRAMES)
    basis: _Basis = predictors.bases["place"]
    rows = basis.rows(frames) * basis.order
    np.testing.assert_allclose(rows.T @ rows / FRAMES, np.eye(basis.width), atol=0.02)
    x = recording.behavior["x"].values[:, 0]
    assert np.corrcoef(rows[:, 0], x)[0, 1] > 0.9
    assert basis.expansion.slopes([x])[0, :, 0].mean() > 0


def test_shares_of_the_factors_leave_nothing_out(correlated):
    """Of independent variables the shares add up to what all of them predict together."""
    recording, untrained = correlated
    stream = make_stream(untrained, recording)
    watch = Watch(len(stream.frames), None, None)
    encoding = make_encoding(stream, watch)
    models = encoding.models(watch)
    found = shares(encoding, models, watch, thorough=False)
    total = np.empty(len(encoding.lags))
    for batch, model in zip(encoding.batches, models, strict=True):
        total[batch.cells] = model.observed.r2[np.arange(len(batch.cells))]
    heading = found.scores()[2][HEADING]
    np.testing.assert_allclose(heading, total[HEADING], atol=0.06)
