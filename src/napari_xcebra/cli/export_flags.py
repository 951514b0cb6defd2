"""Flags of the commands that write results for other programs and for papers."""

from __future__ import annotations

import argparse

from napari_xcebra.cli.flags import add_recording_flags

NWB = "results.nwb"
FIGURE = "painted.pdf"
"""Files that `export-nwb` and `figure` write by default."""


def add_nwb_flags(parser: argparse.ArgumentParser) -> None:
    """Flags of `export-nwb`."""
    _add_run_flags(parser)
    group = parser.add_argument_group("NWB file")
    group.add_argument("--new-file", action="store_true",
                       help="make a new file also of a recording that is NWB, in place of a copy "
                       "with the results added")  # fmt: skip
    group.add_argument("--journal", metavar="FILE",
                       help="decisions on the cells (default: those of the recording, if there "
                       "are any)")  # fmt: skip
    group.add_argument("--started", metavar="TIME",
                       help="when the session began, as in 2026-05-06T14:30; archives ask for "
                       "it")  # fmt: skip
    for name, metavar, help in (
        ("subject", "ID", "name of the animal"),
        ("species", "NAME", "as in Mus musculus"),
        ("sex", "SEX", "F, M, U (unknown) or O (other)"),
        ("age", "AGE", "as in P90D (90 days) or P12W"),
        ("location", "AREA", "where in the brain was imaged, as in VISp"),
    ):
        group.add_argument(f"--{name}", metavar=metavar, help=help)
    _add_output_flags(parser, f"file to write (default RUN/{NWB})")


def add_figure_flags(parser: argparse.ArgumentParser) -> None:
    """Flags of `figure`."""
    _add_run_flags(parser)
    group = parser.add_argument_group("figure")
    group.add_argument("--factor", action="append", metavar="NAME",
                       help="factor to paint; repeat for several (default: all)")  # fmt: skip
    group.add_argument("--map", metavar="METHOD",
                       help="map to paint (default: the one to look at first)")  # fmt: skip
    group.add_argument("--threshold", type=float, default=0.0, metavar="Z",
                       help="z above which cells are outlined (default 0)")  # fmt: skip
    _add_output_flags(parser, f"PDF, SVG or PNG to write (default RUN/{FIGURE})")


def _add_run_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN",
                        help="folder that run or attribute wrote, or where a run was "
                        "saved")  # fmt: skip
    add_recording_flags(parser, required=False)


def _add_output_flags(parser: argparse.ArgumentParser, out: str) -> None:
    group = parser.add_argument_group("output")
    group.add_argument("--out", metavar="FILE", help=out)
    group.add_argument("--quiet", action="store_true", help="print only errors")
