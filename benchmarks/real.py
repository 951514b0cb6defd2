"""Take real recordings from their raw files to a tested map, by the commands that a user types.

    python benchmarks/real.py                       # all that are at hand
    python benchmarks/real.py worm --out results    # one; maps, tables and reports stay in results

Prints, for each recording, its commands, verdicts, R² beside a ridge regression, cells found,
agreement with what is known of it (its README.txt), and two controls: the same labels reversed, and
shifted by a third of the recording. docs/real-recordings.md is the tutorial to it.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from real_recordings import PLACE, ca1_information
from report import header, typed
from scipy.io import loadmat
from scipy.stats import spearmanr
from trials import split_half_tuning

from napari_xcebra.attribution import Attribution, Significance, significance
from napari_xcebra.attribution.shift_test.result import LEVEL
from napari_xcebra.errors import InputError
from napari_xcebra.io.opening import Opening
from napari_xcebra.learn import Fit, fit
from napari_xcebra.recording import Recording

DOCS = Path(__file__).resolve().parents[1] / "docs"
PROGRAM = [sys.executable, "-c", "import sys; from napari_xcebra.cli import main; sys.exit(main())"]


@dataclass(frozen=True)
class Case:
    """A recording, what is typed to get its map, and what is known of it.

    Parameters
    ----------
    folder : str
        In `PLACE`; commands are typed in it.
    command : str
        Of `napari-xcebra`, without --out.
    agreement : callable
        Takes recording and attribution, and says how far they agree with what is known.
    known : str
    page : str
        How-to whose Python block comes first, if the files need one.
    """

    folder: str
    command: str
    agreement: Callable[[Recording, Attribution], str]
    known: str
    page: str = ""


def q_of(found: Attribution, factor: str) -> np.ndarray:
    """(cells,) q, NaN if it was not tested."""
    nothing = np.full(len(found.cell_ids), np.nan)
    return nothing if found.significance is None else found.significance.q(factor)


def counted_in(test: Significance | None, factor: str) -> tuple[str, str]:
    """Cells found of those tested: beside everything else, and beside the variables alone."""
    if test is None or np.isnan(test.q(factor)).all():
        return "–", "–"
    tested, alone = int(np.isfinite(test.q(factor)).sum()), test.beside_variables(factor)
    assert alone is not None
    return f"{int((test.q(factor) <= LEVEL).sum())} of {tested}", f"{int((alone <= LEVEL).sum())}"


def of_ca1(recording: Recording, found: Attribution) -> str:
    """Cells that the authors call significant, and their information."""
    raw = PLACE / "ca1-running-events" / "raw" / "bias_correction_results.mat"
    theirs = loadmat(raw, squeeze_me=True, struct_as_record=False)
    statistics = theirs["unbiased_information_estimation_results"].firing_statistics
    active = statistics.sufficiently_active_cells_indexes - 1
    bits, scores = ca1_information(), found.score("position")[active]
    ours, significant = q_of(found, "position") <= LEVEL, np.isfinite(bits)
    assert found.significance is not None
    alone = found.significance.beside_variables("position") <= LEVEL
    return (
        f"{int(ours[active][significant].sum())} of the authors' {significant.sum()} cells found, "
        f"{int(alone[active][significant].sum())} without the state; "
        f"score ~ their information: rank "
        f"{spearmanr(scores, bits, nan_policy='omit').statistic:.2f}"
    )


def of_fly(recording: Recording, found: Attribution) -> str:
    """All wedges are tuned to the heading."""
    angle, traces = recording.behavior["heading"].values[:, 0], np.asarray(recording.traces)
    known = np.isfinite(angle)
    wave = np.exp(1j * angle[known])
    resultant = np.abs(np.corrcoef(wave, traces[known].T)[0, 1:])
    rank = spearmanr(found.score("heading"), resultant, nan_policy="omit").statistic
    count, alone = counted_in(found.significance, "heading")
    return (
        f"{count} ROIs found beside the unobserved state, and {alone} without it (the state is "
        "probably the bump itself, which was not tested separately); score ~ cosine tuning: rank "
        f"{rank:.2f}"
    )


def of_gratings(recording: Recording, found: Attribution) -> str:
    """Cells whose tuning is the same in both halves of the trials."""
    trials, used = recording.trials, np.asarray(recording.accepted)
    assert trials is not None
    directions = trials.columns["degrees"]
    _, r = split_half_tuning(recording, trials.first, trials.stop, directions)
    ours, reliable = q_of(found, "direction") <= LEVEL, (r > 0.5) & used
    rank = spearmanr(found.score("direction")[used], r[used]).statistic
    return (
        f"{int((ours & reliable).sum())} of the {int(reliable.sum())} cells with split-half "
        f"r > 0.5 found, {int(ours.sum())} in all; score ~ split-half r: rank {rank:.2f}"
    )


def of_worm(recording: Recording, found: Attribution) -> str:
    """Nothing is known of single cells here; correlation is what a colleague would look at."""
    told = []
    for factor in ("velocity", "head"):
        values = recording.behavior[{"head": "head_angle"}.get(factor, factor)].values[:, 0]
        r = np.abs(np.corrcoef(values, np.asarray(recording.traces).T)[0, 1:])
        told.append(f"{factor} ~ |r| {spearmanr(found.score(factor), r).statistic:.2f}")
    return f"score, rank: {', '.join(told)}"


def of_arena(recording: Recording, found: Attribution) -> str:
    """The authors find no place cell."""
    q = q_of(found, "place")
    if np.isnan(q).all():
        return "place could not be tested; the authors find no place cell"
    return f"{int((q <= LEVEL).sum())} of {len(q)} cells found; the authors find none"


CASES = {
    "CA1": Case(
        "ca1-running-events/raw",
        "run spike_train.mat --rate 20 --behavior stimulus_trace.mat "
        "--kind stimulus_trace=continuous --factor position=stimulus_trace",
        of_ca1,
        "89 of 146 active cells significant; naive Bayes R² 0.59",
    ),
    "fly": Case(
        "fly-heading",
        "run fly.npz --factor heading=heading",
        of_fly,
        "the bump follows the heading; all 32 ROIs tuned",
        "how-to/lab-files.md",
    ),
    "gratings": Case(
        "v1-gratings-suite2p/raw",
        "run . --rate 30 --trials 989-2023-08-21-134153.txt --factor direction=degrees",
        of_gratings,
        "14 of 20 cells with reliable tuning",
    ),
    "worm": Case(
        "worm-whole-brain/raw",
        "run 2022-05-02-01-data.h5 --array gcamp/trace_array --rate 1.67 "
        "--factor velocity=velocity --factor head=head_angle --factor pumping=pumping",
        of_worm,
        "ridge, blocked: velocity R² 0.66, head 0.55, pumping 0.56",
    ),
    "arena": Case(
        "minian-arena",
        "run neural_data --trigger neural_timestamp.csv --mend-times "
        "--behavior behavior_position.csv --behavior-times behavior_timestamp.csv "
        "--factor place=LED",
        of_arena,
        "no unit with p < 0.1",
    ),
}


def main() -> None:
    """Run the recordings, and print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(CASES)}; all if none is given")
    parser.add_argument("--out", type=Path, help="folder to keep the results in")
    given = typed(parser)
    if not PLACE.is_dir():
        sys.exit(f"The recordings are not at hand: {PLACE} is not there.")
    print(header("From raw files"))
    with tempfile.TemporaryDirectory() as folder:
        out = (given.out or Path(folder)).absolute()
        for name in given.names or CASES:
            measure(name, CASES[name], out / name)


def measure(name: str, case: Case, out: Path) -> None:
    """Run one recording, and print what came of it."""
    print(f"### {name}\n\n    napari-xcebra {case.command} --out {name}\n", flush=True)
    began = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    where = PLACE / case.folder
    if case.page:
        where = run_page(case.page, PLACE / case.folder, out)
    command = [*PROGRAM, *shlex.split(case.command), "--out", str(out), "--quiet"]
    done = subprocess.run(command, cwd=where, capture_output=True, text=True)
    if done.returncode:
        print(f"Not done: {done.stderr.strip()}\n", flush=True)
        return
    seconds = time.perf_counter() - began
    trained, found = Fit.load(out / "fit"), Attribution.load(out / "attribution.npz")
    os.chdir(where)
    recording = Opening.load(out).open()
    rows = [rows_of("as recorded", trained, found.significance)]
    rows += [control(recording, trained, kind) for kind in ("reversed", "shifted")]
    table = pd.concat([pd.DataFrame(each) for each in rows])
    print(table.to_markdown(index=False, disable_numparse=True))
    print(f"\nKnown: {case.known}. Here: {case.agreement(recording, found)}. {seconds:.0f} s.\n",
          flush=True)  # fmt: skip


def run_page(page: str, files: Path, out: Path) -> Path:
    """Run the Python block of a how-to beside the files, and give the folder that it wrote to."""
    code = re.search(r"^```py\n(.*?)^```", (DOCS / page).read_text("utf-8"), re.DOTALL | re.M)
    assert code is not None
    link = out / files.name
    link.unlink(missing_ok=True)
    link.symlink_to(files)
    subprocess.run([sys.executable, "-c", code[1]], cwd=out, check=True)
    return out


def rows_of(labels: str, trained: Fit, test: Significance | None) -> list[dict[str, str]]:
    """A row a factor: verdict, decoding beside a ridge regression, and cells found."""
    rows = []
    for factor, about in trained.goodness.items():
        if factor == "time":
            continue
        discrete = np.isfinite(about.accuracy)
        own, ridge = (
            (about.accuracy, about.ridge_accuracy) if discrete else (about.r2, about.ridge_r2)
        )
        count, alone = counted_in(test, factor)
        rows.append(
            {
                "labels": labels,
                "factor": factor,
                "verdict": about.strength,
                "decoded": f"{'accuracy' if discrete else 'R²'} {own:.2f}",
                "ridge": f"{ridge:.2f}",
                "p": "–" if np.isnan(about.p) else f"{about.p:.1g}",
                "cells, q ≤ 0.1": count,
                "without the state": alone,
            }
        )
    return rows


def control(recording: Recording, trained: Fit, kind: str) -> list[dict[str, str]]:
    """The same with labels that are not those of the frames; those of trials change trials."""
    changed = with_labels(recording, kind)
    factors = {p.name: list(p.variables) for p in trained.parts if p.name != "time"}
    again = fit(changed, factors, trained.settings)
    try:
        return rows_of(kind, again, significance(again, changed))
    except InputError:  # too little to test with
        return rows_of(kind, again, None)


def with_labels(recording: Recording, kind: str) -> Recording:
    """The recording with its labels reversed, or shifted by a third."""

    def change(values: np.ndarray) -> np.ndarray:
        return values[::-1].copy() if kind == "reversed" else np.roll(values, len(values) // 3, 0)

    trials = recording.trials
    if trials is None:
        behavior = {n: replace(v, values=change(v.values)) for n, v in recording.behavior.items()}
        return replace(recording, behavior=behavior)
    trials = replace(trials, columns={n: change(v) for n, v in trials.columns.items()})
    number, behavior = trials.number(recording.n_frames), dict(recording.behavior)
    for name, values in trials.columns.items():
        on_frames = np.where(number >= 0, values[number], np.nan)[:, None]
        behavior[name] = replace(behavior[name], values=on_frames)
    return replace(recording, trials=trials, behavior=behavior)


if __name__ == "__main__":
    main()
