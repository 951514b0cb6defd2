"""`verify` says of everything that was saved whether it is whole, and writes nothing."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import napari_xcebra as xc
from napari_xcebra.attribution import attribute
from napari_xcebra.batch import Sweep, run_sweep
from napari_xcebra.cli import main
from napari_xcebra.curation import open_curation
from napari_xcebra.errors import InputError
from napari_xcebra.io.decisions.backups import record, record_of
from napari_xcebra.learn import Factor, FitSettings, fit
from napari_xcebra.learn.result import JointFit
from napari_xcebra.runs import Run, now, results_to
from napari_xcebra.simulate import box
from napari_xcebra.workspace_file import Opened, WorkspaceFile, save_workspace

SETTINGS = FitSettings(steps=5, batch_size=64, smoothing=0.0)


@pytest.fixture(scope="module")
def simulation():
    return box(d1=2, d2=2, cells=(6, 6), frames=2000, seed=0)


@pytest.fixture(scope="module")
def run(simulation):
    trained = fit(simulation.recording, simulation.factors, SETTINGS)
    made = Run("first", now(), {"z2": Factor(simulation.factors["z2"])}, trained)
    return made.with_attribution(attribute(trained, simulation.recording))


@pytest.fixture
def everything(kept, tmp_path):
    """A folder with one of each, to be damaged."""
    return shutil.copytree(kept, tmp_path / "lab")


@pytest.fixture(scope="module")
def kept(tmp_path_factory, simulation, run):
    folder = tmp_path_factory.mktemp("lab")
    run.save(folder / "run")
    run.fit.save(folder / "by command" / "fit")
    with results_to(folder / "by command", run.fit) as new:
        next(iter(run.attributions.values())).to_npz(new / "attribution.npz")
    JointFit({"monday": run.fit, "tuesday": run.fit}, "encoder").save(folder / "joint")
    opened = Opened("simulated", simulation.recording, runs=[run])
    save_workspace(WorkspaceFile([opened], 0), folder / "workspace")
    sweep = Sweep({"box": simulation.recording}, simulation.factors, SETTINGS, {"seed": [0, 1]})
    with ThreadPoolExecutor(1) as executor:
        run_sweep(sweep, folder / "sweep", executor)
    source = simulation.recording.save(folder / "mouse.npz")
    with open_curation(simulation.recording, source, curator="Ann") as curation:
        curation.decide([0, 1], "accepted")
    decided = folder / "plane0" / "iscell.npy"
    decided.parent.mkdir()
    np.save(decided, np.ones((12, 2)))
    record_of(decided).write_text(record(decided, new=True))
    return folder


def lines(capsys, path):
    code = main(["verify", str(path)])
    return code, capsys.readouterr().out.splitlines()


def test_what_was_saved_is_whole(everything, capsys):
    code, said = lines(capsys, everything)
    assert code == 0
    assert all(": whole: " in line for line in said)
    for words in ("run first with 1 map", "fit of z2, time after 5 steps",
                  "joint fit of monday, tuesday", "workspace of 1 recording with 1 run",
                  "sweep, 2 of 2 runs finished", "finished member of a sweep", "results in 1 file",
                  "1 decision by Ann", "as decisions were written to it"):  # fmt: skip
        assert any(words in line for line in said), words
    found = xc.verify(everything)
    assert [finding.sentence for finding in found] == said
    assert {type(finding.whole) for finding in found} == {bool}


def state_of(folder):
    return {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in folder.rglob("*")}


def test_nothing_is_written(everything):
    before = state_of(everything)
    xc.verify(everything)
    assert state_of(everything) == before
    (everything / "run" / "fit" / "fit.json").unlink()
    before = state_of(everything)
    xc.verify(everything)
    assert state_of(everything) == before


FILES = [
    "run/run.json",
    "run/fit/fit.json",
    "run/fit/weights-*",
    "run/*.npz",
    "by command/fit/weights-*",
    "by command/attribution.npz",
    "joint/fits/*-1/fit.json",
    "workspace/session.json",
    "workspace/recording-*.npz",
    "workspace/runs/*/*.npz",
    "sweep/sweep.json",
    "sweep/members/*/member.json",
    "sweep/members/*/attribution.csv",
    "sweep/members/*/fit/weights-*",
    "mouse.npz.curation.jsonl",
    "plane0/iscell.npy",
]


@pytest.mark.parametrize("pattern", FILES)
def test_a_flipped_bit_and_a_missing_file_are_found(everything, pattern, capsys):
    path = next(iter(sorted(everything.glob(pattern))))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)
    code, said = lines(capsys, everything)
    assert code == 1
    assert any(": not whole: " in line for line in said)
    if path.name in ("run.json", "session.json", "sweep.json", "member.json") or (
        path.suffix == ".jsonl"
    ):
        return  # without it there is nothing that says what should be there
    path.unlink()
    code, said = lines(capsys, everything)
    assert code == 1
    assert any("not whole" in line and "missing" in line for line in said)


def test_a_single_file_can_be_named(everything, capsys):
    assert lines(capsys, everything / "run" / "run.json")[0] == 0
    assert lines(capsys, everything / "by command" / "attribution.npz")[0] == 0
    code, said = lines(capsys, everything / "mouse.npz")
    assert code == 0
    assert len(said) == 2
    assert "1 decision by Ann" in said[1]


def test_scores_of_another_training_are_found(everything, simulation, capsys):
    again = fit(simulation.recording, simulation.factors, replace(SETTINGS, seed=1))
    again.save(everything / "by command" / "fit")  # and stopped before the scores
    code, said = lines(capsys, everything / "by command")
    assert code == 1
    assert any("attribution.npz: of another training than the fit beside it" in s for s in said)


def test_results_of_an_earlier_version_are_said_to_have_no_checksums(everything, capsys):
    for path in (everything / "run" / "run.json", everything / "run" / "fit" / "fit.json"):
        about = json.loads(path.read_text())
        del about["checksum"], about["files"]
        path.write_text(json.dumps(about))
    code, (said,) = lines(capsys, everything / "run")
    assert code == 0
    assert said.endswith("saved without checksums, so that its contents cannot be compared.")


@pytest.mark.parametrize("where", ["", "nowhere"])
def test_a_place_with_nothing_to_check_gets_a_sentence(tmp_path, where, capsys):
    with pytest.raises(InputError):
        xc.verify(tmp_path / where)
    assert main(["verify", str(tmp_path / where)]) == 2
    assert capsys.readouterr().err.endswith(".\n")
