"""Other packages add formats and methods, and none of them keeps the program from working."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLE = Path(__file__).parent / "example_plugin"
RNG = np.random.default_rng(0)


def ran(code, *arguments):
    """What Python prints with the example package installed."""
    paths = os.pathsep.join([str(EXAMPLE), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def scan(tmp_path):
    lines = [" ".join(f"{v:.4f}" for v in trace) for trace in RNG.normal(size=(4, 400))]
    (tmp_path / "a.scan").write_text("\n".join(["line scan at 20 Hz", *lines]))
    seconds = np.arange(0, 20, 0.01)
    np.savetxt(tmp_path / "a.ball", np.stack([seconds, np.sin(seconds)], axis=1))
    return tmp_path


OPEN = """
import sys
from napari_xcebra import open_recording
recording = open_recording(*sys.argv[1:])
print(recording.n_frames, recording.n_cells, recording.rate, *recording.behavior)
print(*recording.notes, sep="\\n")
"""


def test_formats_of_another_package_open_and_broken_ones_are_noted_once(scan):
    told = ran(OPEN, scan / "a.scan", scan / "a.ball")
    assert told.startswith("400 4 20.0 speed\n")
    assert "as a line scan (.scan)" in told
    assert told.count("The plug-in broken of package xcebra-example is left out") == 1
    assert "(ImportError: No module named 'scanner_sdk')" in told
    assert "plug-in half of package xcebra-example is left out, because it fails (it has no" in told


@pytest.mark.parametrize("guarded", ["0", "1"])
def test_one_that_does_not_answer_or_ends_the_program_is_left_out_by_name(
    scan, monkeypatch, guarded
):
    monkeypatch.setenv("NAPARI_XCEBRA_GUARDED", guarded)
    code = """
import sys, time
from napari_xcebra import open_recording
for _ in range(2):
    began = time.process_time()
    told = open_recording(sys.argv[1]).notes
print(f"{time.process_time() - began:.1f}", *told, sep="\\n")
"""
    seconds, *told = ran(code, scan / "a.scan").splitlines()
    for name, why in (
        ("absent", "SystemExit: no licence"),
        ("awaited", "NoAnswer: sniff does not answer within 1 s"),
        ("asleep", "NoAnswer: sniff does not answer within 1 s"),
    ):
        (sentence,) = (each for each in told if f"plug-in {name} of package" in each)
        assert f"is left out, because it fails ({why})" in sentence
    assert float(seconds) < 1  # it is asked once, and nothing goes on behind


def test_what_fails_in_a_plug_in_is_a_sentence(scan):
    (scan / "b.scan").write_text("line scan at 20 Hz\n1 2 x")
    (scan / "c.scan").write_bytes(b"\xff\xfe\xfd")
    code = """
import sys
from napari_xcebra import open_recording
from napari_xcebra.errors import InputError
for path in sys.argv[1:]:
    try:
        open_recording(path)
    except InputError as error:
        print(error)
"""
    told = ran(code, scan / "b.scan", scan / "c.scan").splitlines()
    assert "b.scan cannot be read as a line scan (.scan) by plug-in line-scan (Value" in told[0]
    assert "not a recording in a known format" in told[1]
    assert "a line scan (.scan)" in told[1]


def test_methods_of_another_package_are_listed_computed_and_guarded():
    code = """
import numpy as np
from napari_xcebra import Factor, FitSettings, Recording, Variable, attribute, fit
from napari_xcebra.attribution.methods import METHODS, check_method
from napari_xcebra.errors import InputError
from napari_xcebra.plugins import problems
rng = np.random.default_rng(0)
x = np.cumsum(rng.normal(size=600)) / 20
traces = rng.normal(size=(600, 6)) + x[:, None] * np.arange(6)
recording = Recording(traces.astype("f4"), 10.0, {"x": Variable("x", x)})
made = fit(recording, {"x": Factor(("x",))}, FitSettings(steps=10, batch_size=64, lambda_=0.1))
print(METHODS[0], METHODS[-2:])
print(attribute(made, recording, "squared-gradient").score("x").shape)
try:
    attribute(made, recording, "failing")
except InputError as error:
    print(error)
print(*problems(), sep="\\n")
"""
    told = ran(code).splitlines()
    assert told[0] == "both-routes ('failing', 'squared-gradient')"
    assert told[1] == "(6,)"
    assert told[2].startswith("The method failing of another package failed (ZeroDivisionError")
    assert any("words" in line and "no Method" in line for line in told[3:])
    assert any("there is a method neuron-gradient already" in line for line in told[3:])
