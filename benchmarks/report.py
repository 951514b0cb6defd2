"""What the benchmark scripts share: the header of a table, intervals, and results that are kept."""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from napari_xcebra.learn.settings import FitSettings


def header(title: str) -> str:
    """Title with date, machine, versions and the commit that was measured."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent,
        check=False,
    ).stdout.strip()
    today = datetime.now(tz=UTC).date().isoformat()
    return (
        f"## {title}\n\n{today}, {processor()}, {os.cpu_count()} cores, no GPU, "
        f"torch {torch.__version__}, one thread, commit {commit or 'unknown'}.\n"
    )


def processor() -> str:
    """Name of the processor."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def peak_memory() -> float:
    """Largest resident memory of this process so far, in MB."""
    status = Path("/proc/self/status")
    if status.exists():
        # ru_maxrss of a child begins at the size of its parent; this does not
        return _kilobytes(status, "VmHWM") / 1024
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def resident_memory() -> float:
    """Resident memory of this process now, in MB; where it is not told, the peak so far."""
    status = Path("/proc/self/status")
    return _kilobytes(status, "VmRSS") / 1024 if status.exists() else peak_memory()


def _kilobytes(status: Path, field: str) -> float:
    line = next(line for line in status.read_text().splitlines() if line.startswith(field))
    return float(line.split()[1])


def bootstrapped(values: list[float], draws: int = 1000) -> tuple[float, float, float]:
    """Mean with its bootstrapped 95 % interval, ignoring what was not measured."""
    sample = np.array([v for v in values if np.isfinite(v)])
    if len(sample) == 0:
        return (float("nan"),) * 3
    rng = np.random.default_rng(0)
    means = sample[rng.integers(len(sample), size=(draws, len(sample)))].mean(1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(sample.mean()), float(low), float(high)


def row(*cells: object) -> str:
    """One row of a markdown table."""
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def kept(file: Path | None, name: str, measure: Callable[[], Any]) -> Any:
    """What was measured under that name, from a file of results if it is there, else measured.

    A run that is cut short goes on where it was.
    """
    lines = file.read_text().splitlines() if file is not None and file.exists() else []
    for line in lines:
        known, result = json.loads(line)
        if known == name:
            return result
    result = measure()
    if file is not None and result is not None:
        with file.open("a") as opened:
            opened.write(json.dumps([name, result]) + "\n")
    return result


FEW_STEPS = 12


def typed(parser: argparse.ArgumentParser, **quick: Any) -> argparse.Namespace:
    """What was typed; with ``--quick`` these defaults, and trainings of a few steps.

    A quick run shows that a script works, and measures nothing.
    """
    words = "small sizes: shows that it runs, measures nothing"
    parser.add_argument("--quick", action="store_true", help=words)
    if parser.parse_known_args()[0].quick:
        parser.set_defaults(**quick)
        checked = FitSettings.__post_init__

        def shortened(settings: FitSettings) -> None:
            object.__setattr__(settings, "steps", min(settings.steps, FEW_STEPS))
            checked(settings)

        FitSettings.__post_init__ = shortened  # type: ignore[method-assign]
    return parser.parse_args()
