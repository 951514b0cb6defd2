"""A run on disk is one training with its own scores, whatever happens while it is saved."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from damage import damaged_copies

from napari_xcebra.attribution import Attribution, attribute
from napari_xcebra.checksums import STAGED
from napari_xcebra.errors import InputError
from napari_xcebra.learn import Factor, Fit, FitSettings, fit
from napari_xcebra.locks import LOCK
from napari_xcebra.runs import Run, now
from napari_xcebra.simulate import box

PROGRAM = Path(__file__).with_name("killed_saves.py")
METHODS = ("inverted-neuron-gradient", "neuron-gradient")


@pytest.fixture(scope="module")
def runs():
    """Two trainings on one recording."""
    simulation = box(d1=2, d2=2, cells=(6, 6), frames=2000, seed=0)
    return [made(simulation, seed) for seed in (0, 1)]


def made(simulation, seed):
    settings = FitSettings(steps=5, batch_size=64, smoothing=0.0, seed=seed)
    trained = fit(simulation.recording, simulation.factors, settings)
    run = Run(f"run {seed}", now(), {"z2": Factor(simulation.factors["z2"])}, trained)
    for method in METHODS:
        run = run.with_attribution(attribute(trained, simulation.recording, method))
    return run


def assert_same(found, run):
    assert (found.name, found.created, found.factors) == (run.name, run.created, run.factors)
    assert found.fit.settings == run.fit.settings
    assert found.fit.summary() == run.fit.summary()
    for name, weight in run.fit.weights.items():
        np.testing.assert_array_equal(found.fit.weights[name], weight)
    assert list(found.attributions) == list(run.attributions)
    for method, each in run.attributions.items():
        again = found.attributions[method]
        np.testing.assert_array_equal(again.latent_scores, each.latent_scores)
        np.testing.assert_array_equal(again.cell_ids, each.cell_ids)
        assert (again.verdicts, again.parts) == (each.verdicts, each.parts)


def files_in(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def counted(*arguments):
    command = [sys.executable, PROGRAM, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.fixture
def saved(runs, tmp_path):
    """Folders of both trainings, as a run or a fit."""

    def saved(what):
        each = runs if what == "run" else [run.fit for run in runs]
        return [one.save(tmp_path / f"{what} {i}") for i, one in enumerate(each)]

    return saved


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not fork")
@pytest.mark.parametrize("what", ["run", "fit"])
def test_two_programs_that_save_at_once_leave_one_of_the_two(what, saved, tmp_path):
    found = counted("together", what, *saved(what), tmp_path / "place", 20)
    assert found.keys() <= {"0", "1", "meanwhile whole"}
    assert len(list(tmp_path.glob("place/**/weights-*"))) == 1
    assert not list(tmp_path.glob(f"place/**/{LOCK}"))


@pytest.mark.parametrize("what", ["run", "fit"])
def test_what_an_interrupted_save_left_is_removed_by_the_next(what, runs, tmp_path, monkeypatch):
    first, second = runs if what == "run" else (run.fit for run in runs)
    place = first.save(tmp_path / "place")

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("napari_xcebra.checksums.remove_listed", killed)
        second.save(place)
    assert len(list(place.glob("**/weights-*"))) == 2
    second.save(place)
    assert len(list(place.glob("**/weights-*"))) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not fork")
@pytest.mark.parametrize("what", ["run", "fit"])
def test_a_program_killed_while_saving_leaves_one_of_the_two(what, saved, runs, tmp_path):
    place = tmp_path / "place"
    found = counted(what, *saved(what), place, 40)
    assert found.keys() <= {"0", "1"}
    # ... and the next one tidies up
    again = (runs[0] if what == "run" else runs[0].fit).save(place)
    assert not (again / STAGED).exists()
    assert len(list(again.glob("**/weights-*"))) == 1


@pytest.mark.parametrize("interrupted_at", range(12))
def test_an_interrupted_save_leaves_the_earlier_run_or_the_new_one(
    runs, tmp_path, monkeypatch, interrupted_at
):
    folder = runs[0].save(tmp_path)
    replace_file, calls = Path.replace, []

    def interrupt(self, target):
        calls.append(target)
        if len(calls) == interrupted_at + 1:
            raise KeyboardInterrupt
        return replace_file(self, target)

    with monkeypatch.context() as patch, pytest.raises((KeyboardInterrupt, SystemExit)):
        patch.setattr(Path, "replace", interrupt)
        runs[1].save(folder)
        raise SystemExit  # saved with fewer moves than that
    described = json.loads((folder / "run.json").read_text())["name"]
    assert_same(Run.load(folder), runs[described == "run 1"])
    assert_same(Run.load(runs[1].save(folder)), runs[1])
    assert not (folder / STAGED).exists()


def test_the_files_of_a_run_have_the_names_that_users_know(runs, tmp_path):
    folder = runs[0].save(runs[1].save(tmp_path))
    weights = next(folder.glob("fit/weights-*"))
    names = {"run.json", "fit/fit.json", f"fit/{weights.name}", *(f"{m}.npz" for m in METHODS)}
    assert files_in(folder) == names
    assert set(json.loads((folder / "run.json").read_text())["files"]) == names - {"run.json"}
    for name, weight in runs[0].fit.weights.items():
        np.testing.assert_array_equal(Fit.load(folder / "fit").weights[name], weight)


def test_scores_of_fewer_methods_replace_those_of_more(runs, tmp_path):
    folder = runs[0].save(tmp_path)
    (folder / "notes.npz").write_bytes(b"of the user")
    fewer = Run("fewer", now(), runs[1].factors, runs[1].fit)
    assert_same(Run.load(fewer.save(folder)), fewer)
    assert files_in(folder) == {
        "run.json", "notes.npz", "fit/fit.json", f"fit/{next(folder.glob('fit/weights-*')).name}"
    }  # fmt: skip


def test_a_run_of_an_earlier_version_still_opens(runs, tmp_path):
    folder = without_checksums(runs[0].save(tmp_path))
    assert_same(Run.load(folder), runs[0])
    assert_same(Run.load(runs[1].save(folder)), runs[1])
    assert len(list(folder.glob("fit/weights-*"))) == 1


def without_checksums(folder):
    for path in (folder / "run.json", folder / "fit" / "fit.json"):
        about = json.loads(path.read_text())
        del about["checksum"], about["files"]
        path.write_text(json.dumps(about))
    return folder


def test_a_fit_of_another_training_in_the_folder_of_a_run_is_refused(runs, tmp_path):
    folder = runs[0].save(tmp_path)
    runs[1].fit.save(folder / "fit")  # as `napari-xcebra fit --out` does
    with pytest.raises(InputError, match=r"complete run \(fit/fit\.json is not the file that was"):
        Run.load(folder)


def test_scores_of_another_training_in_the_folder_of_a_run_are_refused(runs, tmp_path):
    folder = runs[0].save(tmp_path)
    runs[1].attributions[METHODS[1]].to_npz(folder / f"{METHODS[1]}.npz")
    with pytest.raises(InputError, match=r"neuron-gradient\.npz is not the file that was saved"):
        Run.load(folder)


@pytest.mark.parametrize("named", ["thesis.tex", "../thesis.npz", "notes.npz", "linked/x.npz"])
def test_a_crafted_list_of_files_removes_nothing(runs, tmp_path, named):
    folder, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder.mkdir()
    (folder / "linked").symlink_to(elsewhere)
    theirs = [folder / "thesis.tex", tmp_path / "thesis.npz", folder / "notes.npz",
              elsewhere / "x.npz"]  # fmt: skip
    for path in theirs:
        path.write_text("years of work")
    about = {"kind": "napari-xcebra run", "format": 1, "attributions": []}
    about["files"] = {named: {"size": len("years of work"), "sha256": "0" * 64}}
    (folder / "run.json").write_text(json.dumps(about))
    assert_same(Run.load(runs[0].save(folder)), runs[0])
    assert {path.read_text() for path in theirs} == {"years of work"}


def test_a_damaged_file_of_a_run_gets_a_sentence(runs, tmp_path):
    folder = runs[0].save(tmp_path / "run")
    refused = 0
    for copy in damaged_copies(folder, tmp_path / "copy", rounds=300):
        try:
            found = Run.load(copy)
        except InputError as error:
            refused += 1
            assert str(error).endswith(".")
        else:
            assert_same(found, runs[0])
    assert refused > 250


def test_damaged_scores_by_themselves_get_a_sentence(runs, tmp_path):
    scores = runs[0].attributions[METHODS[0]]
    (tmp_path / "scores").mkdir()
    scores.to_npz(tmp_path / "scores" / "attribution.npz")
    for copy in damaged_copies(tmp_path / "scores", tmp_path / "copy", rounds=200):
        try:
            found = Attribution.load(copy / "attribution.npz")
        except InputError as error:
            assert str(error).endswith(".")
        else:
            np.testing.assert_array_equal(found.latent_scores, scores.latent_scores)
            np.testing.assert_array_equal(found.cell_ids, scores.cell_ids)
            assert found.verdicts == scores.verdicts


def test_what_waits_stays_while_its_list_cannot_be_read(runs, tmp_path, monkeypatch):
    from napari_xcebra import checksums

    folder = runs[0].save(tmp_path / "run")
    waiting = folder / STAGED / f".{'0' * 16}-weights"
    waiting.parent.mkdir(exist_ok=True)
    waiting.write_bytes(b"weights")

    def busy(path):
        raise InputError(f"{path} cannot be read") from OSError(24, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(checksums, "read_json", busy)
        checksums.settle(folder)
        assert waiting.exists()
    checksums.settle(folder)
    assert not waiting.exists()  # nothing lists it
