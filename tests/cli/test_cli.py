"""The command line does what the library does, and never half of it."""

import argparse
import contextlib
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest

import napari_xcebra
from napari_xcebra import learn
from napari_xcebra.attribution import METHODS, Attribution, methods
from napari_xcebra.attribution.shift_test.result import SHIFTS
from napari_xcebra.cli import main, reporting
from napari_xcebra.cli.commands import make_parser
from napari_xcebra.cli.given import counts_from
from napari_xcebra.cli.printing import goodness_words
from napari_xcebra.errors import InputError, TrainingDiverged
from napari_xcebra.io import open_recording, save_recording
from napari_xcebra.io.opening import Opening
from napari_xcebra.learn import Fit, FitSettings, Goodness
from napari_xcebra.locks import locked
from napari_xcebra.report.material import material_in
from napari_xcebra.settings import flag_of
from napari_xcebra.simulate import field

TINY = ["--steps", "20", "--batch-size", "64", "--time-latents", "1", "--time-offset", "5"]
FACTORS = ["--factor", "place=position", "--factor", "direction=direction:2"]
NAPARI_XCEBRA = [sys.executable, "-c", "import sys; from napari_xcebra.cli import main; "
                 "sys.exit(main())"]  # fmt: skip


@pytest.fixture(scope="module")
def recording_file(tmp_path_factory):
    simulation = field(cells=16, frames=1500, shape=(96, 96), junk=2)
    return save_recording(
        simulation.recording, tmp_path_factory.mktemp("recording") / "recording.npz"
    )


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """Folder that a small demo wrote, and what it said."""
    out = tmp_path_factory.mktemp("demo") / "out"
    said, small = io.StringIO(), ["demo", "--cells", "24", "--frames", "1500"]
    with contextlib.redirect_stdout(said):
        assert main([*small, "--verbose", "--out", str(out), *TINY]) == 0
    return out, said.getvalue()


def test_the_demo_runs_from_nothing_to_a_painted_field(demo):
    out, said = demo
    expected = {"painted.png", "learning.png", "attribution.csv", "attribution.npz",
                "recording.npz", "fit/fit.json"}  # fmt: skip
    assert expected < files(out)
    assert not any("checkpoint" in name for name in files(out))
    for name in expected - {"fit/fit.json"}:
        assert str(out / name) in said
    table = pd.read_csv(out / "attribution.csv")
    assert len(table) == 24 * 4
    assert Attribution.load(out / "attribution.npz").factors == Fit.load(out / "fit").factors
    assert open_recording(out / "recording.npz").n_cells == 24


def test_the_demo_prints_how_well_each_factor_was_found(demo):
    out, said = demo
    header = next(line for line in said.splitlines() if line.startswith("factor"))
    assert re.split(r"\s{2,}", header) == [
        "factor", "goodness (nats)", "of possible", "decoded", "ridge", "encoder", "verdict",
        "above threshold", "q ≤ 0.1", "auROC"
    ]  # fmt: skip
    for name in ("place", "direction", "speed"):
        assert re.search(rf"^{name} .* ± .* [01]\.\d{{3}}$", said, re.MULTILINE)
    assert Fit.load(out / "fit").summary() in said


def test_a_run_prints_two_lines_a_factor_and_takes_what_the_window_ticks(
    demo, recording_file, tmp_path, capsys
):
    out, _ = demo
    assert main(["run", str(recording_file), "--out", str(tmp_path / "run"), *TINY]) == 0
    said = capsys.readouterr().out
    asked = "--factor position=position --factor direction=direction --factor speed=speed"
    assert asked in said.splitlines()[0]
    fit = Fit.load(tmp_path / "run/fit")
    assert [part.name for part in fit.parts if part.name != "time"] == [
        "position", "direction", "speed"
    ]  # fmt: skip
    for goodness in fit.goodness.values():
        assert goodness.verdict in said
    assert "goodness (nats)" not in said
    assert len(said.splitlines()) <= 2 * len(fit.parts) + 6
    # of what was found: how many cells, and which first
    capsys.readouterr()
    scored = ["attribute", str(out), str(out / "recording.npz"), "--out", str(tmp_path / "scores")]
    assert main([*scored, "--no-significance"]) == 0
    found = Attribution.load(tmp_path / "scores/attribution.npz")
    said = capsys.readouterr().out
    for factor in filter(found.was_found, found.factors[:-1]):
        best = found.cell_ids[int(np.nanargmax(found.score(factor)))]
        count = int(found.selected(factor).sum())
        assert re.search(rf"  {count} of 24 cells .*: {best}\b", said)


def test_the_version_is_said(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"napari-xcebra {napari_xcebra.__version__}\n"


def test_the_help_of_sweep_shows_the_file_that_it_takes(capsys):
    with pytest.raises(SystemExit):
        main(["sweep", "--help"])
    shown = capsys.readouterr().out
    assert "[[recordings]]" in shown and "[settings]" in shown


def test_a_ridge_regression_stands_beside_every_factor_in_the_table(demo):
    out, said = demo
    place = Fit.load(out / "fit").goodness["place"]
    row = next(line for line in said.splitlines() if line.startswith("place "))
    assert f"R² {place.r2:.2f}  {place.ridge_r2:.2f}" in re.sub(r"\s{2,}", "  ", row)


def test_the_table_tells_the_accuracy_of_a_discrete_factor_and_what_could_not_be_tested():
    choice = Goodness("choice", 5.0, 6.2, 0.3, 0.05, 0.3, 0.4, True, samples=4.0, allowed=0.6,
                      accuracy=0.9, ridge_r2=0.5, ridge_accuracy=0.95,
                      untested="Too few trials.")  # fmt: skip
    assert goodness_words(choice) == [
        "0.30 ± 0.05", "50%", "accuracy 0.90", "0.95", "–", "not tested"
    ]  # fmt: skip
    time = Goodness("time", 5.0, 6.2, 0.6, 0.05, 0.6, float("nan"), True)
    assert goodness_words(time) == ["0.60 ± 0.05", "–", "–", "–", "–", "clear"]


def test_what_the_demo_suggests_next_can_be_typed(demo, tmp_path):
    out, said = demo
    command = shlex.split(said.strip().splitlines()[-1].partition("napari-xcebra ")[2])
    command[command.index("again")] = str(tmp_path / "again")
    assert main([*command, *TINY, "--quiet"]) == 0
    again = (tmp_path / "again/attribution.csv").read_bytes()
    assert again == (out / "attribution.csv").read_bytes()


def test_fit_then_attribute_gives_the_same_table_as_run(recording_file, tmp_path):
    path, one, two = str(recording_file), tmp_path / "one", tmp_path / "two"
    how = ["--frames", "0:400", "--aggregate", "max", "--method", "neuron-gradient"]
    assert main(["run", path, *FACTORS, "--out", str(one), *how, *TINY, "--quiet"]) == 0
    assert main(["fit", path, *FACTORS, "--out", str(two), *TINY, "--quiet"]) == 0
    assert main(["attribute", str(two), path, "--out", str(two), *how, "--quiet"]) == 0
    assert (one / "attribution.csv").read_bytes() == (two / "attribution.csv").read_bytes()
    # too short to be tested: that costs p and q, not the scores
    table = pd.read_csv(one / "attribution.csv")
    assert table["score"].notna().any() and "q" not in table
    assert set(table.columns) > {m.replace("-", "_") for m in methods.FIRST}
    assert {Path(name).suffix for name in files(one)} == {
        ".csv", ".npz", ".png", ".json", ".safetensors", ".toml"
    }  # fmt: skip
    of_run = {re.sub("-.*", "", name) for name in files(one)}
    assert of_run - {re.sub("-.*", "", name) for name in files(two)} == {"analysis.toml"}
    loaded = Attribution.load(one / "attribution.npz")
    assert (loaded.method, loaded.aggregate, loaded.n_frames) == ("neuron-gradient", "max", 400)
    assert any("No p and q: Factor" in note for note in loaded.notes)


def test_cells_can_be_tested_against_chance(demo, tmp_path, capsys):
    out, _ = demo
    attributed = ["attribute", str(out), str(out / "recording.npz"), "--out", str(tmp_path)]
    assert main([*attributed, "--significance", "--verbose"]) == 0
    said = capsys.readouterr().out
    assert "q ≤ 0.1" in said
    assert re.search(r"about \d+ s", said)
    tested = Attribution.load(tmp_path / "attribution.npz").significance
    assert tested.shifts == SHIFTS
    q = pd.read_csv(tmp_path / "attribution.csv").groupby("factor")["q"].min()
    assert q[list(tested.shortest)].between(0, 1).all()
    # place comes back too rarely in so short a recording, which is said
    assert q.drop(list(tested.shortest)).isna().all()
    assert set(tested.impossible) == set(q.index) - set(tested.shortest)
    assert all(why in said for why in tested.impossible.values())
    # the same without being asked for, and not if it is not wanted
    assert main([*attributed, "--quiet"]) == 0
    assert Attribution.load(tmp_path / "attribution.npz").significance is not None
    assert main([*attributed, "--no-significance", "--quiet"]) == 0
    assert Attribution.load(tmp_path / "attribution.npz").significance is None


def test_all_methods_can_be_put_side_by_side(demo, tmp_path, capsys):
    out, _ = demo
    command = ["compare", str(out), str(out / "recording.npz"), "--out", str(tmp_path)]
    assert main(command) == 0
    assert files(tmp_path) == {"methods.png", "methods.csv", "statistics.csv", "results.json"}
    said = capsys.readouterr().out
    assert re.search(r"^rank correlation with .* place +direction +speed +time$", said, re.M)
    for name in ("neuron gradient", "spatial information"):
        assert re.search(rf"^{name} +-?[01]\.\d\d ", said, re.M)
    table = pd.read_csv(tmp_path / "methods.csv")
    assert {f"{method} rank" for method in METHODS} < set(table.columns)
    assert len(table) == 24 * 4


def test_a_report_is_written_beside_the_run_and_opened_if_asked(
    demo, tmp_path, capsys, monkeypatch
):
    out, _ = demo
    opened = []
    monkeypatch.setattr(reporting.webbrowser, "open", opened.append)
    assert main(["report", str(out), "--out", str(tmp_path / "page.html"), "--open"]) == 0
    assert opened == [(tmp_path / "page.html").as_uri()]
    assert str(tmp_path / "page.html") in capsys.readouterr().out
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    # of the recording that lies beside the run: the painted field, tuning and the embedding
    for words in ("Cells on the imaged field", "Tuning of the cells", "Embedding of 1500 frames"):
        assert words in page
    assert str(out) not in page


def test_a_run_is_written_as_nwb_with_its_recording(demo, tmp_path, capsys):
    out, _ = demo
    path = tmp_path / "a.nwb"
    assert main(["export-nwb", str(out), "--started", "yesterday", "--out", str(path)]) == 2
    assert "write it as in 2026-05-06T14:30" in capsys.readouterr().err
    assert main(["export-nwb", str(out), "--subject", "m1", "--out", str(path)]) == 0
    assert str(path) in capsys.readouterr().out
    again = open_recording(path)
    assert again.n_cells == open_recording(out / "recording.npz").n_cells
    with h5py.File(path) as file:
        assert file["general/subject/subject_id"][()] == b"m1"
        assert {"scores_place", "embedding", "settings"} < set(file["processing/xcebra"])


def test_the_painted_field_is_drawn_for_a_paper(demo, tmp_path, capsys):
    out, _ = demo
    path = tmp_path / "field.svg"
    assert main(["figure", str(out), "--factor", "smell", "--out", str(path)]) == 2
    assert "There is no factor 'smell' here" in capsys.readouterr().err
    assert main(["figure", str(out), "--factor", "place", "--out", str(path)]) == 0
    assert "There is no scale bar" not in capsys.readouterr().out
    drawn = path.read_text(encoding="utf-8")
    assert ">place" in drawn and "µm" in drawn
    assert main(["figure", str(out), "--out", str(tmp_path / "field.docx")]) == 2
    assert "ends in .pdf, .svg, .png" in capsys.readouterr().err
    # or one page with all that is needed to judge the run
    page = tmp_path / "page.pdf"
    assert main(["figure", str(out), "--page", "--out", str(tmp_path / "page.png")]) == 2
    assert "needs to end in .pdf" in capsys.readouterr().err
    assert main(["figure", str(out), "--page", "--out", str(page)]) == 0
    assert page.read_bytes().startswith(b"%PDF")
    assert len(re.findall(rb"/Type /Page\b", page.read_bytes())) == 1


def test_a_report_of_nothing_is_one_sentence_and_no_file(tmp_path, capsys):
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "page.html")]) == 2
    assert "holds no run" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_plain_files_with_behaviour_can_be_fitted(tmp_path, capsys):
    simulation = field(cells=12, frames=1500, shape=(96, 96))
    recording = simulation.recording
    np.save(tmp_path / "traces.npy", recording.traces)
    xy = recording.behavior["position"].values
    pd.DataFrame({"x_m": xy[:, 0], "y_m": xy[:, 1]}).to_csv(tmp_path / "behaviour.csv")
    given = [str(tmp_path / "traces.npy"), "--behavior", str(tmp_path / "behaviour.csv"),
             "--rate", "10"]  # fmt: skip
    assert main(["info", *given]) == 0
    said = capsys.readouterr().out
    assert re.search(r"^x_m +continuous +m +1 ", said, re.MULTILINE)
    assert re.search(r"^cells +12 ", said, re.MULTILINE)
    out = tmp_path / "out"
    assert main(["run", *given, "--factor", "place=x_m,y_m", "--out", str(out), *TINY]) == 0
    assert Fit.load(out / "fit").part("place").variables == ("x_m", "y_m")
    # how the recording was opened is kept, so that a report finds it with its behaviour
    assert set(Opening.load(out).open().behavior) >= {"x_m", "y_m"}


def interrupted(command: list[str], after: str) -> tuple[int, str]:
    """Run a command, press Ctrl-C once its progress shows `after`; exit code and stderr."""
    with subprocess.Popen(
        [*NAPARI_XCEBRA, *command], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as process:
        said = b""
        while after.encode() not in said:
            chunk = os.read(process.stderr.fileno(), 4096)
            if not chunk:
                break
            said += chunk
        process.send_signal(signal.SIGINT)
        said += process.stderr.read()
    return process.returncode, said.decode()


def weights(folder: Path) -> bytes:
    return next((folder / "fit").glob("weights-*.safetensors")).read_bytes()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT for one process")
def test_ctrl_c_keeps_a_checkpoint_from_which_resume_gives_the_same_weights(
    recording_file, tmp_path
):
    # long enough that Ctrl-C comes before its end on any machine
    long = [str(recording_file), *FACTORS, *TINY, "--steps", "600", "--no-stop-when-settled"]
    one, two = tmp_path / "one", tmp_path / "two"
    command = ["fit", *long, "--out", str(one)]
    code, said = interrupted([*command, "--progress"], after="place")
    assert code == 130
    assert "Traceback" not in said
    assert (one / "checkpoint.safetensors").exists()
    so_far = json.loads((one / "fit/fit.json").read_text())["steps"]
    assert 0 < so_far < 600
    # the line it prints can be typed as it is
    again = shlex.split(said.strip().splitlines()[-1])
    assert again[0] == "napari-xcebra" and again[-1] == "--resume"
    assert main([*again[1:], "--quiet"]) == 0
    assert not (one / "checkpoint.safetensors").exists()
    assert main(["fit", *long, "--out", str(two), "--quiet"]) == 0
    assert weights(one) == weights(two)


def test_a_left_checkpoint_is_neither_overwritten_nor_taken_up_silently(
    recording_file, tmp_path, capsys
):
    (tmp_path / "checkpoint.safetensors").write_bytes(b"state")
    command = ["fit", str(recording_file), *FACTORS, *TINY, "--out", str(tmp_path)]
    assert main(command) == 2
    assert "add --resume" in capsys.readouterr().err
    assert (tmp_path / "checkpoint.safetensors").read_bytes() == b"state"


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("info {file}.missing", "There is no recording"),
        ("fit {silent} --rate 10 --out {out}", "--mode 'hybrid' needs at least one of --factor"),
        ("fit {file} --factor place=x --out {out}", "There is no variable 'x'"),
        ("fit {file} --factor place --out {out}", "not of the form name=variable"),
        ("fit {file} --factor place=position:two --out {out}", "not of the form"),
        ("fit {file} --factor p=speed --factor p=position --out {out}", "given twice"),
        ("fit {file} --factor p=speed --batch-size 2 --out {out}", "--batch-size is 2"),
        ("fit {file} --factor p=speed --batch-size many --out {out}", "invalid int value"),
        ("fit {file} --factor p=speed --mode magic --out {out}", "invalid choice"),
        (
            "fit {file} --factor p=speed --window 180 --blocks 20 --out {out}",
            "lower --window, --time-offset",
        ),
        ("fit {file} --factor p=speed --kind speed=round --out {out}", "variable=kind"),
        ("fit {file} --factor p=speed --out {file}", "is a file"),
        ("fit {file} --factor p=speed", "--out"),
        ("run {file} --factor p=speed --frames all --out {out}", "--frames all"),
        ("attribute {out} {file} --out {out}", "holds no fit"),
        ("attribute {out} {file} --method guess --out {out}", "invalid choice"),
        ("demo --cells -3 --out {out}", "cells is -3"),
        ("dem", "invalid choice"),
        ("info {empty}", "is empty"),
    ],
)
def test_bad_input_gets_one_sentence_and_leaves_nothing(
    recording_file, tmp_path, capsys, command, sentence
):
    out = tmp_path / "out"
    before = recording_file.read_bytes()
    empty = tmp_path / "empty"
    empty.mkdir()
    silent = recording_file.parent / "silent.npy"
    np.save(silent, np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32))
    named = dict(file=recording_file, out=out, empty=empty, silent=silent)
    words = [word.format(**named) for word in command.split()]
    try:
        code = main(words)
    except SystemExit as exit:  # argparse ends the program itself
        code = exit.code
    said = capsys.readouterr()
    assert code == 2
    assert sentence in said.err
    assert len(said.err.strip().splitlines()) == 1
    assert said.out == ""
    assert files(tmp_path) == set()
    assert recording_file.read_bytes() == before


def test_divergence_is_a_sentence_too(recording_file, tmp_path, capsys, monkeypatch):
    def diverge(*_, **__):
        raise TrainingDiverged("Training diverged at step 7.")

    monkeypatch.setattr(learn, "fit", diverge)
    command = ["fit", str(recording_file), *FACTORS, "--out", str(tmp_path / "out")]
    assert main(command) == 2
    assert capsys.readouterr().err == "napari-xcebra: Training diverged at step 7.\n"
    assert files(tmp_path) == set()


def test_quiet_says_nothing(recording_file, tmp_path, capfd):
    command = ["run", str(recording_file), *FACTORS, *TINY, "--out", str(tmp_path), "--quiet"]
    assert main(command) == 0
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("command", ["demo", "fit", "run"])
def test_help_lists_every_knob_with_its_default(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    text = " ".join(capsys.readouterr().out.split())
    for knob in fields(FitSettings):
        default = {True: "yes", False: "no"}.get(knob.default, knob.default)
        default = default if knob.type == "bool" else knob.default
        found = re.search(rf" {flag_of(knob.name)}\b", text)
        assert found is not None
        start = found.start()
        assert f"(default {default}" in text[start : start + 500]


def test_help_imports_no_torch():
    program = ("import sys; from napari_xcebra.cli import main\n"
               "try: main(['fit', '--help'])\n"
               "finally: print('torch' in sys.modules, file=sys.stderr)")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr.strip() == "False"


def test_a_run_loads_only_what_it_needs(recording_file, tmp_path):
    program = ("import sys; from napari_xcebra.cli import main\n"
               "code = main(sys.argv[1:])\n"
               "print(*(name for name in sys.modules if name.startswith('napari_xcebra')))\n"
               "sys.exit(code)")  # fmt: skip
    run = ["run", str(recording_file), *FACTORS, *TINY, "--out", str(tmp_path), "--quiet"]
    done = subprocess.run(
        [sys.executable, "-c", program, *run], capture_output=True, text=True, check=True
    )
    loaded = done.stdout.split()
    assert "napari_xcebra.attribution.scoring" in loaded
    assert len(loaded) <= 150
    assert not {f"napari_xcebra.io.{form}" for form in ("containers.tiff", "movie.arrays")} & set(
        loaded
    )
    parts = {".".join(name.split(".")[:2]) for name in loaded}
    assert not parts & {
        f"napari_xcebra.{part}" for part in ("batch", "jobs", "curation", "widgets")
    }


def test_every_command_has_a_function():
    parser = make_parser()
    (commands,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    for command in commands.choices.values():
        module, name = command.get_default("command").split(".")
        assert callable(getattr(import_module(f"napari_xcebra.cli.{module}"), name))


def test_a_flag_reaches_its_knob(recording_file, tmp_path):
    given = ["--no-accepted-only", "--lambda", "0.5", "--similarity", "dot", "--seed", "3"]
    command = ["fit", str(recording_file), *FACTORS, *TINY, *given, "--out", str(tmp_path)]
    assert main([*command, "--quiet"]) == 0
    settings = Fit.load(tmp_path / "fit").settings
    assert settings == FitSettings(
        accepted_only=False, lambda_=0.5, similarity="dot", seed=3,
        steps=20, batch_size=64, time_latents=1, time_offset=5,
    )  # fmt: skip


def test_help_lists_every_method(capsys):
    with pytest.raises(SystemExit):
        main(["attribute", "--help"])
    assert ",".join(METHODS) in "".join(capsys.readouterr().out.split())


def test_a_terminal_without_greek_letters_is_no_reason_to_fail(recording_file, monkeypatch):
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", narrow)
    assert main(["info", str(recording_file)]) == 0


def test_several_seeds_tell_which_scores_stay(recording_file, tmp_path, capsys):
    command = ["run", str(recording_file), *FACTORS, *TINY, "--seeds", "2", "--out", str(tmp_path)]
    assert main([*command, "--processes", "1"]) == 0
    table = pd.read_csv(tmp_path / "stability.csv")
    assert set(table["factor"]) == {"place", "direction", "time"}
    assert table["stable"].dtype == bool
    assert "cells are stable over 2 seeds" in capsys.readouterr().out


def test_a_number_of_latents_is_suggested_with_its_reason(recording_file, tmp_path, capsys):
    command = ["dimension", str(recording_file), *FACTORS, *TINY[:4], "--time-offset", "5"]
    command += ["--seeds", "2", "--try-time-latents", "1-2", "--out", str(tmp_path)]
    assert main([*command, "--processes", "1"]) == 0
    table = pd.read_csv(tmp_path / "dimension.csv")
    assert table["time_latents"].tolist() == [1, 2]
    assert table["suggested"].sum() == 1
    assert (tmp_path / "dimension.png").stat().st_size > 5000
    assert "fits with different seeds agree best" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "counts"), [("1-3", [1, 2, 3]), ("1,4", [1, 4]), ("2", [2]), ("", [])]
)
def test_numbers_are_typed_as_lists_and_ranges(text, counts):
    assert counts_from(text, "--flag") == counts


def test_a_number_that_is_none_gets_a_sentence():
    with pytest.raises(InputError, match="not of the form"):
        counts_from("some", "--flag")


def test_a_sweep_says_what_it_will_do_keeps_what_it_can_and_goes_on(
    recording_file, tmp_path, capsys
):
    config, out = tmp_path / "sweep.toml", tmp_path / "out"
    config.write_text(
        f"""
[[recordings]]
path = '{recording_file}'
[factors]
place = ["position"]
[settings]
steps = 10
batch_size = 64
time_offset = [5, 5000] # longer than the recording
"""
    )
    command = ["sweep", str(config), "--out", str(out), "--processes", "1"]
    assert main([*command, "--dry-run"]) == 0
    assert re.search(r"2 of 2 runs to go: about \d+ s of computing", capsys.readouterr().out)
    assert not out.exists()

    assert main(command) == 2
    said, complaint = capsys.readouterr()
    table = pd.read_csv(out / "summary.csv")
    assert table["time_offset"].tolist() == [5, 5000]
    assert table["status"].tolist() == ["finished", "failed"]
    assert re.search(rf"^{table['id'][0]} +5 +finished ", said, re.MULTILINE)
    assert "1 of 2 runs failed, the first because: The longest trial has 1500 usable" in complaint

    assert main([*command, "--dry-run"]) == 0
    assert "1 of 2 runs to go" in capsys.readouterr().out


def test_typing_nothing_shows_what_can_be_typed(capsys):
    with pytest.raises(SystemExit) as left:
        main([])
    assert left.value.code == 0
    assert "demo" in capsys.readouterr().out


def test_two_commands_do_not_write_to_one_folder_at_once(recording_file, tmp_path, capsys):
    command = ["run", str(recording_file), *FACTORS, *TINY, "--out", str(tmp_path), "--quiet"]
    with locked(tmp_path):
        assert main(command) == 2
    assert re.search(r"process \d+\) is writing to .*: try again", capsys.readouterr().err)
    assert files(tmp_path) == set()


def test_a_command_that_fails_leaves_no_folders(recording_file, tmp_path, capsys):
    out = tmp_path / "a" / "b"
    assert main(["fit", str(recording_file), "--factor", "x=nothing", "--out", str(out)]) == 2
    assert not (tmp_path / "a").exists()


def test_scores_of_an_earlier_training_are_not_reported_with_a_new_fit(recording_file, tmp_path):
    out = ["--out", str(tmp_path), "--quiet"]
    assert main(["run", str(recording_file), *FACTORS, *TINY, *out]) == 0
    found = material_in(tmp_path)
    assert tuple(found.attributions) == methods.FIRST  # the first as the window shows it
    assert found.first is found.attributions[methods.DEFAULT]
    assert Attribution.load(tmp_path / "attribution.npz").method == methods.DEFAULT
    # as if `run` had been stopped before it scored the cells
    assert main(["fit", str(recording_file), *FACTORS, *TINY, "--learning-rate", "0.02", *out]) == 0
    found = material_in(tmp_path)
    assert not found.attributions
    assert "attribution.npz belongs to another training, and is left out." in found.missing
    assert main(["verify", str(tmp_path)]) == 1
