"""Describes this computer: its cores and, for a bug report, versions, device and last error.

No data, and no folders.
"""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from napari_xcebra.support.logs import LEVEL, last_error, traceback_without_folders

if TYPE_CHECKING:
    from napari_xcebra.learn.settings import FitSettings

PACKAGES = (
    "napari-xcebra",
    "napari",
    "npe2",
    "qtpy",
    "PyQt6",
    "PySide6",
    "vispy",
    "torch",
    "numpy",
    "scipy",
    "pandas",
    "scikit-learn",
    "scikit-image",
    "matplotlib",
    "h5py",
    "captum",
    "distributed",
)


def cores() -> int:
    """Processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def diagnostics(
    settings: FitSettings | None = None, error: str = "", device: str | None = None
) -> str:
    """What a bug report needs, as text to paste.

    Parameters
    ----------
    settings : FitSettings, optional
        Of the last training; only those that differ from the defaults are listed.
    error : str, optional
        What went wrong; the last error of the log if not given.
    device : str, optional
        Device in words; if not given, asked of torch, provided that it is imported.
    """
    lines = [f"{name} {found}" for name in PACKAGES if (found := _version(name))]
    lines += [
        f"Python {platform.python_version()} on {platform.system()} {platform.release()} "
        f"({platform.machine()})",
        f"{os.cpu_count()} processors, {_memory()} GB of memory",
        f"device: {device or _device()}",
        f"log level: {os.environ.get(LEVEL, 'info')}",
    ]
    if settings is not None:
        lines.append(f"settings: {_changed(settings)}")
    told = traceback_without_folders(error) or last_error()
    return "\n".join([*lines, "", f"last error:\n{told}" if told else "last error: none"])


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _memory() -> str:
    import psutil

    return f"{psutil.virtual_memory().total / 2**30:.0f}"


def _device() -> str:
    """Devices that torch knows of; it is not imported for this, which takes seconds."""
    torch = sys.modules.get("torch")
    if torch is None:
        return "not looked for"
    if torch.cuda.is_available():
        return f"cuda {torch.version.cuda}, {torch.cuda.get_device_name()}"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _changed(settings: FitSettings) -> str:
    told = [
        f"{knob.name}={getattr(settings, knob.name)!r}"
        for knob in fields(settings)
        if getattr(settings, knob.name) != knob.default
    ]
    return ", ".join(told) or "defaults"
