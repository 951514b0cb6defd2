"""Many runs as one value: sweeps, the clusters that run them, and cohorts of animals and days.

A `Sweep` says what to run: seeds × latents × settings × label shifts × recordings. `run_sweep` runs
it through any `concurrent.futures.Executor` into a folder, from which it goes on when it is started
again; `SweepFolder` reads what is there. `cohorts.cohort` puts the runs of many animals side by
side, with the animal as the unit of the test.

    Sweep ──members──▶ Member ──run_member, elsewhere──▶ MemberResult ──▶ SweepFolder
    folders ──finished_runs──▶ FinishedRun ──labels_of──▶ animal, day, condition ──▶ Cohort

Neither torch nor Qt is imported here.
"""

from __future__ import annotations

from napari_xcebra.batch.folder import SweepFolder
from napari_xcebra.batch.plan import Member, Shard, Sweep
from napari_xcebra.batch.running import SweepProgress, run_sweep

__all__ = ["Member", "Shard", "Sweep", "SweepFolder", "SweepProgress", "run_sweep"]
