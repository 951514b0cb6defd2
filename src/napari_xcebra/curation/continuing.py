"""Opens the curation of a recording where it was left, and applies it to the recording."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.curation.changes import now, read_journal
from napari_xcebra.curation.decisions import Curation
from napari_xcebra.curation.journal import (
    DATA_DIRECTORY,
    Journal,
    journal_path,
    make_room,
    near_path,
    of_other_cells,
    other_cells_path,
    own_path,
)
from napari_xcebra.errors import InputError
from napari_xcebra.files import MOST_TEXT, read_bytes, whole
from napari_xcebra.recording.fingerprint import Fingerprint
from napari_xcebra.recording.recording import Recording
from napari_xcebra.recording.traces import LazyTraces, MergedTraces
from napari_xcebra.text import counted

_READ_ONLY = {errno.EACCES, errno.EPERM, errno.EROFS}


class CellsInDoubt(InputError):
    """Decisions may be on these cells or on others: only the user can tell."""


def open_curation(
    recording: Recording,
    path: str | os.PathLike[str] | None = None,
    *,
    curator: str = "",
    name: str = "",
    journal: str | os.PathLike[str] | None = None,
    read_only: bool = False,
    same_cells: bool | None = None,
) -> Curation:
    """Open the decisions on the cells of a recording where they were left.

    Parameters
    ----------
    recording : Recording
    path : path, optional
        What the recording was opened from; its `source` if not given.
    curator : str
        Who decides.
    name : str
        Name of a separate journal, such as that of a second curator.
    journal : path, optional
        The file itself, wherever it is.
    read_only : bool
        Only look; works while another window is deciding.
    same_cells : bool, optional
        Whether earlier decisions are on these cells, if neither footprints nor traces can tell.

    Returns
    -------
    Curation
        Its `notes` say what the user should know. `close` it to let another window continue.

    Raises
    ------
    JournalInUse
        Another window is writing to the journal.
    CellsInDoubt
        It is not certain that these are the cells that were decided on, and `same_cells` is None.
    """
    made_of = recording.fingerprint
    header: dict[str, Any] = {"source": str(path or recording.source), "curator": curator}
    header |= {"fingerprint": made_of.as_dict()}
    how = made_of, same_cells
    place = Path(journal) if journal else journal_path(recording, path, name=name)
    near = None if journal else near_path(recording, path, name=name)
    if read_only:
        there = near if near and near.exists() and not place.exists() else place
        opened = Journal(there, curator=curator, read_only=True)
        if not _fits(opened, *how):
            raise InputError(_of_other_cells(opened, made_of))
    elif journal:
        opened = _opened(place, header, *how)
    else:
        own = own_path(recording, path, name=name)
        opened = _opened_where_possible(place, near, own, header, *how)
    curation = Curation(recording.cell_ids, journal=opened, curator=curator)
    if curation.unknown_ids:
        opened.notes.append(
            f"{opened.path} has decisions on {len(curation.unknown_ids)} cells that the recording "
            "does not have; they stay in the file."
        )
    return curation


def read_curation(journal: str | os.PathLike[str]) -> Curation:
    """Decisions in a journal without its recording, read-only: on all cells it names."""
    opened = Journal(journal, read_only=True)
    named = ("cells", "accepted", "rejected", "undecided")
    ids = {i for entry in opened.entries for key in named for i in entry.get(key, ())}
    steps = [entry for entry in opened.entries if entry["do"] != "opened"]
    curators = dict.fromkeys(entry["curator"] for entry in steps if entry["curator"])
    return Curation(sorted(ids), journal=opened, curator=" and ".join(curators))


def merge_cells(recording: Recording, curation: Curation) -> Recording:
    """Copy of a recording in which merged cells have the light and the pixels of all their parts.

    The parts stay as they are, and are not accepted. Ids and the number of cells stay, so that
    decisions and results still belong to it.

    Parameters
    ----------
    recording : Recording
        As it was opened.
    curation : Curation
        Which cells are merged, and how.
    """
    groups, summed = curation.merged, curation.summed
    if not groups:
        return recording
    spots = recording.footprints
    sizes = np.ones(recording.n_cells)
    if spots is not None:
        sizes = np.maximum(np.bincount(spots.cell, minlength=recording.n_cells), 1).astype(float)
    mixed = []
    for cell, parts in groups.items():
        weights = np.ones(len(parts)) if summed[cell] else sizes[parts] / sizes[parts].sum()
        mixed.append((cell, tuple(parts.tolist()), tuple(weights.tolist())))
    traces: Any = MergedTraces(recording.traces, tuple(mixed))
    if not isinstance(recording.traces, LazyTraces):
        traces = traces.block(slice(0, recording.n_frames), slice(0, recording.n_cells))
    return replace(
        recording,
        traces=traces,
        footprints=None if spots is None else spots.merged(groups),
        accepted=np.asarray(recording.accepted) & ~curation.parts,
    )


def _opened_where_possible(
    place: Path, near: Path | None, own: Path, header: Mapping[str, Any], *how: Any
) -> Journal:
    """Journal in its place, or in the data directory if it cannot be written to there."""
    if place != own:
        try:
            return _opened(place, header, *how)
        except OSError as error:
            if error.errno not in _READ_ONLY:
                raise
    try:
        own.parent.mkdir(parents=True, exist_ok=True)
        notes = _gone_on_with(near, own) if near is not None and near.exists() else []
        opened = _opened(own, header, *how)
    except OSError as error:
        raise InputError(
            f"Decisions cannot be saved in {own.parent} ({error.strerror or error}): free some "
            f"space, or set {DATA_DIRECTORY} to a folder that can be written to."
        ) from error
    opened.notes[:0] = notes
    return opened


def _gone_on_with(near: Path, own: Path) -> list[str]:
    """Copy decisions from where nothing can be written; returns notes."""
    if not own.exists():
        with whole(own) as copy:
            shutil.copyfile(near, copy)
    if read_bytes(own, MOST_TEXT).startswith(read_bytes(near, MOST_TEXT)):
        return [f"{near} cannot be written to: its decisions continue in {own}."]
    return [
        f"{near} cannot be written to, and holds decisions that {own}, which is used instead, does "
        "not have: compare the two."
    ]


def _opened(
    place: Path, header: Mapping[str, Any], made_of: Fingerprint, same_cells: bool | None
) -> Journal:
    """Journal in a place; one of other cells is renamed first."""
    curator = str(header["curator"])
    make_room(place)
    opened = Journal(place, header=header, curator=curator)
    try:
        if _fits(opened, made_of, same_cells):
            return opened
    except CellsInDoubt:
        opened.close()
        raise
    notes = []
    if opened.n_steps:
        kept = other_cells_path(place, now()[:10])
        notes = [f"{_of_other_cells(opened, made_of)} It is kept as {kept.name}."]
        opened.move(kept)
    else:
        opened.close()
    put_aside = reversed(of_other_cells(place))
    earlier = next((file for file in put_aside if _is_of(file, made_of)), None)
    if earlier is not None:
        earlier.rename(place)
        notes.append(f"Decisions on these cells were found in {earlier.name} and are continued.")
    opened = Journal(place, header=header, curator=curator)
    opened.notes[:0] = notes
    return opened


def _is_of(file: Path, now: Fingerprint) -> bool:
    """Whether a journal that was put aside is certainly on these cells."""
    try:
        made_of = _fingerprint_in(read_journal(file).header)
    except InputError:
        return False
    return made_of is not None and made_of.has_same_cells(now) is True


def _fits(journal: Journal, now: Fingerprint, same_cells: bool | None) -> bool:
    """Whether a journal belongs to these cells; adds a note if their traces changed."""
    made_of = _fingerprint_in(journal.header)
    if made_of is None:
        return True  # its first line is damaged, which the journal says
    same = made_of.has_same_cells(now)
    if same is None and journal.n_steps:
        if same_cells is None:
            raise CellsInDoubt(
                f"{journal.path} holds {counted(journal.n_steps, 'decision')}, but the traces of "
                "this recording differ from those that were judged, and there are no footprints to "
                "tell the cells by. Say whether they are the same cells (read in another way) or "
                "other ones (extracted again)."
            )
        same = same_cells
    if not same:
        return False
    if made_of.traces != now.traces:
        journal.notes.append(
            "The traces differ from those with which this curation began (opened in another "
            "way, or recomputed); the cells are the same, and all decisions are kept."
        )
    return True


def _fingerprint_in(header: Mapping[str, Any] | None) -> Fingerprint | None:
    try:
        return Fingerprint.from_dict((header or {}).get("fingerprint"))
    except (KeyError, TypeError):
        return None


def _of_other_cells(journal: Journal, now: Fingerprint) -> str:
    made_of = _fingerprint_in(journal.header)
    count = made_of.n_cells if made_of else 0
    what = f"{count} cells, and this recording has {now.n_cells}"
    if count == now.n_cells:
        what = f"{count} other cells: the recording has been extracted again"
    return f"{journal.path} holds {journal.n_steps} decisions on {what}."
