"""Many runs as one value: seeds × latents × settings × label shifts × recordings.

A `Sweep` says what to run; `run_sweep` runs it through any `concurrent.futures.Executor` into a
folder, from which it goes on when it is started again; `SweepFolder` reads what is there.

    Sweep ──members──▶ Member ──run_member, elsewhere──▶ MemberResult ──▶ SweepFolder

Neither torch nor Qt is imported here.
"""

from __future__ import annotations

from napari_xcebra.sweeps.folder import SweepFolder
from napari_xcebra.sweeps.plan import Member, Shard, Sweep
from napari_xcebra.sweeps.running import SweepProgress, run_sweep

__all__ = ["Member", "Shard", "Sweep", "SweepFolder", "SweepProgress", "run_sweep"]
