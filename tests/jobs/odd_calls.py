"""Functions that do what calls should not. In a module of its own, so that children find it."""

import os
import signal
import sys
import time
import warnings

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.jobs import Advanced, Call
from napari_xcebra.jobs.calls import current_report


def odd(function, *arguments):
    return Call(function, arguments, doing="An odd call", sparing="ask for less")


def look(recording):
    """What the child has of a recording: its process, and where the traces lie."""
    traces = recording.traces
    return os.getpid(), id(traces), float(np.sum(traces, dtype=np.float64))


def deaf():
    """Goes on for minutes, whatever it is asked."""
    for second in range(600):
        current_report()(Advanced(second, 600, "step"))
        time.sleep(1)


LEFT = []


def scattered():
    """Leaves a small block above many that it gave up; returns the bytes that it had."""
    size, blocks = 50_000, 4_000
    had = [bytearray(size) for _ in range(blocks)]
    LEFT.append(had.pop())
    return size * blocks


def no_memory():
    """Asks the system for a petabyte."""
    return np.empty(2**50, np.uint8)


def no_torch_memory():
    """Asks torch for a petabyte."""
    import torch

    return torch.empty(2**50, dtype=torch.uint8)


def noisy():
    """Prints in every way there is, and fails."""
    print("printed")
    os.write(1, b"written\n")
    print("complained", file=sys.stderr)
    warnings.warn("warned", stacklevel=1)
    raise ZeroDivisionError("by zero\nmore about it")


def echo(value):
    return value


def secret():
    """Has a result that cannot be handed over."""
    return lambda: None


def big(size):
    """A result of so many bytes."""
    return np.arange(size // 8, dtype=np.float64)


def crash():
    os.abort()


def where(*_):
    return os.getpid()


def traces_of(recording):
    return (
        os.getpid(),
        id(recording),
        type(recording.traces).__name__,
        float(recording.traces[0, 0]),
    )


def kill_self():
    os.kill(os.getpid(), signal.SIGKILL)


def go_on_for_minutes():
    report = current_report()
    for second in range(6000):
        report(Advanced(second, 6000, "step"))
        time.sleep(0.1)
        if report.stop():
            return


def refuse():
    raise InputError("This cannot be done: do something else.")
