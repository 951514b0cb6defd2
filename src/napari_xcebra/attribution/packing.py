"""Packs an attribution into the content of a file, and unpacks it.

Everything but the fit and the recording is kept; nothing in it is pickled.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from dataclasses import replace
from typing import Any

import numpy as np

from napari_xcebra.attribution.result import Attribution
from napari_xcebra.attribution.shift_test.result import Significance
from napari_xcebra.attribution.stability import Stability
from napari_xcebra.errors import InputError
from napari_xcebra.files import check_description, parsed_json
from napari_xcebra.learn.data.factors import Part
from napari_xcebra.recording.fingerprint import Fingerprint

FORMAT = 3
"""Version of the saved file; a later version of the program reads earlier ones."""
_ARRAYS = ("cell_ids", "latent_scores", "factor_scores")
_TESTED = ("p_values", "q_values", "q_beside_variables")
_BY_SEED = "scores_by_seed"
_DETAIL = "detail "
"""Optional arrays of the saved file; the last is a prefix."""


def packed(scores: Attribution) -> bytes:
    """Content of a .npz file."""
    arrays = _arrays(scores)
    about = {
        "format": FORMAT,
        "kind": "napari-xcebra attribution",
        "method": scores.method,
        "aggregate": scores.aggregate,
        "parts": [part.as_dict() for part in scores.parts],
        "n_frames": scores.n_frames,
        "strengths": dict(scores.strengths),
        "verdicts": dict(scores.verdicts),
        "seed": scores.seed,
        "notes": list(scores.notes),
        "source": scores.source,
        "fingerprint": scores.fingerprint and scores.fingerprint.as_dict(),
        "significance": scores.significance and scores.significance.as_dict(),
        "seeds": list(scores.stability.seeds) if scores.stability else [],
        "arrays": list(arrays),
    }
    content = io.BytesIO()
    # typed, as mypy takes the names of arrays for options
    named: dict[str, Any] = {"about": np.array(json.dumps(about)), **arrays}
    np.savez(content, **named)
    return content.getvalue()


def unpacked(content: bytes, path: str | os.PathLike[str]) -> Attribution:
    """From the content of a file, which sentences name."""
    try:
        arrays = _checked_arrays(content)
        about = parsed_json(str(arrays.pop("about")), path)
        check_description(about, path, "attribution", FORMAT)
        return _attribution(arrays, about)
    except InputError:
        raise
    # a damaged file fails in zipfile, zlib or numpy, each in its own way
    except Exception as error:
        raise InputError(
            f"{path} does not hold an attribution ({type(error).__name__}: {error})."
        ) from error


def _arrays(scores: Attribution) -> dict[str, np.ndarray]:
    given = {name: getattr(scores, name) for name in _ARRAYS}
    given |= {_DETAIL + name: values for name, values in scores.details.items()}
    if scores.significance is not None:
        given |= {name: getattr(scores.significance, name) for name in _TESTED}
    if scores.stability is not None:
        given[_BY_SEED] = scores.stability.scores
    return {name: array for name, array in given.items() if array is not None}


def _attribution(arrays: dict[str, np.ndarray], about: dict[str, Any]) -> Attribution:
    del about["kind"], about["format"]
    if missing := set(about.pop("arrays", ())) - arrays.keys():
        raise ValueError(f"{', '.join(sorted(missing))} is missing")
    scores = {name: arrays[name] for name in _ARRAYS if name in arrays}
    tested = [arrays[name] for name in _TESTED if name in arrays]
    about["details"] = {
        name.removeprefix(_DETAIL): array
        for name, array in arrays.items()
        if name.startswith(_DETAIL)
    }
    about["parts"] = tuple(Part.from_dict(part) for part in about["parts"])
    about["notes"] = tuple(about["notes"])
    about["fingerprint"] = Fingerprint.from_dict(about.get("fingerprint"))
    if about.get("significance") is not None:
        about["significance"] = Significance.from_dict(about["significance"], *tested)
    seeds = tuple(about.pop("seeds", ()))
    loaded = Attribution(**{"latent_scores": None, **scores, **about})
    by_seed = arrays.get(_BY_SEED)
    return loaded if by_seed is None else _with_seeds(loaded, seeds, by_seed)


def _with_seeds(loaded: Attribution, seeds: tuple[int, ...], scores: np.ndarray) -> Attribution:
    """Copy with scores by seed: (seeds, factors, cells)."""
    if scores.shape != (len(seeds), len(loaded.parts), len(loaded.cell_ids)):
        raise ValueError(f"{_BY_SEED} has the shape {scores.shape}")
    by_seed = Stability(loaded.method, loaded.factors, loaded.cell_ids, scores, seeds)
    return replace(loaded, stability=by_seed)


def _checked_arrays(content: bytes) -> dict[str, np.ndarray]:
    """Arrays of a .npz file by name, all of whose bytes are as they were written."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        if (damaged := file.testzip()) is not None:
            raise zipfile.BadZipFile(f"{damaged} is damaged")
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}
