"""What a command makes of a fit takes its place as one, and only with its own recording."""

import os
import shutil
from dataclasses import replace

import numpy as np
import pytest

from napari_xcebra.attribution import Attribution, attribute
from napari_xcebra.checksums import STAGED, finish_writing
from napari_xcebra.cli import main
from napari_xcebra.errors import InputError
from napari_xcebra.io import save_recording
from napari_xcebra.io.opening import Opening
from napari_xcebra.learn import Factor, Fit, FitSettings, fit
from napari_xcebra.recording.traces import NpyTraces
from napari_xcebra.report.material import material_in
from napari_xcebra.runs import Run, now, problems_in, results_to
from napari_xcebra.simulate import box

SETTINGS = FitSettings(steps=5, batch_size=64, smoothing=0.0)


@pytest.fixture(scope="module")
def simulation():
    return box(d1=2, d2=2, cells=(6, 6), frames=2000, seed=0)


@pytest.fixture(scope="module")
def fits(simulation):
    settings = [replace(SETTINGS, seed=seed) for seed in (0, 1)]
    return [fit(simulation.recording, simulation.factors, each) for each in settings]


def write(folder, fits, number):
    with results_to(folder, fits[number], with_fit=True) as new:
        for name in ("attribution.csv", "painted.png"):
            (new / name).write_text(f"{name} of run {number}")


def number_in(folder):
    """Number of the run that is in a folder, all of whose files agree."""
    texts = [(folder / name).read_text() for name in ("attribution.csv", "painted.png")]
    (number,) = {int(text[-1]) for text in texts} | {Fit.load(folder / "fit").settings.seed}
    return number


class Killed(BaseException):
    pass


def test_whenever_writing_is_cut_short_one_run_is_there_and_whole(fits, tmp_path, monkeypatch):
    out, found = tmp_path / "out", []
    write(out, fits, 0)
    shutil.copytree(out, tmp_path / "first")
    replace_file = os.replace
    for last in range(40):
        shutil.rmtree(out)
        shutil.copytree(tmp_path / "first", out)
        done = []

        def cut_short(*given, last=last, done=done):
            if len(done) >= last:
                raise Killed
            done.append(given)
            replace_file(*given)

        monkeypatch.setattr(os, "replace", cut_short)
        monkeypatch.setattr(os, "rename", cut_short)
        try:
            write(out, fits, 1)
        except Killed:
            pass
        else:
            break
        finally:
            monkeypatch.undo()
        finish_writing(out)
        found.append(number_in(out))
        assert problems_in(out, Fit.load(out / "fit")) == []
        assert not (out / STAGED).exists()
    assert found == sorted(found) and set(found) == {0, 1}
    assert number_in(out) == 1


def test_a_block_that_fails_writes_nothing(fits, tmp_path):
    write(tmp_path, fits, 0)
    with pytest.raises(InputError), results_to(tmp_path, fits[1], with_fit=True) as new:
        (new / "attribution.csv").write_text("half")
        raise InputError("No.")
    assert number_in(tmp_path) == 0
    assert not (tmp_path / STAGED).exists()


def test_files_of_an_earlier_training_stay_and_are_told(fits, tmp_path, capsys):
    with results_to(tmp_path, fits[0], with_fit=True) as new:
        (new / "methods.csv").write_text("by the first")
    write(tmp_path, fits, 1)
    told = "methods.csv belongs to another training, and is left out."
    assert problems_in(tmp_path, fits[1]) == [told]
    main(["info", str(tmp_path)])
    assert f"Not whole: {told}" in capsys.readouterr().out


def test_a_missing_file_of_a_run_is_told(simulation, fits, tmp_path, capsys):
    run = Run("mine", now(), {"z2": Factor(simulation.factors["z2"])}, fits[0])
    scores = attribute(fits[0], simulation.recording, "neuron-gradient")
    run.with_attribution(scores).save(tmp_path)
    (tmp_path / "neuron-gradient.npz").unlink()
    main(["info", str(tmp_path)])
    assert "Not whole: neuron-gradient.npz is missing." in capsys.readouterr().out


@pytest.fixture
def saved(simulation, fits, tmp_path):
    """A run in a folder of `run`, and its recording in a file."""
    path = save_recording(simulation.recording, tmp_path / "recording.npz")
    scores = attribute(fits[0], simulation.recording, "neuron-gradient")
    with results_to(tmp_path / "out", fits[0], with_fit=True) as new:
        scores.to_npz(new / "attribution.npz")
        Opening(path).save(new, seen_from=tmp_path / "out")
    return tmp_path / "out", path


def test_scores_keep_the_fingerprint_of_their_recording(simulation, saved):
    out, _ = saved
    kept = Attribution.load(out / "attribution.npz").fingerprint
    assert kept == simulation.recording.fingerprint == Fit.load(out / "fit").fingerprint


def test_a_report_finds_the_recording_only_as_long_as_it_is_the_same(simulation, saved):
    out, path = saved
    assert material_in(out).recording is not None
    turned = replace(simulation.recording, traces=simulation.recording.traces[:, ::-1].copy())
    save_recording(turned, path)
    for given in (None, turned):
        with pytest.raises(InputError, match=r"was changed since the run was made.*its traces"):
            material_in(out, given)


def test_a_run_is_not_opened_with_another_recording(simulation, fits, tmp_path):
    run = Run("mine", now(), {"z2": Factor(simulation.factors["z2"])}, fits[0])
    run.save(tmp_path)
    assert Run.load(tmp_path, simulation.recording).fit.fingerprint is not None
    with pytest.raises(InputError, match="times of its frames differ"):
        Run.load(tmp_path, replace(simulation.recording, rate=7.0, times=None))


def test_scoring_another_recording_is_told(simulation, fits):
    noise = np.random.default_rng(0).random(simulation.recording.traces.shape)
    other = replace(simulation.recording, traces=noise.astype(np.float32))
    notes = attribute(fits[0], other, "neuron-gradient").notes
    assert any("trained on another recording" in note and "its traces" in note for note in notes)
    notes = attribute(fits[0], simulation.recording, "neuron-gradient").notes
    assert not any("another recording" in note for note in notes)


def test_traces_that_are_rewritten_during_training_are_refused(simulation, tmp_path):
    np.save(tmp_path / "F.npy", simulation.recording.traces)
    traces = NpyTraces(tmp_path / "F.npy", cells_first=False)
    recording = replace(simulation.recording, traces=traces)

    def rewrite(_):
        with (tmp_path / "F.npy").open("r+b") as file:
            file.seek(-4, os.SEEK_END)
            file.write(b"\0\0\0\0")

    with pytest.raises(InputError, match="replaced after the recording was opened"):
        fit(recording, simulation.factors, SETTINGS, on_progress=rewrite, every=1)
