"""The HTML page: complete, closed to the network, escaped, and the same bytes for the same input."""

import json
import re
import tomllib
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

from tests.reports.made_up import (
    EVIL,
    PARAMETERS,
    every_table,
    fake_reproduction,
    fake_result,
    joined,
    points_of,
    read_tables,
    recovery_fit,
)
from tideover.models.schema import block
from tideover.reports import pages
from tideover.reports.calibration.page import calibration_page
from tideover.reports.calibration.recoveries import recoveries_page
from tideover.reports.calibration.tables import summary
from tideover.reports.columns import CALIBRATION, RECOVERY_FITS, TABLES
from tideover.reports.conclusions import verdict
from tideover.reports.html import Page, Picture, Section, render
from tideover.reports.parquet import write_all
from tideover.reports.published import group, pair_recoveries, papers
from tideover.reports.sweeps.page import sweep_page
from tideover.reports.tables import Table, point_record, setup

VOID = {"meta", "br", "img", "link", "input", "hr"}


class Reader(HTMLParser):
    """Collects tags, attributes and text, and that every tag is closed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.words, self.stack = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@cache
def compared():
    warning = "the message timeout is not longer than the window"
    return [
        fake_result("source_replay", warnings=(warning,)),
        fake_result("rsm"),
        fake_result("active_replication"),
    ]


def reproduced():
    made, table = fake_reproduction(), group("stableford", "recovery")
    timelines = (joined(compared(), "timeline"), joined(compared(), "recoveries"))
    parts = {"title": table.title, "source": table.source, "parameters": PARAMETERS, "timelines": timelines}
    return pages.reproduce_page(pair_recoveries(made.cells), made.cells, made.runs, **parts)


def swept(recoveries, runs):
    return sweep_page(points_of(recoveries, runs), point_record(0, recoveries, runs))


MADE = {
    "compare": lambda: pages.compare_page(compared()),
    "reproduce": reproduced,
    "run": lambda: pages.run_page(compared()[0]),
    "sweep": lambda: swept(*fake_reproduction()),
    "calibration": lambda: calibration_page(every_table(), {}),
    "fit": lambda: recoveries_page(recovery_fit(), {}, profiles={"mine.yaml": "name: mine"}),
}
OF_RUNS = ["compare", "reproduce", "run", "sweep"]


@cache
def html_of(kind):
    return render(MADE[kind]())


@pytest.fixture(params=OF_RUNS)
def html(request):
    return html_of(request.param)


@pytest.fixture(params=MADE)
def any_html(request):
    return html_of(request.param)


def test_nothing_is_loaded_from_anywhere(any_html):
    assert "http://" not in any_html
    assert "https://" not in any_html
    assert not re.search(r"""(?:src|href|url)\s*[=(]\s*["']?\s*//""", any_html)
    assert "@import" not in any_html
    page = Reader(any_html)
    assert not {"script", "link", "iframe", "object", "embed", "img", "base"} & set(page.tags)
    for tag, name, value in page.attributes:
        assert not name.startswith("on")
        if name in ("href", "src", "xlink:href"):
            assert value.startswith(("#", "data:image/png;base64,")), (tag, name, value)
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", any_html))


def test_every_tag_is_closed_and_ids_are_unique(any_html):
    page = Reader(any_html)
    assert page.stack == []
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))


def test_figures_have_a_text_for_those_who_cannot_see_them(any_html):
    page = Reader(any_html)
    figures = page.tags.count("figure")
    assert figures >= 1
    labels = [value for tag, name, value in page.attributes if tag == "svg" and name == "aria-label"]
    assert len(labels) == page.tags.count("svg") >= figures
    assert len(set(labels)) == len(labels)
    assert all(len(label) > 20 for label in labels)
    assert page.tags.count("figcaption") == figures
    assert re.findall(r"Figure (\d+)\.", page.text) == [str(n) for n in range(1, figures + 1)]


def test_figures_are_legible_on_a_telephone(html):
    """A telephone is 390 px wide, 350 without margins. A panel fits in there with a pixel a point or more, so
    that letters of 8 points have 8 pixels and more; what is wider is scrolled, and not shrunk.
    """
    sizes = re.findall(r'<svg [^>]*aria-label[^>]*viewBox="0 0 ([\d.]+) [\d.]+"', html)
    heads = re.findall(r"<svg [^>]*aria-label[^>]*>", html)
    assert len(sizes) == len(heads)
    for width, head in zip(sizes, heads, strict=True):
        assert float(width) <= 350 or 'class="wide"' in head
    assert "repeat(auto-fit, minmax(min(100%, 17rem), 1fr))" in html


def test_the_first_figure_of_a_comparison_is_the_headline():
    """Panels of the timelines come next, one a strategy, then the five resources; nothing in them is wide."""
    html = html_of("compare")
    text = Reader(html).text
    assert "Figure 1. Time to recover by strategy." in text
    assert "Figure 2. Around the failure." in text
    assert html.count("<svg ") == 1 + len(compared()) + 5
    assert 'class="wide"' not in html
    for name in (stage.label for stage in block("recoveries", "stages_s")):
        assert text.count(name) >= 2  # in both legends


def test_the_page_has_its_sections(html):
    text = Reader(html).text
    for heading in ("What was asked", "Results", "Figures", "The whole scenario", "What the columns mean"):
        assert heading in text


def test_the_answer_comes_first_and_what_explains_it_is_closed(html):
    """What was asked and what columns mean stands behind figures and tables, and folds out."""
    places = [html.index(f'id="{name}"') for name in ("setup", "glossary")]
    assert html.index('class="verdict"') < html.index("<figure") < min(places)
    assert "<details open" not in html


def test_the_glossary_names_every_column(html):
    text = Reader(html).text
    for column in (c for table in TABLES.values() for c in table):
        assert column.name in text
        assert column.meaning in text


def test_verdict_warnings_and_scenarios_are_there():
    text = Reader(html_of("compare")).text
    found = verdict(joined(compared(), "recoveries"), joined(compared(), "runs"))
    assert " ".join(found.text.split()) in text
    assert "source replay: the message timeout is not longer than the window" in text
    for result in compared():
        scenario = json.dumps(result.to_dict()["scenario"], indent=2)
        assert " ".join(scenario.split()) in text


def test_reproduction_shows_both_tables_the_source_and_the_five_sentences():
    text = Reader(html_of("reproduce")).text
    assert "12 of 12 published recovery times are met." in text
    assert group("stableford", "recovery").source in text
    for sentence in papers()["stableford-phase2"]["findings"]:
        assert sentence in text


def test_a_cell_that_is_missed_is_named():
    cells = fake_reproduction().cells
    late = cells["strategy"].eq("rsm") & cells["tuples_per_s"].eq(20) & cells["fail_at_s"].eq(30)
    pairs = pair_recoveries(
        cells.assign(**{c: cells[c].mask(late, 7.0) for c in ("state_recovery_s", "replay_s")})
    )
    assert pages.agreement_sentence(pairs) == (
        "11 of 12 published recovery times are met; not met: R+SM at 20 tuples/s, 30 s "
        "(published 1 s, simulated 7.05 s)."
    )


def test_everything_is_escaped():
    result = fake_result("rsm", name=EVIL, warnings=(f"{EVIL} & more",))
    result.recoveries["component"] = EVIL
    result.runs["strategy"] = result.recoveries["strategy"] = result.timeline["strategy"] = f"{EVIL}$^{{"
    record = result.to_dict() | {"strategy": EVIL}
    record["recoveries"][0]["component"] = EVIL
    record["scenario"]["description"] = f'{EVIL} "quoted" \' --> ]]>'
    result.record = record
    html = render(pages.run_page(result))
    assert "<script" not in html.lower()
    page = Reader(html)
    assert "script" not in page.tags
    assert page.stack == []
    assert page.text.count("alert(1)") >= 6
    assert f"{EVIL} & more" in page.text


@pytest.mark.parametrize("kind", ["calibration", pytest.param("compare", marks=pytest.mark.long)])
def test_equal_input_gives_equal_bytes(kind):
    """Of a run's page the same is asked in test_cli.py, across processes."""
    assert render(MADE[kind]()) == html_of(kind)


def test_no_date_and_no_path_is_in_it(any_html):
    assert not re.search(r"\b20\d\d-\d\d-\d\d\b", any_html)
    assert "/home/" not in any_html
    assert "/tmp" not in any_html


def test_the_setup():
    answers = dict(setup([result.to_dict() for result in compared()]))
    assert answers["Strategies"] == "source replay, R+SM, active replication"
    assert answers["Components"] == "sentences → split → count"
    assert answers["Failures"] == "lose_state of count at 75 s"
    assert answers["Simulated time"] == "240 s"


def test_what_out_writes(tmp_path):
    tables = {name: joined(compared(), name) for name in TABLES}
    records = [result.to_dict() for result in compared()]
    what = {"tables": tables, "page": MADE["compare"](), "record": json.dumps(records)}
    paths = write_all(tmp_path / "out", **what)
    names = [path.name for path in paths]
    assert names == ["report.html", *(f"{name}.parquet" for name in TABLES), "result.json"]
    assert json.loads((tmp_path / "out" / "result.json").read_text()) == records
    before = [path.read_bytes() for path in paths]
    again = write_all(tmp_path / "out", **what)
    assert [path.read_bytes() for path in again] == before


@pytest.mark.parametrize(
    ("kind", "frames", "columns"),
    [("calibration", every_table(), CALIBRATION), ("fit", recovery_fit(), RECOVERY_FITS)],
    ids=["calibration", "fit"],
)
def test_what_calibrations_write_is_read_back(tmp_path, kind, frames, columns):
    write_all(tmp_path / "out", tables=frames, page=MADE[kind]())
    found = read_tables(tmp_path / "out")
    assert list(found) == list(columns)
    for name, table in frames.items():
        read = found[name][list(table.columns)]
        pd.testing.assert_frame_equal(read, table.reset_index(drop=True), check_dtype=False)
    if kind == "calibration":
        pd.testing.assert_frame_equal(summary(found["pairs"]), summary(frames["pairs"]))


def test_a_sweep_with_failed_runs_says_so():
    recoveries, runs = fake_reproduction()
    broken = runs.assign(error=runs["error"].where(runs["point"] != 3, "ValueError: it broke"))
    text = Reader(render(swept(recoveries, broken))).text
    assert "18 points of the grid, 180 runs; 10 failed and are left out." in text
    assert "10/10" in text


def test_figures_come_before_tables_and_explanations():
    """Of a section: what it says, then the figure, then the table, then why."""
    section = Section(
        "A",
        sentences=("said",),
        steps=("because",),
        tables=(Table("T", ("what",), (("cell",),)),),
        pictures=(Picture("P", "caption", "<svg></svg>"),),
    )
    text = render(Page("title", "kind", "the verdict", (), (section,), warnings=("care",), glossary={}))
    order = ("the verdict", ">care<", ">said<", "<svg>", ">cell<", ">because<")
    assert sorted(order, key=text.index) == list(order)


def test_each_caption_is_of_a_figure():
    """Law: what stands in the file of captions has a title and an alternative text, and somebody draws it."""
    folder = Path(pages.__file__).parent
    source = "".join(path.read_text("utf-8") for path in folder.rglob("*.py"))
    captions = tomllib.loads((folder / "captions.toml").read_text("utf-8"))
    del captions["also"]  # sentences of several
    for name, texts in captions.items():
        assert f'"{name}"' in source
        assert texts["title"]
        assert texts.get("alt") or name in ("diagram", "example")  # which tell by themselves
