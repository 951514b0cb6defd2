"""A sweep is a value, and its members are known by what they are made of."""

import json
from dataclasses import replace

import numpy as np
import pytest

from napari_xcebra.batch import Member, Shard, Sweep
from napari_xcebra.batch.plan import plain as plain_value
from napari_xcebra.batch.running import shifted
from napari_xcebra.errors import InputError
from napari_xcebra.recording import Variable


def ids(sweep):
    return [member.id for member in sweep.members]


def test_every_combination_is_a_member(simulation, quick):
    sweep = Sweep(
        {"one": simulation.recording, "two": replace(simulation.recording, rate=20.0)},
        simulation.factors,
        quick,
        grid={"seed": [0, 1], "lambda_": ["auto", 0.1]},
        latents={"z2": [1, 2]},
        shifts=[0, 30],
    )
    assert len(set(ids(sweep))) == len(sweep.members) == 2 * 2 * 2 * 2 * 2
    last = sweep.members[-1]
    assert last.title == "recording two, shift (s) 30.0, z2 latents 2, seed 1, λ 0.1"
    assert (last.settings.seed, last.settings.lambda_, last.shift) == (1, 0.1, 30.0)
    assert last.factors["z2"].latents == 2


def test_the_same_combination_twice_is_one_member(simulation, quick):
    sweep = Sweep({"box": simulation.recording}, simulation.factors, quick, grid={"seed": [3, 3]})
    assert len(sweep.members) == 1


def test_an_id_is_the_same_in_another_sweep_and_under_another_name(simulation, quick, two_seeds):
    other = Sweep(
        {"called otherwise": simulation.recording},
        simulation.factors,
        quick,
        grid={"seed": [1], "steps": [12, 13]},
    )
    assert set(ids(other)) & set(ids(two_seeds)) == {two_seeds.members[1].id}


def test_an_id_does_not_depend_on_where_it_is_computed(simulation, quick, two_seeds):
    elsewhere = replace(two_seeds, settings=replace(quick, device="cpu", threads=4))
    assert ids(elsewhere) == ids(two_seeds)


def test_an_id_depends_on_everything_that_the_result_depends_on(simulation, quick):
    def first_id(recording=simulation.recording, **others):
        return Sweep({"box": recording}, simulation.factors, quick, **others).members[0].id

    recording = simulation.recording
    labels = recording.variable("z2")
    traces = np.array(recording.traces)
    traces[0] += 1
    changed = [
        first_id(),
        first_id(replace(recording, traces=traces)),
        first_id(replace(recording, starts=[0, 700])),
        first_id(replace(recording, accepted=np.arange(recording.n_cells) > 0)),
        first_id(recording.with_behavior(replace(labels, values=labels.values + 1e-9))),
        first_id(shifts=[10]),
        first_id(latents={"z2": [3]}),
        first_id(method="neuron-gradient"),
    ]
    assert len(set(changed)) == len(changed)
    idle = recording.with_behavior(Variable("not asked for", np.arange(recording.n_frames)))
    assert first_id(idle) == first_id()


def test_numbers_of_numpy_are_numbers(simulation, quick, two_seeds):
    sweep = replace(two_seeds, grid={"seed": np.arange(2)}, latents={"z2": np.array([2])})
    plain = replace(two_seeds, latents={"z2": [2]})
    assert ids(sweep) == ids(plain)
    one, other = (json.dumps(each.as_dict(), default=plain_value) for each in (sweep, plain))
    assert one == other


def test_a_member_survives_a_file(two_seeds):
    member = two_seeds.members[1]
    again = Member.from_dict(member.as_dict())
    assert again.as_dict() == member.as_dict()


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ({"grid": {"sed": [0]}}, "no setting `sed`"),
        ({"grid": {"seed": []}}, "`seed` has no values"),
        ({"grid": {"batch_size": [64, 1]}}, "`batch_size` is 1"),
        ({"latents": {"place": [1]}}, "factor 'place', but the factors are: z2"),
        ({"latents": {"z2": [0]}}, "0 latents"),
        ({"shifts": [1e6]}, "longer than recording 'box'"),
        ({"method": "guessing"}, "`method` is 'guessing'"),
        ({"factors": {"z2": ["unheard"]}}, "no variable 'unheard'"),
        ({"recordings": {}}, "at least one recording"),
    ],
)
def test_a_mistake_is_found_before_anything_runs(simulation, what, sentence):
    asked = {"recordings": {"box": simulation.recording}, "factors": simulation.factors}
    with pytest.raises(InputError, match=sentence):
        Sweep(**asked | what)


def test_shifted_labels_keep_their_course_and_lose_their_cells(simulation):
    recording = replace(simulation.recording, starts=[0, 600])
    seconds = 100 / recording.rate
    moved = shifted(recording, seconds)
    before, after = recording.variable("z2").values, moved.variable("z2").values
    np.testing.assert_array_equal(after, np.roll(before, 100, axis=0))
    np.testing.assert_array_equal(moved.traces, recording.traces)
    # where labels of one trial meet those of another, no pair is drawn
    assert list(moved.starts) == [0, 100, 600, 700]
    assert shifted(recording, 0.0) is recording
    back = shifted(moved, -seconds).variable("z2").values
    np.testing.assert_array_equal(back, before)


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_shards_are_disjoint_and_together_complete(two_seeds, count):
    sweep = replace(two_seeds, grid={"seed": range(5)})
    parts = [Shard(number, count).of(sweep) for number in range(1, count + 1)]
    dealt = [member.id for part in parts for member in part]
    assert sorted(dealt) == sorted(member.id for member in sweep.members)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
