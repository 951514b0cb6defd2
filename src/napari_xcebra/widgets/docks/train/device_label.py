"""Says where a run would be trained."""

from __future__ import annotations

from qtpy.QtWidgets import QLabel

from napari_xcebra.jobs import tasks
from napari_xcebra.widgets.controls.forms import in_dock
from napari_xcebra.widgets.services.jobs import JobQueue, Processes, Work


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
        asked = device, threads

        def tell(words: str) -> None:
            if self._asked == asked:
                self.setText(words)

        call = tasks.DEVICE(device, threads)
        self._jobs.ask(
            Work(
                "the device",
                call,
                lambda name: tell(f"Trains on {name}"),
                say=lambda sentence, *_: tell(in_dock(sentence)),
            )
        )
