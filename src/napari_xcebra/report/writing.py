"""Renders a report as one HTML page that needs no network and no other file, and writes it."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, StrictUndefined

from napari_xcebra.errors import InputError
from napari_xcebra.files import whole
from napari_xcebra.recording import Recording
from napari_xcebra.report.document import Document
from napari_xcebra.report.exports import in_a_sentence
from napari_xcebra.report.material import Material, material_in
from napari_xcebra.report.run_report import run_report
from napari_xcebra.report.sweep_report import sweep_report
from napari_xcebra.sweeps import SweepFolder

if TYPE_CHECKING:
    from napari_xcebra.attribution.single_cell import CellStatistics
    from napari_xcebra.io.opening import Opening
    from napari_xcebra.runs import Run


def report_on(folder: Path, recording: Recording | None = None) -> Document:
    """Report on what a folder holds: a run of the command line or the window, or a sweep.

    Parameters
    ----------
    folder : Path
    recording : Recording, optional
        If not given, it is looked for where it was when the run was trained.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder: name the one that run, fit or sweep wrote.")
    if (folder / "sweep.json").exists():
        return sweep_report(SweepFolder(folder))
    return run_report(material_in(folder, recording))


def rendered(document: Document) -> str:
    """HTML of a document; names from files are escaped wherever they appear."""
    script = _part("page.js")
    # should anything slip through, the browser refuses every other script
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    template = _environment().from_string(_part("page.html.jinja"))
    return template.render(document=document, style=_part("page.css"), script=script, digest=digest)


def write_run_report(
    run: Run,
    recording: Recording,
    path: Path,
    opening: Opening | None = None,
    statistics: CellStatistics | None = None,
) -> Path:
    """Write one page about a run that the window holds."""
    return write_report(run_report(Material.of_run(run, recording, opening, statistics)), path)


def write_sweep_report(folder: Path) -> Path:
    """Write one page about a sweep into its folder."""
    return write_report(report_on(folder), folder / "report.html")


def write_report(document: Document, path: Path) -> Path:
    """Write the page, whole or not at all."""
    page = rendered(document)
    with in_a_sentence(path), whole(path) as file:
        file.write_text(page, encoding="utf-8")
    return path


@cache
def _environment() -> Environment:
    return Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


@cache
def _part(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")
