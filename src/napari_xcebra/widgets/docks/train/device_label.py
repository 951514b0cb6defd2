"""Says where a run would be trained."""

from __future__ import annotations

from functools import partial

from qtpy.QtWidgets import QLabel

from napari_xcebra.jobs import DeviceTask
from napari_xcebra.widgets.controls.wording import in_dock
from napari_xcebra.widgets.work.job_queue import JobQueue, Processes, Work


class DeviceLabel(QLabel):
    """A line such as "Trains on CPU, 1 thread"."""

    def __init__(self, processes: Processes) -> None:
        super().__init__()
        self.setWordWrap(True)
        self.setToolTip("Where training runs; change Device or Threads under Details.")
        self._asked: tuple[str, int] | None = None
        self._jobs = jobs = JobQueue(processes, latest=True)
        self.destroyed.connect(lambda *_: jobs.close())

    def show_device(self, device: str, threads: int) -> None:
        """Name the device that the settings stand for on this computer."""
        if (device, threads) == self._asked:
            return
        self._asked = (device, threads)
        self.setText("Looking for the device …")
        task = DeviceTask(device, threads)
        found, failed = partial(self._found, task), partial(self._failed, task)
        self._jobs.ask(Work("the device", task, found, say=failed))

    def _found(self, task: DeviceTask, name: str) -> None:
        if self._asked == (task.device, task.threads):
            self.setText(f"Trains on {name}")

    def _failed(self, task: DeviceTask, sentence: str, *_: str) -> None:
        if self._asked == (task.device, task.threads):
            self.setText(in_dock(sentence))
