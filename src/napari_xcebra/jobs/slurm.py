"""Workers as jobs of a SLURM cluster, by dask-jobqueue.

The file is what dask-jobqueue calls its configuration, in YAML:

    jobqueue:
      slurm:
        queue: normal            # as every key but `jobs`: see dask-jobqueue's SLURMCluster
        account: imaging
        cores: 8                 # of a job
        memory: 32GB             # of a job
        walltime: "04:00:00"
        job_script_prologue: ["source ~/venv/bin/activate"]
        jobs: 4                  # how many to ask for; 1 if left out
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from napari_xcebra.errors import InputError
from napari_xcebra.jobs.cluster import Cluster


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
    """What a configuration asks for, with `jobs`."""
    import yaml

    path = Path(path)
    try:
        asked = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not valid YAML: {error}.") from error
    part = asked.get("jobqueue", {}) if isinstance(asked, Mapping) else {}
    slurm = part.get("slurm") if isinstance(part, Mapping) else None
    if not isinstance(slurm, Mapping):
        raise InputError(f"{path} has no part jobqueue: slurm:, which says what a job needs.")
    for key in ("cores", "memory"):
        if key not in slurm:
            raise InputError(f"{path} does not say jobqueue.slurm.{key}, which a job needs.")
    jobs = slurm.get("jobs", 1)
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise InputError(f"{path} has jobs: {jobs!r}, but a whole number from 1 on is needed.")
    # a process a core, since a run computes on one thread; and a port that is free
    dashboard = {"dashboard_address": ":0"}
    usual = {"processes": slurm["cores"], "scheduler_options": dashboard}
    return {**usual, **slurm, "jobs": jobs}


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
