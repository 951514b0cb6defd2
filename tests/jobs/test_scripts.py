"""A worker inside other people's programs."""

import os
import signal
import subprocess
import sys

import pytest
from test_worker import is_gone, until

# No `if __name__ == "__main__"`, and no `close`.
SCRIPT = """
print("begun")
import sys
from pathlib import Path

from napari_xcebra.jobs import Worker, tasks
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.simulate import box

simulation = box(frames=2500, cells=(12, 12))
settings = FitSettings(steps=20, batch_size=128, hidden_units=32, smoothing=0)
worker = Worker()
job = worker.submit(tasks.FIT(simulation.recording, simulation.factors, settings))
fit = job.wait(120).result
job = worker.submit(tasks.ATTRIBUTE(fit, simulation.recording))
result = job.wait(120).result
assert len(result.table("z2")) == 24 and fit.goodness["z2"].verdict and len(fit.history["z2"])
fit.save(Path("fit"))
result.to_csv("attribution.csv")
assert type(fit).load(Path("fit")).steps == 20
assert "torch" not in sys.modules, "torch"
print(worker.pid)
"""

TRAINING = """
import time
from napari_xcebra.jobs import Advanced, Worker, sending, tasks
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.simulate import box

sending.FILE_FROM = 1000
simulation = box(frames=2500, cells=(12, 12))
settings = FitSettings(steps=1_000_000, batch_size=128)
worker = Worker()
job = worker.submit(
    tasks.FIT(simulation.recording, simulation.factors, settings, checkpoint="state.safetensors")
)
for event in job.events():
    if isinstance(event, Advanced):
        print(worker.pid, flush=True)
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A finished script: its lines, and its folder for temporary files."""
    folder = tmp_path_factory.mktemp("script")
    (folder / "temporary").mkdir()
    (folder / "torch.py").write_text("raise ImportError('not this one')")  # what a folder may hold
    (folder / "scripts").mkdir()
    script = folder / "scripts" / "script.py"
    script.write_text(SCRIPT)
    process = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", str(script)],
        cwd=folder,
        env=os.environ | {"TMPDIR": str(folder / "temporary")},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert process.stderr == ""
    assert process.returncode == 0
    return process.stdout.splitlines(), folder


def test_a_script_without_a_guard_runs_once(done):
    lines, _ = done
    assert lines[0] == "begun"
    assert len(lines) == 2


def test_results_are_read_and_saved_without_torch(done):
    _, folder = done  # the script asserts that torch was not imported
    assert (folder / "attribution.csv").exists()
    assert (folder / "fit" / "fit.json").exists()


def test_a_script_that_ends_without_closing_leaves_neither_process_nor_files(done):
    lines, folder = done
    assert is_gone(int(lines[-1]))
    assert list((folder / "temporary").iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="no signals here")
def test_when_the_window_is_killed_its_child_leaves_in_the_middle_of_training(tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", TRAINING],
        cwd=tmp_path,
        env=os.environ | {"TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        text=True,
    ) as window:
        pid = int(window.stdout.readline())
        assert not is_gone(pid)
        window.send_signal(signal.SIGKILL)
    until(lambda: is_gone(pid))
    assert list(temporary.iterdir()) == []
    assert {path.name for path in tmp_path.iterdir()} <= {"temporary", "state.safetensors"}
