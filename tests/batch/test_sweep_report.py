"""The report of a sweep tells what came of every run, what it depends on, and what failed."""

import base64
import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from lxml import html as lxml_html
from scored import METHOD, scored_recording, scored_run

from napari_xcebra.batch import Sweep, SweepFolder
from napari_xcebra.batch.running import MemberResult
from napari_xcebra.batch.sweep_report import report_on
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.recording import Variable
from napari_xcebra.report.run_report import _rendered

FACTORS = {"place": ["x", "y"], "speed": ["v"]}
WHY = "Training diverged <b>at step 3</b>, reading /home/ann/mouse.npz."


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three seeds × two λ × labels as they are and shifted: one failed, one was not run yet."""
    path = tmp_path_factory.mktemp("sweep") / "seeds and λ"
    x, y, v = np.random.default_rng(0).random((3, 200))
    recording = scored_recording(source="/home/ann/mouse.npz").with_behavior(
        Variable("x", x), Variable("y", y), Variable("v", v)
    )
    sweep = Sweep(
        {"mouse": recording},
        FACTORS,
        FitSettings(steps=1),
        grid={"lambda_": ["auto", 1.0], "seed": [0, 1, 2]},
        shifts=[0, 5],
    )
    kept = SweepFolder(path)
    kept.plan(sweep, "napari-xcebra sweep /home/ann/sweep.toml --out out")
    *finished, failed, _ = sweep.members
    for member in finished:
        run = scored_run(seed=member.settings.seed)
        fit = replace(run.fit, settings=member.settings, history={"lambda": np.ones(1)})
        if member.shift:
            gone = {n: replace(g, above_chance=False) for n, g in fit.goodness.items()}
            fit = replace(fit, goodness=gone)
        attribution = replace(run.attributions[METHOD], fit=None, seed=member.settings.seed)
        kept.keep(member, MemberResult(fit, attribution, 1.0, "host"))
    kept.keep_failure(failed, WHY)
    return path


@pytest.fixture(scope="module")
def page(folder):
    return _rendered(report_on(folder))


def section(page, title):
    return lxml_html.fromstring(page).xpath(f"//h2[. = '{title}']/..")[0]


def test_every_run_has_a_row_and_the_file_has_all_columns(page, folder):
    part = section(page, "Results of every run")
    rows = part.xpath(".//tbody/tr")
    assert len(rows) == 12
    header = [th.text_content() for th in part.xpath(".//th")]
    assert header[:5] == ["run", "shift (s)", "λ", "seed", "status"]
    assert [row.xpath("./td")[4].text_content() for row in rows] == [
        *["finished"] * 10,
        "failed",
        "waiting",
    ]
    link = part.xpath(".//a[@download]")[0]
    content = base64.b64decode(link.get("href").partition("base64,")[2]).decode()
    assert len(pd.read_csv(io.StringIO(content))) == 12


def test_the_summary_keeps_shifted_labels_apart_from_what_was_recorded(page):
    said = " ".join(section(page, "Summary").text_content().split())
    assert "place is above chance in 6 of 6 runs (1.20 to 1.20 nats)." in said
    assert "With labels shifted in time: place is above chance in 0 of 4 runs" in said
    assert "1 of 12 runs failed" in said
    assert "1 of 12 runs not run yet" in said


def test_what_could_not_be_tested_counts_neither_as_found_nor_as_at_chance(tmp_path):
    recording = scored_recording().with_behavior(Variable("x", np.arange(200.0)))
    sweep = Sweep({"one": recording}, {"place": ["x"]}, grid={"seed": [0, 1]})
    kept = SweepFolder(tmp_path)
    kept.plan(sweep)
    for member, why in zip(sweep.members, ("Too few trials.", ""), strict=True):
        run = scored_run(seed=member.settings.seed)
        slow = replace(run.fit.goodness["place"], accuracy=0.9, ridge_accuracy=0.8,
                       untested=why)  # fmt: skip
        fit = replace(run.fit, settings=member.settings, history={"lambda": np.ones(1)},
                      goodness={"place": slow})  # fmt: skip
        kept.keep(member, MemberResult(fit, replace(run.attributions[METHOD], fit=None), 1.0, "h"))
    page = _rendered(report_on(tmp_path))
    said = " ".join(section(page, "Summary").text_content().split())
    assert "place is above chance in 1 of 2 runs (1.20 to 1.20 nats); in 1 it could not be" in said
    row = section(page, "Results of every run").xpath(".//tbody/tr")[0].xpath("./td")
    assert [td.text_content() for td in row][3:7] == ["not tested", "1.20", "0.90", "0.80"]
    assert not {"good", "warning"} & set(row[3].get("class").split())


def test_there_is_a_picture_for_everything_that_was_varied(page):
    captions = [c.text_content() for c in section(page, "What it depends on").iter("figcaption")]
    assert "with labels as recorded" not in captions[0]
    assert all("with labels as recorded" in caption for caption in captions[1:])
    assert [caption.partition(":")[0] for caption in captions] == [
        "By shift (s)",
        "By λ",
        "By seed",
    ]


def test_runs_that_differ_in_their_seed_alone_are_compared(page):
    part = section(page, "Do seeds agree on the cells?")
    rows = [[td.text_content() for td in tr.xpath("./td")] for tr in part.xpath(".//tbody/tr")]
    assert {row[0] for row in rows} == {
        "shift (s) 0.0, λ auto",
        "shift (s) 0.0, λ 1.0",
        "shift (s) 5.0, λ auto",
    }
    assert {row[1] for row in rows} == {"place", "speed", "time"}


def test_failed_runs_say_why_as_text_and_without_folders(page):
    part = section(page, "What failed")
    assert "Training diverged <b>at step 3</b>, reading mouse.npz." in part.text_content()
    assert "/home/ann" not in page


def test_a_sweep_asks_nothing_of_the_network_and_says_how_it_was_started(page):
    root = lxml_html.fromstring(page)
    assert all(v.startswith("data:") for e in root.iter() for n, v in e.items() if n == "src")
    assert root.xpath("string(//pre)") == "napari-xcebra sweep sweep.toml --out out"


def test_a_sweep_of_which_nothing_was_run_is_a_page_too(tmp_path):
    recording = scored_recording().with_behavior(Variable("x", np.arange(200.0)))
    SweepFolder(tmp_path).plan(Sweep({"one": recording}, {"x": ["x"]}, grid={"seed": [0, 1]}))
    said = " ".join(lxml_html.fromstring(_rendered(report_on(tmp_path))).text_content().split())
    assert "2 of 2 runs not run yet." in said
