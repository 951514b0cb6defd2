"""A report says what was found and how far to believe it, and needs nothing but itself."""

import base64
import gzip
import hashlib
import io
import itertools
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from lxml import html as lxml_html
from scored import AT_CHANCE, CELLS, METHOD, scored_recording, scored_run, scored_test

from napari_xcebra.analysis_file import read_analysis
from napari_xcebra.attribution.comparison import compare
from napari_xcebra.attribution.single_cell import cell_statistics
from napari_xcebra.batch.sweep_report import report_on
from napari_xcebra.errors import InputError
from napari_xcebra.io.opening import Opening
from napari_xcebra.learn.data.factors import Factor, Part
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.recording import Variable
from napari_xcebra.report.document import LARGEST_PLAIN, Document, download
from napari_xcebra.report.findings import controls, settings_section, verdicts
from napari_xcebra.report.material import Material, material_in
from napari_xcebra.report.run_report import (
    _cell_sections,
    _rendered,
    run_report,
    write_run_report,
)
from napari_xcebra.runs import Run

VOID = {"meta", "img", "link", "br", "hr", "input", "source", "base", "area", "col", "embed"}
SOURCE = "/home/ann/mouse 3.npz"
HISTORY = {
    "step": np.arange(1.0, 4.0),
    "lambda": np.array([0, 1.0, 1.0]),
    "penalty": np.array([3.0, 2.0, 1.0]),
    "place": np.ones(3),
    "speed": np.ones(3),
    "time": np.ones(3),
}


def behaving(recording):
    """The recording with the variables of its factors."""
    rng = np.random.default_rng(1)
    x, y, v = rng.random((3, recording.n_frames))
    return recording.with_behavior(
        Variable("x", x, unit="cm"), Variable("y", y, unit="cm"), Variable("v", v)
    )


def material(**others):
    run = scored_run().with_significance(scored_test())
    settings = replace(run.fit.settings, steps=3)
    fit = replace(run.fit, settings=settings, steps=3, history=HISTORY, source=SOURCE)
    about = {
        "name": "run 1",
        "fit": fit,
        "attributions": run.attributions,
        "recording": behaving(scored_recording(source=SOURCE)),
    }
    return Material(**(about | others))


@pytest.fixture(scope="module")
def page():
    return _rendered(run_report(material()))


def parsed(*sections):
    """These sections alone: pictures of the others take time."""
    return lxml_html.fromstring(_rendered(Document("", "", (), sections)))


class Balanced(HTMLParser):
    """Fails where a tag is closed that is not open, or stays open."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, (tag, self.getpos())


def text_of(page):
    return " ".join(lxml_html.fromstring(page).text_content().split())


def test_every_tag_is_closed_and_every_heading_in_order(page):
    parser = Balanced()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    levels = [int(h.tag[1]) for h in lxml_html.fromstring(page).iter("h1", "h2", "h3")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_the_contents_lead_to_every_section(page):
    root = lxml_html.fromstring(page)
    ids = {element.get("id") for element in root.iter() if element.get("id")}
    targets = [a.get("href").removeprefix("#") for a in root.xpath("//nav//a")]
    assert set(targets) <= ids
    assert len(targets) == len(root.xpath("//main//section"))


def test_the_page_asks_nothing_of_the_network(page):
    root = lxml_html.fromstring(page)
    assert not root.xpath("//link | //iframe | //object | //embed | //base | //script[@src]")
    addresses = [v for e in root.iter() for n, v in e.items() if n in ("src", "srcset", "data")]
    assert addresses
    assert all(address.startswith("data:") for address in addresses)
    outside = root.xpath("//a[starts-with(@href, 'http')]")
    assert {a.getparent().get("class") for a in outside} == {"reference"}
    style = root.xpath("string(//style)")
    assert "@import" not in style
    assert "url(" not in style
    assert "default-src 'none'" in root.xpath("//meta[@http-equiv]/@content")[0]


def test_the_browser_runs_our_script_and_no_other(page):
    root = lxml_html.fromstring(page)
    digest = hashlib.sha256(root.xpath("string(//script)").encode()).digest()
    policy = root.xpath("//meta[@http-equiv]/@content")[0]
    assert f"script-src 'sha256-{base64.b64encode(digest).decode()}'" in policy


def test_every_picture_says_in_words_what_it_shows(page):
    pictures = lxml_html.fromstring(page).xpath("//img")
    assert len(pictures) >= 6
    assert all(len(picture.get("alt")) > 15 for picture in pictures)


def test_names_from_files_are_text_whatever_they_look_like():
    evil = "<script>alert(1)</script>"
    quoted = 'x" onerror="alert(2)'
    money = "a$b_{$"
    names = {"place": evil, "speed": money}
    renamed = {"place": Part(evil, (quoted, "y"), 0, 2, "euclidean", 1.0)}
    run = material()
    parts = tuple(
        renamed.get(part.name, replace(part, name=names.get(part.name, part.name)))
        for part in run.fit.parts
    )
    goodness = {
        names.get(n, n): replace(g, factor=names.get(n, n)) for n, g in run.fit.goodness.items()
    }
    history = {names.get(n, n): values for n, values in HISTORY.items()}
    fit = replace(run.fit, parts=parts, goodness=goodness, history=history)
    first = replace(
        run.attributions[METHOD],
        parts=parts,
        fit=fit,
        significance=None,
        strengths={n: g.strength for n, g in goodness.items()},
        verdicts={n: g.verdict for n, g in goodness.items()},
    )
    values = np.random.default_rng(0).random(200)
    recording = run.recording.with_behavior(Variable(quoted, values, unit="<b>cm"))
    page = _rendered(
        run_report(
            replace(run, name=f"{evil} & co", fit=fit, attributions={METHOD: first},
                    recording=replace(recording, notes=(f"Read {evil}.",)))
        )
    )  # fmt: skip
    root = lxml_html.fromstring(page)
    assert len(root.xpath("//script")) == 1
    assert "alert" not in root.xpath("string(//script)")
    assert not [name for e in root.iter() for name, _ in e.items() if name.startswith("on")]
    assert not root.xpath("//b")
    assert root.xpath("string(//h1)").startswith("mouse 3.npz · <script>alert(1)</script> & co")
    assert quoted in text_of(page)
    assert money in text_of(page)


def test_the_summary_says_which_factor_is_in_the_cells_and_how_many_cells_carry_it(page):
    summary = lxml_html.fromstring(page).xpath("//section[@id='summary']//p")
    place, speed, _ = (" ".join(p.text_content().split()) for p in summary[:3])
    assert "These cells encode place" in place
    # q rises by 0.05 a cell from 0, and one of the cells is not used
    assert "3 of 11 cells carry it at q ≤ 0.1." in place
    assert "speed is at chance" in speed
    assert "carry" not in speed


def untested():
    """A run whose speed, found or not, is too slow to be tested, and whose place is discrete."""
    run = material()
    goodness = dict(run.fit.goodness)
    goodness["place"] = replace(
        goodness["place"], p=0.001, samples=300.0, accuracy=0.8, ridge_r2=0.4, ridge_accuracy=0.7,
        allowed=2.4,
    )  # fmt: skip
    goodness["speed"] = replace(goodness["speed"], samples=4.0, shifts=2.0, ridge_r2=-0.1,
                                untested="Too few labels truly differ.")  # fmt: skip
    fit = replace(run.fit, goodness=goodness)
    first = replace(
        run.attributions[METHOD],
        fit=fit,
        significance=None,
        strengths=dict.fromkeys(goodness, "weak"),
        verdicts={n: g.verdict for n, g in goodness.items()},
    )
    return replace(run, fit=fit, attributions={METHOD: first})


def test_a_ridge_regression_stands_beside_every_verdict():
    run = untested()
    root = parsed(verdicts(run), controls(run))
    place = [td.text_content() for td in root.xpath("//tr[td[1] = 'place']")[0].xpath("./td")]
    assert place[:4] == ["place", "clear", "1.20 ± 0.05", "50%"]
    assert place[6:8] == ["accuracy 0.80", "0.70"]
    told = root.xpath("//tr[td[1] = 'ridge regression']")[0].text_content()
    assert "place: accuracy 0.80 (ridge regression 0.70)" in told
    assert "speed: R² 0.50 (ridge regression −0.10)" in told


def test_what_could_not_be_tested_is_neither_good_nor_at_chance():
    page = _rendered(run_report(untested()))
    root = lxml_html.fromstring(page)
    told = root.xpath("//section[@id='summary']//p[starts-with(., 'speed')]")[0]
    assert told.get("class") is None
    assert "speed was not tested against chance" in told.text_content()
    verdict = root.xpath("//tr[td[1] = 'speed']/td[2]")[0]
    assert verdict.text_content() == "not tested"
    assert not {"good", "warning"} & set((verdict.get("class") or "").split())
    said = text_of(page)
    assert "means nothing" not in said
    assert "speed is at chance" not in said
    assert "speed: not tested" in said


def test_a_factor_at_chance_has_no_list_of_cells(page):
    root = lxml_html.fromstring(page)
    title = root.xpath(f"//h3[starts-with(., '{AT_CHANCE}')]")[0]
    section = title.getparent()
    assert not section.xpath(".//table")
    assert "means nothing" in section.text_content()
    assert section.xpath(".//a[@download]")


def test_the_best_cells_come_first_and_the_file_has_all(page):
    root = lxml_html.fromstring(page)
    section = root.xpath("//h3[starts-with(., 'place')]")[0].getparent()
    header = [th.text_content() for th in section.xpath(".//th")]
    assert header == ["rank", "cell", "score", "z", "p", "q"]
    attribution = material().attributions[METHOD]
    expected = 100 + np.argsort(-np.nan_to_num(attribution.score("place"), nan=-1))[:11]
    cells = [int(row.xpath("./td")[1].text_content()) for row in section.xpath(".//tbody/tr")]
    assert cells == expected.tolist()
    link = section.xpath(".//a[@download]")[0]
    content = base64.b64decode(link.get("href").partition("base64,")[2]).decode()
    saved = pd.read_csv(io.StringIO(content))
    assert len(saved) == CELLS
    assert np.allclose(saved["score"], attribution.score("place"), atol=1e-5, equal_nan=True)


def test_a_large_file_is_compressed_inside_the_page():
    cells = pd.DataFrame({"cell": np.arange(200_000)})
    table = cells.to_csv(index=False)
    assert len(table) > LARGEST_PLAIN
    made = download("cells.csv", cells, "")
    assert made.name == "cells.csv.gz"
    content = base64.b64decode(made.source.partition("base64,")[2])
    assert gzip.decompress(content).decode() == table
    assert len(made.source) < len(table)


def test_folders_of_the_computer_are_not_in_the_page(page):
    assert "/home/ann" not in page
    assert "mouse 3.npz" in page


def test_settings_that_were_changed_come_first_with_their_default():
    run = material()
    fit = replace(run.fit, settings=replace(run.fit.settings, window=5))
    root = parsed(settings_section(replace(run, fit=fit)))
    table = root.xpath("//table")[0]
    rows = [[td.text_content() for td in tr.xpath("./td")] for tr in table.xpath(".//tbody/tr")]
    assert {(name, value, default) for name, value, default, _ in rows[:2]} == {
        ("--steps", "3", str(FitSettings().steps)),
        ("--window", "5", "1"),
    }
    assert all(default == "" for _, _, default, _ in rows[2:])


def test_without_the_recording_the_report_says_what_is_left_out(tmp_path):
    run = scored_run()
    run = replace(run, fit=replace(run.fit, source=str(tmp_path / "gone.npz")))
    run.save(tmp_path / "saved")
    document = report_on(tmp_path / "saved")
    page = _rendered(document)
    said = text_of(page)
    assert "The recording (gone.npz) was not found" in said
    assert "painted" in said
    assert "These cells encode place" in text_of(page)
    assert str(tmp_path) not in page


def test_a_run_of_the_window_is_found_with_its_recording(tmp_path):
    recording = behaving(scored_recording())
    path = recording.save(tmp_path / "recording of mouse.npz")
    run = scored_run("first try")
    run.save(tmp_path / "saved")
    Opening(path, kinds={"v": "continuous"}).save(tmp_path / "saved")
    found = material_in(tmp_path / "saved")
    assert found.recording.n_cells == CELLS
    assert found.missing == ()
    page = _rendered(run_report(found))
    assert "recording of mouse.npz · first try" in text_of(page)
    assert "Tuning of the cells" in page


def test_cells_of_an_event_are_shown_by_their_responses_instead_of_a_tuning_curve():
    recording = behaving(scored_recording())
    licks = Variable("x", np.arange(recording.n_frames) % 40 == 20, "event")
    run = material(recording=recording.with_behavior(licks))
    page = _rendered(Document("", "", (), (_cell_sections(run),)))
    assert "Responses of the cells" in page
    assert "highest score around x: mean" in page
    assert "Tuning of the cells" not in page


def test_a_recording_of_other_cells_is_refused(tmp_path):
    scored_run().save(tmp_path / "saved")
    other = scored_recording(cell_ids=np.arange(CELLS))
    with pytest.raises(InputError, match="cell"):
        report_on(tmp_path / "saved", other)


def test_a_folder_that_holds_no_run_says_what_was_looked_for(tmp_path):
    with pytest.raises(InputError, match=r"neither a run\.json, nor a fit, nor a sweep\.json"):
        report_on(tmp_path)
    with pytest.raises(InputError, match="not a folder"):
        report_on(tmp_path / "nothing")


def test_methods_and_statistics_stand_beside_each_other():
    run = material()
    recording = replace(run.recording, accepted=np.arange(CELLS) != 5)
    statistics = cell_statistics(recording, {"place": ["x", "y"]}, ["correlation"])
    attributions = {
        **run.attributions,
        "conditional-encoding": replace(run.attributions[METHOD], method="conditional-encoding"),
    }
    run = replace(
        run,
        attributions=attributions,
        statistics=statistics,
        comparison=compare(attributions, statistics),
    )
    assert run.methods == ("conditional-encoding", METHOD)
    root = lxml_html.fromstring(_rendered(run_report(run)))
    assert root.xpath("//h2[. = 'Methods side by side']")
    place = root.xpath("//h3[starts-with(., 'place')]")[0].getparent()
    header = [th.text_content() for th in place.xpath(".//th")]
    assert header[-2:] == ["rank by inverted neuron gradient", "r"]
    # the map to look at first, the other one, and the histogram
    assert len(place.xpath("./div[@class='row']//img")) == 3


def test_what_conditional_encoding_says_more_of_cells_is_explained_in_the_table():
    run = material()
    given = run.attributions[METHOD]
    scores = np.stack([given.score(factor) for factor in given.factors])
    signs = np.tile(np.resize([1.0, 0.0, -1.0, np.nan], CELLS).astype(np.float32), (3, 1))
    names = ("low", "high", "of_explainable", "beside_variables", "beside_state", "interaction")
    details = {name: scores / 2 for name in (*names, "lag", "lag_error")} | {"sign": signs}
    whole = replace(
        given,
        method="conditional-encoding",
        latent_scores=None,
        factor_scores=scores,
        details=details,
    )
    root = lxml_html.fromstring(
        _rendered(run_report(replace(run, attributions={whole.method: whole}, comparison=None)))
    )
    place = root.xpath("//h3[starts-with(., 'place')]")[0].getparent()
    header = [th.text_content() for th in place.xpath(".//th")]
    assert {"low", "high", "of explainable", "interaction", "lag (s)", "sign"} < set(header)
    assert not {"beside_variables", "beside_state", "lag_error"} & set(header)  # in the file
    column = header.index("sign")
    cells = {row.xpath("./td")[column].text_content() for row in place.xpath(".//tbody/tr")}
    assert cells == {"rises", "neither", "falls", "–"}
    assert "Seconds by which the cell follows the behaviour" in root.text_content()


def test_what_was_not_checked_is_said_with_how_to_do_it():
    run = material()
    run = replace(run, attributions={METHOD: replace(run.attributions[METHOD], significance=None)})
    said = " ".join(parsed(controls(run)).text_content().split())
    assert "not tested: Test in the Attribution dock, or --significance" in said
    assert "trained once: press Repeat (Attribution), or run --seeds 3" in said


def test_a_fit_that_was_stopped_and_never_scored_is_reported_as_such():
    run = material(attributions={}, recording=None)
    fit = replace(run.fit, settings=replace(run.fit.settings, steps=500), history={})
    said = text_of(_rendered(run_report(replace(run, fit=fit))))
    assert "Stopped after 3 of 500 steps." in said
    assert "No cells were scored yet" in said


def test_ten_thousand_cells_give_a_page_of_sane_size():
    run, many = material(), 10_000
    rng = np.random.default_rng(0)
    first = replace(
        run.attributions[METHOD],
        cell_ids=np.arange(many),
        latent_scores=rng.random((4, many), np.float32),
        significance=None,
    )
    run = replace(run, attributions={METHOD: first}, recording=None)
    page = _rendered(run_report(run))
    assert len(page) < 8 * 2**20
    root = lxml_html.fromstring(page)
    lists = root.xpath("//table[contains(@class, 'sortable')]")
    assert {len(table.xpath(".//tbody/tr")) for table in lists} == {20}
    assert re.search(r"has all 10,000 cells", page)


def test_a_report_of_the_window_brings_the_file_that_makes_its_run_again(tmp_path):
    factors = {"place": Factor(("x", "y")), "speed": Factor(("v",))}
    run = material(factors=factors)
    opening = Opening(tmp_path / "mouse 3.npz", kinds={"v": "discrete"})
    of_window = Run("run 1", "2026-11-19T10:00:00", run.factors, run.fit, run.attributions)
    page = write_run_report(of_window, run.recording, tmp_path / "page.html", opening)
    command = lxml_html.fromstring(page.read_text("utf-8")).xpath("string(//pre/code)")
    assert command == "napari-xcebra run page.toml --out again"
    asked = read_analysis(tmp_path / "page.toml")
    assert asked.opening.path == opening.path and asked.opening.kinds == {"v": "discrete"}
    assert asked.settings == run.fit.settings
    assert {n: f.variables for n, f in asked.factors.items()} == {
        n: f.variables for n, f in run.factors.items()
    }
    # a model that was trained elsewhere cannot be trained again
    elsewhere = replace(of_window, fit=replace(run.fit, architecture="offset10-model"))
    page = write_run_report(elsewhere, run.recording, tmp_path / "other.html", opening)
    assert "No file makes this run again" in page.read_text("utf-8")
    assert not (tmp_path / "other.toml").exists()
