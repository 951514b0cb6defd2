"""Messages survive what others print into the same pipe before the first one."""

import io

from napari_xcebra.jobs.sending import EVENT, IDLE, Channel


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
