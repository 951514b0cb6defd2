"""A folder of animals is found as it lies on a lab's disk, and run, drawn and compared as one."""

import numpy as np
import pandas as pd
import pytest

from napari_xcebra.batch.project import _write_table, find_sessions
from napari_xcebra.cli import main
from napari_xcebra.errors import InputError
from napari_xcebra.io import save_recording
from napari_xcebra.io.formats.suite2p.writing import write_suite2p
from napari_xcebra.simulate import field

QUICK = ["--steps", "15", "--batch-size", "64", "--time-offset", "5", "--time-latents", "1"]


def table_of(recording):
    xy = recording.behavior["position"].values
    table = {"time_s": recording.times, "x_cm": xy[:, 0], "y_cm": xy[:, 1]}
    return pd.DataFrame(table)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Three animals as suite2p leaves them, the last without behaviour, and one in another form."""
    root = tmp_path_factory.mktemp("lab") / "data"
    for seed, name in enumerate(("m1", "m2", "m10")):
        recording = field(cells=10, frames=900, shape=(96, 96), seed=seed).recording
        (root / name / "day1/suite2p").mkdir(parents=True)
        write_suite2p(recording, root / name / "day1/suite2p/plane0")
        if name != "m10":
            table_of(recording).to_csv(root / name / "day1/behaviour.csv", index=False)
    save_recording(recording, root.parent / "other.npz")
    return root


def test_a_pattern_finds_recordings_in_their_order_and_behaviour_beside_them(lab):
    found = find_sessions(f"{lab}/*/day*/suite2p/plane0")
    assert [each.name for each in found] == ["m1, day 1", "m2, day 1", "m10, day 1"]
    assert [each.opening.behavior for each in found] == [
        (lab / "m1/day1/behaviour.csv",), (lab / "m2/day1/behaviour.csv",), ()
    ]  # fmt: skip
    assert "found beside it" in found[0].note and not found[2].note
    named = find_sessions(f"{lab}/{{animal}}/day{{day}}/suite2p/plane0")
    assert [(each.animal, each.day) for each in named] == [("m1", "1"), ("m2", "1"), ("m10", "1")]


def test_a_folder_is_searched(lab):
    assert [each.animal for each in find_sessions(str(lab))] == ["m1", "m2", "m10"]


def test_paths_that_a_shell_made_of_a_pattern_are_taken(lab):
    found = find_sessions(*(f"{lab}/{name}/day1/suite2p/plane0" for name in ("m1", "m2")))
    assert [(each.animal, each.day) for each in found] == [("m1", "day1"), ("m2", "day1")]
    assert [len(each.opening.behavior) for each in found] == [1, 1]


def test_two_files_that_may_be_the_behaviour_are_asked_about(lab):
    other = lab / "m1/day1/position.csv"
    other.write_text("t,x\n0,1\n")
    try:
        found = find_sessions(f"{lab}/m1/*/suite2p/plane0")
    finally:
        other.unlink()
    assert "behaviour.csv, position.csv: name it in a table" in found[0].missing
    assert not found[0].opening.behavior


def test_a_table_says_all_and_comes_back_as_it_was_written(lab, tmp_path):
    table = tmp_path / "animals.csv"
    table.write_text(
        "Mouse,Session,Group,Recording,Behaviour,Rate,Factors,Kinds\n"
        f"a,1,saline,{lab}/m1/day1/suite2p/plane0,{lab}/m1/day1/behaviour.csv,10,"
        '"place=x_cm,y_cm:2; x=x_cm",x_cm=continuous\n'
        f"b,2,drug,{lab}/m2/day1/suite2p/plane0,gone.csv,,,\n"
    )
    one, two = find_sessions(str(table))
    assert one.name == "a, day 1, saline"
    assert one.opening.settings.rate == 10 and one.opening.kinds == {"x_cm": "continuous"}
    assert list(one.factors) == ["place", "x"] and one.factors["place"].latents == 2
    assert "gone.csv does not exist" in two.missing
    (again, _) = find_sessions(str(_write_table([one, two], tmp_path / "project.csv")))
    assert again.name == one.name and again.factors == one.factors
    assert again.opening.path.samefile(one.opening.path)
    assert again.opening.settings == one.opening.settings


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ("{lab}/*/nothing", "leads to none"),
        ("{lab}/{{mouse}}/day1", "use {{animal}}"),
        ("{lab}/gone", "neither a table"),
        ("{table}", "`path` is needed"),
    ],
)
def test_what_leads_nowhere_is_said(lab, tmp_path, where, sentence):
    (tmp_path / "animals.csv").write_text("animal,day\na,1\n")
    with pytest.raises(InputError, match=sentence.replace("{{", r"\{").replace("}}", r"\}")):
        find_sessions(where.format(lab=lab, table=tmp_path / "animals.csv"))


def test_one_command_goes_from_a_table_to_grid_cohort_and_report(lab, tmp_path, capsys):
    table = tmp_path / "animals.csv"
    rows = [
        f"m{n},1,{c},{lab}/m{n}/day1/suite2p/plane0," for n, c in ((1, "a"), (2, "b"), (10, "b"))
    ]
    rows.append(f"m3,1,b,{lab.parent}/other.npz,")
    table.write_text("\n".join(["animal,day,condition,path,behaviour", *rows]))
    for n in (1, 2):  # the table names none: each is looked for from the recording up
        table.write_text(
            table.read_text().replace(f"m{n}/day1/suite2p/plane0,",
                                      f"m{n}/day1/suite2p/plane0,{lab}/m{n}/day1/behaviour.csv")
        )  # fmt: skip
    assert main(["project", str(table), *QUICK]) == 0
    said = capsys.readouterr().out
    assert "m10, day 1, b  left out: No behaviour" in said and "Add --out DIR" in said
    out = tmp_path / "out"
    command = ["project", str(table), *QUICK, "--out", str(out), "--processes", "1"]
    assert main(command) == 0
    for name in ("grid.png", "cohort-cells.csv", "cohort-share.png", "report.html", "project.csv"):
        assert (out / name).stat().st_size > 0, name
    cells = pd.read_csv(out / "cohort-cells.csv")
    assert set(cells["animal"]) == {"m1", "m2", "m3"} and set(cells["condition"]) == {"a", "b"}
    # each recording has the factors that its own behaviour allows
    assert set(cells.query("animal == 'm1'")["factor"]) == {"position"}
    assert "direction" in set(cells.query("animal == 'm3'")["factor"])
    assert "Every field" in (out / "report.html").read_text("utf-8")
    assert len(find_sessions(str(out / "project.csv"))) == 4
    # what is finished is not run again
    when = {path: path.stat().st_mtime_ns for path in out.glob("members/*/member.json")}
    assert len(when) == 3 and main([*command, "--quiet"]) == 0
    assert when == {path: path.stat().st_mtime_ns for path in when}
    assert np.unique(pd.read_csv(out / "summary.csv")["status"]).tolist() == ["finished"]
