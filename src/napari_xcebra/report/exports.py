"""Writes scores as files for other programs, each whole or not at all."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_xcebra import files
from napari_xcebra.errors import InputError
from napari_xcebra.files import whole

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution
    from napari_xcebra.attribution.comparison import Comparison
    from napari_xcebra.recording.recording import Recording


def default_path(recording: Recording, *parts: str, suffix: str) -> Path:
    """Where to write by default: beside the recording, under a name that says what it is.

    Parameters
    ----------
    recording : Recording
    *parts : str
        What the file holds, such as the run and the factor.
    suffix : str
        Such as ".csv".
    """
    source = Path(recording.source) if recording.source else Path()
    beside = source.parent if recording.source and source.exists() else Path.home()
    name = "recording"
    if recording.source and source.exists():
        name = source.name if source.is_dir() else source.stem  # a folder has no suffix
    words = (re.sub(r"[^\w.+-]+", "_", part).strip("_") for part in (name, *parts))
    return beside / ("-".join(word for word in words if word) + suffix)


def write_table(
    attribution: Attribution,
    path: Path,
    threshold: float = 0.0,
    beside: Sequence[Attribution] = (),
) -> Path:
    """One row a cell and factor, as CSV; other maps of the same cells get a column each."""
    with in_a_sentence(path):
        return attribution.to_csv(path, threshold, beside=beside)


def write_scores(attribution: Attribution, path: Path) -> Path:
    """Scores of every latent with their provenance, as .npz; `Attribution.load` reads it."""
    with in_a_sentence(path):
        return attribution.to_npz(path)


def write_picture(
    recording: Recording,
    attribution: Attribution,
    path: Path,
    threshold: float = 0.0,
    factors: Sequence[str] | None = None,
    **how: Any,
) -> Path:
    """The painted field for a paper, a panel a factor with all planes, as PDF, SVG or PNG.

    `how` is passed on to `painted_field`: a latent, or colours.
    """
    with in_a_sentence(path):
        from napari_xcebra.report.figures.field import painted_field
        from napari_xcebra.report.figures.paper import PAPER

        painted_field(recording, attribution, path, None, threshold, factors, PAPER, **how)
    return path


def write_comparison(comparison: Comparison, path: Path) -> Path:
    """Score and rank of every cell by every method and statistic, as CSV."""
    with in_a_sentence(path):
        return comparison.to_csv(path)


def write_comparison_picture(comparison: Comparison, path: Path) -> Path:
    """Rank correlations, and ranks, of all methods; the ending of the path says the format."""
    with in_a_sentence(path):
        from napari_xcebra.report.figures.comparisons import methods_side_by_side

        methods_side_by_side(comparison, path)
    return path


def write_hue(recording: Recording, scores: np.ndarray, path: Path) -> Path:
    """Colours for the ROIs in suite2p's window: (ROIs,) float32 between 0 and 1, as .npy.

    In suite2p: Visualizations, "Load custom hue for ROIs". It takes one number a ROI in the order
    of stat.npy and no NaN, so cells that were not used have 0.

    Parameters
    ----------
    scores : (cells,) float
    """
    with in_a_sentence(path), whole(path) as file, file.open("wb") as opened:
        np.save(opened, hue(np.asarray(recording.cell_ids), scores), allow_pickle=False)
    return path


def hue(cell_ids: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Scores from 0 to 1, in the order of the ids if these number the ROIs: (cells,) float32."""
    scores = np.asarray(scores, np.float64)
    known = np.isfinite(scores)
    scaled = np.zeros(len(scores), np.float32)
    if known.any():
        low, high = scores[known].min(), scores[known].max()
        scaled[known] = (scores[known] - low) / ((high - low) or 1.0)
    if np.array_equal(np.sort(cell_ids), np.arange(len(cell_ids))):
        return scaled[np.argsort(cell_ids)]
    return scaled


def write_pixels(pixels: np.ndarray, path: Path) -> Path:
    """A screenshot, (height, width, 3 or 4) uint8, as a picture."""
    from matplotlib.image import imsave

    with in_a_sentence(path), whole(path) as file:
        imsave(file, np.ascontiguousarray(pixels))
    return path


@contextlib.contextmanager
def in_a_sentence(path: Path) -> Iterator[None]:
    """Say in a sentence why a file could not be written, or not in that format."""
    try:
        with files.in_a_sentence(path):
            yield
    except InputError:
        raise
    except ValueError as error:
        # matplotlib names the formats it knows
        raise InputError(f"{path} could not be written: {error}.") from error
