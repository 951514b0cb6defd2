"""Matches the cells of the recordings of a window, by a file of another program."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari_xcebra.attribution.matched import MatchedScores, matched_scores
from napari_xcebra.attribution.methods import METHODS
from napari_xcebra.errors import InputError
from napari_xcebra.io.guard import reading
from napari_xcebra.io.matching import read_matching
from napari_xcebra.recording.matching import Matching
from napari_xcebra.widgets.services.jobs import in_background
from napari_xcebra.widgets.services.reading import reader_of, result_of
from napari_xcebra.workspace_file import Opened

if TYPE_CHECKING:
    from collections.abc import Callable

    from qtpy.QtWidgets import QWidget

    from napari_xcebra.attribution import Attribution


def compare_days(
    path: Path,
    chosen: dict[str, Opened],
    viewer: Any,
    done: Callable[[MatchedScores], object],
    failed: Callable[[str, str], object],
    owner: QWidget,
) -> None:
    """Read the file in another process, then compare the scores of its cells in a thread.

    Parameters
    ----------
    path : Path
        Of CellReg, ROICaT, or a table.
    chosen : dict of str to Opened
        By the names of their sessions, in the order in which they were matched.
    """
    job = reader_of(viewer).submit(reading(read_matching, path, paths=[path]))
    in_background(
        lambda: matched_scores(_attributions(chosen), _matching_of(result_of(job), chosen)),
        done,
        failed,
        owner,
    )


def _attributions(chosen: dict[str, Opened]) -> dict[str, Attribution]:
    """Map of each session: of its newest run, by the first method that all have."""
    runs: dict[str, Any] = {}
    for name, opened in chosen.items():
        scored = [run for run in opened.runs if run.attributions]
        if not scored:
            raise InputError(f"Session {name} has no map yet: train it, and compute its map first.")
        runs[name] = scored[-1]
    common = [m for m in METHODS if all(m in run.attributions for run in runs.values())]
    if not common:
        raise InputError("No method was computed for all of these sessions: compute one for each.")
    return {name: run.attributions[common[0]] for name, run in runs.items()}


def _matching_of(matching: Matching, chosen: dict[str, Opened]) -> Matching:
    """The matching of these sessions, which the file may call by their names or their files'."""
    keys = {}
    for name, opened in chosen.items():
        source = Path(opened.recording.source)
        known = [n for n in (name, opened.name, source.name, source.stem) if n in matching.sessions]
        keys[known[0] if known else name] = opened.recording
    return replace(matching.of(keys), sessions=tuple(chosen))
