"""When faults strike: once, at a drawn moment, again, together, by rate, or from a file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tideover.models.simulation import simulate
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load
from tideover.sim.distributions import Constant
from tideover.sim.draws import Draws
from tideover.sim.fault_kinds import Cascade, CrashTask, Events, LoseState, MachinesFail
from tideover.sim.faults import Fault, Site
from tideover.sim.units import DAY, S


def moment(fault: LoseState, replication: int, index: int = 0, cycle: tuple[int, int] | None = None) -> int:
    (found,) = fault.moments(index, Draws(1, replication), 1000 * S, cycle)
    return found


def test_a_drawn_moment_is_spread_evenly_over_the_span() -> None:
    """at + U with U uniform in [0, 30 s): of 3000 replications the mean of U is 15 s, give or take 5 standard
    errors (30 s / sqrt(12) / sqrt(3000) = 0.158 s); each of 30 seconds has some 100 of them, give or take 5
    standard deviations of a Poisson count.
    """
    fault = LoseState(at=75 * S, within=30 * S, component="count")
    drawn = [moment(fault, number) / S - 75 for number in range(3000)]
    assert min(drawn) >= 0
    assert max(drawn) < 30
    assert sum(drawn) / 3000 == pytest.approx(15, abs=5 * 0.158)
    seconds = [sum(int(u) == second for u in drawn) for second in range(30)]
    assert all(50 < count < 150 for count in seconds)
    assert moment(fault, 0, index=1) != moment(fault, 0)


@given(at=st.integers(0, 10**12), within=st.integers(1, 10**12), number=st.integers(0, 99))
def test_a_drawn_moment_lies_in_its_span(at: int, within: int, number: int) -> None:
    """In [at, at + within), and ``latest`` is the last of them; without a span, or with one of 0, at."""
    fault = LoseState(at=at, within=within, component="count")
    assert at <= moment(fault, number) <= fault.latest == at + within - 1
    for exactly in (None, 0):
        fixed = LoseState(at=at, within=exactly, component="count")
        assert moment(fixed, number) == fixed.latest == at
        assert not fixed.drawn


def test_a_fraction_of_the_interval_is_taken_after_the_draw() -> None:
    """A quarter into the interval that follows the drawn moment: which interval it is differs, where in it
    does not.
    """
    fault = LoseState(at=75 * S, within=60 * S, in_interval=0.25, component="count")
    free = LoseState(at=75 * S, within=60 * S, component="count")
    found = [(moment(free, n), moment(fault, n, cycle=(8 * S, 8 * S))) for n in range(20)]
    assert len({later for _, later in found}) > 3
    for drawn, later in found:
        assert later % (8 * S) == 2 * S
        assert drawn <= later < drawn + 8 * S


def test_the_moment_is_the_same_whatever_the_strategy_and_its_interval() -> None:
    """Strategies and intervals are compared on the same luck; replications differ."""
    found, settings = set(), ["failures.0.at=65s", "failures.0.within=30s", "run.replications=3"]
    for kind in ("rsm", "aligned_snapshots", "source_replay", "active_replication"):
        more = ["strategies.rsm.checkpoint_interval=24s", "topology.sentences.rate=3/s"]
        scenario = load("wordcount", [*settings, f"strategy.kind={kind}", *more])
        rows = [simulate(scenario, number).recoveries for number in range(3)]
        found.add(tuple(row["failed_at_s"] for (row,) in rows))
    ((one, two, three),) = found
    assert len({one, two, three}) == 3
    assert all(65 <= at < 95 for at in (one, two, three))


def struck(fault: Fault, end: int, hosts: int, replication: int = 0) -> list[tuple[float, str]]:
    """(when in s, where) of all strikes."""
    found = list(fault.strikes(0, Draws(1, replication), Site(end, hosts)))
    assert [moment for moment, _ in found] == sorted(moment for moment, _ in found)
    return [(moment / S, each.where) for moment, each in found]


def test_what_flaps_goes_down_so_many_times() -> None:
    """Down at 10, 14 and 18 s, for 1 s each: three recoveries."""
    flapping = CrashTask(at=10 * S, times=3, period=4 * S, restart=1 * S, component="count")
    assert struck(flapping, 60 * S, 1) == [(10, "count"), (14, "count"), (18, "count")]
    setting = "failures=[{kind: crash_task, component: count, at: 10 s, times: 3, period: 4 s, restart: 1 s}]"
    rows = simulate(load("wordcount", [setting])).recoveries
    assert [(row["failed_at_s"], row["ready_at_s"]) for row in rows] == [(10, 11), (14, 15), (18, 19)]


def test_machines_fail_ten_times_a_day_in_two_thousand() -> None:
    """A Poisson process: over 100 days some 1,000 failures, give or take 5 standard deviations (158)."""
    count = len(struck(MachinesFail(), 100 * DAY, 2000))
    assert abs(count - 1000) < 5 * math.sqrt(1000)


def test_a_machine_under_repair_does_not_fail() -> None:
    """Lives of 10 s and repairs of 5 s: host 0 fails at 10, 25, 40, … Two hosts, one crew: both fail at 10,
    the first is repaired until 15, the other until 20; then at 25 and 30, when no one waits.
    """
    lives = {"lifetime": Constant(value=10 * S), "repair": Constant(value=5 * S)}
    assert [at for at, _ in struck(MachinesFail(**lives), 60 * S, 1)] == [10, 25, 40, 55]
    found = list(MachinesFail(crews=1, **lives).strikes(0, Draws(1), Site(35 * S, 2)))
    told = [(moment // S, each.host, each.out_of_order // S) for moment, each in found]  # type: ignore[attr-defined]
    assert told == [(10, 0, 5), (10, 1, 10), (25, 0, 5), (30, 1, 5)]


def test_a_host_takes_others_along() -> None:
    """Each of three others follows with probability 0.25, evenly spread over 8 s: over 2,000 strikes 1,500
    followers, give or take 5 standard deviations (34), 4 s later in the mean (standard error 0.06).
    """
    cascade = Cascade(at=100 * S, host=0, probability=0.25, span=8 * S)
    followers = [one for n in range(2000) for one in struck(cascade, 200 * S, 4, n)[1:]]
    assert abs(len(followers) - 1500) < 5 * math.sqrt(6000 * 0.25 * 0.75)
    assert all(100 <= at < 108 for at, _ in followers)
    assert abs(np.mean([at - 100 for at, _ in followers]) - 4) < 5 * 8 / math.sqrt(12 * 1400)
    assert {where for _, where in followers} == {"host 1", "host 2", "host 3"}
    named = Cascade(at=100 * S, host=0, others=(2,), probability=1)
    assert struck(named, 200 * S, 4) == [(100, "host 0"), (100, "host 2")]


def test_a_kind_that_hits_nothing_anywhere_is_refused() -> None:
    class Nowhere(Fault):
        """Says neither where it strikes nor whom."""

        kind: ClassVar[str] = "nowhere"

    with pytest.raises(NotImplementedError, match="nowhere gives neither hits nor victims"):
        Nowhere(at=S).victims(None)  # type: ignore[arg-type]


def test_a_row_of_a_file_names_several_hosts(tmp_path: Path) -> None:
    file = tmp_path / "events.csv"
    file.write_text("time,kind,hosts,others,duration\n40 s,partition,0 2,1,5 s\n50 s,partition,1,,5 s\n")
    assert struck(Events(file=str(file)), 200 * S, 3) == [(40, "hosts 0, 2 and 1"), (50, "hosts 1")]


def test_a_row_of_a_file_strikes_as_its_kind_does(tmp_path: Path) -> None:
    """A cascade takes others along, what flaps comes again, what is drawn is drawn anew for each row and
    replication; all in the order of time.
    """
    file = tmp_path / "events.csv"
    rows = (
        "40 s,cascade,0,1,,,",
        "10 s,crash_host,3,,,2,5 s",
        "70 s,crash_host,1,,30 s,,",
        "70 s,crash_host,1,,30 s,,",
    )
    file.write_text("\n".join(["time,kind,host,probability,within,times,period", *rows]))
    found = [struck(Events(file=str(file)), 200 * S, 3, n) for n in range(2)]
    certain = [(10, "host 3"), (15, "host 3"), (40, "host 0"), (40, "host 1"), (40, "host 2")]
    assert [each[:5] for each in found] == [certain, certain]
    drawn = [at for each in found for at, _ in each[5:]]
    assert len(set(drawn)) == 4
    assert all(70 <= at < 100 for at in drawn)


GOOD = "time,kind,component,host,restart\n80 s,crash_host,,1,4 s\n75 s,crash_task,count,,2 s\n"


def test_failures_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text(GOOD)
    setting = f"failures=[{{kind: events, file: {tmp_path / 'events.csv'}}}]"
    rows = simulate(load("wordcount", [setting])).recoveries
    found = [(row["kind"], row["component"], row["failed_at_s"], row["ready_at_s"]) for row in rows]
    assert found == [("crash_task", "count", 75, 77), ("crash_host", "host 1", 80, 84)]
    (tmp_path / "deploys.csv").write_text("time,kind,hosts,down,pause\n80 s,planned_restart,1 0,4 s,9 s\n")
    (strike,) = struck(Events(file=str(tmp_path / "deploys.csv")), 200 * S, 3)
    assert strike == (80, "hosts 1, 0")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (GOOD.replace("time,", "when,"), "events.csv:1: the first line must begin with time,kind"),
        (GOOD.replace("75 s", "75"), "events.csv:3: time: '75' has no unit"),
        (GOOD.replace("crash_task", "crash_tusk"), "events.csv:3: kind: 'crash_tusk' is none of "),
        (GOOD.replace(",1,", ",one,"), "events.csv:2: host: "),
        (GOOD.replace("count", "cont"), "events.csv:3: component: there is no component 'cont'"),
        (GOOD.replace(",,2 s", ",,2 s,7"), "events.csv:3: has 6 cells for 5 columns"),
        (GOOD.replace(",component", ",comp"), "events.csv:3: comp: unknown column; known: time, "),
        (GOOD.replace("count", ""), "events.csv:3: component: is missing; component that is hit"),
        (GOOD.replace(",restart", ",turn"), "events.csv:2: turn: unknown column; known: "),
        (GOOD.replace(",restart", ",in_interval"), "events.csv:2: in_interval: unknown column; known: "),
        ("time,kind\n", "events.csv: at least one row is needed"),
        ("time,kind,down\n9 s,planned_restart,9\n", "events.csv:2: down: '9' has no unit"),
        ("time,kind,parallelism\n9 s,planned_restart,2\n", "events.csv:2: parallelism: unknown column; "),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "events.csv").write_text(text)
    with pytest.raises(ScenarioError) as caught:
        load("wordcount", [f"failures=[{{kind: events, file: {tmp_path / 'events.csv'}}}]"])
    assert says in str(caught.value)


LOSS = "kind: lose_state, component: count"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (
            ["failures.0.at=65s", "failures.0.within=200s"],
            "--set: failures.0.within: reaches beyond the run, which ends at 240 s: the failure may come as "
            "late as 265 s",
        ),
        (
            [f"failures=[{{{LOSS}, every: 50 s, within: 5 s}}]"],
            "failures.0: within goes with at, not with every",
        ),
        (["failures.0.within=30"], "--set: failures.0.within: 30 has no unit"),
        (
            [
                "strategy.kind=rsm",
                f"failures.0={{{LOSS}, at: 200 s, within: 40 s}}",
                "failures.0.in_interval=1",
            ],
            "failures.0.in_interval: the first such moment is 240 s",
        ),
        (["failures=[{kind: machines_fail, at: 5 s}]"], "failures.0: it has moments of its own"),
        ([f"failures=[{{{LOSS}, at: 5 s, times: 3}}]"], "times (how often) and period"),
        ([f"failures=[{{{LOSS}, every: 5 s, times: 3, period: 1 s}}]"], "times goes with at"),
        (
            ["failures=[{kind: cascade, at: 5 s, host: 0, others: [0, 77]}]"],
            "failures.0.others.1: there is no host 77",
        ),
        (["failures=[{kind: events, file: nowhere.csv}]"], "failures.0.file: cannot read 'nowhere.csv'"),
    ],
)
def test_moments_that_cannot_be_are_refused(settings: list[str], says: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load("wordcount", settings)
    assert says in str(caught.value)


def test_a_span_may_end_with_the_run() -> None:
    load("wordcount", ["failures.0.at=200s", "failures.0.within=40s"])
