"""Sweeps in real processes: what is finished stays, what failed is told, nothing runs twice."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
import odd_members
import pandas as pd
import pytest
from damage import damaged_copies

from napari_xcebra.attribution import Attribution, attribute, significance
from napari_xcebra.attribution.methods import FIRST
from napari_xcebra.batch import SweepFolder, run_sweep, running
from napari_xcebra.errors import InputError
from napari_xcebra.learn import Fit, fit


@pytest.fixture(scope="module")
def swept(two_seeds, pool, tmp_path_factory):
    """A finished sweep, and what was told meanwhile."""
    told = []
    folder = tmp_path_factory.mktemp("swept")
    return run_sweep(two_seeds, folder, pool, on_progress=told.append, command="again"), told


def test_every_member_is_a_run_like_any_other(swept, two_seeds, simulation):
    folder, _ = swept
    for member in two_seeds.members:
        run = folder.run(member.id, simulation.recording)
        expected = fit(simulation.recording, simulation.factors, member.settings)
        for name, weight in expected.weights.items():
            np.testing.assert_allclose(run.fit.weights[name], weight, rtol=1e-3, atol=1e-5)
        scored = attribute(expected, simulation.recording)
        kept = run.attributions[member.method]
        np.testing.assert_allclose(kept.score("z2"), scored.score("z2"), rtol=1e-2)
        assert run.name == member.title


def test_every_member_has_both_maps_and_is_tested_as_a_run_is(swept, two_seeds, simulation):
    folder, _ = swept
    member = two_seeds.members[0]
    run = folder.run(member.id, simulation.recording)
    assert tuple(run.attributions) == FIRST
    q = significance(run.fit, simulation.recording).q("z2")
    np.testing.assert_allclose(run.significance.q("z2"), q, rtol=1e-3)
    table = pd.read_csv(folder.home(member.id) / "attribution.csv")
    assert {"score", "p", "q", "generative_gradient"} <= set(table)
    row = folder.summary().iloc[0]
    assert (row["cells z2"], row["tested z2"]) == ((q <= 0.1).sum(), 16)


def test_the_summary_has_a_row_a_member(swept, two_seeds):
    folder, _ = swept
    table = pd.read_csv(folder.path / "summary.csv")
    assert table["id"].tolist() == [member.id for member in two_seeds.members]
    assert table["seed"].tolist() == [0, 1]
    assert set(table["status"]) == {"finished"}
    first = Fit.load(folder.home(two_seeds.members[0].id) / "fit")
    assert table["goodness z2"][0] == pytest.approx(first.goodness["z2"].goodness)
    assert table["verdict z2"][0] == first.goodness["z2"].strength
    assert table["auroc z2"].between(0, 1).all()
    assert (table["seconds"] > 0).all()


def test_a_member_says_what_it_is_and_what_came_of_it(swept, two_seeds):
    folder, _ = swept
    member = two_seeds.members[1]
    about = json.loads((folder.home(member.id) / "member.json").read_text())
    assert about["status"] == "finished"
    assert about["settings"]["seed"] == 1
    assert about["verdicts"]["z2"] == folder.run(member.id).fit.goodness["z2"].verdict
    assert Attribution.load(folder.home(member.id) / f"{member.method}.npz").factors
    assert len(pd.read_csv(folder.home(member.id) / "attribution.csv")) == 2 * 16
    assert folder.about["command"] == "again"


def test_progress_rises_from_nothing_to_all(swept):
    _, told = swept
    assert (told[0].finished, told[0].total) == (0, 2)
    assert (told[-1].finished, told[-1].failed, told[-1].waiting) == (2, 0, 0)
    shares = [each.share for each in told]
    assert shares == sorted(shares)
    assert any(0 < share < 1 for share in shares)
    assert told[-1].seconds_left == 0


class Refusing(ThreadPoolExecutor):
    def submit(self, *_, **__):
        raise AssertionError("nothing is left to be run")


def test_what_is_on_disk_is_not_run_again(swept, two_seeds):
    folder, _ = swept
    told = []
    run_sweep(two_seeds, folder.path, Refusing(), on_progress=told.append)
    assert told[-1].finished == 2


def test_more_members_are_added_to_those_on_disk(swept, two_seeds, tmp_path, monkeypatch):
    folder, _ = swept
    more = replace(two_seeds, grid={"seed": [1, 2]})
    monkeypatch.setattr(running, "_run_member", partial(odd_members.note_each_run, tmp_path))
    with ThreadPoolExecutor(1) as executor:  # any executor will do
        run_sweep(more, folder.path, executor)
    assert [path.name[:10] for path in tmp_path.iterdir()] == [more.members[1].id]
    assert set(folder.summary()["status"]) == {"finished"}
    run_sweep(two_seeds, folder.path, Refusing())  # and those before are still there


def test_a_failed_member_is_told_and_tried_again(two_seeds, pool, tmp_path, monkeypatch):
    told = []
    with monkeypatch.context() as patch:
        patch.setattr(running, "_run_member", odd_members.odd_seeds_fail)
        folder = run_sweep(two_seeds, tmp_path, pool, on_progress=told.append)
    even, odd = (member.id for member in two_seeds.members)
    assert (told[-1].finished, told[-1].failed) == (1, 1)
    assert (folder.status(even), folder.status(odd)) == ("finished", "failed")
    failed = json.loads((folder.home(odd) / "failed.json").read_text())
    assert failed["sentence"] == "Seed 1 is odd: give an even one."
    assert folder.summary()["failure"][1] == failed["sentence"]
    run_sweep(two_seeds, tmp_path, pool)
    assert folder.status(odd) == "finished"
    assert not (folder.home(odd) / "failed.json").exists()
    assert "failure" not in folder.summary()


def test_stopping_keeps_what_is_finished(two_seeds, pool, tmp_path):
    long = replace(two_seeds, grid={"steps": [12, 100_000, 100_001, 100_002]})
    finished = []
    folder = run_sweep(
        long, tmp_path, pool, on_progress=lambda at: finished.append(at.finished),
        stop=lambda: finished[-1] > 0,
    )  # fmt: skip
    assert [folder.status(each.id) for each in long.members] == ["finished", *["waiting"] * 3]
    assert folder.summary()["status"].tolist() == ["finished", *["waiting"] * 3]


def test_half_a_member_counts_as_none(swept, two_seeds, pool, tmp_path):
    folder, _ = swept
    member = two_seeds.members[0]
    half = SweepFolder(tmp_path)
    result = folder.run(member.id)
    result.fit.save(half.home(member.id) / "fit")  # and the power went off
    assert half.status(member.id) == "waiting"
    with pytest.raises(InputError, match="not finished"):
        half.run(member.id)


def test_two_programs_do_not_run_one_folder(two_seeds, tmp_path):
    with (
        SweepFolder(tmp_path).locked(),
        pytest.raises(InputError, match=r"Another program \(process \d+\) is running the sweep"),
    ):
        run_sweep(two_seeds, tmp_path, Refusing())


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def gone(path):
    path.unlink()


DAMAGED = ["member.json", "run.json", "fit/fit.json", "fit/weights-*", "both*.npz", "*.csv"]


@pytest.mark.parametrize("harm", [cut, gone], ids=lambda harm: harm.__name__)
@pytest.mark.parametrize("pattern", DAMAGED)
def test_a_member_whose_files_are_not_whole_is_run_again(
    swept, two_seeds, tmp_path, monkeypatch, pattern, harm
):
    folder = SweepFolder(shutil.copytree(swept[0].path, tmp_path / "sweep"))
    even, odd = (member.id for member in two_seeds.members)
    (path,) = folder.home(odd).glob(pattern)
    harm(path)
    assert (folder.status(even), folder.status(odd)) == ("finished", "waiting")
    with pytest.raises(InputError, match="not finished"):
        folder.run(odd)
    (tmp_path / "ran").mkdir()
    noting = partial(odd_members.note_each_run, tmp_path / "ran")
    monkeypatch.setattr(running, "_run_member", noting)
    with ThreadPoolExecutor(1) as executor:
        run_sweep(two_seeds, folder.path, executor)
    assert [path.name[:10] for path in (tmp_path / "ran").iterdir()] == [odd]
    table = pd.read_csv(folder.path / "summary.csv")
    assert set(table["status"]) == {"finished"}
    if (pattern, harm) == ("member.json", gone):
        return  # as if it had never been run
    assert table["note"].isna().tolist() == [True, False]
    assert table["note"][1].startswith("run again, because its files were not whole: ")


def test_a_sweep_of_an_earlier_version_is_not_run_again(swept, two_seeds, tmp_path):
    folder = SweepFolder(shutil.copytree(swept[0].path, tmp_path / "sweep"))
    for path in folder.path.rglob("*.json"):
        about = json.loads(path.read_text())
        about.pop("checksum")
        about.pop("files", None)
        path.write_text(json.dumps(about))
    run_sweep(two_seeds, folder.path, Refusing())
    # ... unless something is missing
    member = two_seeds.members[0].id
    next(folder.home(member).glob("fit/weights-*")).unlink()
    assert folder.status(member) == "waiting"


def test_damage_to_a_sweep_ends_in_a_sentence_or_in_running_again(swept, two_seeds, tmp_path):
    folder, _ = swept
    expected = folder.summary()
    for place in damaged_copies(folder.path, tmp_path / "copy", rounds=150, names="*.json"):
        copy = SweepFolder(place)
        try:
            found = copy.summary()
        except InputError as error:
            assert str(error).endswith(".")
            continue
        for row in found.to_dict("records"):
            if row["status"] == "finished":
                (same,) = expected[expected["id"] == row["id"]].to_dict("records")
                assert {key: row[key] for key in same} == same
