"""Train xCEBRA on imaged cells and see which of them carry a variable, and when.

The public names are loaded when first used, so that `import napari_xcebra` costs napari nothing
at start-up: neither torch nor Qt is imported before they are needed.
"""

from typing import TYPE_CHECKING, Any

import lazy_loader

if TYPE_CHECKING:
    from napari_xcebra.attribution import (
        Attribution,
        ScoresAround,
        Significance,
        attribute,
        scores_around,
        significance,
    )
    from napari_xcebra.attribution.discovery.finding import discover
    from napari_xcebra.attribution.discovery.hidden import HiddenFactor, HiddenFactors
    from napari_xcebra.attribution.single_cell import cell_statistics
    from napari_xcebra.batch.cohorts import Cohort, cohort
    from napari_xcebra.batch.hypotheses import hypotheses
    from napari_xcebra.curation import Curation, open_curation
    from napari_xcebra.interop.cebra_files import save_cebra
    from napari_xcebra.interop.cebra_fit import open_cebra
    from napari_xcebra.interop.estimators import XCEBRA
    from napari_xcebra.io import open_recording
    from napari_xcebra.io.formats.nwb.writing import write_nwb
    from napari_xcebra.learn import Factor, Fit, fit
    from napari_xcebra.learn.adaptation import adapt
    from napari_xcebra.learn.joint.consistency import session_consistency
    from napari_xcebra.learn.joint.fitting import fit_sessions
    from napari_xcebra.learn.quality.decoding import EmbeddingQuality, embedding_quality
    from napari_xcebra.learn.result import JointFit
    from napari_xcebra.learn.settings import FitSettings
    from napari_xcebra.recording import Footprints, Recording, Trials, Variable
    from napari_xcebra.recording.events import PeriEvent, peri_event
    from napari_xcebra.verification import verify
    from napari_xcebra.widgets.app.workspace import paint

    __version__: str

__all__ = [
    "XCEBRA",
    "Attribution",
    "Cohort",
    "Curation",
    "EmbeddingQuality",
    "Factor",
    "Fit",
    "FitSettings",
    "Footprints",
    "HiddenFactor",
    "HiddenFactors",
    "JointFit",
    "PeriEvent",
    "Recording",
    "ScoresAround",
    "Significance",
    "Trials",
    "Variable",
    "__version__",
    "adapt",
    "attribute",
    "cell_statistics",
    "cohort",
    "discover",
    "embedding_quality",
    "fit",
    "fit_sessions",
    "hypotheses",
    "open_cebra",
    "open_curation",
    "open_recording",
    "paint",
    "peri_event",
    "save_cebra",
    "scores_around",
    "session_consistency",
    "significance",
    "verify",
    "write_nwb",
]


# No submodule may be called like one of these names: importing it would hide the public name.
_HOMES = {
    "attribution": [
        "Attribution",
        "ScoresAround",
        "Significance",
        "attribute",
        "scores_around",
        "significance",
    ],
    "attribution.discovery.finding": ["discover"],
    "attribution.discovery.hidden": ["HiddenFactor", "HiddenFactors"],
    "attribution.single_cell": ["cell_statistics"],
    "batch.cohorts": ["Cohort", "cohort"],
    "batch.hypotheses": ["hypotheses"],
    "curation": ["Curation", "open_curation"],
    "interop.cebra_files": ["save_cebra"],
    "interop.cebra_fit": ["open_cebra"],
    "interop.estimators": ["XCEBRA"],
    "io": ["open_recording"],
    "io.formats.nwb.writing": ["write_nwb"],
    "learn": ["Factor", "Fit", "fit"],
    "learn.result": ["JointFit"],
    "learn.adaptation": ["adapt"],
    "learn.joint.consistency": ["session_consistency"],
    "learn.joint.fitting": ["fit_sessions"],
    "learn.quality.decoding": ["EmbeddingQuality", "embedding_quality"],
    "learn.settings": ["FitSettings"],
    "recording": ["Footprints", "Recording", "Trials", "Variable"],
    "recording.events": ["PeriEvent", "peri_event"],
    "verification": ["verify"],
    "widgets.app.workspace": ["paint"],
}
_public, _, _ = lazy_loader.attach(__name__, submod_attrs=_HOMES)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("napari-xcebra")
    return _public(name)


def __dir__() -> list[str]:
    return __all__
