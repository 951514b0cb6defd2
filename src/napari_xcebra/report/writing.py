"""From a folder to a page on disk."""

from __future__ import annotations

from pathlib import Path

from napari_xcebra.errors import InputError
from napari_xcebra.exports import in_a_sentence
from napari_xcebra.files import whole
from napari_xcebra.recording import Recording
from napari_xcebra.report.document import Document
from napari_xcebra.report.material import material_in
from napari_xcebra.report.page import rendered
from napari_xcebra.report.run_report import run_report
from napari_xcebra.report.sweep_report import sweep_report
from napari_xcebra.sweeps import SweepFolder


def report_on(folder: Path, recording: Recording | None = None) -> Document:
    """Report on what a folder holds: a run of the command line or the window, or a sweep.

    Parameters
    ----------
    folder : Path
    recording : Recording, optional
        Looked for where the run says that it was, if not given.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder: name the one that run, fit or sweep wrote.")
    if (folder / "sweep.json").exists():
        return sweep_report(SweepFolder(folder))
    return run_report(material_in(folder, recording))


def write_report(document: Document, path: Path) -> Path:
    """Write the page, whole or not at all."""
    page = rendered(document)
    with in_a_sentence(path), whole(path) as file:
        file.write_text(page, encoding="utf-8")
    return path
