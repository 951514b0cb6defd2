"""Writes reports: a self-contained page about a run, pictures, and tables.

folder ──material──▶ Material ──run_report──▶ Document ──write_report──▶ HTML

Names are imported on first use: a picture does not load what a page needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from napari_xcebra.report.material import Material as Material
    from napari_xcebra.report.run_report import run_report as run_report
    from napari_xcebra.report.run_report import write_report as write_report

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "material": ["Material"],
        "run_report": ["run_report", "write_report"],
    },
)
