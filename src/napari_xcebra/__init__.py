"""Train xCEBRA on imaged cells and see which of them carry a variable, and when.

The public names are loaded when first used, so that `import napari_xcebra` costs napari nothing
at start-up: neither torch nor Qt is imported before they are needed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution, Significance, attribute, significance
    from napari_xcebra.attribution.single_cell import cell_statistics
    from napari_xcebra.curation import Curation, open_curation
    from napari_xcebra.io import open_recording
    from napari_xcebra.learn import Factor, Fit, fit
    from napari_xcebra.learn.adaptation import adapt
    from napari_xcebra.learn.joint.consistency import session_consistency
    from napari_xcebra.learn.joint.fitting import fit_sessions
    from napari_xcebra.learn.joint.result import JointFit
    from napari_xcebra.learn.quality import EmbeddingQuality, embedding_quality
    from napari_xcebra.learn.settings import FitSettings
    from napari_xcebra.recording import Footprints, Recording, Variable
    from napari_xcebra.widgets.painting import paint

    __version__: str

# No submodule may be called like one of these names: importing it would hide the public name.
_HOME = {
    "Attribution": "attribution",
    "Curation": "curation",
    "EmbeddingQuality": "learn.quality",
    "Factor": "learn",
    "Fit": "learn",
    "FitSettings": "learn.settings",
    "Footprints": "recording",
    "JointFit": "learn.joint.result",
    "Recording": "recording",
    "Significance": "attribution",
    "Variable": "recording",
    "adapt": "learn.adaptation",
    "attribute": "attribution",
    "cell_statistics": "attribution.single_cell",
    "embedding_quality": "learn.quality",
    "fit": "learn",
    "fit_sessions": "learn.joint.fitting",
    "open_curation": "curation",
    "open_recording": "io",
    "paint": "widgets.painting",
    "session_consistency": "learn.joint.consistency",
    "significance": "attribution",
}

__all__ = [
    "Attribution",
    "Curation",
    "EmbeddingQuality",
    "Factor",
    "Fit",
    "FitSettings",
    "Footprints",
    "JointFit",
    "Recording",
    "Significance",
    "Variable",
    "__version__",
    "adapt",
    "attribute",
    "cell_statistics",
    "embedding_quality",
    "fit",
    "fit_sessions",
    "open_curation",
    "open_recording",
    "paint",
    "session_consistency",
    "significance",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("napari-xcebra")
    elif name in _HOME:
        value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
