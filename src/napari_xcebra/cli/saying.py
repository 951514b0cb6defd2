"""What the commands print, and what they call the files they write."""

from __future__ import annotations

import argparse
from pathlib import Path

from napari_xcebra.cli.flags import FLAGS
from napari_xcebra.knobs import worded


class Interrupted(Exception):
    """The user pressed Ctrl-C; says what was kept."""


def say(arguments: argparse.Namespace, *lines: str) -> None:
    """Print these lines, unless nothing is to be said."""
    if not arguments.quiet:
        for line in lines:
            print(worded(line, FLAGS))


WHAT = {
    "recording.npz": "the recording",
    "fit": "the trained encoder, its settings and goodness",
    "learning.png": "loss, penalty and λ over the steps",
    "painted.png": "cells coloured by their score, a panel a factor",
    "attribution.csv": "score, z and selection of every cell for every factor",
    "attribution.npz": "the same for programs, and per latent where the method tells",
    "stability.csv": "spread of score and rank of every cell over seeds, and what is stable",
    "dimension.csv": "consistency between seeds for every number of latents",
    "dimension.png": "the same as a picture",
    "joint": "the encoders of all sessions, in one embedding",
    "consistency.csv": "R² between the embeddings of each two sessions, beside chance",
    "consistency.png": "the same as a picture, a matrix a factor",
    "matched.csv": "score, z and rank of every matched cell in every session",
    "matched.png": "correlation of the scores between sessions, and the rank of every cell",
    "quality.csv": "error of decoding every variable from the embedding, beside chance",
    "methods.png": "rank correlations of all methods, and the rank of every cell by each",
    "methods.csv": "score and rank of every cell by every method and statistic",
    "summary.csv": "a row a run: what was varied, goodness, p, R² (also of a ridge "
    "regression) and verdict of every factor",
    "members": "a folder a run: fit, scores, what it took",
    "sweep.json": "what was asked for",
    "statistics.csv": "single-cell statistics with their signs",
}


def say_written(arguments: argparse.Namespace, written: list[Path]) -> None:
    """Print what was written, and what it holds."""
    width = max(len(str(path)) for path in written)
    lines = [f"  {str(path).ljust(width)}  {WHAT[path.name]}" for path in written]
    say(arguments, "", "Written:", *lines)
