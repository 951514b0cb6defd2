"""Writes what commands make of a fit as one, and lists it with the fit it was made with.

The list tells scores of an earlier training from those of the one that is in the folder now, so
that they are never reported as one.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from napari_xcebra.checksums import (
    STAGED,
    Listed,
    differences,
    entry,
    listed_by,
    listed_in,
    settle,
    write_together,
)
from napari_xcebra.errors import InputError
from napari_xcebra.files import described, in_a_sentence, read_description, refuse_link

if TYPE_CHECKING:
    from napari_xcebra.learn.result import Fit

FILE, KIND, FORMAT = "results.json", "results", 1
FIT = "fit"
"""Folder of the fit, in that of the results."""
RUN = "run.json"
ANALYSIS = "analysis.toml"
"""File that every run writes, and `napari-xcebra run` takes to make it again."""
_NEW = "new"


@contextlib.contextmanager
def results_to(folder: Path, fit: Fit, *, with_fit: bool = False) -> Iterator[Path]:
    """A folder to write files to, which then take their places in another one together.

    At any moment that one holds the earlier results or the new ones, never some of both; files of
    other names stay in it. If the block fails, nothing was written.

    Parameters
    ----------
    folder : Path
        To have to oneself meanwhile.
    fit : Fit
        That the files are computed with.
    with_fit : bool
        Write the fit as well.
    """
    from napari_xcebra.learn.result import files_of_fit

    refuse_link(folder / FIT)
    new = folder / STAGED / _NEW
    settle(folder)
    shutil.rmtree(new, ignore_errors=True)
    try:
        with in_a_sentence(folder):
            new.mkdir(parents=True)
        yield new
        contents: dict[str, Path | bytes] = {
            path.name: path for path in sorted(new.iterdir()) if path.is_file()
        }
        before: Listed = {}
        if with_fit:
            contents |= packed_fit(fit)
            before = {f"{FIT}/{name}": e for name, e in files_of_fit(folder / FIT).items()}
        others = {
            name: each
            for name, each in results_in(folder).items()
            if name not in before and (folder / name).exists()
        }
        about = {"kind": f"napari-xcebra {KIND}", "format": FORMAT}
        write_together(
            folder, FILE, about, contents, before, others=others, mark={"fit": fit.digest}
        )
    finally:
        shutil.rmtree(new, ignore_errors=True)
        with contextlib.suppress(OSError):
            new.parent.rmdir()


def packed_fit(fit: Fit) -> dict[str, bytes]:
    """Contents of the files of a fit, by their names in the folder that has it in `FIT`."""
    about, weights = fit.packed()
    listed = {name: entry(content) for name, content in weights.items()}
    contents = {f"{FIT}/{name}": content for name, content in weights.items()}
    return {**contents, f"{FIT}/fit.json": described({**about, "files": listed}).encode()}


def results_in(folder: Path) -> Listed:
    """What the list of a folder says; nothing if there is none, or it is damaged."""
    try:
        return listed_in(read_description(folder / FILE, KIND, FORMAT), folder / FILE) or {}
    except InputError:
        return {}


def problems_in(folder: Path, fit: Fit) -> list[str]:
    """Why a run or results in a folder are not whole, a sentence each."""
    files = results_in(folder)
    of_fit = f"{FIT}/"
    wrong = [why_not_of(fit, folder, n, files) for n in files if not n.startswith(of_fit)]
    if (folder / RUN).is_file():
        wrong += [f"{each}." for each in differences(folder, listed_by(folder / RUN))]
    return list(filter(None, wrong))


def why_not_of(fit: Fit, folder: Path, name: str, files: Listed) -> str:
    """Why a file must not be used with a fit, in a sentence; empty if it may, or is not listed."""
    if name not in files:
        return ""
    if files[name].get("fit") != fit.digest:
        return f"{name} belongs to another training, and is left out."
    if differences(folder, {name: files[name]}):
        return f"{name} is missing, or was changed after it was written, and is left out."
    return ""
