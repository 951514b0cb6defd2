"""Checks a cluster before anything runs on it: workers, memory, versions."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

from napari_xcebra.jobs.cluster import connect

PACKAGES = ("napari_xcebra", "torch", "numpy", "scipy")


@dataclass(frozen=True)
class ClusterFound:
    """Workers of a cluster, and whether they can run what this computer sends.

    Parameters
    ----------
    address : str
        Of the scheduler.
    workers : int
    threads : int
        Of all workers together.
    memory : int
        Bytes, of all workers together.
    without : int
        Workers without napari-xcebra.
    differing : tuple of str
        Versions on workers that differ from those here, in words.
    """

    address: str
    workers: int
    threads: int
    memory: int
    without: int = 0
    differing: tuple[str, ...] = field(default=())

    @property
    def usable(self) -> bool:
        """Whether runs can be sent there."""
        return self.workers > self.without

    @property
    def sentence(self) -> str:
        """All of it in words."""
        if not self.workers:
            return f"A scheduler answers at {self.address}, but it has no workers: start some."
        has = [_number(self.workers, "worker"), _number(self.threads, "thread")]
        found = f"{', '.join(has)}, {self.memory / 2**30:.0f} GB of memory."
        if self.without:
            who = "None of them has" if not self.usable else f"{self.without} of them have no"
            found += f" {who} napari-xcebra: install it there."
        elif not self.differing:
            found += " Versions are the same as here."
        if self.differing:
            found += f" Versions differ: {'; '.join(self.differing)}."
        return found


def look_at(address: str, timeout: float = 5.0) -> ClusterFound:
    """Ask a cluster what it has; InputError says why it does not answer.

    Parameters
    ----------
    address : str
        Of the scheduler.
    timeout : float
        Seconds to wait for an answer.
    """
    with connect(address, timeout) as client:
        workers = client.scheduler_info(n_workers=-1)["workers"]
        versions = client.get_versions(packages=list(PACKAGES))["workers"] if workers else {}
        where = client.scheduler.address
    each = [{**about["packages"], "python": about["host"]["python"]} for about in versions.values()]
    return ClusterFound(
        where,
        len(workers),
        sum(about["nthreads"] for about in workers.values()),
        sum(about["memory_limit"] for about in workers.values()),
        sum(about["napari_xcebra"] in (None, "MISSING") for about in each),
        tuple(_differing(each)),
    )


def _differing(each: list[dict[str, Any]]) -> list[str]:
    """Packages whose version on some worker differs from the one here."""
    words = []
    for name, here in _here().items():
        there = {str(about.get(name)) for about in each if about.get(name)} - {here, "MISSING"}
        if name == "python":
            # what is sent does not depend on the last number
            there = {v for v in there if _minor(v) != _minor(here)}
        if there:
            words.append(f"{name.replace('_', '-')} {', '.join(sorted(there))} there, {here} here")
    return words


def _here() -> dict[str, str]:
    versions = {name: metadata.version(name.replace("_", "-")) for name in PACKAGES}
    return {**versions, "python": platform.python_version()}


def _minor(version: str) -> tuple[str, ...]:
    return tuple(version.split(".")[:2])


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count != 1 else ''}"
