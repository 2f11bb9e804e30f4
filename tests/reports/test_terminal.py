"""The terminal: 100 columns, undefined values explained, warnings shown, nothing taken for markup."""

import pytest

from tests.reports.made_up import PARAMETERS, fake_result, joined, points_of, shown
from tideover.models.schema import block
from tideover.reports import pages, terminal
from tideover.reports.conclusions import of_record, run_sentence, verdict
from tideover.reports.formatting import fixed, number, size
from tideover.reports.published import group, pair_recoveries, reproduction_table
from tideover.reports.sweeps.page import sweep_view
from tideover.reports.sweeps.points import key_tables
from tideover.reports.tables import Table, collected_warnings, overview, pairs_table


def run_shown(record, details=True):
    return shown(terminal.run_view(record, details=details))


def brief_rows(**made):
    return overview([fake_result("source_replay", **made).to_dict()], brief=True).rows


@pytest.fixture(scope="module")
def found(four):
    return verdict(joined(four, "recoveries"), joined(four, "runs"))


@pytest.fixture(scope="module")
def records(four):
    return [result.to_dict() for result in four]


def test_a_run():
    text = run_shown(fake_result("source_replay").to_dict())
    for part in ("seed 1, 5 replications", "state recovery, s", "60.00 ± 0.05", "timed out falsely"):
        assert part in text
    assert "Warning" not in text


def test_a_run_fits_a_screen_and_its_verdict_comes_first():
    """Without --details: at most 30 lines, with the stages that take time only: a made-up replay of R+SM has
    a wait for its timeout of 0 s.
    """
    record = fake_result("rsm").to_dict()
    assert {one["stages_s"]["wait"] for one in record["recoveries"]} == {0.0}
    lines = run_shown(record, details=False).splitlines()
    assert len(lines) <= 30
    assert " ".join(lines[1:3]).startswith(run_sentence(of_record(record)).splitlines()[0])
    labels = [line.strip() for line in lines]
    assert not any(label.startswith("wait for timeout") for label in labels)
    assert any(label.startswith("time to recover, s") for label in labels)
    assert any("--details" in label for label in labels)


def test_how_late_readers_are_is_on_the_screen_where_a_sink_makes_them_wait():
    """The latency at a glance ends where output leaves; a sink that commits holds it back from readers."""
    record = fake_result("rsm").to_dict()
    waits = ("Until readers see what is put out, s", "delay of visibility", "longest delay of visibility")
    assert not any(wait in run_shown(record, details=False) for wait in waits)
    record["cost"] = record["cost"] | {"visible_s": 13.0, "visible_max_s": 20.6}
    assert all(wait in run_shown(record, details=False) for wait in waits)


def test_the_headline_leads_and_its_stages_follow_and_add_up():
    """The first figure of the table, then its seven stages: 25 + 35 + 14 + 1 = 75 s with the mean wobble of
    the made-up replays. State recovery, which has neither detection nor catch-up in it, comes after them.
    """
    rows = brief_rows(spread=0.0)
    assert [row[0] for row in rows[:10]] == [
        "Recovery (mean of 5)",
        "time to recover, s",
        "Its stages, s",
        *(stage.label for stage in block("recoveries", "stages_s")),
    ]
    assert sum(float(row[1]) for row in rows[3:10]) == float(rows[1][1]) == 75.0
    assert [row[0] for row in rows[10:12]] == ["Other measures of the recovery", "state recovery, s"]


def test_end_to_end_latency_stands_beside_the_latency_of_retries():
    """Retries have a new stamp: made-up latencies of 2 ms, 30 s after the first emission. Both have their
    99th percentile in the brief table too: 600 ms, and 30,600 ms.
    """
    rows = brief_rows()
    groups = {rows[i][0]: dict(rows[i + 1 : i + 6]) for i in range(len(rows)) if "in recovery" in rows[i][0]}
    assert list(groups) == ["End-to-end latency in recovery, ms", "Latency in recovery, ms"]
    shown = [(group["median"], group["99th percentile"]) for group in groups.values()]
    assert shown == [("30,002", "30,600"), ("2.00", "600")]


def test_undefined_is_a_dash_with_the_reason_below():
    text = run_shown(fake_result("none").to_dict())
    line = next(line for line in text.splitlines() if "state recovery, s" in line)
    assert line.rstrip().endswith("–")
    assert "– undefined (state recovery, s): nothing was replayed, or the replay had not ended" in text


def test_the_reason_is_that_of_the_time_it_is_about():
    result = fake_result("none").to_dict()
    result["recoveries"] = [r | {"latency_ms": dict.fromkeys(r["latency_ms"])} for r in result["recoveries"]]
    reason = "– undefined (latency in recovery): nothing was replayed, or no tuple was processed"
    assert reason in run_shown(result)
    result["latency_ms"] = dict.fromkeys(result["latency_ms"])
    assert "– undefined (latency otherwise): no tuple was processed" in run_shown(result)


def test_partly_undefined_values_are_counted():
    result = fake_result("source_replay").to_dict()
    result["recoveries"][0]["state_recovery_s"] = None
    assert "(4 of 5)" in run_shown(result)


def test_strategies_stand_side_by_side_and_the_verdict_is_there(records, found):
    text = shown(terminal.compare_view(records, found, details=True))
    header = next(line for line in text.splitlines() if "R+SM" in line)
    assert "replication" in header or "active" in header
    assert " ".join(found.text.split()) in " ".join(text.split())
    assert "R+SM − source replay" in text
    assert "−59.58" in text


def test_a_sweep(reproduction):
    text = shown(sweep_view(points_of(*reproduction)))
    assert "rate: topology.sentences.rate; at: failures.0.at" in text
    rows = [line for line in text.splitlines() if line.startswith("active replication")]
    assert len(rows) == 6


def test_names_of_swept_keys_stay_apart(reproduction):
    recoveries, runs = reproduction
    runs = runs.assign(**{"topology.other.rate": "5/s"})
    more = PARAMETERS | {"topology.other.rate": ""}
    (table,) = key_tables(points_of(recoveries, runs, more))
    assert table.columns[:4] == ("strategy", "sentences.rate", "at", "other.rate")


def test_a_reproduction(reproduction):
    table = group("stableford", "recovery")
    shown_tables = [reproduction_table(pair_recoveries(reproduction.cells), table.title)]
    text = shown(terminal.reproduce_view("All is met.", shown_tables, table.source, why=pages.WHY_SIXTY))
    assert text.count("yes 10/10") == 12
    assert "Stableford" in text
    assert "5. The sum is" in text


def test_names_are_not_markup():
    result = fake_result("rsm", name="[red]x[/nonsense]", warnings=("[bold]careful[/bold]",)).to_dict()
    text = run_shown(result)
    assert "[red]x[/nonsense]" in text
    assert "[bold]careful[/bold]" in text


def test_a_warning_of_one_strategy_names_it():
    results = [fake_result("source_replay", warnings=("a", "b")), fake_result("rsm", warnings=("b",))]
    assert collected_warnings([r.to_dict() for r in results]) == ["source replay: a", "b"]


def test_the_full_table_has_what_the_brief_one_leaves_out(records):
    brief, full = ({row[0] for row in overview(records, brief=b).rows} for b in (True, False))
    assert brief < full
    assert {"maximum", "restored", "extra"} <= full - brief


def test_without_failures_the_recovery_is_left_out():
    text = run_shown(fake_result(failed_at=None).to_dict(), details=False)
    assert "time to recover, s" not in text
    assert "ran without a failure" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (1e-9, "1.00e−09"), (12345.6, "12,346"), (-0.5, "−0.500"), (float("inf"), "∞"), (None, "–")],
)
def test_numbers(value, text):
    assert number(value) == text


def test_sizes_and_zeros():
    assert [size(v) for v in (0, 1, 1500, 2.5e9)] == ["0 B", "1 B", "1.50 kB", "2.50 GB"]
    assert fixed(-0.001, 2) == "0.00"


@pytest.mark.parametrize("width", [40, 60, 80])
def test_narrow_terminals_break_no_word_and_no_figure(records, found, reproduction, width):
    tables = [overview(records, brief=True), pairs_table(found.pairs), *key_tables(points_of(*reproduction))]
    for table in tables:
        text = shown(terminal.render(table), width)
        words = set(text.split())
        cells = [cell for row in table.rows for cell in row] + list(table.columns)
        assert not [word for cell in cells for word in cell.split() if word not in words]
        if width >= 60:
            whole = [c for row in table.rows if len(row) > 1 for c in row[1:] if " to " not in c]
            assert not [cell for cell in whole if cell not in text]
        assert table.title in text


def test_a_table_that_fits_is_one_block(records):
    table = overview(records, brief=True)
    assert shown(terminal.render(table), 100).count("state recovery, s") == 2  # the row and its footnote
    assert shown(terminal.render(table), 60).count("state recovery, s") == 3


def test_a_value_wider_than_the_terminal_is_folded():
    text = shown(terminal.render(Table("t", ("", "a"), (("x" * 70, "1"), ("y", "2" * 70)))), 50)
    assert text.count("x") == text.count("2") == 70
