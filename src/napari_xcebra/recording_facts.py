"""What a recording holds, in words: for the command line and for reports."""

from __future__ import annotations

import re

import numpy as np

from napari_xcebra.recording import Recording, Variable


def said_by_notes(recording: Recording) -> dict[str, tuple[str, str]]:
    """Format and kind of the traces, each with the note that tells it."""
    patterns = {"format": r"Opened .* as (.*)\.", "traces": r"Traces are (.*)\."}
    found = {}
    for what, pattern in patterns.items():
        matches = (re.fullmatch(pattern, note) for note in recording.notes)
        first = next((match for match in matches if match), None)
        if first:
            found[what] = first.group(1), first.group()
    return found


def duration_of(seconds: float) -> str:
    """Seconds, and as a clock shows them.

    >>> duration_of(90), duration_of(800)
    ('90 s', '800 s (13:20)')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    clock = f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds:.0f} s ({clock})"


def planes_of(recording: Recording) -> str:
    """Number of planes; empty if the source knows of none."""
    where = recording.footprints
    if where is not None and where.plane is not None:
        return f"{where.shape[0]}"
    planes = recording.cells.get("plane")
    return "" if planes is None else f"{len(np.unique(planes))}"


def footprints_of(recording: Recording) -> str:
    """Size of the image, and cells that have no place in it."""
    where = recording.footprints
    if where is None:
        return "none"
    shown = f"{' × '.join(map(str, where.shape))} pixels"
    without = recording.n_cells - len(np.unique(where.cell))
    return f"{shown}, {without} cells without" if without else shown


def overlap_of(recording: Recording) -> str:
    """How much of the imaging the behaviour covers, and from when to when."""
    if not recording.behavior:
        return "none"
    known = np.all([variable.known for variable in recording.behavior.values()], axis=0)
    if not known.any():
        return "no frame at which every variable is known"
    times = np.asarray(recording.times)
    first, last = times[known][[0, -1]]
    return (
        f"every variable known at {known.mean():.0%} of the frames, {first:.6g} to {last:.6g} s "
        f"(imaging {times[0]:.6g} to {times[-1]:.6g} s)"
    )


def variable_words(name: str, variable: Variable) -> list[str]:
    """Name, kind, unit, columns, range and how much is known of a variable."""
    known = variable.values[variable.known]
    return [
        name,
        variable.kind,
        variable.unit or "–",
        str(variable.values.shape[1]),
        f"{known.min():.4g} to {known.max():.4g}" if len(known) else "–",
        f"{variable.known.mean():.0%}",
    ]


VARIABLE_WORDS = ("variable", "kind", "unit", "columns", "range", "known")
"""What `variable_words` says, in its order."""
