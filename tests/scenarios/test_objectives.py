"""Objectives: what their texts mean, what is concluded from replications, and the block ``slo``."""

import json
import math
import pickle
from typing import Any

import jsonschema
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tideover
from tests.scenarios.refused import refused, told
from tests.scenarios.test_bad_input import GOOD
from tideover import parts
from tideover.api import compared
from tideover.models.config import Slo
from tideover.models.job.components import Run
from tideover.models.schema import TABLES
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load, load_text
from tideover.scenarios.objectives import objective
from tideover.scenarios.objectives.objective import Objective, names
from tideover.scenarios.part_builder import to_data
from tideover.scenarios.reference import json_schema
from tideover.scenarios.runs import digest
from tideover.scenarios.sweeps import sweep_file
from tideover.scenarios.yaml_source import Node, Origin
from tideover.sim.units import S

NAN = float("nan")

# Text, and then: table, column, rule, limit in the column's unit, part.
MEANT = [
    ("p99_latency <= 500 ms", "runs", "end_to_end_p99_ms", "mean", 500, 1),
    ("p99 latency ≤ 0.5 s", "runs", "end_to_end_p99_ms", "mean", 500, 1),
    ("recovery_p95 <= 20 s", "recoveries", "time_to_recover_s", "quantile", 20, 0.95),
    ("recovery_median < 20 s", "recoveries", "time_to_recover_s", "quantile", 20, 0.5),
    ("recovery_p99.9 <= 1m30s", "recoveries", "time_to_recover_s", "quantile", 90, 0.999),
    ("recovery_mean < 10 s", "recoveries", "time_to_recover_s", "mean", 10, 1),
    ("recovery <= 10 s", "recoveries", "time_to_recover_s", "mean", 10, 1),
    ("recovery = 0 s", "recoveries", "time_to_recover_s", "every", 0, 1),
    ("recovery <= 20 s in 95 % of runs", "recoveries", "time_to_recover_s", "runs", 20, 0.95),
    ("recovery <= 20 s in 100% of replications", "recoveries", "time_to_recover_s", "every", 20, 1),
    ("catch_up_max <= 1 min", "recoveries", "catch_up_s", "every", 60, 1),
    ("catch_up_stage <= 1 min", "recoveries", "catch_up_stage_s", "mean", 60, 1),
    ("latency_p99 <= 2 s", "runs", "latency_p99_ms", "mean", 2000, 1),
    ("recoveries.latency_p99 <= 2 s", "recoveries", "latency_p99_ms", "mean", 2000, 1),
    ("lost = 0", "runs", "lost", "every", 0, 1),
    ("lost == 0", "runs", "lost", "every", 0, 1),
    ("lost_mean <= 5 roots", "runs", "lost", "mean", 5, 1),
    ("wrong_windows <= 1 window", "runs", "windows_wrong", "every", 1, 1),
    ("availability >= 99.99 %", "runs", "availability", "mean", 0.9999, 1),
    ("throughput >= 1000/s", "runs", "throughput_mean_per_s", "mean", 1000, 1),
    ("throughput_p5 >= 60/min", "runs", "throughput_mean_per_s", "quantile", 1, 0.05),
    ("throughput_min >= 1/s", "runs", "throughput_min_per_s", "every", 1, 1),
    ("throughput >= 1/s in 99 % of the time", "timeline", "throughput_per_s", "time", 1, 0.99),
    ("max_latency <= 1 s in 99 % of time", "timeline", "end_to_end_max_ms", "time", 1000, 0.99),
    ("cost <= 108/d", "runs", "price_per_h", "mean", 4.5, 1),
    ("network <= 2 MB", "runs", "network_bytes", "mean", 2e6, 1),
    ("utilisation <= 70 %", "tasks", "utilisation", "mean", 0.7, 1),
]

# Text, and a part of the message.
REFUSED = [
    ("p99_latencyy <= 5 s", "unknown metric 'p99_latencyy'; did you mean p99_latency?"),
    ("recovry_p95 <= 20 s", "did you mean recovery_p95?"),
    ("p95_recovery <= 20 s", "did you mean recovery_p95?"),
    ("latency <= 20 s", "p99_latency"),
    ("latency_p90 <= 20 s", "did you mean latency_p99?"),
    ("p99_latency <= 1 s in 99 % of the time", "the numeric columns of the table timeline"),
    ("seed <= 3", "unknown metric"),
    ("scenario <= 3", "unknown metric"),
    ("recovery", "is no objective; write METRIC"),
    ("<= 3", "is no objective"),
    ("", "is no objective"),
    ("recovery => 20 s", "'> 20 s' is not a duration"),
    ("recovery <= 20", "has no unit"),
    ("recovery <= 20/s", "not a duration"),
    ("recovery <= -1 s", "negative"),
    ("p99_latency <= 99 %", "not a duration"),
    ("throughput >= 1000", "has no unit"),
    ("availability >= 0.9999", "not a percentage"),
    ("availability >= 101 %", "at most 100 %"),
    ("availability > 100 %", "ask for less"),
    ("lost <= 5 %", "not a number of roots"),
    ("lost <= 5 windows", "not a number of roots"),
    ("cost <= 5", "not a price per time"),
    ("recovery_p0 <= 5 s", "there is no p0"),
    ("recovery_p100 <= 5 s", "unknown metric"),
    ("recovery_max >= 5 s", "_max goes with <="),
    ("recovery_min <= 5 s", "_min goes with >="),
    ("recovery_p95 = 5 s", "= asks it of every run"),
    ("recovery_p95 <= 5 s in 95 % of runs", "leave one out"),
    ("recovery <= 5 s in 0 % of runs", "asks for nothing"),
    ("recovery <= 5 s in 95 % of failures", "not of failures"),
    ("recovery <= 5 s in 95 of runs", "not a duration"),
]


@pytest.mark.parametrize(("text", "table", "column", "rule", "limit", "share"), MEANT)
def test_a_text_means(text, table, column, rule, limit, share):
    found = Objective.parse(text)
    assert (found.metric.table, found.metric.column.name, found.rule) == (table, column, rule)
    assert (found.limit, found.share) == (limit, share)


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_another_text_is_refused_where_it_stands(text, message):
    at = Node(text, Origin("job.yaml", 7))
    (said,) = refused(lambda: Objective.parse(text, at=at, key="slo.0"))
    told([said], "job.yaml:7: slo.0: ", message)


def test_every_numeric_column_is_a_metric_under_its_own_name():
    # Of two columns of one name that of runs is meant; the other is named with its table.
    for table in ("recoveries", "runs"):
        for column in TABLES[table]:
            if column.dtype in ("int64", "float64") and column.unit not in ("number", "index"):
                assert names()[column.name].column.name == column.name
                assert names()[f"{table}.{column.name}"].table == table
    both = {one.name for one in TABLES["runs"]} & {one.name for one in TABLES["recoveries"]}
    assert all(names()[name].table == "runs" for name in both & names().keys())


def test_an_objective_goes_to_other_processes():
    found = Objective.parse("recovery_p95 <= 20 s", 0.9)
    assert pickle.loads(pickle.dumps(found)) == found


def test_only_an_objective_of_everything_is_remarked_on():
    for text in ("availability >= 100 %", "throughput >= 1/s in 100 % of the time"):
        (remark,) = Objective.parse(text).remarks(Run(duration=S))
        assert "no error budget" in remark
    for text in ("availability >= 99.99 %", "lost = 0", "recovery <= 3 s in 100 % of runs"):
        assert not Objective.parse(text).remarks(Run(duration=S))


@pytest.mark.parametrize("lumps", [{"lump": 5}, {"lump_rate": 200.0}])
def test_latencies_of_lumps_are_remarked_on(lumps):
    """And nothing else is: neither times to recover nor latencies without lumps."""
    run = Run(duration=S, **lumps)
    (remark,) = Objective.parse("p99_latency <= 500 ms").remarks(run)
    assert f"run.{next(iter(lumps))}" in remark
    assert not Objective.parse("recovery_p95 <= 20 s").remarks(run)
    assert not Objective.parse("p99_latency <= 500 ms").remarks(Run(duration=S))


# Judgements.


def runs(n: int, **columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"replication": range(n), "error": None} | columns)


def recoveries(*of_run: list[float]) -> pd.DataFrame:
    """A recovery for each number, in the replication of the list that it stands in."""
    rows = [(number, value, "recovered") for number, values in enumerate(of_run) for value in values]
    return pd.DataFrame(rows, columns=["replication", "time_to_recover_s", "ended"])


def judged(text: str, found: pd.DataFrame, n: int, level: float = 0.95) -> Any:
    return Objective.parse(text, level).judge(runs(n), found)


def test_a_mean_has_students_interval():
    values = [9.0, 11.0, 10.0, 14.0]
    got = judged("recovery_mean <= 12 s", recoveries(*([v] for v in values)), 4)
    half = 3.182446305 * np.std(values, ddof=1) / 2  # t of 3 degrees of freedom, from a table
    assert got.value == 11
    assert (got.low, got.high) == (pytest.approx(11 - half), pytest.approx(11 + half))
    assert (got.verdict, got.holds, got.n) == ("unsure", True, 4)


@pytest.mark.parametrize(
    ("limit", "verdict", "holds"),
    [("30 s", "met", True), ("12 s", "unsure", True), ("10.5 s", "unsure", False), ("2 s", "broken", False)],
)
def test_an_interval_that_straddles_the_limit_is_unsure(limit, verdict, holds):
    got = judged(f"recovery_mean <= {limit}", recoveries([9.0], [11.0], [10.0], [14.0]), 4)
    assert (got.verdict, got.holds) == (verdict, holds)
    assert any("replications would decide it" in note for note in got.notes) == (verdict == "unsure")


def test_several_recoveries_of_a_run_are_one_observation():
    # Means: 5 and 7. Worst: 8 and 7; with >= the least.
    found = recoveries([2.0, 8.0], [7.0, 7.0])
    assert judged("recovery_mean <= 10 s", found, 2).value == 6
    assert judged("recovery_p99 <= 10 s", found, 2).value == 8
    assert judged("recovery_max <= 10 s", found, 2).value == 8
    assert judged("recovery_min >= 1 s", found, 2).value == 2
    assert judged("recovery <= 7 s in 50 % of runs", found, 2).value == 0.5


def test_what_is_cut_off_counts_as_not_recovered():
    found = recoveries([1.0], [NAN], [1.0], [1.0])
    mean = judged("recovery_mean <= 1000 s", found, 4)
    assert (mean.value, mean.verdict, mean.holds) == (math.inf, "broken", False)
    assert "1 of 4 recoveries were cut off" in mean.notes[0]
    assert judged("recovery_p75 <= 1 s", found, 4).value == 1
    assert judged("recovery_p76 <= 1 s", found, 4).value == math.inf
    assert judged("recovery <= 1000 s in 50 % of runs", found, 4).value == 0.75
    assert judged("recovery_max <= 1000 s", found, 4).breaking == 1


def test_a_failed_run_breaks_the_objective_and_is_named():
    frame = runs(3, lost=[0.0, NAN, 0.0], availability=[1.0, NAN, 1.0])
    frame["error"] = [None, "it broke", None]
    for text in ("lost = 0", "availability >= 10 %", "recovery <= 9 s in 90 % of runs"):
        got = Objective.parse(text).judge(frame, recoveries([1.0], [], [1.0]))
        assert not got.holds
        assert got.notes[0] == "1 of 3 runs failed, and count as broken"


def test_runs_without_a_failure_say_nothing_of_recovery():
    some = judged("recovery <= 5 s in 50 % of runs", recoveries([1.0], [], [9.0], []), 4)
    assert (some.n, some.value) == (2, 0.5)
    assert "2 of 4 runs have nothing of it" in some.notes[0]
    none = judged("recovery <= 5 s", recoveries([], []), 2)
    assert (none.n, none.value, none.verdict, none.holds) == (0, None, "unsure", False)


def test_a_stage_that_a_recovery_did_not_need_is_left_out_and_said():
    # Nothing was replayed in the first, which has ended; the second has not ended.
    frame = recoveries([2.0], [NAN], [3.0]).assign(state_recovery_s=[NAN, NAN, 1.0])
    got = Objective.parse("state_recovery <= 5 s in 50 % of runs").judge(runs(3), frame)
    assert (got.n, got.value) == (2, 0.5)
    assert any("left out: nothing was replayed" in note for note in got.notes)


def test_what_was_never_reached_is_not_left_out():
    """Recovery was over, but the throughput was not back: that is no reason to judge the others alone."""
    frame = recoveries([2.0], [3.0]).assign(throughput_90_s=[NAN, 1.0])
    got = Objective.parse("throughput_90 <= 5 s in 100 % of runs").judge(runs(2), frame)
    assert (got.n, got.verdict) == (2, "broken")


def test_counts_must_hold_in_every_run():
    got = Objective.parse("lost = 0").judge(runs(20, lost=0), recoveries())
    assert (got.verdict, got.value, got.breaking) == ("met", 0, 0)
    assert got.bound == pytest.approx(1 - 0.05 ** (1 / 20))  # the rule of three: about 3 / 20
    once = Objective.parse("lost = 0").judge(runs(20, lost=[*[0] * 19, 7]), recoveries())
    assert (once.verdict, once.value, once.breaking) == ("broken", 7, 1)


def test_parts_of_the_time_are_counted_by_second():
    # Seconds 0 and 1 are warm-up. In second 4 nothing was processed while roots waited; in 5 nothing was due.
    second = {"second": range(6), "backlog": [9, 9, 9, 0, 9, 0], "backlog_without_failures": 0}
    frame = pd.DataFrame(second | {"replication": 0, "end_to_end_max_ms": [900, 900, 900, 1, NAN, NAN]})
    got = Objective.parse("max_latency <= 100 ms in 30 % of the time").judge(
        runs(1), recoveries(), frame, warmup_s=2.0
    )
    assert got.value == pytest.approx(1 / 3)
    assert (got.limit, got.holds, got.verdict) == (0.3, True, "unsure")


def test_utilisation_is_that_of_the_busiest_task():
    tasks = pd.DataFrame({"replication": [0, 0, 1, 1], "utilisation": [0.2, 0.8, 0.1, 0.6]})
    got = Objective.parse("utilisation <= 70 %").judge(runs(2), recoveries(), tasks=tasks)
    assert got.value == pytest.approx(0.7)
    with pytest.raises(ValueError, match="needs the table tasks"):
        Objective.parse("utilisation <= 70 %").judge(runs(2), recoveries())


def test_what_the_scenario_does_not_have_is_not_met():
    got = Objective.parse("cost <= 5/h").judge(runs(2), recoveries())
    assert (got.value, got.verdict, got.holds) == (None, "unsure", False)
    assert "no price_per_h" in got.notes[0]


# Intervals.

LEVELS = st.sampled_from([0.8, 0.9, 0.95, 0.99])


@settings(max_examples=40)
@given(st.integers(1, 80).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), LEVELS)
def test_the_interval_of_a_fraction_is_clopper_and_pearsons(tries, level):
    from scipy.stats import binomtest

    wanted = binomtest(*tries).proportion_ci(level, "exact")
    assert objective.of_fraction(*tries, level) == pytest.approx((wanted.low, wanted.high))


@given(st.floats(0.05, 0.995), LEVELS)
def test_fewer_replications_than_needed_never_decide(share, level):
    least = objective.least_tries(share, level)
    assert objective.of_fraction(least, least, level)[0] >= share - 1e-9
    assert least == 1 or objective.of_fraction(least - 1, least - 1, level)[0] < share


VALUES = st.lists(st.sampled_from([1.0, 2.0, 3.0, 4.0, 5.0, NAN]), min_size=1, max_size=150)
SHARES = st.sampled_from(["50", "90", "95", "99"])


@given(VALUES, SHARES, LEVELS, st.sampled_from(["<=", "<"]))
def test_what_a_part_of_the_runs_decides_a_quantile_decides_alike(values, share, level, sign):
    # The interval of a binomial probability is dual to that of order statistics, between which that of a
    # quantile is interpolated: it is inside.
    found = recoveries(*([value] for value in values))
    quantile = judged(f"recovery_p{share} {sign} 3 s", found, len(values), level)
    part = judged(f"recovery {sign} 3 s in {share} % of runs", found, len(values), level)
    assert part.verdict in (quantile.verdict, "unsure")
    assert quantile.holds == part.holds
    assert quantile.breaking == part.breaking


@given(VALUES, st.sampled_from(["recovery_mean", "recovery_p90", "recovery_max"]))
def test_a_looser_limit_is_never_harder(values, metric):
    found = recoveries(*([value] for value in values))
    order = {"broken": 0, "unsure": 1, "met": 2}
    got = [judged(f"{metric} <= {limit} s", found, len(values)) for limit in (1, 2, 3, 4, 5)]
    assert [order[one.verdict] for one in got] == sorted(order[one.verdict] for one in got)
    assert [one.holds for one in got] == sorted(one.holds for one in got)


@given(st.lists(st.floats(0, 100), min_size=2, max_size=40))
def test_signs_mirror_each_other(values):
    frame = runs(len(values), availability=[value / 100 for value in values])
    for rule in ("mean", "p50"):
        up = Objective.parse(f"availability_{rule} >= 40 %").judge(frame, recoveries())
        down = Objective.parse(f"availability_{rule} < 40 %").judge(frame, recoveries())
        assert up.holds != down.holds
        assert {up.verdict, down.verdict} in ({"met", "broken"}, {"unsure"})


BLOCK = "slo: [recovery_p95 <= 20 s, {objective: lost = 0, level: 0.99}]\n"
SLO = (Slo(objective="recovery_p95 <= 20 s"), Slo(objective="lost = 0", level=0.99))
SHORT = {"run.duration": "80 s", "run.replications": 1}

BROKEN = [
    ("slo: lost = 0", "slo", "must be a list, as in [lost = 0]"),
    ("slo: {objective: lost = 0}", "slo", "must be a list"),
    ("slo: [3]", "slo.0", "must be a text"),
    ("slo: [null]", "slo.0", ""),
    ("slo: [lost = 0, lots = 0]", "slo.1", "did you mean lost?"),
    ("slo: [{objective: lots = 0}]", "slo.0.objective", "did you mean lost?"),
    ("slo: [{level: 0.9}]", "slo.0.objective", "is missing"),
    ("slo: [{objective: lost = 0, levl: 0.9}]", "slo.0.levl", "did you mean 'level'?"),
    ("slo: [{objective: lost = 0, level: 95 %}]", "slo.0.level", "must be a number"),
    ("slo: [{objective: lost = 0, level: 0.5}]", "slo.0.level", "must be more than 0.5"),
    ("slo: [{objective: lost = 0, level: 1}]", "slo.0.level", "must be less than 1"),
    ("sol: [lost = 0]", "sol", "did you mean 'slo'?"),
]


def test_an_entry_is_a_text_or_a_mapping():
    assert load_text(GOOD + BLOCK).slo == SLO
    assert load_text(GOOD).slo == ()


@pytest.mark.parametrize(("block", "key", "message"), BROKEN)
def test_what_is_wrong_is_said_where_it_stands(block, key, message):
    told(refused(load_text, GOOD + block, "job.yaml")[:1], f"job.yaml:12: {key}: ", message)


def test_it_is_no_part_of_what_a_run_depends_on():
    without, with_it = load_text(GOOD), load_text(GOOD + BLOCK)
    assert digest(without, "code") == digest(with_it, "code")
    results = [tideover.run(one, SHORT).to_dict() for one in (without, with_it)]
    assert results[1].pop("scenario").pop("slo")
    assert "slo" not in results[0].pop("scenario")
    assert json.dumps(results[0]) == json.dumps(results[1])


def test_it_travels_with_the_scenario(tmp_path):
    (tmp_path / "job.yaml").write_text(GOOD + BLOCK, "utf-8")
    scenario = tideover.load(tmp_path / "job.yaml")
    assert load(to_data(scenario)).slo == SLO
    assert tideover.load(scenario.to_yaml(tmp_path / "copy.yaml") and tmp_path / "copy.yaml").slo == SLO
    assert scenario.with_({"run.seed": 9}).slo == SLO
    assert [one.slo for one in compared(scenario, ["none", "source_replay"]).values()] == [SLO] * 2
    swept = {"scenario": str(tmp_path / "job.yaml"), "grid": {"run.seed": [1, 2]}}
    jsonschema.validate({**to_data(scenario), "slo": ["lost = 0"]}, json_schema())
    assert sweep_file.read(swept).point(1).scenario.slo == SLO


def test_python_gives_texts_or_typed_objects():
    scenario = tideover.load("wordcount")
    mine = scenario.with_(slo=["lost = 0", parts.Slo(objective="recovery <= 3 s", level=0.9)])
    assert mine.slo == (Slo(objective="lost = 0"), Slo(objective="recovery <= 3 s", level=0.9))
    assert mine.with_({"slo.0.level": 0.8}).slo[0] == Slo(objective="lost = 0", level=0.8)
    assert mine.with_(slo=[]).slo == ()
    with pytest.raises(ScenarioError, match=r"slo\.0.*did you mean lost"):
        scenario.with_(slo=["lots = 0"])
    with pytest.raises(ScenarioError, match=r"must be more than 0\.5"):
        parts.Slo(objective="lost = 0", level=0.3)
