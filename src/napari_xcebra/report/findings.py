"""Documents where a run came from: recording, settings, versions, the command to reproduce it."""

from __future__ import annotations

import platform
import re
import shlex
from collections.abc import Iterable
from dataclasses import MISSING, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from napari_xcebra.attribution.methods import title_of_method
from napari_xcebra.errors import InputError
from napari_xcebra.learn import Goodness
from napari_xcebra.learn.data.factors import TIME
from napari_xcebra.learn.quality.verdict import (
    NOTHING,
    TONES,
    decoded_of,
    decoding_of,
    encoder_of,
    nats_of,
    share_of,
)
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.recording import Recording
from napari_xcebra.recording.summary import (
    VARIABLE_WORDS,
    duration_of,
    footprints_of,
    further_notes,
    overlap_of,
    planes_of,
    segments_and_events,
    variable_words,
)
from napari_xcebra.report.document import (
    Block,
    Entry,
    Heading,
    Paragraph,
    Reference,
    Section,
    Table,
    TypedCommand,
    number,
)
from napari_xcebra.report.figures.comparisons import lambdas_differ, learning_curves
from napari_xcebra.report.figures.run import Q, goodness_beside_chance, picture
from napari_xcebra.report.material import Material
from napari_xcebra.runs import now
from napari_xcebra.settings import flag_of
from napari_xcebra.support.logs import without_folders
from napari_xcebra.text import counted, listed, two

CITATIONS = (
    Reference(
        "napari-xcebra, this plugin: as its file CITATION.cff says; name the version above.",
        "https://github.com/napari-xcebra/napari-xcebra",
    ),
    Reference(
        "xCEBRA, the method: S. Schneider, R. González Laiz, A. Filippova, M. Frey, M. W. Mathis. "
        "Time-series attribution maps with regularized contrastive learning. AISTATS 2025.",
        "https://arxiv.org/abs/2502.12977",
    ),
    Reference(
        "CEBRA: S. Schneider, J. H. Lee, M. W. Mathis. Learnable latent embeddings for joint "
        "behavioural and neural analysis. Nature 617, 360–368 (2023).",
        "https://doi.org/10.1038/s41586-023-06031-6",
    ),
    Reference(
        "napari: napari contributors. napari: a multi-dimensional image viewer for Python (2019).",
        "https://doi.org/10.5281/zenodo.3555620",
    ),
    Reference(
        "captum, for integrated gradients, feature ablation and Shapley values: N. Kokhlikyan et "
        "al. Captum: a unified and generic model interpretability library for PyTorch (2020).",
        "https://arxiv.org/abs/2009.07896",
    ),
)


def recording_section(run: Material) -> Section:
    """What the recording holds."""
    recording = run.recording
    cells = len(run.fit.inputs.cell_ids)
    if recording is None:
        facts = [("source", run.source), ("cells trained on", f"{cells:,}")]
        return Section("Recording", (facts_table("The recording", facts),))
    accepted = int(np.asarray(recording.accepted).sum())
    facts = [
        ("source", run.source),
        ("format", recording.origin.format),
        ("cells", f"{recording.n_cells:,}, of which {accepted:,} accepted"),
        ("cells trained on", f"{cells:,}"),
        ("frames", f"{recording.n_frames:,} at {recording.rate:g} per second"),
        ("duration", duration_of(recording)),
        *((name.lower(), value) for name, value in segments_and_events(recording)),
        ("excluded frames", f"{int(np.asarray(recording.excluded).sum()):,}"),
        ("planes", str(planes_of(recording) or "")),
        ("footprints", footprints_of(recording)),
        ("traces", recording.origin.traces),
        ("behaviour", overlap_of(recording)),
    ]
    notes = [without_folders(note, *_paths(run)) for note in further_notes(recording)]
    return Section(
        "Recording",
        (
            facts_table("The recording", [(name, value) for name, value in facts if value]),
            *_variables(recording),
            *(Paragraph(note) for note in notes),
        ),
    )


def facts_table(caption: str, facts: Iterable[tuple[str, str]]) -> Table:
    """A table of names and values."""
    rows = tuple((Entry(name), Entry(value)) for name, value in facts)
    columns = (Heading("", numeric=False), Heading("", numeric=False))
    return Table(caption, columns, rows, compact=True)


def _variables(recording: Recording) -> list[Block]:
    if not recording.behavior:
        return []
    columns = tuple(Heading(name, numeric=False) for name in VARIABLE_WORDS)
    rows = tuple(
        tuple(Entry(word) for word in variable_words(name, variable))
        for name, variable in recording.behavior.items()
    )
    return [Table("Behaviour", columns, rows, compact=True)]


def _paths(run: Material) -> list[Path | str]:
    opening = run.opening
    if opening is None:
        return [run.fit.source]
    return [opening.path, *opening.behavior, *([opening.footprints] if opening.footprints else [])]


def settings_section(run: Material) -> Section:
    """All settings of the training, changed ones first."""
    changed = _changed_knobs(run.fit.settings)
    rows = []
    for knob in sorted(fields(FitSettings), key=lambda knob: knob.name not in changed):
        value = getattr(run.fit.settings, knob.name)
        tone = "good" if knob.name in changed else "plain"
        default = "" if knob.name not in changed else _write_value(knob.default)
        help = knob.metadata["help"].replace("`", "")
        rows.append((Entry(flag_of(knob.name)), Entry(_write_value(value), tone=tone),  # type: ignore[arg-type]
                     Entry(default), Entry(help)))  # fmt: skip
    columns = (
        Heading("setting", numeric=False),
        Heading("value", numeric=False),
        Heading("default", "Where the setting was changed.", numeric=False),
        Heading("meaning", numeric=False),
    )
    words = "All settings have their defaults." if not changed else (
        f"{len(changed)} of {len(rows)} settings were changed; they come first.")  # fmt: skip
    return Section(
        "Settings",
        (Paragraph(words), Table("Settings of the training", columns, tuple(rows), compact=True)),
    )


def _changed_knobs(settings: FitSettings) -> list[str]:
    """Names of the settings that differ from their defaults."""
    return [
        knob.name
        for knob in fields(settings)
        if knob.default is not MISSING and getattr(settings, knob.name) != knob.default
    ]


def _write_value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def reproduction_section(run: Material) -> Section:
    """What makes the run again, and the versions it was made with."""
    facts = list(run.fit.versions.items())
    facts += [("seed", str(run.fit.settings.seed)), ("device", run.fit.settings.device)]
    how: tuple[Block, ...] = (
        Paragraph("No file makes this run again: save the run, or train it from files.", "warning"),
    )
    if run.analysis:
        how = (
            Paragraph(
                f"{run.analysis} lists all inputs, cells and settings. Type this in its folder, or "
                "anywhere with its path; inputs that were changed are refused. The same versions "
                "give the same bytes on the same device."
            ),
            TypedCommand(shlex.join(["napari-xcebra", "run", run.analysis, "--out", "again"])),
        )
    return Section("How to reproduce it", (*how, facts_table("Made with", facts)))


_EXTRACTORS = {
    "suite2p": Reference(
        "suite2p, which found the cells: M. Pachitariu, C. Stringer et al. Suite2p: beyond 10,000 "
        "neurons with standard two-photon microscopy. bioRxiv 061507 (2017).",
        "https://doi.org/10.1101/061507",
    ),
    "CaImAn": Reference(
        "CaImAn, which found the cells: A. Giovannucci et al. CaImAn: an open source tool for "
        "scalable calcium imaging data analysis. eLife 8, e38173 (2019).",
        "https://doi.org/10.7554/eLife.38173",
    ),
    "Minian": Reference(
        "Minian, which found the cells: Z. Dong et al. Minian, an open-source miniscope analysis "
        "pipeline. eLife 11, e70661 (2022).",
        "https://doi.org/10.7554/eLife.70661",
    ),
}
"""By a word in the name of the format."""


def citing_section(run: Material | None) -> Section:
    """What to cite: the method, this plugin, and the extractor of the recording."""
    recording = None if run is None else run.recording
    format = "" if recording is None else recording.origin.format
    own = [each for name, each in _EXTRACTORS.items() if name.lower() in format.lower()]
    return Section("How to cite", (*CITATIONS, *own))


def describe_making() -> str:
    """When and by which versions a page is made."""
    try:
        ours = version("napari-xcebra")
    except PackageNotFoundError as error:  # run from a folder that was never installed
        raise InputError("napari-xcebra is not installed.") from error
    return (
        f"Made on {now().replace('T', ' at ')} with napari-xcebra {ours}, Python "
        f"{platform.python_version()}. This page needs no network."
    )


def decoding(run: Material) -> list[Section]:
    """Error of decoders beside chance, if the recording and its variables are there."""
    recording = run.recording
    wanted = {name for part in run.fit.parts if part.name != TIME for name in part.variables}
    if recording is None or not run.fit.weights or not wanted or wanted - set(recording.behavior):
        return []
    from napari_xcebra.learn.quality.decoding import Decoded, embedding_quality

    title = "How well can it be decoded?"
    try:
        found = embedding_quality(run.fit, recording)
    except InputError as error:
        return [Section(title, (Paragraph(str(error), "warning"),))]

    def row(each: Decoded) -> tuple[Entry, ...]:
        share = each.unit == "share wrong"
        form = ".0%" if share else "#.3g"
        unit = f" {each.unit}" if each.unit and not share else ""
        error, chance = (
            Entry(f"{number(v, form).text}{unit}" if np.isfinite(v) else NOTHING, v)
            for v in (each.error, each.chance)
        )
        decoder = f"{each.decoder}, k = {each.neighbours}" if each.neighbours else each.decoder
        words = (Entry(each.factor), Entry(each.variable), Entry(decoder))
        return (*words, error, chance, number(each.p, ".2g"), number(each.r2, ".2f"))

    columns = (
        Heading("factor", numeric=False),
        Heading("variable", numeric=False),
        Heading("decoder", "From the factor's latents: k nearest neighbours, or a linear map.",
               numeric=False),
        Heading("error", "Median absolute error on held-out blocks of time; the share of wrong "
               "values of a discrete variable."),
        Heading("by chance", "The same with the variable shifted in time, the median over shifts."),
        Heading("p", "Share of the shifts, counting the variable itself, with an error as small. "
               "It tests this decoder alone; the verdict also looks at the strongest cell."),
        Heading("R²", "Share of variance explained, frame by frame; the verdict's decoder also "
               "uses neighbouring frames where that helps."),
    )  # fmt: skip
    rows = tuple(row(each) for each in found.decoded)
    return [Section(title, (Table("Decoded on held-out blocks of time", columns, rows),))]


def summary(run: Material) -> tuple[Block, ...]:
    """The main findings: a sentence or two for each factor, and warnings."""
    blocks: list[Block] = []
    for factor, goodness in run.fit.goodness.items():
        words = " ".join(filter(None, [goodness.verdict, cells_in_words(run, factor)]))
        words = words.replace("p = ", "p\u00a0=\u00a0")
        words = re.sub(r"(?<=[ (])-(?=\d)", "−", words)
        blocks.append(Paragraph(words, TONES[goodness.strength]))
    return (*blocks, *(Paragraph(note, "warning") for note in _warnings_of(run)))


def cells_in_words(run: Material, factor: str) -> str:
    """How many cells carry a factor; empty where its map means nothing."""
    first = run.first
    if first is None or factor not in first.factors or first.at_chance(factor):
        return ""
    used = np.isfinite(first.score(factor))
    which = "which of them beat chance was not tested"
    if first.significance is not None:
        q = first.significance.q(factor)
        if np.isfinite(q).any():
            found = int((q <= Q).sum())
            if not found:
                return f"No single cell carries it at q ≤ {Q:g}."
            carry = "carries" if found == 1 else "carry"
            return f"{found:,} of {counted(int(used.sum()), 'cell')} {carry} it at q ≤ {Q:g}."
        which = "single cells could not be tested"
    above = int(first.above(factor).sum())
    return f"{above:,} of {counted(int(used.sum()), 'cell')} score above the mean; {which}."


def _warnings_of(run: Material) -> list[str]:
    """What a reader should beware of, in a sentence each."""
    fit, steps = run.fit, run.fit.settings.steps + run.fit.repeated
    stopped = () if fit.complete else (f"Stopped after {fit.steps} of {steps} steps.",)
    return [*dict.fromkeys((*stopped, *fit.notes)), *run.missing]


def verdicts(run: Material) -> Section:
    """Goodness of every factor beside chance."""
    goodness = run.fit.goodness
    columns = (
        Heading("factor", numeric=False),
        Heading("verdict", numeric=False),
        Heading("goodness", "Nats above chance on held-out frames, ± standard error over blocks of "
               "time: how much better the embedding tells which frames belong together than one "
               "that knows nothing."),
        Heading("of possible", "Goodness as a share of what the variable itself, in place of the "
               "embedding, would reach."),
        Heading("by chance", "Goodness that labels shifted in time reach, 5 to 95 %."),
        Heading("p", "Three times the smallest p of three tests against labels shifted in time: "
               "how well a regression on the cells and the encoder's latents decode the variable, "
               "and how closely the strongest cell follows it."),
        Heading("decoded", "On held-out blocks of time by a ridge regression from the factor's "
               "latents, with neighbouring frames where that helps: R², or the accuracy of a "
               "discrete factor."),
        Heading("ridge", "The same from the cells themselves, without an encoder: the baseline."),
        Heading("encoder", "Share of the trained encoder in its mean with the regression, chosen "
               "on frames set aside.", numeric=False),
        Heading("training", "Goodness on the frames trained on; far above means overfitting."),
        Heading("samples", "Independent samples of the variable in the recording."),
    )  # fmt: skip
    rows = tuple(_verdict_row(one) for one in goodness.values())
    shown = picture(
        lambda: goodness_beside_chance(goodness),
        "Goodness of fit of each factor with its standard error, beside the range that labels "
        "shifted in time reach: "
        + "; ".join(f"{g.factor} {nats_of(g)} nats, {g.strength}" for g in goodness.values())
        + ".",
        "Blue: in the cells. Grey: at chance. Diamonds: not tested. p decides, and it "
        "looks at decoding and at the strongest cell: a variable that few cells carry may be found "
        "although its point lies in the grey bar.",
    )
    return Section(
        "Is the variable in the cells?",
        (
            Table("Verdict on every factor", columns, rows),
            shown,
        ),
    )


def _verdict_row(one: Goodness) -> tuple[Entry, ...]:
    band = f"{two(one.null_low)} to {two(one.null_high)}"
    known = np.isfinite([one.null_low, one.null_high]).all()
    untested = "not tested" if one.not_tested else NOTHING
    (decoded, ridge), (_, own, beside) = decoded_of(one), decoding_of(one)
    return (
        Entry(one.factor),
        Entry(one.strength, tone=TONES[one.strength]),
        Entry(_minus(nats_of(one)), one.goodness),
        Entry(share_of(one), one.share),
        Entry(band if known else untested, one.null_high),
        number(one.p, ".2g"),
        Entry(_minus(decoded), own),
        Entry(_minus(ridge), beside),
        Entry(encoder_of(one)),
        number(one.training, ".2f"),
        number(one.samples, ".0f"),
    )


def _minus(text: str) -> str:
    return text.replace("-", "−")


def learning(run: Material) -> Section:
    """λ, how it was chosen, and the learning curves."""
    fit = run.fit
    given = f"λ = {fit.settings.lambda_} was given." if fit.settings.lambda_ != "auto" else ""
    largest = ", the largest of the parts" if lambdas_differ(fit) else ""
    blocks: list[Block] = [Paragraph(given or fit.lambda_reason or "λ was found during training.")]
    if len(fit.history.get("step", ())) > 1:
        blocks.append(
            picture(
                lambda: learning_curves(fit),
                f"Loss of {listed(fit.factors)}, the Jacobian penalty and λ over {fit.steps} steps",
                "Above: loss of every factor and its chance level; rings are held-out frames. "
                f"Below: the Jacobian penalty, and its weight λ{largest}.",
            )
        )
    return Section("How training went", tuple(blocks))


def controls(run: Material) -> Section:
    """Checks beyond the verdict, their outcome, and checks that were not made."""
    columns = (
        Heading("control", numeric=False),
        Heading("question", numeric=False),
        Heading("outcome", numeric=False),
    )
    rows = (_shifted(run), _ridge(run), _significance(run), _stability(run), _methods(run),
            _single_cells(run))  # fmt: skip
    return Section("Controls", (Table("What was checked, and what was not", columns, rows),))


def _row(control: str, question: str, outcome: str, *, done: bool) -> tuple[Entry, ...]:
    return Entry(control), Entry(question), Entry(outcome, tone="plain" if done else "warning")


def _shifted(run: Material) -> tuple[Entry, ...]:
    tested = {n: g for n, g in run.fit.goodness.items() if np.isfinite(g.p)}
    outcomes = [f"{name}: p = {one.p:.2g}" for name, one in tested.items()]
    outcomes += [f"{n}: not tested" for n, g in run.fit.goodness.items() if g.not_tested]
    outcome = "; ".join(outcomes)
    return _row(
        "shifted labels",
        "Could a variable unrelated to the cells do as well?",
        outcome or "not tested",
        done=bool(tested),
    )


def _ridge(run: Material) -> tuple[Entry, ...]:
    told = {n: g.decoding for n, g in run.fit.goodness.items() if np.isfinite(g.ridge_r2)}
    outcome = "; ".join(f"{name}: {decoding}" for name, decoding in told.items())
    return _row(
        "ridge regression",
        "Does the simplest decoder, on the cells themselves, do as well?",
        _minus(outcome) or "not computed",
        done=bool(told),
    )


def _significance(run: Material) -> tuple[Entry, ...]:
    test = next((a.significance for a in run.attributions.values() if a.significance), None)
    counts = []
    for factor in test.factors if test is not None else ():
        q = test.q(factor) if test is not None else np.zeros(0)
        if np.isfinite(q).any():
            counts.append(f"{factor}: {int((q <= Q).sum()):,} of {int(np.isfinite(q).sum()):,}")
    outcome = f"cells with q ≤ {Q:g}: {'; '.join(counts)}" if counts else ""
    return _row("significance of cells", "Which cells carry more of a factor than of its labels "
                "shifted in time or reordered?",
                outcome or "not tested: Test in the Attribution dock, or --significance",
                done=bool(counts))  # fmt: skip


def _stability(run: Material) -> tuple[Entry, ...]:
    stable = [
        f"{factor}: {int(rows['stable'].sum()):,} of {int(rows['score'].notna().sum()):,}"
        for factor, rows in run.stability.items()
        if "stable" in rows and "score" in rows
    ]
    outcome = f"cells that all seeds agree on: {'; '.join(stable)}" if stable else ""
    return _row("other seeds", "Which scores hold when training is repeated?",
                outcome or "trained once: press Repeat (Attribution), or run --seeds 3",
                done=bool(stable))  # fmt: skip


def _methods(run: Material) -> tuple[Entry, ...]:
    comparison = run.comparison
    agreeing = []
    for factor in comparison.factors if comparison is not None else ():
        names = comparison.methods(factor) if comparison is not None else ()
        if comparison is not None and len(names) > 1 and not comparison.at_chance[factor]:
            rho = comparison.correlations(factor).loc[list(names), list(names)].to_numpy()
            agreeing.append(f"{factor}: {np.nanmedian(rho[np.triu_indices(len(names), 1)]):.2f}")
    outcome = f"median rank correlation between methods: {'; '.join(agreeing)}" if agreeing else ""
    methods = ", ".join(title_of_method(method) for method in run.methods)
    more = "press Methods (Attribution), or compare"
    alone = f"{methods} alone: {more}" if methods else "no scores were computed"
    return _row("other methods", "Do other ways of scoring cells agree?", outcome or alone,
                done=bool(agreeing))  # fmt: skip


def _single_cells(run: Material) -> tuple[Entry, ...]:
    found = run.statistics
    names = dict.fromkeys(n for f in found.factors for n in found.of(f)) if found else {}
    outcome = ", ".join(name.replace("_", " ") for name in names)
    return _row("single-cell statistics", "Do common single-cell measures agree?",
                f"{outcome}: in the tables of cells" if outcome else
                "not computed: press Statistics (Attribution), or compare",
                done=bool(outcome))  # fmt: skip
