"""Starts Dask workers as SLURM jobs, with dask-jobqueue.

The file is a dask-jobqueue configuration in YAML:

    jobqueue:
      slurm:
        queue: normal            # every key but `jobs` is one of dask-jobqueue's SLURMCluster
        account: imaging
        cores: 8                 # per job
        memory: 32GB             # per job
        walltime: "04:00:00"
        job_script_prologue: ["source ~/venv/bin/activate"]
        jobs: 4                  # number of jobs; 1 if left out
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from napari_xcebra.errors import InputError
from napari_xcebra.files import read_text
from napari_xcebra.jobs.cluster import Cluster

MOST_ENTRIES = 1000


class SlurmCluster(Cluster):
    """Calls on workers that SLURM starts, and that end with this executor.

    Parameters
    ----------
    path : path
        The configuration.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        asked = read_slurm(path)
        jobs = asked.pop("jobs")
        self._queue = slurm_jobs(asked, path)
        try:
            self._queue.scale(jobs=jobs)
            super().__init__(self._queue.scheduler_address)
        except BaseException:
            self._queue.close()
            raise

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no further calls, and give the jobs back to SLURM when the last one has ended."""
        super().shutdown(wait, cancel_futures=cancel_futures)
        if wait:
            self._queue.close()


def read_slurm(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a configuration asks for, including `jobs`."""
    import yaml

    path = Path(path)
    try:
        asked = yaml.safe_load(read_text(path))
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError(f"{path} is not valid YAML: {error}.") from error
    if not _is_short(asked):
        raise InputError(f"{path} is too long for the description of a job.")
    part = asked.get("jobqueue", {}) if isinstance(asked, Mapping) else {}
    slurm = part.get("slurm") if isinstance(part, Mapping) else None
    if not isinstance(slurm, Mapping):
        raise InputError(f"{path} has no part jobqueue: slurm:, which describes a job.")
    for key in ("cores", "memory"):
        if key not in slurm:
            raise InputError(f"{path} does not say jobqueue.slurm.{key}, which a job needs.")
    jobs = slurm.get("jobs", 1)
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise InputError(f"{path} has jobs: {jobs!r}: a whole number of 1 or more is needed.")
    # a process a core, since a run computes on one thread; and a port that is free
    dashboard = {"dashboard_address": ":0"}
    usual = {"processes": slurm["cores"], "scheduler_options": dashboard}
    return {**usual, **slurm, "jobs": jobs}


def _is_short(asked: Any) -> bool:
    """Whether it has few entries: by its aliases, a short file may stand for billions."""
    waiting, seen = [asked], 0
    while waiting and seen <= MOST_ENTRIES:
        entry = waiting.pop()
        seen += 1
        if isinstance(entry, Mapping):
            waiting += [*entry.keys(), *entry.values()]
        elif isinstance(entry, list | tuple | set):
            waiting += entry
    return seen <= MOST_ENTRIES


def slurm_jobs(asked: Mapping[str, Any], path: str | os.PathLike[str]) -> Any:
    """The cluster of dask-jobqueue, no job of which is submitted yet."""
    try:
        from dask_jobqueue import SLURMCluster
    except ImportError as error:
        raise InputError(
            "SLURM needs dask-jobqueue, which is not installed: pip install "
            "'napari-xcebra[cluster]'."
        ) from error
    try:
        return SLURMCluster(**asked)
    except (TypeError, ValueError) as error:
        first, *_ = str(error).partition(". ")
        raise InputError(f"{path} cannot be used by dask-jobqueue: {first}.") from error
