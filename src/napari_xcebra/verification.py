"""Checks that what was saved is whole: runs, fits, sweeps, workspaces and decisions.

Nothing is written, and nothing is locked: a copy on a read-only drive can be checked as well.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from napari_xcebra import runs, workspace_file
from napari_xcebra.attribution import Attribution
from napari_xcebra.batch import folder as sweeps
from napari_xcebra.checksums import differences, listed_in
from napari_xcebra.curation.changes import KIND, read_journal, summary_of
from napari_xcebra.curation.journal import BESIDE_FILE, ENDING, FOLDER, IN_FOLDER
from napari_xcebra.errors import InputError
from napari_xcebra.files import CHECKSUM, first_bytes, open_file, read_description, read_json
from napari_xcebra.io.decisions.backups import NOTES, is_ours, record_of
from napari_xcebra.learn import result as fits
from napari_xcebra.learn.result import Fit
from napari_xcebra.runs import Run
from napari_xcebra.text import counted

WRITTEN = ".written"
_UNKNOWN = "; it was saved without checksums, so that its contents cannot be compared"


@dataclass(frozen=True)
class _Finding:
    """One thing that was saved.

    Parameters
    ----------
    path : Path
    whole : bool
    sentence : str
        What it is, and what is wrong with it if it is not whole.
    """

    path: Path
    whole: bool
    sentence: str


def verify(path: str | os.PathLike[str]) -> list[_Finding]:
    """Check everything that napari-xcebra saved in a place; nothing is written.

    Parameters
    ----------
    path : path
        A folder, which is looked through without following links; a file of a saved result; or a
        recording, whose decisions are checked.

    Returns
    -------
    list of Finding
        One for each run, fit, sweep, member of a sweep, workspace, list of results, journal, and
        file that decisions were written to.
    """
    path = Path(path)
    if not path.exists():
        raise InputError(f"{path} is not there.")
    if path.is_file():
        found = list(_of_file(path))
    else:
        folders = sorted(Path(folder) for folder, _, _ in os.walk(path))
        found = [finding for folder in folders for finding in _in_folder(folder)]
    if not found:
        raise InputError(
            f"There is nothing in {path} that napari-xcebra can check: no run, fit, sweep, "
            "workspace or decisions."
        )
    return found


def _of_file(path: Path) -> Iterator[_Finding]:
    if path.name in _CHECKS:
        yield _finding(path.parent, _CHECKS[path.name])
    elif path.suffix == ENDING:
        yield _finding(path, _journal)
    else:
        if path.suffix == ".npz":
            yield _finding(path, _arrays)
        yield from _decisions(path.parent, path.name)


def _in_folder(folder: Path) -> Iterator[_Finding]:
    for name, check in _CHECKS.items():
        # the fit of a run is checked with it
        if (folder / name).is_file() and not (
            name == fits.FILE and (folder.parent / runs.FILE).is_file()
        ):
            yield _finding(folder, check)
    for each in (folder, folder / FOLDER):
        if each.is_dir():
            yield from _decisions(each)


def _decisions(folder: Path, beside: str = "") -> Iterator[_Finding]:
    """Journals and files that decisions were written to, of a folder or of one file in it."""
    for file in sorted(folder.iterdir()):
        name = file.name
        if not file.is_file():
            continue
        if beside:
            near = name.startswith(f"{beside}{BESIDE_FILE}")
        else:  # those in the user's data directory have names of their own
            usual = name.startswith(IN_FOLDER) or BESIDE_FILE in name
            near = usual or KIND.encode() in first_bytes(file, 64)
        record = name.startswith(".") and name.endswith(WRITTEN)
        if near and name.endswith(ENDING):
            yield _finding(file, _journal)
        elif record and beside in ("", name[1 : -len(WRITTEN)]):
            yield _finding(file.with_name(name[1 : -len(WRITTEN)]), _written)
        elif file.match(NOTES) and not beside:
            said = "a write was interrupted; the next write to this recording undoes it"
            yield _Finding(file, False, f"{file}: not whole: {said}.")


def _finding(path: Path, check: Callable[[Path], str]) -> _Finding:
    try:
        return _Finding(path, True, f"{path}: whole: {check(path)}.")
    except InputError as error:
        return _Finding(path, False, f"{path}: not whole: {error}")
    except OSError as error:
        return _Finding(path, False, f"{path}: cannot be read: {error.strerror or error}.")


def _run(folder: Path) -> str:
    run = Run.load(folder)
    maps = counted(len(run.attributions), "map")
    return f"run {run.name} with {maps}{_unknown(folder / runs.FILE)}"


def _fit(folder: Path) -> str:
    fit = Fit.load(folder)
    return f"fit of {', '.join(fit.factors)} after {fit.steps} steps{_unknown(folder / fits.FILE)}"


def _joint(folder: Path) -> str:
    found = fits.JointFit.load(folder)
    return f"joint fit of {', '.join(found.sessions)}{_unknown(folder / fits.JOINT_FILE)}"


def _sweep(folder: Path) -> str:
    kept = sweeps.SweepFolder(folder)
    members = kept.members
    finished = sum(kept.status(member.id) == "finished" for member in members)
    return f"sweep, {finished} of {counted(len(members), 'run')} finished"


def _member(folder: Path) -> str:
    about = sweeps.member_in(folder)
    _compare(folder, about, sweeps.MEMBER)
    return f"finished member of a sweep{_unknown(folder / sweeps.MEMBER)}"


def _workspace(folder: Path) -> str:
    about = read_description(folder / workspace_file.FILE, "session", workspace_file.FORMAT)
    _compare(folder, about, workspace_file.FILE)
    try:
        named = [str(run) for each in about["recordings"] for run in each["runs"]]
    except (KeyError, TypeError) as error:
        raise InputError(f"{workspace_file.FILE} is damaged ({error}).") from error
    if missing := [run for run in named if not (folder / run / runs.FILE).is_file()]:
        raise InputError(f"{missing[0]} is missing.")
    held = counted(len(about["recordings"]), "recording")
    runs_of = counted(len(named), "run")
    return f"workspace of {held} with {runs_of}{_unknown(folder / workspace_file.FILE)}"


def _results(folder: Path) -> str:
    about = read_description(folder / runs.RESULTS, runs.RESULTS_KIND, runs.RESULTS_FORMAT)
    _compare(folder, about, runs.RESULTS)
    place = folder / "fit"
    if (place / fits.FILE).is_file():
        fit = Fit.load(place)
        others = [name for name, each in about["files"].items() if each.get("fit") != fit.digest]
        if others:
            raise InputError(f"{', '.join(others)}: of another training than the fit beside it.")
    return f"results in {counted(len(about['files']), 'file')}"


def _journal(file: Path) -> str:
    contents = read_journal(file)
    if notes := contents.notes(file):
        raise InputError(" ".join(notes))
    found = summary_of(file)
    return found.sentence if found else "no decisions yet"


def _written(file: Path) -> str:
    read_json(record_of(file))
    if not file.exists():
        raise InputError("decisions were written to it, but it is missing.")
    if not is_ours(file):
        raise InputError(
            "it is not as decisions were written to it here: another program wrote to it since, or "
            "it is damaged."
        )
    return "as decisions were written to it"


def _arrays(file: Path) -> str:
    try:
        with open_file(file) as opened, zipfile.ZipFile(opened) as archive:
            damaged = archive.testzip()
            kept = "attribution" if "latent_scores.npy" in archive.namelist() else ""
    # a damaged file fails in many ways
    except Exception as error:
        raise InputError(f"it is damaged ({error}).") from error
    if damaged is not None:
        raise InputError(f"{damaged} in it is damaged.")
    if not kept:
        return "all arrays are as they were written"
    return f"scores by {Attribution.load(file).method}"


def _compare(folder: Path, about: dict[str, Any], name: str) -> None:
    """Raise a sentence on the files that a description lists and that are not as they were."""
    if wrong := differences(folder, listed_in(about, folder / name) or {}):
        raise InputError("; ".join(wrong) + ".")


def _unknown(path: Path) -> str:
    return "" if CHECKSUM in read_json(path) else _UNKNOWN


_CHECKS: dict[str, Callable[[Path], str]] = {
    workspace_file.FILE: _workspace,
    "sweep.json": _sweep,
    sweeps.MEMBER: _member,
    runs.FILE: _run,
    fits.JOINT_FILE: _joint,
    fits.FILE: _fit,
    runs.RESULTS: _results,
}
"""By the file that describes a folder."""
