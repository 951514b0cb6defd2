"""Scores, tables and files."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from napari_xcebra.attribution import METHODS, Attribution, attribute, auroc
from napari_xcebra.errors import InputError


@pytest.fixture(scope="module")
def result(trained, recording):
    return attribute(trained, recording, "inverted-neuron-gradient")


@pytest.mark.parametrize("method", ["inverted-neuron-gradient", "neuron-gradient"])
def test_the_map_of_z2_ranks_the_cells_that_carry_it_above_the_others(trained, simulation, method):
    result = attribute(trained, simulation.recording, method)
    assert auroc(result.score("z2"), simulation.truth["z2"]) > 0.85


def test_cells_that_were_not_used_keep_their_row_and_get_no_score(result, recording, unused):
    table = result.table("z2")
    assert list(table.columns[:4]) == ["cell", "score", "z", "selected"]
    assert list(table["cell"]) == list(recording.cell_ids)
    assert list(table.index[table["score"].isna()]) == unused
    assert not table["selected"][unused].any()


def test_a_factor_that_was_not_found_selects_nothing_in_any_column(trained, recording):
    """At chance, or not tested: neither cells, nor their lags, nor sentences on them."""
    for changes in ({"above_chance": False, "p": 0.4}, {"above_chance": False, "untested": "Few."}):
        changed = replace(trained.goodness["z2"], **changes)
        fitted = replace(trained, goodness={**trained.goodness, "z2": changed})
        result = attribute(fitted, recording)
        table = result.table("z2")
        assert not table["selected"].any()
        assert table[["lag", "lag_error", "sign"]].isna().all(axis=None)
        assert not [note for note in result.notes if "follow" in note or "z2" in note]
        assert not result.was_found("z2")


@pytest.mark.parametrize("method", ["generative-gradient", "neuron-gradient"])
def test_a_map_of_the_encoder_means_nothing_for_a_factor_that_it_did_not_learn(
    trained, recording, method
):
    untrained = replace(trained.goodness["z2"], learned=False)
    fitted = replace(trained, goodness={**trained.goodness, "z2": untrained})
    result = attribute(fitted, recording, method, frames=slice(0, 500))
    assert result.at_chance("z2") and not result.was_found("z2")
    assert not result.table("z2")["selected"].any()
    assert "The encoder did not learn z2: this map of it means nothing." in result.notes
    assert result.verdicts["z2"].endswith("this map of it means nothing.")
    assert attribute(fitted, recording, "conditional-encoding").was_found("z2")


def test_z_is_standardised_over_the_scored_cells_and_selects_above_zero(result):
    z = result.z("z2")
    assert abs(np.nanmean(z)) < 1e-5
    assert np.nanstd(z) == pytest.approx(1, abs=1e-5)
    np.testing.assert_array_equal(result.above("z2"), np.nan_to_num(z, nan=-1) > 0)
    assert result.above("z2", 1.0).sum() < result.above("z2").sum()


def test_the_score_of_a_factor_is_the_mean_over_its_latents(result):
    each = [result.latent("z2", i) for i in range(2)]
    np.testing.assert_allclose(result.score("z2"), np.mean(each, axis=0))
    with pytest.raises(InputError, match="no latent 2: it has 0 to 1"):
        result.latent("z2", 2)


def test_scores_over_time_average_to_the_score(result, recording):
    over_time = result.over_time("z2", frames=None)
    assert over_time.shape == recording.traces.shape
    assert np.isnan(over_time[2000:2010]).all()
    used = ~np.asarray(recording.excluded)
    np.testing.assert_allclose(over_time[used].mean(0), result.score("z2"), rtol=1e-4)


def test_smoothing_over_time_stays_within_a_trial(result):
    plain = result.over_time("z2", frames=slice(900, 1100))
    smoothed = result.over_time("z2", frames=slice(900, 1100), smooth=5)
    alone = result.over_time("z2", frames=slice(900, 1000), smooth=5)
    np.testing.assert_allclose(smoothed[:100], alone, rtol=1e-5)
    assert np.nanstd(smoothed) < np.nanstd(plain)


def test_frames_that_cannot_be_scored_are_empty_over_time(result):
    assert np.isnan(result.over_time("z2", frames=slice(2000, 2005))).all()


def test_a_factor_at_chance_is_marked_in_the_table_and_in_the_file(meaningless, result, tmp_path):
    recording, fit = meaningless
    assert not fit.goodness["mood"].above_chance
    chance = attribute(fit, recording)
    table = chance.table("mood")
    assert table["at_chance"].all()
    assert "at chance" in table.attrs["verdict"]
    assert pd.read_csv(chance.to_csv(tmp_path / "chance.csv"))["at_chance"].all()
    found = pd.read_csv(result.to_csv(tmp_path / "found.csv"))
    assert not found["at_chance"][found["factor"] == "z2"].any()


def test_the_file_has_a_row_for_every_cell_and_factor(result, recording, tmp_path):
    file = pd.read_csv(result.to_csv(tmp_path / "attribution.csv"))
    assert list(file.columns) == ["cell", "factor", "score", "z", "selected", "at_chance"]
    assert len(file) == 2 * recording.n_cells
    z2 = file[file["factor"] == "z2"]
    np.testing.assert_allclose(z2["score"], result.score("z2"), rtol=1e-6)


def test_an_attribution_comes_back_from_its_file(result, tmp_path):
    back = Attribution.load(result.to_npz(tmp_path / "attribution.npz"))
    pd.testing.assert_frame_equal(back.table("z2"), result.table("z2"))
    assert back.parts == result.parts
    assert (back.method, back.n_frames, back.notes) == (
        result.method,
        result.n_frames,
        result.notes,
    )
    with pytest.raises(InputError, match="call attribute again"):
        back.over_time("z2")


def test_a_file_of_something_else_gets_a_sentence(tmp_path):
    other = tmp_path / "other.npz"
    for write in (
        lambda: other.write_bytes(b"not an archive"),
        lambda: np.savez(other, a=1),
        lambda: np.savez(other, about=np.array([{"kind": "x"}], object)),
    ):
        write()
        with pytest.raises(InputError, match="does not hold an attribution"):
            Attribution.load(other)


@pytest.mark.parametrize("save", ["to_csv", "to_npz"])
def test_an_interrupted_save_leaves_the_earlier_file_intact(result, tmp_path, monkeypatch, save):
    path = tmp_path / "attribution.out"
    getattr(result, save)(path)
    before = path.read_bytes()

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(pd.DataFrame, "to_csv", interrupted)
    monkeypatch.setattr(np, "savez", interrupted)
    with pytest.raises(KeyboardInterrupt):
        getattr(result, save)(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_an_unknown_factor_or_method_gets_a_sentence(result, trained, recording):
    with pytest.raises(InputError, match="no factor 'speed' here; there are: z2, time"):
        result.table("speed")
    with pytest.raises(InputError, match="no attribution method 'magic'; there are: both-"):
        attribute(trained, recording, "magic")
    with pytest.raises(InputError, match="aggregate is 'sum': one of mean, median, max"):
        attribute(trained, recording, aggregate="sum")
    assert next(iter(METHODS)) == attribute(trained, recording).method == "both-routes"
