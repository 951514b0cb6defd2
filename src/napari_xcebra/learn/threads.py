"""How many threads a training computes on, found by trying."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

TRIED = 4
"""Steps on each number of threads that is tried."""
LONG = 0.01
"""Seconds of a step from which on more threads are worth trying."""


class ThreadTrial:
    """The first steps of a training on one thread, on two, four …, until more are no faster.

    Steps count, whatever they are done on. How many threads are taken decides in which order
    numbers are summed, and so the last digits of a result; hence only if it is asked for.

    Parameters
    ----------
    most : int
        Threads that may be taken.
    clock : callable
        Seconds that have passed.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.perf_counter) -> None:
        self._most, self._clock = most, clock
        self._fastest, self._shortest = 1, float("inf")
        self._spent: list[float] = []
        self.threads = 1
        self.over = False

    @contextmanager
    def step(self) -> Iterator[None]:
        """Around each step: computes on the threads whose turn it is, and times it."""
        if self.over:
            yield
            return
        torch.set_num_threads(self.threads)
        began = self._clock()
        yield
        self._spent.append(self._clock() - began)
        if len(self._spent) == TRIED:
            self._next(min(self._spent))
            self._spent = []

    def _next(self, seconds: float) -> None:
        faster = seconds < self._shortest
        if faster:
            self._fastest, self._shortest = self.threads, seconds
        self.over = not faster or seconds < LONG or 2 * self.threads > self._most
        self.threads = self._fastest if self.over else 2 * self.threads
        torch.set_num_threads(self.threads)
