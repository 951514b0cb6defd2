"""Lists the files that commands wrote into a folder, and the fit that each was computed with.

A command may be stopped between two files. The list tells scores of an earlier training from those
of the one that is in the folder now, so that they are never reported as one.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari_xcebra.checksums import Listed, differences, entry_of, listed_in
from napari_xcebra.errors import InputError
from napari_xcebra.files import read_description, write_description

if TYPE_CHECKING:
    from napari_xcebra.learn.result import Fit

FILE, KIND, FORMAT = "results.json", "results", 1


def note_results(folder: Path, fit: Fit, written: Iterable[Path]) -> None:
    """Add files to the list of their folder, once they are written.

    Parameters
    ----------
    folder : Path
        To have to oneself meanwhile.
    fit : Fit
        That they were computed with.
    written : iterable of Path
        In that folder.
    """
    digest = fit.digest
    files: dict[str, Any] = {
        name: each for name, each in results_in(folder).items() if (folder / name).exists()
    }
    files |= {path.name: {**entry_of(path), "fit": digest} for path in written}
    about = {"kind": f"napari-xcebra {KIND}", "format": FORMAT, "files": files}
    write_description(folder / FILE, about)


def results_in(folder: Path) -> Listed:
    """What the list of a folder says; nothing if there is none, or it is damaged."""
    try:
        return listed_in(read_description(folder / FILE, KIND, FORMAT), folder / FILE) or {}
    except InputError:
        return {}


def why_not_of(fit: Fit, folder: Path, name: str, files: Listed) -> str:
    """Why a file must not be used with a fit, in a sentence; empty if it may, or is not listed."""
    if name not in files:
        return ""
    if files[name].get("fit") != fit.digest:
        return f"{name} belongs to another training, and is left out."
    if differences(folder, {name: files[name]}):
        return f"{name} was changed after it was written, and is left out."
    return ""
