"""Writes docs/paper.md from the results that are kept: ours, theirs, the difference, and why."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from report import bootstrapped, row

from published.fits import GRADIENT, INVERTED, MAPS, PUBLISHED
from published.identifiability import CASES
from published.results import Results, settings_digest
from published.theirs import ANOVA, AUROC, COLUMNS, TRAININGS, TUKEY

DOCS = Path(__file__).parents[2] / "docs"
PRESET_NAMES = {"paper": "`FitSettings.paper()`", "default": "the defaults"}
ENOUGH = 1.0
"""Points of auROC from which on a difference is explained."""
Lines = list[dict[str, Any]]

HEAD = """\
# The papers, measured again

Every table and figure of xCEBRA (Schneider et al., AISTATS 2025), and the tables on identifiability of Zimmermann et al. (2021), with the code of today. This page is written by
`benchmarks/paper.py` from results that it keeps one by one in `benchmarks/published/results/`. `make paper` goes on where it stopped, also after a kill.

**This is work in progress, and each table says from how many fits its numbers are.** All were computed on one thread of a busy two-core machine.

- *Ours, as published* is `FitSettings.paper()`: 2,000 steps of 512 frames with λ 0.1, where the paper has 20,000 steps of 5,000.
- *Ours, defaults* is what you get without choosing anything: at most 400 steps, noise-resistant training, and λ found by itself ("regularised") or 0 ("none").
- The three last maps are not in the paper. They score a cell as a whole, the others each latent of a cell, as there.
- auROC is in %. In brackets: the paper's mean, then ours minus theirs.
"""

OUT_OF_SCOPE = """\
## What is not here, and why

- **3DIdent and KITTI masks** (Zimmermann et al., Tables 3 to 5): images. This program reads traces of cells.
- **pi-VAE and other encoders** (CEBRA, 2023): other systems, which nothing here is built on.
- **Adapting classifiers at test time** (dissertation, part 2): no neural recordings.
- **Rats with grid cells** (Gardner et al. 2022, Fig. 7): the data are not part of this project. `benchmarks/paper.py --only grid --grid-cells RECORDING` runs the same analysis on any recording with a variable `position`;
  it was never run on theirs. Simulated grid cells stand in above.
- **Tables 3 to 5 of the paper** are printed as pictures in the copy at hand, from which a single value can be read. They are compared with what the text says of them.
"""


def write(results: Results, docs: Path = DOCS) -> None:
    """The page, and its picture."""
    docs.mkdir(parents=True, exist_ok=True)
    (docs / "paper.md").write_text(page(results), "utf-8")
    lines = [each for each in results.of("arena") if "drawn" in each["result"]]
    if lines:
        draw_animal(max(lines, key=lambda each: each["preset"] == "default"), docs / "images")


def page(results: Results) -> str:
    """The page as markdown."""
    lines = {t: results.of(t) for t in ("box", "arena", "grid", "dimension", "identifiability")}
    parts = [HEAD, provenance(lines)]
    parts += [
        table_of_maps(
            "Table 1: the map of an observed factor", of(lines["box"], observed="z2"), "z2"
        ),
        table_of_maps("Table 2: the map of a hidden factor", of(lines["box"], observed="z1"), "z1"),
        anova(of(lines["box"], observed="z2", preset="paper")),
        by_latents(of(lines["box"], observed="z2")),
        recovery(lines["box"]),
        table_of_maps("Table 3: the navigating animal", of(lines["arena"], noise=0.0), None),
        animal(lines["arena"]),
        costs(of(lines["arena"], noise=0.0)),
        dimensions(lines["dimension"]),
        grid_cells(lines["grid"]),
        noise(of(lines["arena"], mode="hybrid", regularised=True)),
        identifiability(lines["identifiability"]),
        OUT_OF_SCOPE,
    ]
    return "\n".join(part.rstrip() + "\n" for part in parts if part)


def of(lines: Lines, **key: Any) -> Lines:
    """Those of which all of this is so."""
    return [each for each in lines if all(each.get(name) == value for name, value in key.items())]


def values(lines: Lines, *names: str) -> list[float]:
    """A value of each result, in which it is."""
    found = []
    for each in lines:
        value = each["result"]
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        if value is not None:
            found.append(float(value))
    return found


def markdown(titles: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """A table."""
    return "\n".join([row(*titles), row(*["---"] * len(titles)), *(row(*r) for r in rows)]) + "\n"


def percent(scores: list[float], theirs: float | None = None) -> str:
    """Mean, interval over fits if there are several, the paper's and the difference."""
    if not scores:
        return "–" if theirs is None else f"– ({theirs:.1f})"
    mean, low, high = (100 * value for value in bootstrapped(scores))
    spread = f" [{low:.1f}, {high:.1f}]" if len(scores) > 1 else ""
    beside = "" if theirs is None else f" ({theirs:.1f}, {signed(mean - theirs)})"
    return f"{mean:.1f}{spread}{beside}"


def signed(difference: float) -> str:
    return f"{difference:+.1f}".replace("-", "−")


def provenance(lines: dict[str, Lines]) -> str:
    """How many results there are, from when, and whether settings were others then."""
    rows = []
    for name, measured in lines.items():
        if measured:
            hours = sum(each["seconds"] for each in measured) / 3600
            commits = ", ".join(sorted({each["commit"] for each in measured}))
            old = [e for e in measured if e["settings"] != settings_digest(e["key"].get("preset"))]
            note = f"{len(old)} with settings that are others today" if old else "those of today"
            dates = sorted({each["date"] for each in measured})
            rows.append((name, len(measured), f"{hours:.1f}", dates[-1], commits, note))
    titles = ("results", "fits", "hours of one core", "last", "commits", "settings")
    return "## What there is\n\n" + markdown(titles, rows) if rows else ""


def counted(lines: Lines) -> str:
    """From how many datasets, by number of latents."""
    if lines and "d" in lines[0]["key"]:
        sets = Counter(d for d, _ in {(each["d"], each["dataset"]) for each in lines})
        each = ", ".join(f"d = {d}: {n}" for d, n in sorted(sets.items()))
        return f"Datasets measured, of 10 for each number of latents: {each}."
    starts = len({each["seed"] for each in lines})
    return f"{starts} of 10 starts of the training, on one recording."


def table_of_maps(title: str, lines: Lines, observed: str | None) -> str:
    """Maps by training and regularisation, with both presets."""
    if not lines:
        return f"## {title}\n\nNot measured yet.\n"
    columns = COLUMNS[observed or "z2"]
    names = [f"{TRAININGS[m]}, {'regularised' if r else 'none'}" for m, r in columns]
    text = f"## {title}\n\n{counted(lines)}\n"
    for preset in PRESET_NAMES:
        own = of(lines, preset=preset)
        if not own:
            text += f"\nWith {PRESET_NAMES[preset]}: not measured yet.\n"
            continue
        rows = []
        for method, name in MAPS.items():
            theirs = AUROC[observed].get(method) if observed else None
            rows.append([name])
            for number, (mode, regularised) in enumerate(columns):
                scores = values(of(own, mode=mode, regularised=regularised), "auroc", method)
                rows[-1].append(percent(scores, theirs and theirs[number]))
        r2 = [values(of(own, mode=m, regularised=r), "r2") for m, r in columns]
        rows.append(
            ["held-out R² of what is observed", *(f"{np.mean(v):.3f}" if v else "–" for v in r2)]
        )
        text += f"\nWith {PRESET_NAMES[preset]}:\n\n{markdown(['map', *names], rows)}"
    return text + (differences(lines, observed) if observed else OF_TABLE_3)


OF_TABLE_3 = """
The paper says that several combinations reach 100 %, and the one value that can be read is 99.9. Position is the factor; place and grid cells carry it.
"""


def differences(lines: Lines, observed: str) -> str:
    """A sentence for what differs, as published."""
    text = ""
    own, columns = of(lines, preset="paper"), COLUMNS[observed]
    apart: dict[str, list[str]] = defaultdict(list)
    for method, theirs in AUROC[observed].items():
        for (mode, regularised), value in zip(columns, theirs, strict=True):
            scores = values(of(own, mode=mode, regularised=regularised), "auroc", method)
            if scores and abs(100 * np.mean(scores) - value) > ENOUGH:
                away = signed(100 * float(np.mean(scores)) - value)
                column = f"{TRAININGS[mode]}, {'regularised' if regularised else 'none'}"
                apart[_reason(method, mode, regularised, own)].append(
                    f"{MAPS[method]} ({column}) {away}"
                )
    cells = sum(map(len, apart.values()))
    measured = sum(bool(values(of(own, mode=m, regularised=r), "r2")) for m, r in columns)
    if measured:
        total = len(AUROC[observed]) * measured
        text += f"\n{total - cells} of {total} cells are within {ENOUGH:g} point of the paper's. Where they differ:\n\n"
    for reason, cells_there in apart.items():
        text += f"- {'; '.join(cells_there)}. {reason}\n"
    return text + wins(lines, columns)


def _reason(method: str, mode: str, regularised: bool, own: Lines) -> str:
    """What is known of a difference."""
    fits = of(own, mode=mode, regularised=regularised)
    if regularised and method in (GRADIENT, INVERTED):
        best = 100 * np.mean(values(fits, "optimum", method))
        return (
            f"At the exact optimum of Eq. 10 on these mixing functions the value is {best:.1f}: it is a "
            "property of g, which the paper does not give in such detail that it could be drawn again."
        )
    few = "Datasets and steps are fewer than theirs; what remains after that is not explained."
    return few if regularised else "Without the penalty nothing fixes the value. " + few


def wins(lines: Lines, columns: Sequence[tuple[str, bool]]) -> str:
    """How the map from the encoder compares with the paper's on the same fits."""
    text = "\n"
    for preset, (mode, regularised) in product(
        PRESET_NAMES, [c for c in columns if c[0] == "hybrid"]
    ):
        own = of(lines, preset=preset, mode=mode, regularised=regularised)
        scores = [
            (e["result"]["auroc"].get("generative-gradient"), e["result"]["auroc"].get(INVERTED))
            for e in own
        ]
        both = np.array([pair for pair in scores if None not in pair])
        if len(both):
            better, equal = (both[:, 0] > both[:, 1]).sum(), (both[:, 0] == both[:, 1]).sum()
            text += (
                f"- The generative gradient beside J⁺, hybrid, {'regularised' if regularised else 'none'}, {PRESET_NAMES[preset]}: "
                f"{100 * both[:, 0].mean():.1f} and {100 * both[:, 1].mean():.1f}; better in {better}, equal in {equal} of {len(both)} fits.\n"
            )
    return text


def anova(lines: Lines) -> str:
    """As in the workshop version: ordinary least squares, then Tukey's honest significant difference."""
    title = "## ANOVA and Tukey's test\n\n"
    sets = Counter((each["d"], each["dataset"]) for each in lines)
    whole = [key for key, fits in sets.items() if fits == len(COLUMNS["z2"])]
    if len(whole) < 2:
        return (
            title
            + f"Needs two complete datasets of Table 1 as published; there {'is' if len(whole) == 1 else 'are'} {len(whole)}.\n"
        )
    import pandas as pd
    import statsmodels.api as sm
    import statsmodels.formula.api as smf
    from statsmodels.stats.multicomp import pairwise_tukeyhsd

    frame = pd.DataFrame(
        {"score": 100 * each["result"]["auroc"][method], "map": method, "d": each["d"]}
        | {"training": each["mode"], "regularised": each["regularised"]}
        for each in lines
        if (each["d"], each["dataset"]) in whole
        for method in PUBLISHED
    )
    several = len({d for d, _ in whole}) > 1
    model = smf.ols(
        f"score ~ C(map) * C(training) * C(regularised){' + C(d)' if several else ''}", frame
    ).fit()
    table = sm.stats.anova_lm(model, typ=2)
    rows = []
    for term, (_, _, theirs) in ANOVA.items():
        if term in table.index:
            found = table.loc[term]
            rows.append(
                (
                    term.replace("C(", "").replace(")", "").replace(":", " × "),
                    int(found["df"]),
                    f"{found['F']:.2f}",
                    f"{found['PR(>F)']:.2g}",
                    theirs,
                )
            )
    text = title + (
        f"{len(whole)} complete datasets (paper: 60), as published. Datasets are too few for the interactions with d, which the paper includes and finds without effect but for the "
        f"penalty's: here d is a main effect. F of the whole model {model.fvalue:.1f} (paper: 17.0).\n\n"
    )
    text += markdown(("term", "df", "F", "p", "F of the paper"), rows)
    for factor, reference in (("training", "hybrid"), ("regularised", True)):
        names = frame["map"] + ":" + frame[factor].astype(str)
        tested = pairwise_tukeyhsd(frame["score"], names)
        table_of = pd.DataFrame(tested.summary().data[1:], columns=tested.summary().data[0])
        rows = []
        for (method, level), theirs in TUKEY[factor].items():
            pair = {f"{INVERTED}:{reference}", f"{method}:{level}"}
            found = table_of[
                [{a, b} == pair for a, b in zip(table_of.group1, table_of.group2, strict=True)]
            ].iloc[0]
            sign = 1 if found.group2 == f"{INVERTED}:{reference}" else -1
            level_name = TRAININGS.get(level, "regularised" if level else "none")
            rows.append(
                (
                    f"{MAPS[method]}, {level_name}",
                    f"{sign * found.meandiff:.1f}",
                    f"{found['p-adj']:.2g}",
                    f"{theirs:.1f}",
                )
            )
        text += f"\nPoints by which J⁺ of the {'hybrid' if factor == 'training' else 'regularised'} fits is better (paper: all with p < 0.01):\n\n"
        text += markdown(("than", "points", "p", "points in the paper"), rows)
    return text


def by_latents(lines: Lines) -> str:
    """Fig. 3."""
    latents = sorted({each["d"] for each in lines})
    if not latents:
        return ""
    drawn = [
        ("hybrid", True, INVERTED),
        ("hybrid", True, "generative-gradient"),
        ("hybrid", True, "both-routes"),
    ]
    drawn += [
        ("supervised", r, m)
        for r, m in product(
            (True, False),
            (GRADIENT, "feature-ablation", "integrated-gradients", "shapley-shuffled"),
        )
    ]
    text = "## Fig. 3: Table 1 by number of latents\n\nThe paper shows curves without numbers: its own stays near 100 while the supervised ones fall.\n"
    for preset in PRESET_NAMES:
        if not of(lines, preset=preset):
            continue
        rows = []
        for mode, regularised, method in drawn:
            own = of(lines, preset=preset, mode=mode, regularised=regularised)
            by_d = [values(of(own, d=d), "auroc", method) for d in latents]
            training = f"{TRAININGS[mode]}, {'regularised' if regularised else 'none'}"
            rows.append(
                (MAPS[method], training, *(f"{100 * np.mean(v):.1f}" if v else "–" for v in by_d))
            )
        text += f"\nWith {PRESET_NAMES[preset]}:\n\n{markdown(('map', 'training', *(f'd = {d}' for d in latents)), rows)}"
    return text


def recovery(lines: Lines) -> str:
    """Fig. 8."""
    hybrid = [each for each in lines if "recovered" in each["result"]]
    latents = sorted({each["d"] for each in hybrid})
    if not latents:
        return ""
    rows = []
    for preset, observed, regularised in product(PRESET_NAMES, ("z2", "z1"), (True, False)):
        own = of(hybrid, preset=preset, observed=observed, regularised=regularised)
        for name in ("z1", "z2") if own else ():
            by_d = [values(of(own, d=d), "recovered", name) for d in latents]
            kind = "observed" if name == observed else "hidden"
            training = f"{PRESET_NAMES[preset]}, {'regularised' if regularised else 'none'}"
            rows.append(
                (training, f"{name} ({kind})", *(f"{np.mean(v):.3f}" if v else "–" for v in by_d))
            )
    text = "## Fig. 8: latents recovered, after a linear map\n\nR² along a path of 5,000 frames that was never seen, hybrid fits. The paper shows one fit, without a number.\n\n"
    return text + markdown(("training", "latents", *(f"d = {d}" for d in latents)), rows)


def animal(lines: Lines) -> str:
    """Fig. 4b to e."""
    watched = [each for each in lines if "z" in each["result"]]
    if not watched:
        return ""
    rows = []
    for preset, regularised in product(PRESET_NAMES, (True, False)):
        own = of(watched, preset=preset, regularised=regularised)
        if own:
            means = {
                k: np.mean([np.nanmean(e["result"]["z"][k]) for e in own])
                for k in own[0]["result"]["z"]
            }
            name = f"{PRESET_NAMES[preset]}, {'regularised' if regularised else 'none'}"
            rows.append((name, *(f"{m:.2f}".replace("-", "−") for m in means.values())))
    kinds = list(watched[0]["result"]["z"])
    text = "## Fig. 4: scores of the kinds of cells\n\nMean z of J⁺ for position by kind (Fig. 4d); place and grid cells should be above 0, the others below.\n\n"
    text += markdown(("training", *kinds), rows)
    if any("drawn" in each["result"] for each in watched):
        words = "Embedding coloured by position, score over time, z by kind of cell, and auROC over training"
        text += f"\n![{words}](images/paper-animal.png)\n\nAs Fig. 4b to e: {words[0].lower() + words[1:]}.\n"
    return text


def draw_animal(line: dict[str, Any], folder: Path) -> None:
    """Fig. 4b to e of one fit."""
    from matplotlib.figure import Figure

    result = line["result"]
    figure = Figure(figsize=(11, 3), layout="constrained")
    embedding, over_time, kinds, course = figure.subplots(1, 4)
    x, position = np.array(result["drawn"]["embedding"]), np.array(result["drawn"]["position"])
    embedding.scatter(*x.T, c=position[:, 0], s=4)
    embedding.set(title="embedding (colour: x)", xlabel="latent 1", ylabel="latent 2")
    scores = np.array(result["drawn"]["over_time"], float).T
    over_time.imshow(scores, aspect="auto", interpolation="nearest")
    over_time.set(
        title="score of position", xlabel="frame", ylabel="cell: place, grid, direction, speed"
    )
    over_time.set_yticks(np.arange(0, len(scores) + 1, len(scores) / 4) - 0.5, ["", "", "", "", ""])
    for number, (kind, z) in enumerate(result["z"].items()):
        spread = np.random.default_rng(0).uniform(-0.3, 0.3, len(z))
        kinds.scatter(number + spread, z, s=3, label=kind)
    kinds.set_xticks(range(len(result["z"])), list(result["z"]))
    kinds.axhline(0, color="grey", lw=0.8)
    kinds.set(title="score, z")
    for method, name in ((INVERTED, "J⁺"), (GRADIENT, "|J|")):
        course.plot(result["course"]["step"], 100 * np.array(result["course"][method]), label=name)
    course.set(title="auROC over training, %", xlabel="step")
    course.legend(frameon=False)
    folder.mkdir(exist_ok=True)
    figure.savefig(folder / "paper-animal.png", dpi=110, metadata={"Software": None})


def costs(lines: Lines) -> str:
    """Tables 4 and 5."""
    if not lines:
        return ""
    rows = []
    for method, name in MAPS.items():
        seconds = values(lines, "map_seconds", method)
        ratio = np.mean(seconds) / max(np.mean(values(lines, "map_seconds", INVERTED)), 1e-3)
        rows.append((name, f"{np.mean(seconds):.2f}", f"{ratio:.1f}"))
    text = "## Table 4: seconds of a map\n\nOf 1,000 frames of the animal's 400 cells, one core. The paper (A5000) says that J⁺ is faster than integrated gradients and feature ablation, and like Shapley values. *Both routes* comes last, and reuses what the two before it have fitted.\n\n"
    text += markdown(("map", "seconds", "times J⁺"), rows)
    rows = []
    for preset, regularised in product(PRESET_NAMES, (True, False)):
        own = of(lines, preset=preset, regularised=regularised)
        spent = {m: values(of(own, mode=m), "fit_seconds") for m in TRAININGS}
        if all(spent.values()):
            means = {mode: np.mean(v) for mode, v in spent.items()}
            cells = (f"{v:.0f} ({v / means['supervised']:.1f} ×)" for v in means.values())
            rows.append(
                (f"{PRESET_NAMES[preset]}, {'regularised' if regularised else 'none'}", *cells)
            )
    text += "\n## Table 5: seconds of a training\n\nOf one core, with preparing and measuring. The paper: twice the supervised training for supervised contrastive, three times for hybrid.\n\n"
    return text + (
        markdown(("training", *TRAININGS.values()), rows) if rows else "Not measured yet.\n"
    )


def dimensions(lines: Lines) -> str:
    """Fig. 6."""
    title = "## Fig. 6: how many latents\n\n"
    pairs: dict[tuple[str, str], dict[tuple[int, int], list[float]]] = defaultdict(
        lambda: defaultdict(list)
    )
    aurocs: dict[tuple[str, str, int, int], list[float]] = defaultdict(list)
    for each in lines:
        size = each["factor_latents"], each["time_latents"]
        pairs[each["preset"], each["mode"]][size] += each["result"]["consistency"].values()
        aurocs[each["preset"], each["mode"], *size] += values([each], "auroc", INVERTED)
    rows = []
    for (preset, mode), sizes in sorted(pairs.items()):
        for (of_factor, of_time), r2 in sorted(sizes.items()):
            if r2:
                shown = {"time": of_time, "behavior": of_factor}.get(
                    mode, f"{of_factor} + {of_time}"
                )
                scores = aurocs[preset, mode, of_factor, of_time]
                rows.append(
                    (
                        PRESET_NAMES[preset],
                        mode,
                        shown,
                        len(r2),
                        f"{np.mean(r2):.3f}",
                        percent(scores),
                    )
                )
    if not rows:
        return title + "Not measured yet: it takes two starts of each.\n"
    text = title + (
        "Three hidden and three observed latents. R² between the embeddings of two starts after an affine map, and auROC of J⁺. The paper: time alone rises from 80–85 % with two latents to almost 100 % "
        "with five and six; with the variable alone it falls after three; hybrid fits agree best with 3 + 2, 2 + 3 and 2 + 2.\n\n"
    )
    return text + markdown(
        ("settings", "training", "latents", "pairs", "consistency R²", "auROC of J⁺"), rows
    )


def grid_cells(lines: Lines) -> str:
    """Fig. 7."""
    title = "## Fig. 7: grid cells beside shuffled ones\n\n"
    if not lines:
        return title + "Not measured yet.\n"
    rows = []
    for source, preset, mode in product(
        sorted({e["source"] for e in lines}), PRESET_NAMES, ("hybrid", "supervised")
    ):
        own = of(lines, source=source, preset=preset, mode=mode)
        if own:
            shown = source if source == "simulated" else "recorded"
            maps = (percent(values(own, "auroc", method)) for method in MAPS)
            rows.append(
                (
                    shown,
                    PRESET_NAMES[preset],
                    mode,
                    len(own),
                    *maps,
                    percent(values(own, "grid_score_auroc")),
                )
            )
    text = (
        title
        + "64 grid cells that fire at random with their rates, beside the same cells shifted in time: auROC of telling them apart. The paper shows that scores and grid scores separate real from shuffled cells, without a number.\n\n"
    )
    return text + markdown(
        ("cells", "settings", "training", "recordings", *MAPS.values(), "grid score"), rows
    )


def noise(lines: Lines) -> str:
    """Fig. 10."""
    levels = sorted({each["noise"] for each in lines})
    if len(levels) < 2:
        return "## Fig. 10: noise on the cells\n\nNot measured yet.\n"
    rows = []
    for preset, level in product(PRESET_NAMES, levels):
        own = of(lines, preset=preset, noise=level)
        if own:
            r2 = f"{np.mean(values(own, 'r2')):.2f}"
            maps = (percent(values(own, "auroc", method)) for method in MAPS)
            rows.append((PRESET_NAMES[preset], f"{level:g} SD", len(own), *maps, r2))
    text = "## Fig. 10: noise on the cells\n\nHybrid, regularised; noise in standard deviations of each cell. The paper says that results are excellent.\n\n"
    return text + markdown(("settings", "noise", "fits", *MAPS.values(), "R² of position"), rows)


def identifiability(lines: Lines) -> str:
    """Tables 1 and 2 of Zimmermann et al."""
    text = "## Identifiability: Zimmermann et al. 2021, Tables 1 and 2\n\n"
    if not lines:
        return text + "Not measured yet.\n"
    steps = sorted({each["steps"] for each in lines})
    text += (
        f"New pairs at every step, {' or '.join(f'{s:,}' for s in steps)} steps of 512 (paper: 300,000 of 6,144), three layers of 256 units (six of up to 500), a box of learned size. In %; in brackets the paper's, all of ten "
        "latents, then ours minus theirs. *Supervised* is the same encoder trained on the latents: what it reaches with these steps bounds what can be asked for.\n"
    )
    for name, title in (("r2", "up to an affine map, R²"), ("mcc", "up to permutation, MCC")):
        for latents in sorted({each["latents"] for each in lines}, reverse=True):
            rows, apart = _identified(of(lines, latents=latents), name)
            if rows:
                titles = (
                    "space",
                    "p(z)",
                    "p(z̃\\|z)",
                    "model",
                    "q(z̃\\|z)",
                    "fits",
                    "seeds",
                    "x itself",
                    "supervised",
                    "ours",
                )
                text += f"\n**{title}, {latents} latents**\n\n{markdown(titles, rows)}{apart}"
    return text


def _identified(lines: Lines, name: str) -> tuple[list[Sequence[object]], str]:
    rows: list[Sequence[object]] = []
    below = []
    for number, case in enumerate(CASES):
        theirs = getattr(case, name)
        own = of(lines, row=number, training="contrastive")
        if theirs is None or not own:
            continue
        same = [
            n
            for n, c in enumerate(CASES)
            if (c.space, c.marginal, c.model_space) == (case.space, case.marginal, case.model_space)
        ]
        learned = [v for n in same for v in values(of(lines, row=n, training="supervised"), name)]
        mean = float(np.mean(values(own, name)))
        bound = (
            f"{np.mean(learned):.1f} ({case.supervised:.1f})"
            if learned
            else f"– ({case.supervised:.1f})"
        )
        identity = f"{np.mean(values(own, 'identity', name)):.1f}"
        rows.append(
            (
                *case.words,
                len(own),
                identity,
                bound,
                f"{mean:.1f} ({theirs:.1f}, {signed(mean - theirs)})",
            )
        )
        if theirs > 90 and mean < theirs - 2:
            below.append(
                (mean - theirs, (np.mean(learned) - case.supervised) if learned else float("nan"))
            )
    if not below:
        return (
            rows,
            "\nAll that the paper finds identified are within two points of it.\n" if rows else "",
        )
    limited = sum(bool(of_bound < -2) for _, of_bound in below)
    unknown = sum(bool(np.isnan(of_bound)) for _, of_bound in below)
    text = f"\nRows more than two points below the paper: {len(below)}. "
    if limited:
        text += f"In {limited} of them the encoder that is trained on the latents is, too: steps and encoder are too small there. "
    if unknown:
        text += f"In {unknown} the encoder that is trained on the latents was not measured yet: whether steps and encoder are too small is not known. "
    others = len(below) - limited - unknown
    return rows, text + (f"The other {others} are not explained." if others else "") + "\n"
