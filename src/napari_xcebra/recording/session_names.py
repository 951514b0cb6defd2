"""Names imaging sessions by the day in their paths."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

from napari_xcebra.files import name_of

_DAY = re.compile(
    r"(?<!\d)(?:19|20)\d{2}[-_.]?\d{2}[-_.]?\d{2}(?!\d)|(?<![a-z])(?:day|session|ses|d)[ _-]?\d+",
    re.IGNORECASE,
)


def session_names(sources: Sequence[str]) -> list[str]:
    """A name for each session: its day, or the folder in which the paths differ.

    Parameters
    ----------
    sources : sequence of str
        Paths that recordings were opened from.

    Examples
    --------
    >>> session_names(["m1/2024-05-01/suite2p/plane0", "m1/2024-05-02/suite2p/plane0"])
    ['2024-05-01', '2024-05-02']
    >>> session_names(["m1/before/F.npy", "m1/after/F.npy"])
    ['before', 'after']
    """
    days = [
        [found[0] for part in PurePath(s).parts if (found := _DAY.search(part))] for s in sources
    ]
    if all(days) and len({own[-1] for own in days}) == len(sources):
        return [own[-1] for own in days]
    if (names := _different(list(map(name_of, sources)))) is not None:
        return names
    parts = [PurePath(source).parts[::-1] for source in sources]
    for level in zip(*parts, strict=False):
        if (names := _different(list(level))) is not None:
            return names
    return [f"{name} ({number})" for number, name in enumerate(map(name_of, sources), start=1)]


def _different(names: list[str]) -> list[str] | None:
    """Names without the ends of files, if no two are the same."""
    short = [re.sub(r"\.\w{1,6}$", "", name) for name in names]
    return short if len(set(short)) == len(names) else None
