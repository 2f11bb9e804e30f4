"""Many strategies at a glance."""

from __future__ import annotations

import re

import pytest
from matplotlib.text import Text

import tideover
from tests.reports.made_up import fake_result, joined, shown
from tideover.models.schema import LOSSY, OPEN, UNAFFECTED
from tideover.reports import figures, pages, tables, terminal
from tideover.reports.conclusions import verdict
from tideover.reports.figures import style
from tideover.reports.tables import WITH_LOSS

NAMES = [*style._STRATEGIES, "my_own_strategy"]
"""Fifteen, and one from outside."""


@pytest.fixture
def records():
    """Made-up ones under all these names, each with other figures."""
    found = []
    for place, name in enumerate(NAMES):
        record = fake_result("rsm").to_dict() | {"strategy": name}
        more = {"time_to_recover_s": 60.0 - 4 * place, "output_gap_s": 1.0}
        times = [recovery | more for recovery in record["recoveries"]]
        found.append(record | {"recoveries": times, "cost": record["cost"] | {"hosts": place + 3}})
    return found


def test_the_fastest_comes_first_and_what_did_not_recover_last(records):
    """Five recoveries each: of the first two of them one did not end, of the second none."""
    for recovery in (records[-2]["recoveries"][0], *records[-3]["recoveries"]):
        recovery |= {"time_to_recover_s": None, "ended": OPEN}
    found = tables.rows(records)
    assert [row.strategy for row in found[:2]] == [NAMES[-1], NAMES[-4]]
    last = [(row.strategy, row.cells[0]) for row in found[-2:]]
    assert last == [(NAMES[-2], "4.00 (4/5)"), (NAMES[-3], "never")]


def test_a_loss_stands_beside_the_time(records):
    """One of five recoveries lost something: that is in the row, and below the table what it means."""
    records[0]["recoveries"][1]["ended"] = LOSSY
    for recovery in records[-1]["recoveries"]:
        recovery |= {"time_to_recover_s": 0.0, "ended": UNAFFECTED}
    found = tables.rows(records)
    assert (found[0].cells[0], found[-1].cells[0]) == ("not affected", "60.0 (loss)")
    assert WITH_LOSS in tables.table(records).notes[0]
    assert WITH_LOSS not in tables.table(records[1:]).notes[0]


def test_the_table_is_as_wide_as_a_terminal(records):
    table = tables.table(records)
    assert len(table.rows) == len(NAMES)
    assert table.columns[1:4] == ("time to recover, s", "output gap, s", "roots lost")
    by_name = {row[0]: row for row in table.rows}
    assert by_name["my own strategy"][-1] == str(len(NAMES) + 2)


def test_a_terminal_shows_the_answer_and_a_glance_on_its_first_screen(records, four):
    """The verdict first, then one table, however many there are; all figures only if they are asked for."""
    found = verdict(joined(four[:2], "recoveries"), joined(four[:2], "runs"))

    def told(n: int, details: bool = False) -> str:
        return shown(terminal.compare_view(records[:n], found, details))

    for n in (2, 14):
        lines = told(n).splitlines()
        assert " ".join(found.text.split()).startswith(" ".join(lines[1].split()))
        assert lines.index(next(line for line in lines if line.startswith("At a glance"))) < 10
        assert "95th percentile" not in "".join(lines)
        assert len(lines) < 24 + n
    assert "95th percentile" in told(6, details=True)
    rows = re.findall(r"^(?:active replication|none \(amnesia\)) .*", told(14), re.MULTILINE)
    assert all(len(row.split("  ")) > 8 for row in rows)
    assert len(rows) == 2


def test_fifteen_fit_into_the_figure(records):
    """Law: no words overlap, none leave the picture, letters have at least 7.5 pt at the width of a page."""
    axes = figures.glance(tables.rows(records))
    figure = axes.figure
    figure.draw_without_rendering()
    texts = [t for t in axes.findobj(Text) if t.get_text() and t.get_visible()]
    boxes = [(t.get_text(), t.get_window_extent()) for t in texts]
    assert len(boxes) >= len(NAMES) * (len(tables.MEASURES) + 1)
    for number, (words, box) in enumerate(boxes):
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1, words
        overlapping = [other for other, area in boxes[number + 1 :] if box.overlaps(area)]
        assert overlapping == [], (words, overlapping)
    assert min(t.get_fontsize() for t in texts) >= 7.5
    assert figure.get_size_inches()[0] <= style.WIDTH_IN


def test_hwangs_order_shows_in_it():
    """J.-H. Hwang et al., ICDE 2005: active standby recovers fastest and costs most, upstream backup costs
    least and recovers slowest, passive standby is between. Costs are those without the failure: in the run
    with it upstream backup works off a whole window again, which is no cost of normal running.
    """
    kinds = ["active_standby", "passive_standby", "upstream_backup"]
    found = tideover.compare("wordcount", kinds, ["run.replications=1", "run.duration=150s"]).results
    rows = tables.rows([found[kind].to_dict() for kind in kinds])
    assert [row.strategy for row in rows] == kinds
    place = {measure.what: number for number, measure in enumerate(tables.MEASURES)}
    for what in ("normal CPU, ms/s", "normal network, per s"):
        active, passive, upstream = (row.values[place[what]] for row in rows)
        assert active > passive > upstream, what


def test_a_page_shows_few_without_and_many_with_it(records):
    assert pages.at_a_glance(records[:5]) == ()
    (picture,) = pages.at_a_glance(records)
    assert "<svg" in picture.svg
