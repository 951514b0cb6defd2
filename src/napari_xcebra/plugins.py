"""Finds what other packages add, by their entry points: formats of files and methods.

A package that cannot be used is left out with one sentence that names it: nothing that somebody
else wrote keeps this program from working.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from napari_xcebra.support.logs import LOGGER

Group = Literal["formats", "methods"]


@dataclass(frozen=True)
class Plugged:
    """What one entry point stands for.

    Parameters
    ----------
    name : str
        Of the entry point.
    package : str
        That brings it; empty if unknown.
    value : object
    """

    name: str
    package: str
    value: Any


_problems: dict[str, str] = {}


@cache
def plugged_in(group: Group) -> tuple[Plugged, ...]:
    """All that packages add to ``napari_xcebra.formats`` or ``napari_xcebra.methods``."""
    found = []
    for point in sorted(entry_points(group=f"napari_xcebra.{group}"), key=lambda p: p.name):
        try:
            found.append(Plugged(point.name, _package(point), point.load()))
        except (Exception, SystemExit) as error:  # code of others fails in any way
            refuse(point.name, _package(point), error)
    return tuple(found)


def refuse(name: str, package: str, why: object) -> None:
    """Note that something that a package brings is left out."""
    reason = " ".join(str(why).split())[:200].rstrip(".") or type(why).__name__
    if isinstance(why, BaseException):
        reason = f"{type(why).__name__}: {reason}"
    of = f" of package {package}" if package else ""
    sentence = f"The plug-in {name}{of} is left out, because it fails ({reason})."
    if _problems.get(name) != sentence:
        _problems[name] = sentence
        LOGGER.warning("%s", sentence)


def problems() -> tuple[str, ...]:
    """A sentence for each plug-in that was left out so far."""
    return tuple(_problems.values())


def _package(point: EntryPoint) -> str:
    return "" if point.dist is None else str(point.dist.name)
