"""What was found, and how far to believe it: summary, verdicts, λ and learning, controls."""

from __future__ import annotations

import re

import numpy as np

from napari_xcebra.attribution.method_notes import title_of_method
from napari_xcebra.figures import learning_curves
from napari_xcebra.learn import Goodness
from napari_xcebra.report.document import Block, Column, Entry, Paragraph, Section, Table
from napari_xcebra.report.drawing import picture
from napari_xcebra.report.evidence_figures import Q, goodness_beside_chance
from napari_xcebra.report.material import Material
from napari_xcebra.report.wording import NOTHING, counted, listed, number, two
from napari_xcebra.verdicts import TONES, decoded_of, decoding_of, nats_of, share_of


def summary(run: Material) -> tuple[Block, ...]:
    """What to know if nothing else is read: a sentence or two a factor, and what to beware of."""
    blocks: list[Block] = []
    for factor, goodness in run.fit.goodness.items():
        words = " ".join(filter(None, [goodness.verdict, cells_in_words(run, factor)]))
        words = words.replace("p = ", "p\u00a0=\u00a0")
        words = re.sub(r"(?<=[ (])-(?=\d)", "−", words)
        blocks.append(Paragraph(words, TONES[goodness.strength]))
    return (*blocks, *(Paragraph(note, "warning") for note in warnings_of(run)))


def cells_in_words(run: Material, factor: str) -> str:
    """How many cells carry a factor; nothing where no map means anything."""
    first = run.first
    if first is None or factor not in first.factors or first.at_chance(factor):
        return ""
    used = np.isfinite(first.score(factor))
    which = "which of them beat chance was not tested"
    if first.significance is not None:
        q = first.significance.q(factor)
        if np.isfinite(q).any():
            found = int((q <= Q).sum())
            carry = "carries" if found == 1 else "carry"
            return f"{found:,} of {counted(int(used.sum()), 'cell')} {carry} it at q ≤ {Q:g}."
        which = "single cells could not be tested"
    above = int(first.selected(factor).sum())
    return f"{above:,} of {counted(int(used.sum()), 'cell')} score above the mean; {which}."


def warnings_of(run: Material) -> list[str]:
    """What a reader should beware of, a sentence each."""
    notes = list(run.fit.notes)
    if not run.fit.complete and not any("Stopped" in note for note in notes):
        notes.insert(0, f"Stopped after {run.fit.steps} of {run.fit.settings.steps} steps.")
    return [*dict.fromkeys(notes), *run.missing]


def verdicts(run: Material) -> Section:
    """Goodness of every factor beside chance."""
    goodness = run.fit.goodness
    columns = (
        Column("factor", numeric=False),
        Column("verdict", numeric=False),
        Column("goodness", "Nats above chance on held-out frames, ± standard error over blocks of "
               "time: how much better the embedding tells which frames belong together than one "
               "that knows nothing."),
        Column("of possible", "Goodness as a share of what the variable itself, in place of the "
               "embedding, would reach."),
        Column("by chance", "Goodness that labels shifted in time reach, 5 to 95 %."),
        Column("p", "Of two tests against labels shifted in time, how well they are decoded and "
               "how closely the strongest cell follows them: twice the smaller p."),
        Column("decoded", "On held-out blocks of time by a ridge regression from the factor's "
               "latents, around the frame where that helps: R², or the share of right values "
               "(accuracy) of a discrete factor."),
        Column("ridge", "The same from the cells themselves, without an encoder: the yardstick."),
        Column("training", "Goodness on the frames trained on; far above means overfitting."),
        Column("samples", "Independent samples of the variable in the recording."),
    )  # fmt: skip
    rows = tuple(_verdict_row(one) for one in goodness.values())
    shown = picture(
        lambda: goodness_beside_chance(goodness),
        "Goodness of fit of each factor with its standard error, beside the range that labels "
        "shifted in time reach: " + "; ".join(_spoken(one) for one in goodness.values()) + ".",
        "Blue: in the cells. Grey: at chance. Diamonds: too slow to be tested. p decides, and it "
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
    untested = "not tested" if one.too_slow else NOTHING
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
        number(one.training, ".2f"),
        number(one.samples, ".0f"),
    )


def _spoken(one: Goodness) -> str:
    return f"{one.factor} {nats_of(one)} nats, {one.strength}"


def _minus(text: str) -> str:
    return text.replace("-", "−")


def learning(run: Material) -> Section:
    """λ and why it is what it is, and the curves."""
    fit = run.fit
    given = f"λ = {fit.settings.lambda_} was given." if fit.settings.lambda_ != "auto" else ""
    several = len({part.lambda_ for part in fit.parts if not np.isnan(part.lambda_)}) > 1
    largest = ", the largest of the parts" if several else ""
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
    return Section("How learning went", tuple(blocks))


def controls(run: Material) -> Section:
    """What was checked beyond the verdict, what came of it, and what was not."""
    columns = (
        Column("control", numeric=False),
        Column("question", numeric=False),
        Column("outcome", numeric=False),
    )
    rows = (_shifted(run), _ridge(run), _significance(run), _stability(run), _methods(run),
            _single_cells(run))  # fmt: skip
    return Section("Controls", (Table("What was checked, and what was not", columns, rows),))


def _row(control: str, question: str, outcome: str, *, done: bool) -> tuple[Entry, ...]:
    return Entry(control), Entry(question), Entry(outcome, tone="plain" if done else "warning")


def _shifted(run: Material) -> tuple[Entry, ...]:
    tested = {n: g for n, g in run.fit.goodness.items() if np.isfinite(g.p)}
    outcomes = [f"{name}: p = {one.p:.2g}" for name, one in tested.items()]
    outcomes += [f"{n}: too slow to be tested" for n, g in run.fit.goodness.items() if g.too_slow]
    outcome = "; ".join(outcomes)
    return _row("shifted labels", "Could a variable that has nothing to do with the cells reach as "
                "much?", outcome or "not tested", done=bool(tested))  # fmt: skip


def _ridge(run: Material) -> tuple[Entry, ...]:
    told = {n: g.decoding for n, g in run.fit.goodness.items() if np.isfinite(g.ridge_r2)}
    outcome = "; ".join(f"{name}: {decoding}" for name, decoding in told.items())
    return _row("ridge regression", "Does the simplest decoder, from the cells themselves, tell as "
                "much?", _minus(outcome) or "not computed", done=bool(told))  # fmt: skip


def _significance(run: Material) -> tuple[Entry, ...]:
    test = next((a.significance for a in run.attributions.values() if a.significance), None)
    counts = []
    for factor in test.factors if test is not None else ():
        q = test.q(factor) if test is not None else np.zeros(0)
        if np.isfinite(q).any():
            counts.append(f"{factor}: {int((q <= Q).sum()):,} of {int(np.isfinite(q).sum()):,}")
    outcome = f"cells with q ≤ {Q:g}: {'; '.join(counts)}" if counts else ""
    return _row("significance of cells", "Which cells carry more than they would of other "
                "labels, shifted in time or in another order?",
                outcome or "not tested: Test in the Attribution dock, or --significance",
                done=bool(counts))  # fmt: skip


def _stability(run: Material) -> tuple[Entry, ...]:
    stable = [
        f"{factor}: {int(rows['stable'].sum()):,} of {int(rows['score'].notna().sum()):,}"
        for factor, rows in run.stability.items()
        if "stable" in rows and "score" in rows
    ]
    outcome = f"cells that all seeds agree on: {'; '.join(stable)}" if stable else ""
    return _row("other seeds", "Which scores stay when training is repeated?",
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
    return _row("single-cell statistics", "Do the measures that labs use agree?",
                f"{outcome}: in the tables of cells" if outcome else
                "not computed: press Statistics (Attribution), or compare",
                done=bool(outcome))  # fmt: skip
