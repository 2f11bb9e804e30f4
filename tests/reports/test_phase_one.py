"""Stableford's first phase: which mechanism makes R+SM the slower one, and which makes it lose."""

from __future__ import annotations

from typing import Any

import pytest

import tideover
from tideover.cli.reproduce import PAPERS
from tideover.reports import published

Rows = dict[tuple[str, int, float, float], dict[str, Any]]


@pytest.fixture(scope="module")
def rows() -> Rows:
    """By strategy, free workers, Nimbus's timeout (s), and the time to replay a tuple (ms): other times than
    3.1 ms only where something is asked of them, which source replay does not know anyway.
    """
    paper, cost = PAPERS["stableford-phase1"], "strategies.rsm.replay_cost"
    one = {"strategy.kind": ["rsm"], "hosts": [4], "detector.nimbus_task_timeout": ["30 s"]}
    told: list[dict[str, Any]] = []
    for some in ({cost: ["3.1 ms"]}, one | {cost: ["1 ms", "6.2 ms"]}):
        assert all(value in paper["grid"][key] for key, values in some.items() for value in values)
        sweep = paper | {"grid": paper["grid"] | some, "replications": 1}
        found = tideover.sweep(sweep, master=None)
        told += published.phase_one_rows(found.recoveries, found.runs, found.timeline)
    keys = ("strategy", "free_workers", "nimbus_s")
    return {(*(row[key] for key in keys), round(1000 * row["replay_cost_s"], 1)): row for row in told}


def test_source_replay_recovers_sooner(rows: Rows) -> None:
    """What R+SM has to replay takes longer than what source replay waits for and emits again: as published
    with the timeouts that were published, and without their race.
    """
    for nimbus, restarts in ((30, 2), (120, 1)):
        replay, burst = rows["source_replay", 1, nimbus, 3.1], rows["rsm", 1, nimbus, 3.1]
        assert replay["restarts"] == burst["restarts"] == restarts
        assert replay["replayed_until_s"] + 30 < burst["replayed_until_s"]
        assert replay["roots_lost"] == burst["roots_lost"] == 0


def test_the_spout_keeps_its_rate_only_where_nothing_is_emitted_again(rows: Rows) -> None:
    """1 / 10.53 ms = 94.97 roots a second; retries take calls of their own."""
    assert rows["rsm", 1, 30, 3.1]["new_roots_per_s"] == pytest.approx(1000 / 10.53, rel=0.005)
    assert rows["source_replay", 1, 30, 3.1]["new_roots_per_s"] < 0.95 * 1000 / 10.53


@pytest.mark.parametrize("cost", [3.1, 6.2])
def test_the_latency_grows_while_replays_are_slower_than_what_comes(rows: Rows, cost: float) -> None:
    """4.4 words a sentence, so a word each 2.393 ms. One that is replayed c later than the one before was
    created 2.393 ms later: the age grows by 1 - 2.393 / c a second (within 5 %: words differ in number).
    """
    slope = 60 * (1 - 10.53 / 4.4 / cost)
    assert rows["rsm", 1, 30, cost]["growth_s_per_min"] == pytest.approx(slope, rel=0.05)


def test_a_faster_replay_ends_it(rows: Rows) -> None:
    assert rows["rsm", 1, 30, 1]["growth_s_per_min"] < 0
    assert rows["rsm", 1, 30, 1]["replayed_until_s"] < rows["rsm", 1, 30, 3.1]["replayed_until_s"]


def test_the_race_makes_the_outage_and_the_replay_longer(rows: Rows) -> None:
    race, one = rows["rsm", 1, 30, 3.1], rows["rsm", 1, 120, 3.1]
    assert race["back_s"] > one["back_s"]
    assert race["replayed_until_s"] - race["back_s"] > one["replayed_until_s"] - one["back_s"]


def test_without_a_free_worker_the_race_takes_the_buffer(rows: Rows) -> None:
    """Three restarts, the upstream worker's two among them: nothing is replayed, and roots are lost; source
    replay loses nothing, but waits for its timeouts again.
    """
    race, replay = rows["rsm", 0, 30, 3.1], rows["source_replay", 0, 30, 3.1]
    assert race["restarts"] == replay["restarts"] == 3
    assert race["roots_lost"] > 0 == rows["rsm", 0, 120, 3.1]["roots_lost"]
    assert race["greatest_latency_s"] < 1
    assert replay["roots_lost"] == 0
    assert replay["replayed_until_s"] > rows["source_replay", 0, 120, 3.1]["replayed_until_s"] + 30


def test_what_a_few_replications_replay_is_said_to_be_so(rows: Rows) -> None:
    """A mean over some of them stands with their number; without any there is none."""
    one = dict(rows["rsm", 1, 30, 3.1]) | {"replayed_until_s": 53.84, "replayed_in": 1, "replications": 3}
    every = [one, one | {"replayed_in": 3}, one | {"replayed_until_s": None, "replayed_in": 0}]
    shown = published.phase_one_table(every)
    place = shown.columns.index("replayed until, s")
    assert [row[place] for row in shown.rows] == ["53.8 in 1 of 3", "53.8", "nothing"]


def test_full_queues_hold_the_spout_back_and_make_the_replay_shorter(rows: Rows) -> None:
    """Under R+SM: what was not emitted need not be replayed."""
    one = {"strategy.kind": "rsm", "queues.length": 1024, "run.duration": "250 s"}
    sweep = PAPERS["stableford-phase1-queues"]
    found = tideover.sweep(sweep | {"replications": 1}, one, master=None)
    (full,) = published.phase_one_rows(found.recoveries, found.runs, found.timeline)
    free = rows["rsm", 1, 30, 3.1]
    assert full["queue_length"] == 1024
    assert full["new_roots_per_s"] < 0.9 * free["new_roots_per_s"]
    assert full["replayed_until_s"] + 15 < free["replayed_until_s"]
    assert full["roots_lost"] == 0
