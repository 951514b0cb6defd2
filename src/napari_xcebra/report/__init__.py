"""One self-contained page about a run or a sweep: found on disk, made a plain value, rendered.

folder ──material──▶ Material ──run_report──▶ Document ──page──▶ HTML
"""

from napari_xcebra.report.document import Document
from napari_xcebra.report.material import Material, material_in
from napari_xcebra.report.page import rendered
from napari_xcebra.report.run_report import run_report
from napari_xcebra.report.writing import report_on, write_report

__all__ = [
    "Document",
    "Material",
    "material_in",
    "rendered",
    "report_on",
    "run_report",
    "write_report",
]
