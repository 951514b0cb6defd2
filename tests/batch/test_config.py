"""A sweep is asked for in a file, and a mistake in it is named by its key."""

import numpy as np
import pytest

from napari_xcebra.batch.plan import read_sweep
from napari_xcebra.errors import InputError
from napari_xcebra.io import save_recording

GOOD = """
shifts = [0, 30]

[[recordings]]
name = "box"
path = "box.npz"
truth = "carries.csv"

[factors]
z2 = { variables = ["z2"], latents = [1, 2] }

[settings]
steps = 12
seed = [0, 1, 2]
lambda = ["auto", 0.1]
"""


@pytest.fixture(scope="module")
def folder(simulation, tmp_path_factory):
    folder = tmp_path_factory.mktemp("config")
    save_recording(simulation.recording, folder / "box.npz")
    rows = [f"{cell},{int(carries)}" for cell, carries in enumerate(simulation.truth["z2"])]
    (folder / "carries.csv").write_text("\n".join(["cell,z2", *reversed(rows)]))
    return folder


@pytest.fixture
def read(folder):
    def read(text):
        (folder / "sweep.toml").write_text(text, encoding="utf-8")
        return read_sweep(folder / "sweep.toml")

    return read


def test_a_list_is_gone_through_and_a_value_is_for_all(read, simulation):
    sweep = read(GOOD)
    assert len(sweep.members) == 2 * 2 * 3 * 2
    assert {member.settings.steps for member in sweep.members} == {12}
    assert {member.settings.lambda_ for member in sweep.members} == {"auto", 0.1}
    assert {member.factors["z2"].latents for member in sweep.members} == {1, 2}
    assert {member.shift for member in sweep.members} == {0, 30}
    np.testing.assert_array_equal(sweep.truth["box"]["z2"], simulation.truth["z2"])


def test_the_same_sweep_from_a_file_and_from_python_has_the_same_members(read, two_seeds, quick):
    knobs = "\n".join(
        f"{name} = {value}" for name, value in quick.as_dict().items()
        if name in ("steps", "batch_size", "time_latents", "hidden_units", "smoothing")
    )  # fmt: skip
    text = f"""
[[recordings]]
path = "box.npz"
[factors]
z2 = "z2"
[settings]
{knobs}
lambda = 0.05
seed = [0, 1]
"""
    assert [m.id for m in read(text).members] == [m.id for m in two_seeds.members]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("shifts", "shift"), r"shift is not known; there are: method, shifts"),
        (("[0, 30]", '["much"]'), "shifts has 'much': numbers"),
        (("[0, 30]", "[]"), "shifts is an empty list"),
        (("steps = 12", "step = 12"), r"settings\.step is not known"),
        (("steps = 12", "steps = 0"), r": settings\.steps is 0"),
        (("[0, 1, 2]", "[]"), r"settings\.seed is an empty list"),
        (("[[recordings]]", "[recordings]"), "recordings is missing"),
        (('path = "box.npz"', ""), "recordings 1 has no path"),
        (("box.npz", "none.npz"), r"none\.npz"),
        (('name = "box"', 'nom = "box"'), "recordings 1: nom is not known"),
        (('name = "box"', "rate = -1"), ": rate is -1"),
        (('name = "box"', 'kinds = { z2 = "round" }'), r"kinds\.z2 is 'round'"),
        (('variables = ["z2"], ', ""), r"factors\.z2 names no variables"),
        (("carries.csv", "box.npz"), "as a table"),
        (('["z2"]', '["unheard"]'), "no variable 'unheard'"),
        (("[settings]", "[settings"), "not valid TOML"),
    ],
)
def test_a_mistake_is_named_by_its_key(read, change, sentence):
    assert change[0] in GOOD
    with pytest.raises(InputError, match=sentence) as error:
        read(GOOD.replace(*change))
    assert "sweep.toml" in str(error.value)


def test_two_recordings_need_two_names(read):
    part = '[[recordings]]\nname = "box"\npath = "box.npz"\n'
    with pytest.raises(InputError, match="called 'box', like another one"):
        read(GOOD.replace("[factors]", f"{part}\n[factors]"))


def test_a_file_that_is_not_there_gets_a_sentence(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_sweep(tmp_path / "none.toml")


def test_a_deeply_nested_file_gets_a_sentence(read):
    with pytest.raises(InputError, match="is not valid TOML: it is nested too deeply"):
        read("shifts = " + "[" * 100_000)
