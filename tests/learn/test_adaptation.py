"""A trained encoder is carried to another day of its cells, or to others, and measured there."""

from dataclasses import replace

import numpy as np
import pytest
from quick_settings import quick

from napari_xcebra.attribution import attribute
from napari_xcebra.errors import InputError
from napari_xcebra.learn import Fit, fit
from napari_xcebra.learn.adaptation import adapt
from napari_xcebra.learn.data.inputs import Filter
from napari_xcebra.recording import Variable
from napari_xcebra.simulate import arena, drifted

FACTORS = {"direction": ["direction"]}
CELLS = {"place": 4, "grid": 0, "direction": 12, "speed": 0, "frames": 1600, "noise": 0.3}


@pytest.fixture(scope="module")
def first_day():
    return arena(**CELLS).recording


@pytest.fixture(scope="module")
def trained(first_day):
    return fit(first_day, FACTORS, quick(steps=100))


@pytest.fixture(scope="module")
def next_day():
    """The same cells on another path, brighter or darker, two of sixteen not found."""
    return drifted(arena(**CELLS, day=1), gain=0.8, baseline=3.0, lost=0.125).recording


def test_a_new_day_is_read_with_its_own_statistics(trained, next_day):
    carried = adapt(trained, next_day)
    assert carried.goodness["direction"].above_chance
    assert carried.goodness["direction"].r2 > 0.7
    assert len(carried.inputs.cell_ids) == 14
    assert "14 of 16 cells; nothing was trained" in carried.notes[0]
    assert "same id were treated as the same cells" in carried.notes[-1]
    unadapted = replace(carried, inputs=_statistics_of(trained, carried))
    assert _r2(unadapted, next_day) < _r2(carried, next_day) - 0.1
    assert len(attribute(carried, next_day).table("direction")) == 14


def _statistics_of(before: Fit, carried: Fit):
    """Inputs of the carried cells, as the first day had them."""
    which = np.isin(before.inputs.cell_ids, carried.inputs.cell_ids)
    inputs = before.inputs
    return replace(inputs, cell_ids=inputs.cell_ids[which], mean=inputs.mean[which],
                   scale=inputs.scale[which])  # fmt: skip


def _r2(fit: Fit, recording) -> float:
    """R² of the direction that the embedding itself says, without a decoder."""
    angle = recording.variable("direction").values
    true, read = np.hstack([np.cos(angle), np.sin(angle)]), fit.embed(recording)[:, :2]
    return 1 - np.square(read - true).sum() / np.square(true - true.mean(0)).sum()


def test_the_weights_stay_with_their_cells_whatever_their_order(trained, first_day):
    order = np.random.default_rng(0).permutation(first_day.n_cells)
    shuffled = replace(
        first_day,
        traces=first_day.traces[:, order],
        cell_ids=np.asarray(first_day.cell_ids)[order],
    )
    carried = adapt(trained, shuffled, "statistics")
    before, after = trained.embed(first_day), carried.embed(shuffled)
    np.testing.assert_allclose(after, before, atol=1e-4)


def test_cells_can_be_matched_by_a_table(trained, next_day):
    renamed = replace(next_day, cell_ids=np.asarray(next_day.cell_ids) + 500)
    matched = {int(cell) - 500: int(cell) for cell in renamed.cell_ids}
    by_table = adapt(trained, renamed, matched=matched)
    np.testing.assert_array_equal(by_table.inputs.cell_ids, renamed.cell_ids)
    np.testing.assert_array_equal(by_table.embed(renamed), adapt(trained, next_day).embed(next_day))
    with pytest.raises(InputError, match="None of the fit's cells are in this recording"):
        adapt(trained, renamed, "statistics")


def test_other_cells_get_an_input_layer_and_the_rest_stays(trained):
    other = arena(**{**CELLS, "direction": 9}, seed=3).recording
    carried = adapt(trained, other, "input-layer", steps=60)
    assert carried.goodness["direction"].r2 > 0.6
    assert carried.steps == 60
    assert "only its input layer was trained, for 60 steps" in carried.notes[0]
    assert carried.weights["layers.0.weight"].shape[1] == 13
    for name, values in trained.weights.items():
        if not name.startswith("layers.0"):
            np.testing.assert_array_equal(carried.weights[name], values)
    assert _r2(carried, other) > 0.5  # in the coordinates of the first recording


def test_which_of_the_two_is_seen_from_the_cells(trained, next_day):
    few = replace(next_day, cell_ids=np.arange(next_day.n_cells) + 1000)
    assert "input layer" in adapt(trained, few, steps=5).notes[0]
    assert "nothing was trained" in adapt(trained, next_day).notes[0]


def test_a_windowed_encoder_is_carried_too(first_day, next_day):
    windowed = fit(first_day, FACTORS, quick(steps=5, window=5))
    assert adapt(windowed, next_day).weights["first.weight"].shape[1] == 14
    assert adapt(windowed, next_day, "input-layer", steps=3).weights["first.weight"].shape[1] == 14


def test_what_was_carried_is_saved_and_loaded(trained, next_day, tmp_path):
    carried = adapt(trained, next_day)
    loaded = Fit.load(carried.save(tmp_path))
    assert loaded.notes == carried.notes
    np.testing.assert_array_equal(loaded.embed(next_day), carried.embed(next_day))


def test_progress_is_reported_and_a_stop_obeyed(trained, next_day):
    seen = []
    carried = adapt(trained, next_day, "input-layer", steps=40, on_progress=seen.append,
                    stop=lambda: len(seen) == 2)  # fmt: skip
    assert [p.step for p in seen] == [10, 20]
    assert carried.steps == 20


def test_a_supervised_fit_needs_the_same_values(first_day, next_day):
    def with_choice(recording, values):
        choice = np.arange(recording.n_frames) // 20 % values
        return recording.with_behavior(Variable("choice", choice, "discrete"))

    settings = quick(steps=2, mode="supervised")
    trained = fit(with_choice(first_day, 3), {"choice": ["choice"]}, settings)
    with pytest.raises(InputError, match="has 2 coordinates or values in this recording and 3"):
        adapt(trained, with_choice(next_day, 2))
    assert "nothing was trained" in adapt(trained, with_choice(next_day, 3)).notes[0]


def test_a_recording_without_the_variable_is_refused(trained, next_day):
    with pytest.raises(InputError, match="no variable 'direction'"):
        adapt(trained, replace(next_day, behavior={}))
    with pytest.raises(InputError, match="how is 'magic'"):
        adapt(trained, next_day, "magic")


def test_each_part_keeps_its_lambda_and_all_cells_their_filter(trained, next_day):
    parts = tuple(replace(p, lambda_=v) for p, v in zip(trained.parts, (0.05, 0.02), strict=True))
    filter_ = Filter((0.1, -0.5, 1.0), 2)
    uneven = replace(trained, parts=parts, inputs=replace(trained.inputs, filter=filter_))
    for how, steps in (("statistics", 0), ("input-layer", 5)):
        carried = adapt(uneven, next_day, how, **({"steps": steps} if steps else {}))
        assert [part.lambda_ for part in carried.parts] == pytest.approx([0.05, 0.02])
        assert carried.inputs.filter == filter_


def test_a_fit_of_an_earlier_version_that_has_no_lambda_a_part_is_carried(trained, next_day):
    old = replace(trained, parts=tuple(replace(p, lambda_=np.nan) for p in trained.parts))
    carried = adapt(old, next_day, "input-layer", steps=5)
    assert [part.lambda_ for part in carried.parts] == pytest.approx([0.05, 0.05])
