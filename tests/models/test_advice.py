"""Remarks before a run, and on one: they name what is wrong where it is wrong, and are silent elsewhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.models.loaded import log_and_job
from tests.sweeps import points
from tideover.models.advice import in_short, task_loads, warnings
from tideover.models.config import topology_of
from tideover.models.simulation import simulate
from tideover.scenarios.loader import load, load_text
from tideover.scenarios.runs import run
from tideover.scenarios.sweeps import sweep_file


def text(topology: str, strategy: str = "none", duration: str = "60 s", more: str = "") -> str:
    """A scenario; one line for each component."""
    lines = "".join(f"  {line.strip()}\n" for line in topology.strip().splitlines())
    return f"topology:\n{lines}strategy: {strategy}\nrun: {{duration: {duration}}}\n{more}"


READ = "read: {bolt: forward, from: {log: shuffle}, service: 1 ms}"
COUNTS = "bolt: windowed_count, from: {read: {fields: [key]}}, window: 5 s"
SKEWED = f"""
  log: {{spout: keys, keys: 100, exponent: 1.2, rate: 2000/s}}
  read: {{bolt: generic, selectivity: 1.5, from: {{log: shuffle}}, service: 0.1 ms}}
  count: {{{COUNTS}, service: 0.5 ms, parallelism: 4}}
"""
WORDS = """
  log: {spout: sentences, rate: 100/s}
  split: {bolt: split_words, from: {log: shuffle}, service: 1 ms, parallelism: 2}
  keep: {bolt: filter, keep: 0.5, from: {split: all}, service: 0.2 ms, parallelism: 2}
  count: {bolt: windowed_count, from: {keep: {fields: [word]}}, service: 0.5 ms, window: 5 s, parallelism: 4}
  end: {bolt: forward, from: {split: global}, service: 0.3 ms, parallelism: 2}
"""


@pytest.mark.parametrize("topology", [SKEWED, WORDS], ids=["skewed", "words"])
def test_the_load_of_each_task_is_what_a_run_shows(topology: str) -> None:
    """Rate of the keys that a grouping sends to a task, times the service: busy time by task agrees but for
    the luck of the draw. 120,000 tuples and more: 2 % of a load, or 0.01.
    """
    scenario = load_text(text(topology))
    loads = task_loads(topology_of(scenario), scenario.strategy)
    expected = {f"{name}.{i}": x for name, load in loads.items() for i, x in enumerate(load.loads)}
    found = {row["task"]: row["utilisation"] for row in simulate(scenario).tasks}
    assert found == {task: pytest.approx(x, rel=0.02, abs=0.01) for task, x in expected.items()}


SAVING = f"""
  log: {{spout: keys, keys: 40, rate: 200/s}}
  {READ}
  count: {{{COUNTS}, service: 1 ms}}
"""


@pytest.mark.parametrize(
    ("strategy", "read", "count"),
    [
        ("{kind: source_replay, ack_cost: 0.5 ms}", 0.3, 0.3),
        ("{kind: rsm, checkpoint_interval: 1 s, serialise_time: 50 ms, serialise_cost: 2 ms}", 0.2, 0.33),
        ("{kind: aligned_snapshots, checkpoint_interval: 1 s, snapshot_time: 50 ms, snapshot_cost: 2 ms}",
         0.2, 0.33),
    ],
)  # fmt: skip
def test_what_a_strategy_adds_to_the_load_is_what_a_run_shows(
    strategy: str, read: float, count: float
) -> None:
    """200/s of 1 ms; half of that more for each ack, or 50 ms and 40 times 2 ms in every second where there
    is state. The run's last window is not acked, and a window that has just begun has fewer keys: 0.02.
    """
    scenario = load_text(text(SAVING, strategy, "100 s"))
    loads = task_loads(topology_of(scenario), scenario.strategy)
    assert (loads["read"].load, loads["count"].load) == pytest.approx((read, count))
    found = [row["utilisation"] for row in simulate(scenario).tasks]
    assert found == pytest.approx([read, count], abs=0.02)


def test_shares_of_hot_keys_by_hand() -> None:
    """Weights 1, 1/2, 1/3, 1/4 of Zipf's law (sum 25/12) over two tasks: keys 0 and 2 go to the first,
    (4/3) / (25/12) = 0.64 of 100/s; at 10 ms each its load is 0.64, the other one's 0.36.
    """
    topology = """
    log: {spout: keys, keys: 4, exponent: 1, rate: 100/s}
    count: {bolt: windowed_count, from: {log: {fields: [key]}}, service: 10 ms, window: 5 s, parallelism: 2}
    """
    scenario = load_text(text(topology))
    found = task_loads(topology_of(scenario), scenario.strategy)["count"]
    assert found.loads.tolist() == pytest.approx([0.64, 0.36])
    assert warnings(scenario) == []
    (hot,) = warnings(load_text(text(topology), settings=["topology.log.rate=160/s"]))
    assert hot.startswith("count.0: load 1.02: this task gets 64 % of the tuples of count, 102.4/s")
    assert "the average task has a load of 0.80" in hot


def test_a_hot_key_is_named_before_the_run_and_by_it() -> None:
    """3000 tuples/s of 1.2 ms for four tasks: 0.9 each on average; the task of the most frequent key has more
    than 1, so its queue grows, and it is busy all the time.
    """
    scenario = load_text(text(SKEWED), settings=["topology.count.service=1.2 ms", "run.duration=30 s"])
    before, after = run(scenario).warnings
    assert before.startswith("count.0: load ")
    assert "the average task has a load of 0.90" in before
    assert before.endswith("its queue grows without end")
    assert re.match(r"count\.0 limited the run: it was busy (9[5-9]|100) % of the time", after)
    assert "s of work, wait for it at the end" in after
    calm = load_text(text(SKEWED), settings=["run.duration=30 s"])
    assert run(calm).warnings == []


def test_a_load_that_passes_is_not_said_to_grow_without_end(tmp_path: Path) -> None:
    """200/s for 10 s of 100, else 20/s: 38/s in the mean. At 10 ms each only the peak is too much."""
    (tmp_path / "curve.csv").write_text("time_s,rate_per_s\n0,20\n50,200\n60,20\n")
    curve = {"arrivals": {"kind": "trace", "file": str(tmp_path / "curve.csv")}}
    (passing,) = warnings(log_and_job(curve, {"service": "10 ms"}, duration="100 s"))
    assert passing.startswith("job: load 2.00")
    assert "while the input is at its highest" in passing
    curve["arrivals"]["scale"] = 10
    (lasting,) = warnings(log_and_job(curve, {"service": "10 ms"}, duration="100 s"))
    assert "without end" in lasting


STORM = text(
    f"""
    log: {{spout: keys, keys: 10, rate: 100/s}}
    {READ}
    count: {{{COUNTS}, service: 1 ms}}
    """,
    "{kind: source_replay, message_timeout: 10 s}",
    "150 s, warmup: 10 s",
    "failures: [{kind: crash_task, component: read, at: 50 s, restart: 30 s, while_down: hold}]\n",
)


def test_false_timeouts_of_what_is_held_are_foreseen_and_told() -> None:
    """Tuples of 50 s wait for read until 80 s, and time out after 10 to 20 s though nothing of them is lost.
    If they are dropped they are lost; if read is back after 1 s they are acked at 55 s, in time.
    """
    (before,) = warnings(load_text(STORM))
    assert before.startswith("failures.0: what waits for read is not lost")
    assert "waits up to 30 s for its ack, and can time out after 10 s" in before
    found = run(load_text(STORM))
    count = found.to_dict()["ledger"]["false_timeouts"]
    assert count > 1000
    assert any(said.startswith(f"false timeouts: {count:,} of ") for said in found.warnings)
    assert any("(strategy.message_timeout is 10 s)" in said for said in found.warnings)
    for calm in ("failures.0.while_down=drop", "failures.0.restart=1 s"):
        found = run(load_text(STORM, settings=[calm]))
        assert found.to_dict()["ledger"]["false_timeouts"] == 0
        assert found.warnings == []


INTERVALS = {"5 s": "at the end of", "9 s": "3 s into", "24 s": "3 s into"}


def test_a_moment_in_step_with_the_interval_is_remarked() -> None:
    """75 = 15 x 5 = 8 x 9 + 3 = 3 x 24 + 3. What says that the moment is meant, or lets it vary, ends the
    remark; so does a strategy without an interval, and a run that is one example only.
    """
    fixed = ["failures.0={kind: lose_state, component: count, at: 75 s}", "strategy.kind=rsm"]
    for interval, where in INTERVALS.items():
        (said,) = warnings(load("wordcount", [*fixed, f"strategy.checkpoint_interval={interval}"]))
        assert f"it strikes {where} an interval of {interval};" in said
        cure = f"failures.0.within={interval.replace(' ', '')}"
        assert f"{cure} draws the moment" in said
        assert warnings(load("wordcount", [*fixed, f"strategy.checkpoint_interval={interval}", cure])) == []
    ends = ("failures.0.within=0 s", "failures.0.in_interval=0.5", "run.replications=1")
    for more in (*ends, "strategy.kind=source_replay"):
        assert warnings(load("wordcount", [*fixed, more])) == []
    later = ["failures.0.at=230 s", "strategy.checkpoint_interval=20 s"]
    (late,) = warnings(load("wordcount", [*fixed, *later]))
    assert "failures.0.in_interval says how far into it" in late


def test_under_drawn_moments_a_longer_interval_takes_longer() -> None:
    """What is replayed is what came since the last checkpoint: at 75 s 3 s of it under 24 s, 5 s under 5 s,
    so the longer interval wins. With the same drawn moments it never does: the last multiple of 24 s is
    one of 4 s too, so it is no later than the last multiple of 4 s.
    """

    def times(*settings: str) -> list[float]:
        scenario = load("wordcount", ["strategy.kind=rsm", "run.replications=12", *settings])
        rows = [simulate(scenario, number).recoveries[0] for number in range(12)]
        return [row["state_recovery_s"] for row in rows]

    def interval(text: str) -> str:
        return f"strategy.checkpoint_interval={text}"

    at_75 = ("failures.0.at=75 s", "failures.0.within=0 s")
    assert max(times(*at_75, interval("24 s"))) < min(times(*at_75, interval("5 s")))
    short, long = times(interval("4 s")), times(interval("24 s"))
    assert all(a <= b for a, b in zip(short, long, strict=True))
    assert sum(long) > 2 * sum(short)


def test_one_replication_of_a_drawn_moment_is_remarked() -> None:
    (said,) = warnings(load("wordcount", ["run.replications=1"]))
    assert said.startswith("run.replications is 1, and the moment of failures.0 is drawn")
    again = "failures=[{kind: lose_state, component: count, every: {kind: exponential, mean: 50 s}}]"
    assert len(warnings(load("wordcount", ["run.replications=1", again]))) == 1
    assert warnings(load("wordcount", ["run.replications=1", "failures=[]"])) == []
    assert warnings(load("wordcount", ["run.replications=2"])) == []


def strategy(kind: str, **given: str) -> Any:
    keys = "".join(f", {key}: {value}" for key, value in given.items())
    failures = "failures: [{kind: lose_state, component: count, every: 20 s}]\n"
    return load_text(text(WORDS, f"{{kind: {kind}{keys}}}", more=failures))


def costs(scenario: Any) -> list[str]:
    return [said for said in warnings(scenario) if "nothing says how long" in said]


@pytest.mark.parametrize(
    ("kind", "interval", "one", "says"),
    [
        ("rsm", {"checkpoint_interval": "1 s"}, "serialise_cost",
         "checkpoints (serialise_time, serialise_cost), restores (restore_time, restore_cost) and replays"),
        ("aligned_snapshots", {"checkpoint_interval": "1 s"}, "snapshot_time",
         "snapshots (snapshot_time, snapshot_cost) and restores (restore_time, restore_cost) take"),
        ("micro_batch", {"trigger_interval": "1 s"}, "commit_time", "batches (plan_time, task_time, "),
    ],
)  # fmt: skip
def test_costs_that_nobody_chose_are_named(kind: str, interval: dict[str, str], one: str, says: str) -> None:
    """The keys of the strategy in use; not if one is given, even as 0; others save no state."""
    (said,) = costs(strategy(kind, **interval))
    assert f"nothing says how long {says}" in said
    assert costs(strategy(kind, **interval, **{one: "1 ms"})) == []
    assert costs(strategy(kind, **interval, **{one: "0 s"})) == []
    assert costs(strategy("source_replay")) == costs(strategy("active_replication", k="1")) == []


def test_costs_do_not_matter_without_state_nor_those_of_a_recovery_without_failures() -> None:
    rsm = {"kind": "rsm", "checkpoint_interval": "1 s"}
    (said,) = costs(load_text(text(WORDS, "{kind: rsm, checkpoint_interval: 1 s}")))
    assert "restores" not in said
    assert costs(log_and_job({"rate": "10/s"}, {"service": "1 ms"}, strategy=rsm, duration="60 s")) == []


def test_a_profile_gives_costs() -> None:
    """The built-in scenarios of micro-batches have theirs from a profile."""
    for name in ("micro-batch", "running-count", "flink-recovery"):
        assert warnings(load(name)) == []


def test_an_overload_is_told_by_the_run_itself() -> None:
    """A pause for a quarter of the run leaves more than 5 % of its length to do, though the load is 0.8: 60 s
    at 80/s are 48 s of work, of which 0.2 s a second is worked off in the 60 s left.
    """
    pause = {"kind": "pause", "at": "120 s", "duration": "60 s"}
    found = run(log_and_job({"rate": "80/s"}, {"service": "10 ms"}, [pause], duration="240 s"))
    (row,) = simulate(found.scenario).tasks
    assert row["queued_s"] == pytest.approx(60 * 0.8 - 60 * 0.2, abs=0.1)
    assert warnings(found.scenario) == []
    assert any(said.startswith("job.0 limited the run") for said in found.warnings)


def test_of_many_scenarios_one_remark_of_a_kind_is_shown() -> None:
    """Points of a sweep differ in the figures of a remark, not in what it is about."""
    told = ["a: load 1.1: too much", "b: other", "a: load 1.2: too much", "a: load 1.1: too much", "b: other"]
    assert in_short(told) == ["a: load 1.1: too much (and 1 more of this kind)", "b: other"]
    swept = {
        "strategy.kind": ["rsm", "aligned_snapshots"],
        "strategy.checkpoint_interval": ["2 s", "4 s", "8 s"],
    }
    recipe = sweep_file.read({"scenario": "wordcount", "set": {"failures.0.within": None}, "grid": swept})
    (said,) = in_short(each for point in points(recipe) for each in warnings(point.scenario))
    assert said.startswith("failures.0.at: in every replication it strikes 1 s into an interval of 2 s")
    assert said.endswith("(and 2 more of this kind)")


IN_ORDER = [
    ("rsm", ["checkpoint_interval 0.5 s: a checkpoint of 40", "count: windows by tuple",
             "host 0 has tasks of log", "failures: rsm has no driver",
             "failures: rsm does not promise to survive crash_host", "strategy rsm: nothing says"]),
    ("aligned_snapshots", ["failures: aligned_snapshots has no", "checkpoint_interval 0.5 s: a snapshot",
                           "strategy aligned_snapshots: nothing says"]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "starts"), IN_ORDER)
def test_each_remark_is_said_once_in_its_place(kind: str, starts: list[str]) -> None:
    """State that takes longer to save than the interval, windows that a replay mixes, a host with sender and
    receiver, and a driver that there is not: before snapshots, after checkpoints.
    """
    faults = "[{kind: crash_task, component: driver, every: 9 s}, {kind: crash_host, host: 0, every: 9 s}]"
    settings = ["topology.count.window={tuples: 40}", "topology.read.parallelism=2", "hosts=1"]
    settings += ["store.latency=900 ms", f"failures={faults}", "run.replications=2"]
    given = text(SAVING, f"{{kind: {kind}, checkpoint_interval: 500 ms}}", "100 s")
    said = warnings(load_text(given, settings=settings))
    assert [each[: len(start)] for each, start in zip(said, starts, strict=True)] == starts


@pytest.mark.parametrize(("component", "said"), [("read", "has no state"), ("count", "spout_buffer=true")])
def test_what_nobody_keeps_for_a_replay_is_said_before_it_is_lost(component: str, said: str) -> None:
    """R+SM replays to tasks with state, from buffers of bolts: a stateless task, and one that a spout feeds,
    lose what was on the way; with a buffer at the spout the latter loses nothing, and nothing is said.
    """
    topology = f"""
    log: {{spout: keys, keys: 10, rate: 50/s}}
    {READ}
    count: {{{COUNTS.replace("read", "log")}, service: 1 ms}}
    """
    costs = "serialise_time: 1 ms, restore_time: 1 ms, replay_cost: 1 ms"
    crash = f"failures: [{{kind: crash_task, component: {component}, at: 20 s, within: 0 s, restart: 1 s}}]\n"
    found, kept = (
        run(load_text(text(topology, f"{{kind: rsm, checkpoint_interval: 2 s, {more}}}", "40 s", crash)))
        for more in (costs, f"{costs}, spout_buffer: true")
    )
    assert found.replications[0].ledger["lost"] > 0
    assert [remark for remark in found.warnings if remark.startswith(f"{component}:") and said in remark]
    silent = component == "count"
    assert (kept.replications[0].ledger["lost"] == 0) is silent
    assert any(said in remark for remark in kept.warnings) is not silent


@pytest.mark.parametrize(
    ("hosts", "on"),
    [("0, 0, 1", []), ("1, 0, 0", ["host 0"]), ("0, 1, 1", ["host 1"]), ("1, 1, 1", ["host 1"])],
)
def test_hosts_that_are_stopped_one_after_the_other_are_not_lost_together(hosts: str, on: list[str]) -> None:
    """A buffer is lost with those who read from it where both ends are on one of them."""
    log, read, count = hosts.split(", ")
    topology = f"""
    log: {{spout: keys, keys: 10, rate: 50/s, hosts: [{log}]}}
    {READ[:-1]}, hosts: [{read}]}}
    count: {{{COUNTS}, service: 1 ms, hosts: [{count}]}}
    """
    stops = "[{kind: planned_restart, at: 20 s, hosts: [1, 0]}, {kind: crash_host, at: 30 s, host: 1}]"
    strategy = "{kind: rsm, checkpoint_interval: 2 s}"
    said = warnings(load_text(text(topology, strategy, "40 s", f"hosts: 2\nfailures: {stops}\n")))
    together = [remark for remark in said if "read and count: its crash takes tuples" in remark]
    assert [remark.split(" has tasks of ")[0] for remark in together] == on


def test_a_recovery_to_what_is_wrong_anyway_is_remarked() -> None:
    """Windows of 20 s and a timeout of 2 s: without any failure everything is counted again and again."""
    settings = ["strategy.message_timeout=2 s", "topology.count.window=20 s", "run.replications=1"]
    found = run(load("wordcount", settings))
    assert found.replications[0].wrong_without > 0
    assert any("without any failure, too" in remark for remark in found.warnings)
    in_time = run(load("wordcount", settings[2:])).warnings
    assert not any("without any failure" in remark for remark in in_time)


BEHIND = """
  s: {spout: sentences, rate: 500/s}
  p: {bolt: forward, from: {s: shuffle}, service: 2.5 ms}
  q: {bolt: forward, from: {p: shuffle}, service: 4 ms}
"""


@pytest.mark.parametrize(
    ("queues", "before"),
    [
        ("1000", "its queue fills, and who sends to it has to wait; nor can p"),
        ("{length: 1000, when_full: drop}", "its queue fills, and what finds it full is lost; nor can p"),
    ],
)
def test_what_comes_of_a_full_queue_is_said(queues: str, before: str) -> None:
    told = run(load_text(text(BEHIND, duration="20 s", more=f"queues: {queues}\n"))).warnings
    assert told[0].endswith(f"cannot keep up; {before}")


def test_a_task_that_waits_for_another_did_not_limit_the_run() -> None:
    """1,000 tuples wait for p, 2.5 s of work; but it is blocked three eighths of the time."""
    told = run(load_text(text(BEHIND, duration="20 s", more="queues: 1000\n"))).warnings
    (limit,) = (each for each in told if "limited the run" in each)
    assert limit.startswith("q.0 limited the run: it was busy ")
