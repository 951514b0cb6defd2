"""Recordings and large arrays are sent once, and come back as the objects they were."""

import gc
import io
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

from napari_xcebra.jobs import sending, tasks
from napari_xcebra.jobs.calls import Call
from napari_xcebra.jobs.sending import EVENT, IDLE, Borrower, Channel, Lender
from napari_xcebra.recording import Recording

CALLS = [each for each in vars(tasks).values() if isinstance(each, Call)]
TRACES = 2000 * 50 * 4


@pytest.fixture
def lender(tmp_path):
    return Lender(tmp_path)


@pytest.fixture
def borrower(tmp_path):
    return Borrower(tmp_path)


def new_recording():
    traces = np.random.default_rng(0).random((2000, 50), np.float32)
    return Recording.from_arrays(traces, rate=10.0, behavior={"speed": np.arange(2000.0)})


def sent(value, lender, borrower):
    """Value as the child has it, and the bytes it took."""
    payload = lender.pack(value)
    received = borrower.unpack(payload)
    lender.received()
    return received, len(payload)


def test_a_recording_arrives_as_it_is(lender, borrower):
    recording = new_recording()
    received, _ = sent({"task": recording}, lender, borrower)
    there = received["task"]
    np.testing.assert_array_equal(there.traces, recording.traces)
    np.testing.assert_array_equal(there.variable("speed").values, np.arange(2000.0)[:, None])
    with pytest.raises(TypeError):
        there.behavior["speed"] = None


def test_a_recording_is_sent_once(lender, borrower):
    recording = new_recording()
    first, cost = sent(recording, lender, borrower)
    second, cost_again = sent(recording, lender, borrower)
    assert cost > TRACES
    assert cost_again < 200
    assert second is first


def test_a_changed_copy_costs_what_has_changed(lender, borrower):
    recording = new_recording()
    sent(recording, lender, borrower)
    changed, cost = sent(replace(recording, accepted=np.arange(50) > 3), lender, borrower)
    assert cost < TRACES / 5
    assert changed.accepted.sum() == 46


def test_a_result_brings_back_the_very_objects(lender, borrower):
    recording = new_recording()
    there, _ = sent(recording, lender, borrower)
    back = lender.unpack(borrower.pack({"recording": there, "traces": there.traces}))
    assert back["recording"] is recording
    assert back["traces"] is recording.traces


def test_what_nobody_holds_any_longer_is_let_go_in_the_child(lender, borrower):
    recording = new_recording()
    sent(recording, lender, borrower)
    assert borrower._values
    del recording
    gc.collect()
    sent("something else", lender, borrower)
    assert not borrower._values
    assert not borrower._numbers


def test_what_was_not_received_is_sent_again(lender, borrower):
    recording = new_recording()
    lender.pack(recording)  # and lost on the way
    there, cost = sent(recording, lender, borrower)
    assert cost > TRACES
    np.testing.assert_array_equal(there.traces, recording.traces)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_large_array_goes_through_a_file_that_is_gone_afterwards(
    lender, borrower, tmp_path, monkeypatch, order
):
    monkeypatch.setattr(sending, "FILE_FROM", TRACES)
    array = np.asarray(np.random.default_rng(0).random((2000, 50), np.float32), order=order)
    there, cost = sent(array, lender, borrower)
    assert cost < 1000
    np.testing.assert_array_equal(there, array)
    result = lender.unpack(borrower.pack(there + 1))
    np.testing.assert_array_equal(result, array + 1)
    result[:] = 0  # it belongs to the window now
    assert list(tmp_path.iterdir()) == []


def test_a_view_of_every_other_frame_arrives_as_it_is(lender, borrower, monkeypatch):
    monkeypatch.setattr(sending, "FILE_FROM", TRACES)
    view = np.random.default_rng(0).random((4000, 100), np.float32)[::2, ::2]
    np.testing.assert_array_equal(sent(view, lender, borrower)[0], view)


def after(write):
    pipe = io.BytesIO()
    write(pipe, Channel(io.BytesIO(), pipe))
    return Channel(io.BytesIO(pipe.getvalue()), io.BytesIO())


def test_what_start_up_files_print_is_passed_over():
    def write(pipe, channel):
        pipe.write(b"Welcome to this computer\n\x00napari")
        channel.greet()
        channel.send(EVENT, b"hello")

    channel = after(write)
    assert channel.await_greeting()
    assert channel.receive() == (EVENT, b"hello")
    assert channel.receive() is None


def test_a_process_that_ends_before_it_greets_is_found_out():
    assert not after(lambda pipe, channel: pipe.write(b"Traceback")).await_greeting()


def test_half_a_message_is_none():
    def write(pipe, channel):
        channel.send(IDLE, b"1234")
        pipe.seek(-2, io.SEEK_END)
        pipe.truncate()

    assert after(write).receive() is None


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.function)
def test_every_call_of_the_table_names_a_function_that_is_there(call):
    module, _, name = call.function.partition(":")
    assert callable(getattr(import_module(module), name))
