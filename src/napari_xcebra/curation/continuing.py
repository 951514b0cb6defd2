"""Opens the curation of a recording where it was left."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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
from napari_xcebra.recording.fingerprint import cells_fingerprint, same_cells, same_sample
from napari_xcebra.recording.recording import Recording

_READ_ONLY = {errno.EACCES, errno.EPERM, errno.EROFS}


def open_curation(
    recording: Recording,
    path: str | os.PathLike[str] | None = None,
    *,
    curator: str = "",
    name: str = "",
    journal: str | os.PathLike[str] | None = None,
    read_only: bool = False,
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

    Returns
    -------
    Curation
        Its `notes` say what the user should know. `close` it to let another window continue.

    Raises
    ------
    JournalInUse
        Another window is writing to the journal.
    """
    about = cells_fingerprint(recording)
    header = {"source": str(path or recording.source), "curator": curator, "fingerprint": about}
    place = Path(journal) if journal else journal_path(recording, path, name=name)
    near = None if journal else near_path(recording, path, name=name)
    if read_only:
        there = near if near and near.exists() and not place.exists() else place
        opened = Journal(there, curator=curator, read_only=True)
        if not _fits(opened, about):
            raise InputError(_of_other_cells(opened, about))
    elif journal:
        opened = _opened(place, header)
    else:
        own = own_path(recording, path, name=name)
        opened = _opened_where_possible(place, near, own, header)
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
    named = ("cells", "accepted", "undecided")
    ids = {i for entry in opened.entries for key in named for i in entry.get(key, ())}
    steps = [entry for entry in opened.entries if entry["do"] != "opened"]
    curators = dict.fromkeys(entry["curator"] for entry in steps if entry["curator"])
    return Curation(sorted(ids), journal=opened, curator=" and ".join(curators))


def _opened_where_possible(
    place: Path, near: Path | None, own: Path, header: Mapping[str, Any]
) -> Journal:
    """Journal in its place, or in the data directory if it cannot be written to there."""
    if place != own:
        try:
            return _opened(place, header)
        except OSError as error:
            if error.errno not in _READ_ONLY:
                raise
    try:
        own.parent.mkdir(parents=True, exist_ok=True)
        notes = _gone_on_with(near, own) if near is not None and near.exists() else []
        opened = _opened(own, header)
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


def _opened(place: Path, header: Mapping[str, Any]) -> Journal:
    """Journal in a place; one of other cells is renamed first."""
    about, curator = header["fingerprint"], str(header["curator"])
    make_room(place)
    opened = Journal(place, header=header, curator=curator)
    if _fits(opened, about):
        return opened
    notes = []
    if opened.n_steps:
        kept = other_cells_path(place, now()[:10])
        notes = [f"{_of_other_cells(opened, about)} It is kept as {kept.name}."]
        opened.move(kept)
    else:
        opened.close()
    earlier = next((file for file in reversed(of_other_cells(place)) if _is_of(file, about)), None)
    if earlier is not None:
        earlier.rename(place)
        notes.append(f"Decisions on these cells were found in {earlier.name} and are continued.")
    opened = Journal(place, header=header, curator=curator)
    opened.notes[:0] = notes
    return opened


def _is_of(file: Path, about: Mapping[str, Any]) -> bool:
    try:
        return same_cells((read_journal(file).header or {})["fingerprint"], about)
    except (InputError, KeyError, TypeError):
        return False


def _fits(journal: Journal, about: Mapping[str, Any]) -> bool:
    """Whether a journal belongs to these cells; adds a note if their traces changed."""
    try:
        written = (journal.header or {})["fingerprint"]
        if not same_cells(written, about):
            return False
        if written["frames"] != about["frames"] or not same_sample(written, about):
            journal.notes.append(
                "The traces differ from those with which this curation began (opened in another "
                "way, or recomputed); the cells are the same, and all decisions are kept."
            )
    except (KeyError, TypeError):
        pass  # its first line is damaged, which the journal says
    return True


def _of_other_cells(journal: Journal, about: Mapping[str, Any]) -> str:
    count = (journal.header or {})["fingerprint"]["cells"]
    what = f"{count} cells, and this recording has {about['cells']}"
    if count == about["cells"]:
        what = f"{count} other cells: the recording has been extracted again"
    return f"{journal.path} holds {journal.n_steps} decisions on {what}."
