"""Calls in child processes: what one of them suffers, the others do not."""

import os
import pickle
import time
from concurrent.futures import CancelledError

import numpy as np
import odd_calls
import pytest

from napari_xcebra.errors import Stopped
from napari_xcebra.jobs import pool as pool_module
from napari_xcebra.jobs.calls import CallFailed, current_report
from napari_xcebra.jobs.pool import ProcessPool, room_for

TIMEOUT = 120

signals = pytest.mark.skipif(os.name != "posix", reason="no signals here")


@pytest.fixture
def pool(no_torch):
    with ProcessPool(2) as pool:
        yield pool


def until(condition):
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_calls_go_to_other_processes_and_come_back_in_order(pool):
    assert list(pool.map(abs, [-3, 4, -5], timeout=TIMEOUT)) == [3, 4, 5]
    assert pool.submit(odd_calls.where).result(TIMEOUT) != os.getpid()


def test_an_error_comes_back_as_its_sentence(pool):
    with pytest.raises(CallFailed, match=r"^This cannot be done: do something else\.$"):
        pool.submit(odd_calls.refuse).result(TIMEOUT)


@signals
def test_a_killed_process_fails_its_own_call_only(pool):
    killed, other = pool.submit(odd_calls.kill_self), pool.submit(abs, -3)
    with pytest.raises(CallFailed, match="killed by the system"):
        killed.result(TIMEOUT)
    assert other.result(TIMEOUT) == 3
    assert pool.submit(abs, -4).result(TIMEOUT) == 4


def test_a_running_call_says_where_it_stands_and_can_be_stopped(no_torch):
    with ProcessPool(1) as pool:
        running, waiting = pool.submit(odd_calls.go_on_for_minutes), pool.submit(abs, -3)
        until(lambda: running.progress > 0)
        waiting.stop()
        running.stop()
        with pytest.raises(Stopped):
            running.result(TIMEOUT)
        with pytest.raises(CancelledError):
            waiting.result(TIMEOUT)
        assert pool.submit(abs, -4).result(TIMEOUT) == 4


def test_whoever_leaves_by_an_exception_does_not_wait(no_torch):
    with pytest.raises(KeyboardInterrupt), ProcessPool(1) as pool:
        running = pool.submit(odd_calls.go_on_for_minutes)
        until(lambda: running.progress > 0)
        raise KeyboardInterrupt
    assert isinstance(running.exception(TIMEOUT), Stopped)


def test_a_recording_is_sent_to_a_process_once(no_torch, recording):
    with ProcessPool(1) as pool:
        first, second = (pool.submit(odd_calls.traces_of, recording) for _ in range(2))
        assert first.result(TIMEOUT) == second.result(TIMEOUT)


def test_large_traces_are_written_to_disk_once_for_all_processes(
    no_torch, recording, monkeypatch, tmp_path
):
    monkeypatch.setattr(pool_module, "FILE_FROM", 1)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with ProcessPool(2) as pool:
        calls = [pool.submit(odd_calls.traces_of, recording) for _ in range(4)]
        found = [call.result(TIMEOUT) for call in calls]
        assert len(list(tmp_path.glob("napari-xcebra-sweep-*/*.npy"))) == 1
    assert {(kind, value) for _, _, kind, value in found} == {
        ("NpyTraces", float(recording.traces[0, 0]))
    }
    assert not list(tmp_path.glob("napari-xcebra-sweep-*"))


def test_a_closed_pool_takes_no_calls():
    pool = ProcessPool(1)
    pool.shutdown()
    with pytest.raises(RuntimeError, match="closed"):
        pool.submit(abs, -1)


def test_what_runs_here_reports_to_nobody():
    assert current_report().stop() is False


def test_a_recording_can_be_pickled_by_anyone(recording):
    again = pickle.loads(pickle.dumps(recording))
    np.testing.assert_array_equal(again.traces, recording.traces)
    assert list(again.behavior) == list(recording.behavior)
    with pytest.raises(TypeError):
        again.behavior["speed"] = None


def test_processes_fit_cores_and_memory(recording, monkeypatch):
    monkeypatch.setattr("napari_xcebra.jobs.pool.cores", lambda: 8)
    memory = type("memory", (), {"available": 100 * 2**30})
    monkeypatch.setattr("psutil.virtual_memory", lambda: memory)
    assert room_for([recording], device="cpu") == 8
    assert room_for([recording], device="cpu", threads=4) == 2
    memory.available = 2 * 2**30
    assert room_for([recording], device="cpu") == 3
    memory.available = 0
    assert room_for([recording], device="cpu") == 1
    memory.available = 100 * 2**30
    monkeypatch.setattr("napari_xcebra.jobs.pool._free_on_gpu", lambda: 4 * 2**30)
    assert room_for([recording]) == 5
    assert room_for([recording], device="cpu") == 8
