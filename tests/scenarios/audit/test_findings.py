"""What audits find: the guarantees that the literature knows, and where its own authors saw them break.

words x 2 ──shuffle──▶ split x 2 ──fields──▶ count x 2     windows of 10 s ended by markers
"""

import shlex
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

import tideover
from tideover.scenarios.audit.audit import Audit, audit
from tideover.scenarios.audit.cases import asked, target
from tideover.scenarios.spark.settings import Place
from tideover.scenarios.sweeps.sweep import kept


def audited(
    name: str, *settings: str, kinds: str = "crash_task", begin: str = "20 s", end: str = "30 s", **more: Any
) -> Audit:
    """An audit in this process, of one moment a step and one task a component."""
    scenario, command = target(name, ["run.duration=45s", *settings])
    more = {"second": False, **more}
    tried = asked(scenario, kinds=kinds.split(","), begin=begin, end=end, each=1, **more)
    with kept(None, Place(None), lambda what: None) as doer:
        return audit(scenario, command, replace(tried, tasks=1), doer)


@pytest.mark.parametrize(
    ("strategy", "claimed"),
    [
        ("none", "at most once"),
        ("source_replay", "at least once"),
        pytest.param("aligned_snapshots", "exactly once", marks=pytest.mark.long),
    ],
)
def test_what_a_strategy_claims_is_observed(strategy, claimed):
    """Not less (it holds), and not more: amnesia loses, replays count twice."""
    found = audited(strategy, begin="27 s", end="28 s")
    assert (found.claimed, found.observed, found.holds) == (claimed, claimed, True)
    assert not found.quiet.harm


LONG = pytest.mark.long
RECOVERIES = ("checkpoint", "lineage", "replay")
BATCHES = ("strategy.trigger_interval=2 s", "topology.words.rate=1/s", "run.duration=34s")
NO_WINDOW = "topology.count={bolt: forward, from: {split: shuffle}, service: 1 ms}"
OF_TUPLES = "topology.count.window={tuples: 5}"


@pytest.mark.parametrize("recovery", [*(pytest.param(each, marks=LONG) for each in RECOVERIES[:2]), "replay"])
@pytest.mark.parametrize(
    ("setting", "claims"),
    [
        pytest.param("topology.count.window.length=4 s", {}, marks=LONG, id="windows of time"),
        pytest.param(NO_WINDOW, {"replay": "at least once"}, id="no windows"),
        pytest.param(
            OF_TUPLES, dict.fromkeys(RECOVERIES, "at least once"), marks=LONG, id="windows of tuples"
        ),
    ],
)
def test_batches_promise_what_is_observed(recovery, setting, claims):
    """Whatever is kept of a query, windows of time are exact. What is in no window is put out again if
    nothing is kept; windows of tuples hold others where several tasks make the tuples and batches are longer.
    """
    found = audited(
        "micro_batch", *BATCHES, f"strategy.recovery={recovery}", setting, begin="26.09 s", end="26.18 s"
    )
    claimed = claims.get(recovery, "exactly once")
    assert (found.claimed, found.observed, found.holds) == (claimed, claimed, True)


@pytest.mark.parametrize(("trigger", "right"), [("tick", False), ("marker", True)])
def test_replicas_disagree_where_a_timer_ends_windows(trigger, right):
    """Tanuwidjaja 2015: both replicas of split send the same words, which come at other moments. With a timer
    the replicas of the count put out other sums, and which is read is chance: wrong, though nothing fails.
    """
    world = (f"topology.count.window.trigger={trigger}", "links.latency.mean=100 ms", "run.duration=35s")
    found = audited("active_replication", *world, begin="20 s", end="20.1 s")
    assert (found.quiet.wrong == 0, found.holds) == (right, right)


def test_a_window_longer_than_the_timeout_counts_twice():
    """Source replay: tuples are acked at the end of their window of 10 s, and given up after 4 to 8 s."""
    found = audited(
        "source_replay", "strategy.message_timeout=4 s", "run.duration=32s", begin="20 s", end="20.2 s"
    )
    assert found.quiet.duplicated
    assert found.observed == "at least once"


def test_buffers_are_lost_with_the_upstream_task():
    """R+SM keeps its word after each single fault of the count. If the split whose buffer it asks for dies
    meanwhile, what is in it is gone.
    """
    found = audited("rsm", "run.duration=40s", begin="24 s", end="24.5 s", second=True)
    assert found.holds
    assert found.observed == "exactly once"
    lost = {tuple(victim.place for victim in case.victims) for case, verdict in found.doubles if verdict.lost}
    assert ("count", "split") in lost
    assert ("count", "count") not in lost


@pytest.mark.parametrize("during", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_planned_stop_at_each_step(during):
    """Law: a savepoint has all; a crash ``during`` it undoes the stop, and not what was there before. The job
    is stopped, and its hosts, and then to go on with more tasks.
    """
    world = ("run.duration=36s", "topology.count.max_parallelism=3", "strategy.checkpoint_interval=20s")
    kinds = "planned_restart,crash_task" if during else "planned_restart"
    found = audited("aligned_snapshots", *world, kinds=kinds, begin="25 s", end="25.1 s", second=during)
    assert [found.claimed, found.observed] == 2 * ["exactly once"]
    hit = [case.victims[0] for case, _ in found.singles]
    stopped = {victim.name for victim in hit if victim.kind == "planned_restart"}
    assert stopped == {"host 2", "host 4", "the job", "the job, to scale out"}
    steps = {case.strikes[1].text for case, _ in found.doubles if case.victims[0].name == "the job"}
    assert (found.after_two, "at coordinator: snapshot complete" in steps) == (
        ("exactly once", True) if during else (None, False)
    )


STORM = (
    "run.duration=15s",
    "strategy.message_timeout=2s",
    "strategy.checkpoint_interval=1s",
    "topology.count.window.length=100s",
)
"""Transactions of Storm's state checkpoints; the windows are none of their business here."""
SOON: dict[str, Any] = {"detection": "0.2 s", "restart": "0.4 s"}


def found_in(found: Audit, component: str) -> dict[str, str]:
    """Of the examples in which a component fails: what is told of a tuple, by the cause."""
    mine = [e for e in found.examples if e.case.victims[0].place == component]
    return {cause: text for e in reversed(mine) for cause, text in zip(e.causes, e.tuples, strict=False)}


def test_storm_commits_before_it_acks():
    """The first of two causes that Storm's own documentation names: *it is possible that the state is
    committed but the worker crashes before acking the tuples*. One task each, so nobody waits for a marker.

    words ──▶ split ──▶ count
    """
    one = [f"topology.{name}.parallelism=1" for name in ("words", "split", "count")]
    found = audited(
        "storm_checkpoint", *STORM, *one, "topology.words.rate=10/s", begin="10.05 s", end="10.065 s", **SOON
    )
    told = found_in(found, "count")
    assert set(told) == {"counted twice: in a state that was saved; not acked"}
    (text,) = told.values()
    assert "it is in the state to which count.0 went back" in text
    assert "count.0 had not acked it when it failed" in text
    (smallest,) = [e for e in found.examples if e.tuples[0] == text]
    assert smallest.case.strikes[0].text == "at acker: root completed"
    assert ", after committed at 10.0" in text  # of some; the others' acks have been sent


def test_storm_counts_what_comes_while_it_waits_for_a_marker():
    """The second: *it continues to process the tuples from a stream after it has received a checkpoint tuple
    on one stream while waiting for checkpoint to arrive on other input streams*. Such a word is in the state,
    another word of its sentence in the next one, which the crash of a split undoes. No ack is missing.

    words x 2 ──▶ split x 2 ──▶ count x 2     each count waits for two markers; wires take 50 ms
    """
    far = ("topology.words.rate=5/s", "links.latency.mean=50 ms")
    found = audited("storm_checkpoint", *STORM, *far, begin="10 s", end="10.02 s", **SOON)
    told = found_in(found, "split")
    text = told["counted twice: in a state that was saved; a part of the root was not"]
    first, why = text.split("; ", 1)
    own, other = "marker come (1 of 2, from split.1)", "marker come (2 of 2, from split.0)"
    assert first.endswith(f"by count.0 at 9.051064256 s, from split.1, between {own} and {other}")
    assert "it is in the state to which count.0 went back" in why
    assert "the root's tuple at count.1" in why
    assert "undone" in why
    assert "counted twice: in a state that was saved; not acked" not in told


def test_an_example_of_a_scenario_made_in_python_runs_again(tmp_path):
    """Law: where the command says FILE, the scenario as ``to_yaml`` writes it loses what the audit says."""
    scenario = tideover.load("audit", {"strategy.kind": "none", "run.duration": "42 s"})
    found = tideover.audit(scenario, kinds=["lose_state"], end="20.02 s", each=1, second=False, master=None)
    example = found.examples[0]
    command = shlex.split(found.replay(example.case))
    assert command[:3] == ["tideover", "run", "FILE"]
    scenario.to_yaml(tmp_path / "FILE")
    settings = [text for option, text in pairwise(command) if option == "--set"]
    assert tideover.run(tmp_path / "FILE", settings).runs.iloc[0].lost == example.verdict.lost > 0


def test_steps_are_struck_at_the_time_of_day_at_which_they_were_found(tmp_path):
    """10 tuples/s until noon, when the scenario's own failure strikes, at 30 s; from then on none. Without
    it, and with any other, the run begins at 11:59:30, too: there are steps, and with each there is a state
    to lose.
    """
    morning = {"kind": "day", "peak": "10/s", "by_hour": [0] * 11 + [1] + [0] * 12, "interpolation": "steps"}
    scenario = tideover.load(
        {
            "name": "morning",
            "topology": {
                "log": {"spout": "keys", "keys": 1, "arrivals": morning},
                "count": {
                    "bolt": "windowed_count",
                    "from": {"log": "shuffle"},
                    "window": "5 s",
                    "service": "1 ms",
                },
            },
            "strategy": {"kind": "none"},
            "failures": [{"kind": "lose_state", "at": "30 s", "component": "count"}],
            "run": {"duration": "40 s", "fails_at": "12:00"},
        }
    )
    found = tideover.audit(
        scenario, kinds=["lose_state"], begin="12 s", end="14 s", each=1, second=False, master=None
    )
    assert found.scenario.run.starts_at == "11:59:30"
    example = found.examples[0]
    scenario.to_yaml(tmp_path / "FILE")
    settings = [
        text for option, text in pairwise(shlex.split(found.replay(example.case))) if option == "--set"
    ]
    again = tideover.run(tmp_path / "FILE", settings)
    assert again.runs.iloc[0].emitted == 300
    assert again.runs.iloc[0].lost == example.verdict.lost > 0
