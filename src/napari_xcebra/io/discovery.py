"""Formats are found by looking into their folder: adding a module adds a format.

A module that has `NAME`, `sniff` and `load` is a format. `sniff(path) -> bool` looks at names and
first bytes, takes no time and never raises; `load(path, settings)` raises one `InputError` sentence
for a file it cannot use. A module with ``GENERIC = True`` is asked after all others.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from napari_xcebra.recording import InputError


@cache
def formats_in(package: str) -> tuple[Any, ...]:
    """Format modules of a package, the generic ones last."""
    home: ModuleType = import_module(package)
    modules = [import_module(f"{package}.{m.name}") for m in iter_modules(home.__path__)]
    formats = [module for module in modules if hasattr(module, "sniff")]
    return tuple(sorted(formats, key=lambda module: getattr(module, "GENERIC", False)))


def format_of(path: Path, package: str, what: str) -> Any:
    """The format that recognises the path, or a sentence listing what was looked for."""
    if not path.exists():
        raise InputError(f"There is no {what} {path}.")
    for module in formats_in(package):
        if module.sniff(path):
            return module
    if path.is_dir() and not any(path.iterdir()):
        raise InputError(f"The folder {path} is empty: choose one that holds a {what}.")
    looked_for = "; ".join(module.NAME for module in formats_in(package))
    raise InputError(f"{path} is no {what} in a format that is known. Looked for: {looked_for}.")
