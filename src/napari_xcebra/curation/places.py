"""Where the journal of a recording is, and opening it."""

from __future__ import annotations

import os
import re
import shutil
import zlib
from pathlib import Path
from typing import Any

from napari_xcebra.curation.decisions import Curation, now
from napari_xcebra.curation.journal import Journal, summary_of
from napari_xcebra.errors import InputError
from napari_xcebra.fingerprint import cells_fingerprint, same_cells, same_sample
from napari_xcebra.recording import Recording

DATA_DIRECTORY = "NAPARI_XCEBRA_DATA"
"""Environment variable that names another folder than the user's data directory."""

IN_FOLDER, BESIDE_FILE, ENDING = "napari-xcebra-curation", ".curation", ".jsonl"
_OTHER = ".other-cells"


def open_curation(
    recording: Recording,
    path: str | os.PathLike[str] | None = None,
    *,
    curator: str = "",
    name: str = "",
    journal: str | os.PathLike[str] | None = None,
    read_only: bool = False,
) -> Curation:
    """Decisions on the cells of a recording, continued where they were left.

    Parameters
    ----------
    recording : Recording
    path : path, optional
        What the recording was opened from; its `source` if not given.
    curator : str
        Who decides.
    name : str
        Of a journal of one's own beside the usual one, such as the name of a second curator.
    journal : path, optional
        The file itself, wherever it is.
    read_only : bool
        Only look; works while another window is deciding.

    Returns
    -------
    Curation
        Its `notes` say what the user should know. `close` it to let another window go on.

    Raises
    ------
    JournalInUse
        Another window is writing to the journal.
    """
    place = Path(journal) if journal else journal_path(recording, path, name=name)
    about: dict[str, Any] = {"source": str(path or recording.source), "curator": curator,
             "fingerprint": cells_fingerprint(recording)}  # fmt: skip
    if read_only:
        opened = Journal(place, curator=curator, read_only=True)
        if not _fits(opened, about["fingerprint"]):
            raise InputError(_other_cells(place, opened, about["fingerprint"]))
    else:
        opened = _open(place, recording, path, name, about)
    curation = Curation(recording.cell_ids, journal=opened, curator=curator)
    if curation.unknown_ids:
        opened.notes.append(
            f"{opened.path} has decisions on {len(curation.unknown_ids)} cells that the recording "
            "does not have; they stay in the file."
        )
    return curation


def read_curation(journal: str | os.PathLike[str]) -> Curation:
    """Decisions in a journal without its recording: on all cells that it names, only to look at."""
    opened = Journal(journal, read_only=True)
    named = ("cells", "accepted", "undecided")
    ids = {i for entry in opened.entries for key in named for i in entry.get(key, ())}
    curators = dict.fromkeys(entry["curator"] for entry in opened.entries if entry["curator"])
    return Curation(sorted(ids), journal=opened, curator=" and ".join(curators))


def journal_path(
    recording: Recording, path: str | os.PathLike[str] | None = None, *, name: str = ""
) -> Path:
    """Where the journal of a recording is, or would be.

    Beside what the recording was opened from: in it if that is a folder. In the user's data
    directory if that cannot be written to, or if the recording did not come from a path. One that
    is there already in either place is gone on with.
    """
    own = own_path(recording, path, name=name)
    source = _source(recording, path)
    if source is None:
        return own
    near = beside(source, name)
    if _writable(near) and (near.exists() or not own.exists()):
        return near
    return own


def journals_of(recording: Recording, path: str | os.PathLike[str] | None = None) -> list[Path]:
    """All journals of a recording with decisions, under whatever name; the usual one first."""
    source = _source(recording, path)
    usual = [own_path(recording, path)] + ([beside(source)] if source else [])
    found = {
        file
        for place in usual
        for file in place.parent.glob(f"{_escaped(place.name.removesuffix(ENDING))}*{ENDING}")
        if _OTHER not in file.name and summary_of(file)
    }
    return sorted(found, key=lambda file: (file not in usual, file.name))


def beside(source: Path, name: str = "") -> Path:
    """Journal beside what a recording was opened from.

    >>> beside(Path("mouse3.nwb"), "Ann").as_posix()
    'mouse3.nwb.curation-Ann.jsonl'
    """
    ending = f"{_named(name)}{ENDING}"
    # a .zarr is a folder only to the file system
    if source.is_dir() and source.suffix.lower() != ".zarr":
        return source / f"{IN_FOLDER}{ending}"
    return source.with_name(f"{source.name}{BESIDE_FILE}{ending}")


def own_path(
    recording: Recording, path: str | os.PathLike[str] | None = None, *, name: str = ""
) -> Path:
    """Journal in the user's data directory, found again by what the cells are."""
    source = _source(recording, path)
    about = cells_fingerprint(recording)
    # cells that are not known by their footprints or their file are known by their traces
    telling = ["cells", "frames", "ids", "pixels"] + ([] if source else ["sample"])
    key = zlib.crc32(repr([about[each] for each in telling]).encode())
    title = re.sub(r"[^\w-]+", "-", source.name if source else "recording").strip("-")
    return data_directory() / "curation" / f"{title}-{key:08x}{_named(name)}{ENDING}"


def data_directory() -> Path:
    """The user's data directory for this program."""
    import platformdirs

    told = os.environ.get(DATA_DIRECTORY)
    return Path(told or platformdirs.user_data_dir("napari-xcebra", appauthor=False))


# ------------------------------------------------------------ opening


def _open(
    place: Path,
    recording: Recording,
    path: str | os.PathLike[str] | None,
    name: str,
    about: dict[str, Any],
) -> Journal:
    curator = about["curator"]
    own = own_path(recording, path, name=name)
    notes = []
    if place == own and not own.exists():
        source = _source(recording, path)
        near = beside(source, name) if source else None
        if near is not None and near.exists():
            # decisions made where it could be written to go on from where they are
            own.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(near, own)
            notes.append(f"{near} cannot be written to: its decisions go on in {own}.")
    try:
        opened = Journal(place, header=about, curator=curator)
    except PermissionError:
        if place == own:
            raise
        return _open(own, recording, path, name, about)
    if not _fits(opened, about["fingerprint"]):
        notes.append(_other_cells(place, opened, about["fingerprint"]))
        kept = _free(place.with_name(f"{place.stem}{_OTHER}-{now()[:10]}{ENDING}"))
        opened.move(kept)
        notes[-1] += f" It is kept as {kept.name}."
        opened = Journal(place, header=about, curator=curator)
    opened.notes[:0] = notes
    return opened


def _fits(journal: Journal, about: dict[str, Any]) -> bool:
    """Whether a journal is of these cells; says so where it is, but the traces have changed."""
    try:
        written = (journal.header or {})["fingerprint"]
        if not same_cells(written, about):
            return False
        if written["frames"] != about["frames"] or not same_sample(written, about):
            journal.notes.append(
                "The traces are not those with which this curation began (opened in another way, "
                "or computed anew); the cells are the same, and all decisions are kept."
            )
    except (KeyError, TypeError):
        pass  # its first line is damaged, which the journal says
    return True


def _other_cells(place: Path, journal: Journal, about: dict[str, Any]) -> str:
    count = (journal.header or {})["fingerprint"]["cells"]
    what = f"{count} cells, this recording has {about['cells']}"
    if count == about["cells"]:
        what = f"{count} other cells: the recording was extracted anew since"
    return f"{place} holds {journal.n_steps} decisions on {what}."


def _free(path: Path) -> Path:
    number, wanted = 2, path
    while path.exists():
        path = wanted.with_name(f"{wanted.stem}-{number}{wanted.suffix}")
        number += 1
    return path


def _source(recording: Recording, path: str | os.PathLike[str] | None) -> Path | None:
    """What the recording was opened from, if that is a file or folder that is there."""
    told = os.fspath(path) if path else recording.source
    return Path(told).absolute() if told and Path(told).exists() else None


def _writable(place: Path) -> bool:
    effective = os.access in os.supports_effective_ids
    return all(
        os.access(each, os.W_OK, effective_ids=effective)
        for each in (place.parent, place)
        if each.exists()
    )


def _named(name: str) -> str:
    """Part of a file name for a journal's name.

    >>> _named("Ann / 2"), _named("")
    ('-Ann-2', '')
    """
    plain = re.sub(r"[^\w-]+", "-", name).strip("-")
    if name and not plain:
        raise InputError(f"{name!r} cannot be part of a file name: letters or numbers are needed.")
    return f"-{plain}" if plain else ""


def _escaped(name: str) -> str:
    """Text for a glob pattern that means itself."""
    return re.sub(r"([*?\[])", r"[\1]", name)
