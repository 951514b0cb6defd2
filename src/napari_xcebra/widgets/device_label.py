"""Names the device that training runs on; only the background process can tell."""

from __future__ import annotations

from functools import partial

from qtpy.QtWidgets import QLabel

from napari_xcebra.jobs import DeviceTask
from napari_xcebra.widgets.latest_job import LatestJob, Request
from napari_xcebra.widgets.session import Session
from napari_xcebra.widgets.wording import in_dock


class DeviceLabel(QLabel):
    """A line such as "Trains on CPU, 1 thread"."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.setWordWrap(True)
        self.setToolTip("Where training runs; change Device or Threads under Advanced.")
        self._asked: tuple[str, int] | None = None
        jobs = LatestJob(lambda task: session.worker.submit(task), lambda: None)
        self._jobs = jobs
        self.destroyed.connect(lambda *_: jobs.close())

    def show_device(self, device: str, threads: int) -> None:
        """Name what a device of the settings comes to on this computer."""
        if (device, threads) == self._asked:
            return
        self._asked = (device, threads)
        self.setText("Looking for the device …")
        task = DeviceTask(device, threads)
        self._jobs.ask(Request(task, partial(self._found, task), partial(self._failed, task)))

    def _found(self, task: DeviceTask, name: str) -> None:
        if self._asked == (task.device, task.threads):
            self.setText(f"Trains on {name}")

    def _failed(self, task: DeviceTask, sentence: str, _details: str) -> None:
        if self._asked == (task.device, task.threads):
            self.setText(in_dock(sentence))
