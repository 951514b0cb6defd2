"""What a killed process leaves is cleared away at the next start, and nothing else is."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from napari_xcebra.support import leftovers
from napari_xcebra.support.leftovers import MARKER, PREFIX, clear_leftovers, temporary_folder

pytestmark = pytest.mark.skipif(os.name != "posix", reason="no signals here")
TIMEOUT = 120


@pytest.fixture
def room(tmp_path, monkeypatch):
    """The system's temporary folder, for this process and those that it starts."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


def until(condition):
    deadline = time.monotonic() + TIMEOUT
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def is_gone(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def named(room):
    return [path for path in room.iterdir() if path.name.startswith(PREFIX)]


def test_a_folder_is_for_its_user_alone_and_names_its_owner(room):
    folder = temporary_folder()
    assert folder.stat().st_mode & 0o077 == 0
    assert json.loads((folder / MARKER).read_text())["owner"][0] == os.getpid()


def test_a_folder_in_use_stays_and_one_whose_owner_is_gone_goes(room):
    kept = temporary_folder()
    code = "from napari_xcebra.support.leftovers import temporary_folder; print(temporary_folder())"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    abandoned = Path(printed.stdout.decode().strip())
    (abandoned / "lent-0.npy").write_bytes(b"traces")
    assert clear_leftovers() == [abandoned]
    assert not abandoned.exists()
    assert kept.exists()


def abandoned(room, **about):
    """A folder whose owner is gone."""
    folder = temporary_folder()
    told = json.loads((folder / MARKER).read_text()) | {"owner": [os.getpid(), "long ago"]}
    (folder / MARKER).write_text(json.dumps(told | about))
    return folder


def test_what_was_not_made_here_for_this_user_stays(room, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    abandoned(room).rename(elsewhere)
    (room / f"{PREFIX}link").symlink_to(elsewhere)
    (room / f"{PREFIX}file").write_text("")
    (room / f"{PREFIX}unmarked").mkdir(mode=0o700)
    open_to_all = abandoned(room)
    open_to_all.chmod(0o777)
    linked = abandoned(room)
    (linked / MARKER).rename(tmp_path / "marker")
    (linked / MARKER).symlink_to(tmp_path / "marker")
    other = room / "somebody-elses"
    abandoned(room).rename(other)
    before = sorted(room.iterdir())
    assert clear_leftovers() == []
    assert sorted(room.iterdir()) == before
    assert (elsewhere / MARKER).exists()


def test_links_in_a_folder_are_removed_and_what_they_point_at_is_not(room, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mouse.nwb").write_text("precious")
    folder = abandoned(room)
    (folder / "link").symlink_to(tmp_path / "data")
    assert clear_leftovers() == [folder]
    assert (tmp_path / "data" / "mouse.nwb").read_text() == "precious"


@pytest.mark.parametrize("marker", [None, "", "[]"])
def test_a_folder_of_another_computer_or_half_made_goes_when_it_is_very_old(room, marker):
    folder = abandoned(room, host="another")
    if marker is not None:
        (folder / MARKER).write_text(marker)
    assert clear_leftovers() == []
    old = time.time() - leftovers.OLD - 60
    os.utime(folder / MARKER, (old, old))
    assert clear_leftovers() == [folder]


def test_a_stopped_child_whose_window_is_gone_is_ended(room):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    child.send_signal(signal.SIGSTOP)
    abandoned(room, child=[child.pid, leftovers._birth(child.pid)])
    clear_leftovers()
    assert child.wait(TIMEOUT) == -signal.SIGKILL


def test_another_process_under_the_number_of_the_child_is_left_alone(room):
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        abandoned(room, child=[other.pid, "another time"])
        assert len(clear_leftovers()) == 1
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


WINDOW = """
import sys, time
import numpy as np
from napari_xcebra.jobs import Worker
from napari_xcebra.jobs.pool import ProcessPool
from napari_xcebra.recording import Recording
if __name__ == "__main__":
    recording = Recording.from_arrays(np.zeros((200_000, 60), np.float32) + 1, rate=10.0)
    pool, worker = ProcessPool(1), Worker()
    pool.submit(len, recording)
    worker.start()
    while worker.pid is None:
        time.sleep(0.02)
    print(worker.pid, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def window(room, tmp_path):
    """A process with a pool and a worker, and the worker's child."""
    script = tmp_path / "window.py"
    script.write_text(WINDOW)
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE)
    child = int(process.stdout.readline())
    yield process, child
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_after_a_killed_window_the_next_start_finds_an_empty_folder(window, room, number):
    process, child = window
    assert any(path.name == "0.npy" for path in room.rglob("*"))
    process.send_signal(number)
    process.wait(TIMEOUT)
    until(lambda: is_gone(child))
    clear_leftovers()
    until(lambda: not named(room))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the next start ends it")
def test_a_stopped_child_does_not_outlive_its_window(window):
    process, child = window
    until(lambda: psutil.Process(child).num_threads() > 2)  # it waits for tasks
    os.kill(child, signal.SIGSTOP)
    process.kill()
    process.wait(TIMEOUT)
    until(lambda: is_gone(child))


SWEEP = """
[[recordings]]
path = '{path}'
rate = 10.0
behavior = '{behavior}'
[factors]
place = ["x"]
[settings]
steps = 100000
batch_size = 64
"""


def test_a_terminated_sweep_leaves_nothing_and_exits_as_terminated(room, tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "traces.npy", rng.random((150_000, 60), np.float32))
    x = np.cumsum(rng.normal(size=150_000))
    (tmp_path / "behavior.csv").write_text("\n".join(["x", *map(str, x)]))
    config = tmp_path / "sweep.toml"
    config.write_text(
        SWEEP.format(path=tmp_path / "traces.npy", behavior=tmp_path / "behavior.csv")
    )
    command = [sys.executable, "-c", "from napari_xcebra.cli import main; raise SystemExit(main())"]
    command += ["sweep", str(config), "--out", str(tmp_path / "out"), "--processes", "1"]
    sweep = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    until(lambda: named(room) or sweep.poll() is not None)
    assert sweep.poll() is None, sweep.stdout.read()
    until(lambda: [path for path in room.rglob("*.npy") if path.stat().st_size > 2**25])
    sweep.terminate()
    said, _ = sweep.communicate(timeout=TIMEOUT)
    assert sweep.returncode == 143, said
    assert named(room) == []
