"""The background processes of a window: one that answers soon, and one for what takes long."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from napari_xcebra.jobs import Worker

Which = Literal["worker", "second_worker"]


class Processes:
    """Starts each process when it is first asked for, and ends them together."""

    closed = False

    @cached_property
    def worker(self) -> Worker:
        """The process that trains and attributes; started when first asked for."""
        return _started()

    @cached_property
    def second_worker(self) -> Worker:
        """The process for what takes long, and which nothing else is to wait for."""
        return _started()

    def warm_up(self) -> None:
        """Start the first ahead of its first task: it takes seconds to import torch."""
        _ = self.worker

    def ready(self, which: Which = "worker") -> bool:
        """Whether a process has started, so that work begins at once."""
        return which in self.__dict__ and self.__dict__[which].ready

    def close(self) -> None:
        """End the background processes; what they still say is not heard any more."""
        self.closed = True
        for which in ("worker", "second_worker"):
            if which in self.__dict__:
                self.__dict__.pop(which).close()


def _started() -> Worker:
    from napari_xcebra.jobs import Worker

    worker = Worker()
    worker.start()
    return worker
