"""Files of others are opened in a limited child, also by Python and by commands."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import h5py
import numpy as np
import psutil
import pytest

import napari_xcebra as xc
from napari_xcebra.cli import main
from napari_xcebra.errors import InputError
from napari_xcebra.files import GUARDED
from napari_xcebra.io import guard
from napari_xcebra.io.sessions import read_matching
from napari_xcebra.jobs import limits


@pytest.fixture
def door(monkeypatch):
    """The door as users have it: most tests open files in their own process, to be quick."""
    monkeypatch.delenv(GUARDED, raising=False)
    monkeypatch.setattr(limits, "COMPUTING", 2.0)
    monkeypatch.setattr(limits, "MEMORY", 300 * 2**20)


@pytest.fixture
def good(tmp_path):
    np.save(tmp_path / "good.npy", np.random.default_rng(0).random((300, 8)).cumsum(0))
    return tmp_path / "good.npy"


@pytest.fixture
def endless(tmp_path):
    """An NWB file over which libhdf5 loops for ever, holding Python's lock."""
    path = tmp_path / "damaged.nwb"
    with h5py.File(path, "w") as file:
        file.attrs["nwb_version"] = "2.7.0"
    content = bytearray(path.read_bytes())
    heap = content.index(b"GCOL")
    content[heap + 16 : heap + 32] = bytes(16)
    path.write_bytes(content)
    return path


class Question(InputError):
    """An error that carries more than its sentence."""

    def __init__(self, sentence: str, readings: object = None) -> None:
        super().__init__(sentence)
        self.readings = readings


def ask(path):
    raise Question(f"{path} can be read in two ways.", {"frames": np.arange(3)})


def pid_here(_):
    return os.getpid()


def imported(_):
    return sorted({"torch", "napari", "qtpy"} & set(sys.modules))


def crash(_):
    os.kill(os.getpid(), signal.SIGSEGV)


def exhaust(_):
    return [np.ones(2**27) for _ in range(100)]


def test_a_recording_is_the_same_through_the_door(door, good):
    here, there = (xc.open_recording(good, rate=10.0, guarded=g) for g in (False, True))
    assert np.array_equal(np.asarray(here.traces), np.asarray(there.traces))
    assert (here.notes, here.warnings) == (there.notes, there.warnings)
    there.traces[:1]  # belongs to this process


def test_footprints_of_a_layer_or_an_array_pass_the_door(door, good):
    labels = np.repeat(np.arange(9), 4).reshape(6, 6)

    class Layer:
        data, name = labels, "drawn"

    for given in (labels, Layer()):
        assert xc.open_recording(good, rate=10.0, footprints=given).footprints.cell.size == 32
    Layer.data = labels[:3]
    with pytest.raises(InputError, match=r"^drawn has"):
        xc.open_recording(good, rate=10.0, footprints=Layer())


def test_a_file_that_is_looped_over_is_a_sentence_in_python(door, endless, good):
    with pytest.raises(InputError, match=r"could not be read within 2 s.*NAPARI_XCEBRA_GUARDED=0"):
        xc.open_recording(endless)
    assert xc.open_recording(good, rate=10.0).n_cells == 8


@pytest.mark.parametrize("role", ["info", "--behavior", "--trials", "--events", "--footprints"])
def test_a_file_that_is_looped_over_is_a_sentence_in_a_command(door, endless, good, capsys, role):
    asked = [str(endless)] if role == "info" else [str(good), "--rate", "10", role, str(endless)]
    assert main(["info", *asked]) == 2
    said = capsys.readouterr().err
    assert "\n" not in said.strip()
    assert "could not be read" in said or "neither a label image" in said or "is not a" in said


@pytest.mark.parametrize("call, said", [(crash, "crashed"), (exhaust, "memory")])
def test_a_crash_or_a_lack_of_memory_is_a_sentence(door, good, call, said):
    with pytest.raises(InputError, match=said):
        guard.read(call, good, paths=(good,))
    assert guard.read(pid_here, good, paths=(good,)) != os.getpid()


def test_an_error_comes_through_with_all_that_it_carries(door, good):
    with pytest.raises(Question, match="in two ways") as error:
        guard.read(ask, good, paths=(good,))
    assert list(error.value.readings["frames"]) == [0, 1, 2]


def test_a_process_keeps_its_child_which_knows_neither_torch_nor_napari(door, good):
    first = guard.read(pid_here, good, paths=(good,))
    assert guard.read(imported, good, paths=(good,)) == []
    assert guard.read(pid_here, good, paths=(good,)) == first != os.getpid()


def test_without_the_door_files_are_read_here(door, good, monkeypatch):
    assert guard.read(pid_here, good, paths=(good,), guarded=False) == os.getpid()
    monkeypatch.setenv(GUARDED, "0")
    assert guard.read(pid_here, good, paths=(good,)) == os.getpid()


@pytest.mark.skipif(os.name == "nt", reason="has no fork")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_fork_has_a_child_of_its_own(door, good):
    first = guard.read(pid_here, good, paths=(good,))
    source, sink = os.pipe()
    if not (fork := os.fork()):
        try:
            os.write(sink, str(guard.read(pid_here, good, paths=(good,))).encode())
        finally:
            os._exit(0)
    other = int(os.read(source, 20))
    os.waitpid(fork, 0)
    assert other not in (first, os.getpid(), fork)
    assert guard.read(pid_here, good, paths=(good,)) == first


def test_a_script_needs_no_guard_of_its_own_and_leaves_nothing(good, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(f"""
        import napari_xcebra as xc
        from napari_xcebra.io import guard
        print(xc.open_recording({str(good)!r}, rate=10).n_cells, guard._door().pid)
        """)
    )
    environment = {k: v for k, v in os.environ.items() if k != GUARDED}
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, env=environment, check=True
    )
    cells, pid = map(int, done.stdout.split())
    assert (cells, done.stderr, psutil.pid_exists(pid)) == (8, "", False)


@pytest.mark.skipif(os.name == "nt", reason="has other signals")
@pytest.mark.parametrize("sent, code", [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_a_command_and_its_child(endless, sent, code):
    environment = {k: v for k, v in os.environ.items() if k != GUARDED}
    program = """
import signal, sys
from napari_xcebra.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in tests in the background
sys.exit(main(sys.argv[1:]))
"""
    command = subprocess.Popen(
        [sys.executable, "-c", program, "info", endless],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    parent = psutil.Process(command.pid)
    while not (busy := [c for c in parent.children() if c.cpu_times().user > 2]):
        assert command.poll() is None
        time.sleep(0.05)
    command.send_signal(sent)
    assert command.wait(120) == code
    assert "Traceback" not in command.communicate()[1]
    assert not any(child.is_running() for child in busy)


@pytest.mark.parametrize("name", ["traces.npy", "traces.csv", "traces.mat", "traces.h5", "a.tif"])
@pytest.mark.parametrize("role", ["recording", "behavior", "footprints"])
def test_a_file_of_holes_is_a_sentence(door, good, tmp_path, name, role):
    path = tmp_path / name
    with path.open("wb") as file:
        file.write({"npy": b"\x93NUMPY", "h5": b"\x89HDF\r\n\x1a\n"}.get(name[-3:], b"1,2\n"))
        file.truncate(6 * 2**30)
    given = {} if role == "recording" else {role: path}
    with pytest.raises(InputError):
        xc.open_recording(good if given else path, rate=10.0, **given)


def test_a_table_of_matched_cells_passes_the_door(door, tmp_path):
    path = tmp_path / "matched.csv"
    path.write_text("a,b\n1,2\n2,1\n")
    assert len(guard.read(read_matching, path, paths=(path,)).ids) == 2
