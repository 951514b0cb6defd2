"""Prints tables, sentences and progress in plain text, and takes Ctrl-C as a request to stop."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isnan
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import numpy as np
from tqdm import tqdm

from napari_xcebra.attribution.methods import title_of_method
from napari_xcebra.cli.flags import FLAGS
from napari_xcebra.errors import Stopped
from napari_xcebra.learn.data.factors import TIME
from napari_xcebra.learn.quality.verdict import decoded_of, encoder_of, nats_of, share_of
from napari_xcebra.settings import worded
from napari_xcebra.text import counted, left

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution
    from napari_xcebra.attribution.comparison import Comparison
    from napari_xcebra.batch import SweepProgress
    from napari_xcebra.batch.hypotheses import Hypotheses
    from napari_xcebra.learn import Fit, Goodness, Progress
    from napari_xcebra.learn.quality.consistency import Dimensions


def say(arguments: argparse.Namespace, *lines: str) -> None:
    """Print these lines, unless --quiet was given."""
    if not arguments.quiet:
        for line in lines:
            print(worded(line, FLAGS))


WHAT = {
    "recording.npz": "the recording",
    "fit": "the trained encoder, its settings and goodness",
    "learning.png": "loss, penalty and λ over the steps",
    "painted.png": "cells coloured by their score, one panel per factor",
    "attribution.csv": "score of every cell for every factor, and whether it is above threshold",
    "attribution.npz": "the same for programs, and per latent where the method gives it",
    "analysis.toml": "all that made this run; napari-xcebra run analysis.toml makes it again",
    "stability.csv": "spread of score and rank of every cell over seeds, and whether it is stable",
    "dimension.csv": "consistency between seeds for every number of latents",
    "dimension.png": "the same as a picture",
    "joint": "the encoders of all sessions, in one embedding",
    "consistency.csv": "R² between the embeddings of every two sessions, compared with chance",
    "consistency.png": "the same as a picture, one matrix per factor",
    "matched.csv": "score, z and rank of every matched cell in every session",
    "matched.png": "correlation of the scores between sessions, and the rank of every cell",
    "quality.csv": "error of decoding every variable from the embedding, compared with chance",
    "methods.png": "rank correlations of all methods, and the rank of every cell by each",
    "methods.csv": "score and rank of every cell by every method and statistic",
    "summary.csv": "one row per run: what was varied, goodness, p, R² (also of a ridge "
    "regression) and verdict of every factor",
    "members": "one folder per run: fit, scores, time taken",
    "sweep.json": "what was requested",
    "cohort-cells.csv": "score, p and q of every cell, with its animal, day and condition",
    "cohort-runs.csv": "share of cells, mean score, verdict and decoding of every run",
    "cohort-animals.csv": "the same of every animal and condition, averaged over days",
    "cohort-tests.csv": "comparison of conditions, with the animal as the unit",
    "cohort-share.png": "share of cells by condition, one dot per animal, days joined",
    "cohort-scores.png": "distribution of scores by condition, one line per animal",
    "hidden.npz": "hidden factors, for programs",
    "hidden.csv": "one row per hidden factor, and per linear method beside them",
    "hidden-cells.csv": "score, p and q of every cell for every hidden factor",
    "hidden-courses.csv": "their courses; open it as behaviour to use them as variables",
    "project.csv": "every recording with its behaviour, as a table to edit and run again",
    "grid.png": "every painted field, a row per recording",
    "report.html": "one page about all of it",
    "statistics.csv": "single-cell statistics with their signs",
}


def say_written(arguments: argparse.Namespace, written: list[Path]) -> None:
    """Print what was written, and what it holds unless few words are wanted."""
    if not getattr(arguments, "verbose", True):
        names = ", ".join(path.name for path in written)
        say(arguments, f"Written to {written[0].parent}: {names}.")
        return
    width = max(len(str(path)) for path in written)
    lines = [f"  {str(path).ljust(width)}  {_what(path)}" for path in written]
    say(arguments, "", "Written:", *lines)


def _what(path: Path) -> str:
    """What a file or folder holds; arrays of a map are named by its method."""
    return WHAT.get(path.name) or f"the same arrays by the {title_of_method(path.stem)}"


GOODNESS = ("goodness (nats)", "of possible", "decoded", "ridge", "encoder", "verdict")
"""Columns of `goodness_words`."""


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Text in columns: the first to the left, the others to the right."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        first, *others = zip(row, widths, strict=True)
        return "  ".join([first[0].ljust(first[1]), *(text.rjust(w) for text, w in others)])

    return "\n".join([line(header), "  ".join("─" * w for w in widths), *map(line, rows)])


def dimension_table(dimensions: Dimensions) -> str:
    """One row per number of latents: consistency between seeds."""
    rows = [
        [
            d.words,
            f"{d.mean:.3f} ± {d.error:.3f}",
            str(len(d.r2)),
            "←" * (d is dimensions.suggested),
        ]
        for d in dimensions.tried
    ]
    return table(["latents", "consistency R²", "pairs of seeds", ""], rows)


def hypotheses_table(found: Hypotheses) -> str:
    """One row a hypothesis: nats beside shuffled labels, what it adds, R², consistency, verdict."""
    rows = [
        [
            each.name,
            f"{each.nats:.2f}",
            f"{max(each.shuffled_goodness):.2f}" if each.shuffled_goodness else "–",
            "–" if isnan(found.adds(each)) else f"{found.adds(each):+.2f}",
            f"{np.mean(each.r2):.2f}",
            "–" if isnan(each.consistency) else f"{each.consistency:.2f}",
            each.strength,
        ]
        for each in found.ranked
    ]
    header = ["hypothesis", "nats", "shuffled, at most", "adds", "R²", "consistency R²", "verdict"]
    return table(header, rows)


def factor_table(
    fit: Fit,
    attribution: Attribution | None = None,
    truth: Mapping[str, np.ndarray] | None = None,
) -> str:
    """One row per factor: `goodness_words`; cells above threshold and auROC where known."""
    from napari_xcebra.attribution import auroc

    header = ["factor", *GOODNESS]
    rows = [[name, *goodness_words(goodness)] for name, goodness in fit.goodness.items()]
    if attribution is not None:
        header.append("above threshold")
        for row in rows:
            scored = int((~np.isnan(attribution.score(row[0]))).sum())
            above = int(attribution.selected(row[0]).sum())
            row.append(f"{above} of {scored}" if attribution.was_found(row[0]) else "–")
    if attribution is not None and attribution.significance is not None:
        header.append("q ≤ 0.1")
        for row in rows:
            q = attribution.significance.q(row[0])
            row.append("–" if np.isnan(q).all() else f"{int((q <= 0.1).sum())}")
    if attribution is not None and truth:
        header.append("auROC")
        for row in rows:
            carries = truth.get(row[0], np.zeros(0, bool))
            # with all or none of the cells there is nothing to tell apart
            mixed = 0 < carries.sum() < len(carries)
            row.append(f"{auroc(attribution.score(row[0]), carries):.3f}" if mixed else "–")
    return table(header, rows)


_STRONGEST = 5
"""Cells that the lines on a factor name."""


def _factor_lines(
    fit: Fit,
    attribution: Attribution | None = None,
    truth: Mapping[str, np.ndarray] | None = None,
) -> list[str]:
    """Two lines a factor: whether it is in the cells, and in how many and which."""
    lines = []
    for name, goodness in fit.goodness.items():
        lines.append(goodness.verdict)
        if attribution is None:
            lines.append(f"  {goodness.measured}")
        elif name != TIME and attribution.was_found(name):
            lines.append(f"  {_cells_in_words(attribution, name, (truth or {}).get(name))}")
    return lines


def _cells_in_words(attribution: Attribution, factor: str, carries: np.ndarray | None) -> str:
    """Cells that carry a factor: how many, the strongest, and how right that is if it is known."""
    from napari_xcebra.attribution import auroc

    score, found = attribution.score(factor), attribution.selected(factor)
    scored, how = int(np.isfinite(score).sum()), "score above the threshold"
    if attribution.significance is not None:
        q = attribution.significance.q(factor)
        if np.isfinite(q).any():
            found, how = q <= 0.1, "carry it (q ≤ 0.1)"
    best = [i for i in np.argsort(-np.nan_to_num(score, nan=-np.inf)) if found[i]][:_STRONGEST]
    cells = ", ".join(str(attribution.cell_ids[i]) for i in best)
    words = f"{int(found.sum())} of {scored} cells {how}{f'; strongest: {cells}' if best else ''}."
    if carries is not None and 0 < carries.sum() < len(carries):
        words += f" auROC {auroc(score, carries):.3f}: it is known here which cells do."
    return words


def say_found(
    arguments: argparse.Namespace,
    fit: Fit,
    attribution: Attribution | None = None,
    truth: Mapping[str, np.ndarray] | None = None,
) -> None:
    """Print what was found of every factor: two lines, or all there is if that is wanted."""
    scores = () if attribution is None else attribution.notes
    if not getattr(arguments, "verbose", False):
        say(arguments, *_factor_lines(fit, attribution, truth))
        if notes := len(fit.notes) + len(scores):
            say(arguments, f"({counted(notes, 'note')} on this: --verbose prints them.)")
        return
    say(arguments, factor_table(fit, attribution, truth), "", fit.summary(), *fit.notes, *scores)
    if attribution is not None and attribution.significance is not None:
        say(arguments, *(attribution.significance.how(factor) for factor in attribution.factors))


def agreement_table(comparison: Comparison) -> str:
    """One row per method or statistic: Spearman's ρ between its ranking and the first method's."""
    from napari_xcebra.attribution.comparison import title_of

    names = list(dict.fromkeys(n for f in comparison.factors for n in comparison.of(f)))
    with_first = {f: comparison.correlations(f).iloc[0] for f in comparison.factors}
    rows = []
    for name in names[1:]:
        found = [with_first[f].get(name, np.nan) for f in comparison.factors]
        rows.append([title_of(name), *("–" if np.isnan(v) else f"{v:.2f}" for v in found)])
    return table([f"rank correlation with {title_of(names[0])}", *comparison.factors], rows)


def goodness_words(goodness: Goodness) -> list[str]:
    """Goodness, its share of the possible, decoding beside regression and encoder, and verdict."""
    measured = nats_of(goodness), share_of(goodness), *decoded_of(goodness), encoder_of(goodness)
    return [*measured, goodness.strength]


class Interrupted(KeyboardInterrupt):
    """The user pressed Ctrl-C; says what was kept."""


@contextmanager
def interrupt_as_request() -> Iterator[Callable[[], bool]]:
    """Treat the first Ctrl-C as a request to stop at the next report; the second ends at once."""
    asked = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        asked.set()
        signal.signal(signal.SIGINT, before)
        print("\nStopping at the next report (Ctrl-C again: at once) …", file=sys.stderr)

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def stoppable(lost: str) -> Iterator[Callable[[], bool]]:
    """As `interrupt_as_request`, for work that has nothing to show if stopped."""
    with interrupt_as_request() as request:
        try:
            yield request
        except Stopped as stopped:
            raise Interrupted(f"{stopped} {lost}") from stopped


@contextmanager
def training_bar(arguments: argparse.Namespace, steps: int) -> Iterator[Callable[[Progress], None]]:
    """Progress bar of a training run: phase, losses and λ."""
    with _bar(arguments, steps, "step") as bar:

        def show(progress: Progress) -> None:
            losses = " ".join(f"{name} {loss:.2f}" for name, loss in progress.loss.items())
            bar.set_description(progress.phase, refresh=False)
            bar.set_postfix_str(f"{losses} λ ≤ {progress.lambda_:.3g}", refresh=False)
            bar.total = progress.steps  # fewer than asked for, if it stops by itself
            bar.update(progress.step - bar.n)

        yield show


@contextmanager
def count_bar(
    arguments: argparse.Namespace, unit: str, doing: str
) -> Iterator[Callable[[int, int], None]]:
    """Progress bar of frames or steps."""
    with _bar(arguments, None, unit, doing) as bar:

        def show(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield show


@contextmanager
def sweep_bar(
    arguments: argparse.Namespace, members: int
) -> Iterator[Callable[[SweepProgress], None]]:
    """Progress bar of a sweep, in runs; those under way count in part."""
    with _bar(arguments, members, "run") as bar:
        bar.bar_format = "{percentage:3.0f}%|{bar}| {desc}"

        def show(at: SweepProgress) -> None:
            rest = "" if isnan(at.seconds_left) else f", {left(at.seconds_left)} left"
            failed = f", {at.failed} failed" if at.failed else ""
            words = f"{at.finished} of {at.total} runs{failed}{rest}"
            bar.set_description_str(words, refresh=False)
            bar.n = at.share * members
            bar.refresh()

        yield show


@contextmanager
def comparison_bar(arguments: argparse.Namespace) -> Iterator[Callable[[str, int, int], None]]:
    """Progress bar of one attribution after the other, in frames."""
    with _bar(arguments, None, "frame") as bar:

        def show(method: str, done: int, total: int) -> None:
            if done < bar.n or bar.n == 0:
                bar.reset(total)
            bar.set_description(method, refresh=False)
            bar.update(done - bar.n)

        yield show


def _bar(arguments: argparse.Namespace, total: int | None, unit: str, text: str = "") -> tqdm:
    shown = not arguments.quiet and (arguments.progress or sys.stderr.isatty())
    return tqdm(total=total, unit=unit, desc=text, disable=not shown, dynamic_ncols=True)
