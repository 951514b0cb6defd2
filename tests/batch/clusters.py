"""Real Dask clusters for tests: a scheduler and workers, each a process of its own."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from distributed import Client


class RealCluster:
    """A scheduler at a port of its own, and workers that can be killed and replaced.

    They have no nanny, so that one that is killed stays dead.
    """

    def __init__(self, folder: Path, workers: int, threads: int = 1) -> None:
        self._folder, self._count, self._threads = folder, workers, threads
        self.port = free_port()
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        self.scheduler = self._launched(
            "dask_scheduler", "--port", str(self.port), "--host", "127.0.0.1", "--no-dashboard"
        )
        self.workers = [self._worker() for _ in range(self._count)]

    def _worker(self) -> subprocess.Popen:
        return self._launched(
            "dask_worker", self.address, "--nthreads", str(self._threads), "--no-nanny",
            "--no-dashboard", "--local-directory", str(self._folder)
        )  # fmt: skip

    def mend(self) -> None:
        """Put others in the place of those that a test killed."""
        if self.scheduler.poll() is not None:
            self.kill()
            self.start()
        self.workers = [w if w.poll() is None else self._worker() for w in self.workers]
        self.wait()

    def wait(self) -> None:
        with Client(self.address, timeout=120, set_as_default=False) as client:
            client.wait_for_workers(self._count, timeout=120)

    def kill(self) -> None:
        """Kill them all at once, as a power cut would."""
        for process in [self.scheduler, *self.workers]:
            process.kill()
        for process in [self.scheduler, *self.workers]:
            process.wait()

    def _launched(self, program: str, *arguments: str) -> subprocess.Popen:
        log = (self._folder / f"{program}-{time.time_ns()}.log").open("wb")
        paths = [str(Path(__file__).parent), *sys.path]
        with log:
            return subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", f"distributed.cli.{program}", *arguments],
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
            )


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
