"""Traces are chosen by what there is and what is asked for."""

import pickle
from pathlib import Path

import numpy as np
import pytest

import napari_xcebra.recording.traces
from napari_xcebra.errors import InputError
from napari_xcebra.io.assemble import (
    _bin_means,
    _chosen_traces,
    _RelativeTraces,
    _StandardTraces,
    available,
)
from napari_xcebra.io.extraction import Extraction
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.recording.traces import LazyTraces, NpyTraces

RNG = np.random.default_rng(0)
RATE = 10.0
FRAMES, CELLS = 3000, 5
BLEACHING = np.linspace(120, 80, FRAMES)[:, None] * np.linspace(1, 3, CELLS)
EVENTS = np.zeros((FRAMES, CELLS))
EVENTS[500::700] = 1
TRUE_DFF = np.array([np.convolve(e, np.exp(-np.arange(30) / 8))[:FRAMES] for e in EVENTS.T]).T
F = (BLEACHING * (1 + TRUE_DFF)).astype(np.float32)


def chosen(signals, **choices):
    coefficient = choices.pop("coefficient", None)
    found = Extraction(signals, neuropil_coefficient=coefficient)
    _, choice = _chosen_traces(found, OpenSettings(**choices), RATE, Path("plane0"))
    return np.asarray(choice.traces), choice.how


@pytest.mark.parametrize(
    ("signals", "kinds"),
    [
        (["fluorescence"], ["dff", "raw", "zscored"]),
        (["fluorescence", "neuropil", "events"],
         ["dff", "corrected", "raw", "events", "zscored"]),
        (["denoised", "dff", "events"], ["dff", "denoised", "events", "zscored"]),
        (["denoised"], ["denoised", "zscored"]),
        (["traces"], ["raw", "zscored"]),
        (["events"], ["events", "zscored"]),
    ],
)  # fmt: skip
def test_what_can_be_made_depends_on_what_was_extracted(signals, kinds):
    found = Extraction(dict.fromkeys(signals, F))
    assert list(available(found, OpenSettings(), RATE)) == kinds


def test_a_kind_that_cannot_be_made_is_refused_with_those_that_can():
    with pytest.raises(InputError, match="plane0 has no events traces; it has: raw, zscored"):
        chosen({"traces": F}, traces="events")


def test_neuropil_is_taken_away_by_the_share_of_the_source_or_the_user():
    neuropil = RNG.random(F.shape).astype(np.float32)
    signals = {"fluorescence": F, "neuropil": neuropil}
    for share, choices in [
        (0.7, {}),
        (0.5, {"coefficient": 0.5}),
        (0.0, {"coefficient": 0.0}),
        (0.3, {"coefficient": 0.5, "neuropil": 0.3}),
    ]:
        traces, note = chosen(signals, traces="corrected", **choices)
        np.testing.assert_allclose(traces, F - share * neuropil, rtol=1e-5)
        assert f"minus {share:g} × neuropil" in note
    np.testing.assert_array_equal(chosen(signals, traces="raw")[0], F)
    np.testing.assert_array_equal(neuropil <= 1, True)  # the source stays as it was


def test_dff_follows_bleaching_and_keeps_the_size_of_transients():
    traces, note = chosen({"fluorescence": F})
    assert "ΔF/F: fluorescence, over a running baseline (percentile 10 of 60 s)" in note
    quiet = TRUE_DFF < 1e-3
    assert np.abs(traces[quiet]).max() < 0.05
    np.testing.assert_allclose(traces[500::700], TRUE_DFF[500::700], atol=0.1)


def test_dff_does_not_explode_where_the_baseline_is_near_zero():
    flat = RNG.normal(0, 1, F.shape).astype(np.float32)
    assert np.abs(chosen({"fluorescence": flat})[0]).max() < 10
    assert (chosen({"fluorescence": np.zeros_like(F)})[0] == 0).all()
    assert (chosen({"fluorescence": np.full_like(F, -3)})[0] == 0).all()


def test_dff_of_a_recording_shorter_than_the_window_is_over_one_baseline():
    for frames in (1, 2, 40):
        traces, _ = chosen({"fluorescence": F[:frames]}, baseline_percentile=0)
        assert traces.shape == (frames, CELLS)
        assert np.abs(traces).max() < 0.01


@pytest.mark.parametrize("kind", [lambda t: _RelativeTraces(t, 600, 10), _StandardTraces])
def test_a_gap_stays_where_it_is(kind):
    gaps = F.copy()
    gaps[100:104] = np.nan
    gaps[1000:1100, 2] = np.inf
    gaps[:, 4] = np.nan
    made, whole = (kind(t).block(slice(0, FRAMES), slice(0, CELLS)) for t in (gaps, F))
    np.testing.assert_array_equal(np.isfinite(made), np.isfinite(gaps))
    scale = np.abs(whole).max()
    np.testing.assert_allclose(
        made[:, [0, 1, 3]][104:], whole[:, [0, 1, 3]][104:], atol=0.05 * scale
    )


@pytest.mark.parametrize("kind", [lambda t: _RelativeTraces(t, 600, 10), _StandardTraces])
def test_any_part_is_the_part_of_the_whole(kind, monkeypatch):
    whole = np.asarray(kind(F))
    monkeypatch.setattr(
        napari_xcebra.recording.traces, "BLOCK_BYTES", 4 * FRAMES * 2
    )  # two cells a group
    by_part = kind(F)
    np.testing.assert_array_equal(by_part[700:900, [4]], whole[700:900, [4]])
    np.testing.assert_array_equal(by_part[:, 1:4], whole[:, 1:4])
    np.testing.assert_array_equal(np.asarray(by_part), whole)
    np.testing.assert_array_equal(np.asarray(pickle.loads(pickle.dumps(by_part))), whole)


def test_looking_at_a_cell_reads_its_group_only(monkeypatch):
    class Counting(LazyTraces):
        shape = F.shape
        read = 0

        def block(self, frames, cells):
            self.read += cells.stop - cells.start
            return F[frames, cells]

    monkeypatch.setattr(
        napari_xcebra.recording.traces, "BLOCK_BYTES", 4 * FRAMES
    )  # one cell a group
    source = Counting()
    traces = _RelativeTraces(source, 600, 10)
    traces[:, 3]
    assert source.read == 2  # for the baseline, and for the trace
    traces[:100, 3]
    assert source.read == 3


def test_standard_traces_have_unit_deviation_and_constant_ones_are_zero():
    constant = np.hstack([F, np.full((FRAMES, 1), 1e6 + 0.1, np.float32)])
    traces, note = chosen({"traces": constant}, traces="zscored")
    np.testing.assert_allclose(traces.mean(0), 0, atol=1e-3)
    np.testing.assert_allclose(traces.std(0)[:-1], 1, atol=1e-3)
    assert (np.abs(traces[:, -1]) < 0.2).all()
    assert "in standard deviations" in note


def test_bins_are_means_of_their_frames_and_the_last_may_be_shorter():
    np.testing.assert_allclose(_bin_means(np.arange(7.0)[:, None], 3)[:, 0], [1, 4, 6])
    gaps = np.array([[0.0], [2], [np.nan], [np.nan], [6], [8]])
    np.testing.assert_allclose(_bin_means(gaps, 2)[:, 0], [1, 4, 7])


def test_traces_on_disk_stay_there(tmp_path):
    np.save(tmp_path / "F.npy", F.T)
    signals = {"fluorescence": NpyTraces(tmp_path / "F.npy", cells_first=True)}
    _, choice = _chosen_traces(Extraction(signals), OpenSettings(), RATE, tmp_path)
    traces = choice.traces
    assert isinstance(traces, LazyTraces)
    np.testing.assert_array_equal(traces[:], chosen({"fluorescence": F})[0])
