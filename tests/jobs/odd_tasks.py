"""Tasks that do what real ones should not. In a module of its own, so that the child finds it."""

import os
import sys
import time
import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from napari_xcebra.jobs import Advanced
from napari_xcebra.recording import Recording


@dataclass(frozen=True, eq=False)
class Odd:
    doing: ClassVar[str] = "An odd task"
    sparing: ClassVar[str] = "ask for less"


@dataclass(frozen=True, eq=False)
class Look(Odd):
    """What the child has of a recording: its process, and where the traces lie."""

    recording: Recording

    def run(self, report):
        traces = self.recording.traces
        return os.getpid(), id(traces), float(np.sum(traces, dtype=np.float64))


class Deaf(Odd):
    """Goes on for minutes, whatever it is asked."""

    def run(self, report):
        for second in range(600):
            report(Advanced(second, 600, "step"))
            time.sleep(1)


class Scattered(Odd):
    """Leaves a small block above many that it gave up; returns the bytes that it had."""

    left: ClassVar[list[bytearray]] = []

    def run(self, report):
        size, blocks = 50_000, 4_000
        had = [bytearray(size) for _ in range(blocks)]
        self.left.append(had.pop())
        return size * blocks


class NoMemory(Odd):
    """Asks the system for a petabyte."""

    def run(self, report):
        return np.empty(2**50, np.uint8)


class NoTorchMemory(Odd):
    """Asks torch for a petabyte."""

    def run(self, report):
        import torch

        return torch.empty(2**50, dtype=torch.uint8)


class Crash(Odd):
    def run(self, report):
        os.abort()


class Noisy(Odd):
    """Prints in every way there is, and fails."""

    def run(self, report):
        print("printed")
        os.write(1, b"written\n")
        print("complained", file=sys.stderr)
        warnings.warn("warned", stacklevel=1)
        raise ZeroDivisionError("by zero\nmore about it")


@dataclass(frozen=True, eq=False)
class Echo(Odd):
    """Gives back what it is given."""

    value: Any

    def run(self, report):
        return self.value


class Secret(Odd):
    """Has a result that cannot be handed over."""

    def run(self, report):
        return lambda: None


@dataclass(frozen=True, eq=False)
class Big(Odd):
    """A result of so many bytes."""

    size: int

    def run(self, report):
        return np.arange(self.size // 8, dtype=np.float64)
