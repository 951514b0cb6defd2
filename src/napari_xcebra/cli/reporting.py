"""Commands that report: on a run, and on this computer."""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path

from napari_xcebra.cli.flags import add_recording_flags
from napari_xcebra.cli.given import output_folder, recording_from

DEFAULT = "report.html"


def report(arguments: argparse.Namespace) -> None:
    """Write one page about a run or a sweep."""
    from napari_xcebra.report import report_on, write_report

    folder = Path(arguments.run)
    path = Path(arguments.out) if arguments.out else folder / DEFAULT
    path = path if path.suffix else path / DEFAULT
    output_folder(argparse.Namespace(out=path.parent))  # a sentence now rather than afterwards
    recording = recording_from(arguments) if arguments.path else None
    write_report(report_on(folder, recording), path)
    if not arguments.quiet:
        print(f"Wrote {path} ({path.stat().st_size / 2**20:.1f} MB).")
    if arguments.open:
        webbrowser.open(path.absolute().as_uri())


def diagnostics(arguments: argparse.Namespace) -> None:
    """Print what a report of an error needs to know of this computer."""
    from napari_xcebra.diagnostics import diagnostics as told
    from napari_xcebra.learn.device import describe_device
    from napari_xcebra.logs import log_folder

    print(told(device=describe_device("auto", 0)))
    print(f"\nMore is in the log, which can be attached: {log_folder()}")


def add_flags(parser: argparse.ArgumentParser) -> None:
    """What `report` takes."""
    parser.add_argument("run", metavar="RUN",
                        help="folder that run, fit or sweep wrote, or that a run was saved "
                        "to")  # fmt: skip
    add_recording_flags(parser, required=False)
    group = parser.add_argument_group("output")
    group.add_argument("--out", metavar="FILE", help=f"page to write (default RUN/{DEFAULT})")
    group.add_argument("--open", action="store_true", help="open it in the browser")
    group.add_argument("--quiet", action="store_true", help="say nothing but errors")
