"""The greatest sustained rate, wherever a bound can be computed by hand: within 1 %, and with the bottleneck
named.
"""

import json
from typing import Any

import pytest

import tideover
from tests.models.crowded import machines
from tests.oracle.worlds import MS, bolt, fault, ms, spout, world
from tideover.cli import run as announced
from tideover.models.config import Scenario
from tideover.models.effort import COSTS
from tideover.models.job.arrivals import Day, Periodic, Ramp
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import Links, MachineType, QueueSettings
from tideover.models.job.stores import BACKENDS, STORES
from tideover.reports.html import render
from tideover.reports.rates import saturation_answer, saturation_page
from tideover.scenarios import saturation
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.saturation import Saturation, saturate

ONES: dict[str, Any] = {"kind": "values", "values": (1,), "repeat": True}


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    """Services here are constant, so a fifth of the roots is enough."""
    monkeypatch.setattr(saturation, "ROUGH", 4_000)
    monkeypatch.setattr(saturation, "THOROUGH", 30_000)


def found(
    scenario: Scenario, bound: float, limit: str = "", roots: tuple[int, int] = (4_000, 30_000)
) -> Saturation:
    """Its saturation, which is within 1 % of the bound (tuples/s) on either side, by what is named first.

    ``roots``: of a short and of a thorough try.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(saturation, "ROUGH", roots[0])
        patch.setattr(saturation, "THOROUGH", roots[1])
        result = saturate(scenario)
    assert result.sustained == pytest.approx(bound, rel=0.01)
    assert result.exceeded == pytest.approx(bound, rel=0.01)
    assert result.exceeded > result.sustained
    assert result.throughput is not None
    assert result.throughput[0] == pytest.approx(result.sustained, rel=0.01)
    assert result.limit.startswith(limit)
    return result


def on_cards(topology: dict[str, Any], hosts: int) -> Scenario:
    """Tuples of 1,000 bytes, and hosts with cards of 1,000,000 bytes/s."""
    sized = {name: each.model_copy(update={"tuple_size": 1000}) for name, each in topology.items()}
    return world(sized, hosts=Hosts(machines={"m": MachineType(count=hosts, nic=1_000_000)}))


def line(service: Any = 0.1, parallelism: int = 1, hosts: Any = None, **more: Any) -> Scenario:
    """s (100/s) ──▶ a, with this service (ms)."""
    source = spout("keys", keys=64, **more.pop("keys", {}))
    topology = {"s": source, "a": bolt("forward", {"s": "shuffle"}, service, parallelism=parallelism)}
    return world(topology, more.pop("strategy", "none"), (), 1000, hosts=hosts, **more)


def test_a_task():
    """0.1 ms a tuple: 10,000/s."""
    result = found(line(), 10_000, "task a.0 is ")
    assert result.then == "nothing else has anything to do"


def test_the_slower_of_two_tasks_and_then_the_other():
    """0.1 and 0.08 ms: 10,000/s; at 12,500/s the other one would be full."""
    topology = {
        "s": spout(**ONES),
        "a": bolt("forward", {"s": "shuffle"}, 0.08),
        "b": bolt("forward", {"a": "shuffle"}, 0.1),
    }
    result = found(world(topology), 10_000)
    assert [group.name for group in result.groups[:2]] == ["tasks of b", "tasks of a"]
    assert result.groups[1].full_at == pytest.approx(12_500, rel=0.001)
    assert result.then.startswith("task a.0, ")


def test_a_core():
    """Two tasks on one core, 0.1 ms a tuple: 10,000/s, not 20,000."""
    result = found(line(parallelism=2, hosts=machines(1, 1)), 10_000, "cores of host 0 are ")
    assert result.groups[1].full_at == pytest.approx(20_000, rel=0.02)


def test_cores_that_several_levels_share():
    """Each tuple takes 0.1 ms on each of three levels, on two cores: 2 / 0.3 ms = 6,667/s."""
    topology: dict[str, Any] = {"s": spout(**ONES)}
    for up, name in (("s", "a"), ("a", "b"), ("b", "c")):
        topology[name] = bolt("forward", {up: "shuffle"}, 0.1, parallelism=2)
    found(world(topology, hosts=machines(1, 2)), 2e4 / 3, "cores of host 0 are ", (4_000, 6_000))


def test_a_skewed_key():
    """Keys by Zipf's law with exponent 1 over 4: the first has 1 / (1 + 1/2 + 1/3 + 1/4) = 12/25 of all. With
    a task for each key, 0.1 ms a tuple, its task carries 10,000 x 25/12 = 20,833/s, not 40,000.
    """
    topology = {
        "s": spout("keys", keys=4, exponent=1.0),
        "a": bolt("forward", {"s": "direct"}, 0.1, parallelism=4),
    }
    found(world(topology), 10_000 * 25 / 12, "task a.0 is ")


def test_a_pending_cap_by_littles_law():
    """At most 300 roots in flight, each for 60 + 0.1 ms: 300 / 60.1 ms = 4,992/s, and nothing is full."""
    links = Links(latency=ms(60), local=ms(0))
    cap = {"message_timeout": 10_000 * MS, "max_spout_pending": 300}
    held = line(0.1, strategy="source_replay", links=links, keys={"gap": 0.25}, **cap)
    limit = "max_spout_pending (300 a task) holds s.0 back; nothing is full"
    assert found(held, 300 / 60.1e-3, roots=(1_000, 3_000)).limit == limit


def test_a_store():
    """Each tuple changes an entry of 2**20, so one that none has changed since the last commit, and a
    transaction writes it twice to a store of one thread that does 10,000/s: 5,000/s, while two tasks of 1 us
    a tuple have little else to do than to wait for it.
    """
    state = BACKENDS["memory"].model_validate({"entries": 2**20, "accesses": 1})
    redis = STORES["redis"].model_validate({"latency": 0, "operations": 1e4})
    short = {"checkpoint_interval": 5 * MS, "message_timeout": 100_000 * MS}
    scenario = line(0.001, 2, strategy="storm_checkpoint", keys={"gap": 0.25}, **short)
    there = {
        "topology": scenario.topology | {"a": scenario.topology["a"].model_copy(update={"state": state})},
        "stores": {"redis": redis},
        "strategy": scenario.strategy.model_copy(update={"store": "redis"}),
    }
    found(scenario.model_copy(update=there), 5_000, "store redis is ", (1_000, 20_000))


@pytest.mark.parametrize("length", [1, 5])
def test_a_blocked_fan_in(length):
    """s, three times as fast as t, ──▶ a, t ──▶ b, and both ──▶ c over a bounded queue: 0.1 ms a tuple, so
    10,000/s. What is full is c, not a and b, which it blocks: a would be at 0.05 ms x 3/4, so 26,667/s.
    """
    topology = {
        "s": spout("keys", gap=1, keys=64),
        "t": spout("keys", gap=3, keys=64),
        "a": bolt("forward", {"s": "shuffle"}, 0.05),
        "b": bolt("forward", {"t": "shuffle"}, 0.05),
        "c": bolt("forward", {"a": "shuffle", "b": "shuffle"}, 0.1),
    }
    bounded = world(topology).model_copy(update={"queues": QueueSettings(length=length)})
    result = found(bounded, 10_000, "task c.0 is ", (4_000, 10_000))
    assert result.groups[1].name == "tasks of a"
    assert result.groups[1].full_at == pytest.approx(80_000 / 3, rel=0.01)


def test_twice_the_work_with_a_replica():
    """Two hosts with a core, two tasks of 0.1 ms, so 20,000/s. With k = 1 each host has two tasks, and each
    tuple is worked on twice: 10,000/s.
    """
    found(line(parallelism=2, hosts=machines(2, 1)), 20_000)
    found(
        line(parallelism=2, hosts=machines(2, 1), strategy="active_replication", k=1),
        10_000,
        "cores of host ",
    )


def test_a_spout_that_cannot_emit_faster():
    """0.2 ms for each call: 5,000/s is all it emits, and a is idle for half of the time."""
    topology = {
        "s": spout(arrivals=Periodic(pause=MS, emit_cost=MS // 5), **ONES),
        "a": bolt("forward", {"s": "shuffle"}, 0.1),
    }
    result = saturate(world(topology))
    assert result.sustained == pytest.approx(5000)
    assert result.exceeded is None
    assert result.limit == "the spouts cannot emit faster, and nothing is full"


def test_windows_and_failures_do_not_matter():
    """A count with windows of 1 s, 0.2 ms a tuple, in a scenario with a crash, asked at 40 times its rate:
    what is found is what is carried while nothing fails.
    """
    topology = {
        "s": spout("keys", gap=0.005, keys=7),
        "count": bolt("windowed_count", {"s": "fields"}, 0.2, window={"length": 1000 * MS}),
    }
    found(world(topology, "none", (fault("crash_task", 500, component="count"),)), 5000)


def test_lumps_carry_as_much():
    """A count with windows of 1 s, 0.02 ms a tuple, so that a probe must last for 2 s: 50,000/s, simulated in
    lumps of five tuples at least.
    """
    topology = {
        "s": spout("keys", keys=7),
        "count": bolt("windowed_count", {"s": "fields"}, 0.02, window={"length": 1000 * MS}),
    }
    scenario = world(topology)
    assert saturation.counted(scenario, 50_000, 10_000)[0] == 5
    found(scenario, 50_000, roots=(4_000, 10_000))


def test_what_is_limited_by_number_is_not_lumped():
    """So many tuples may be in flight, or wait."""
    pending = line(strategy="source_replay", message_timeout=1000 * MS, max_spout_pending=5000)
    bounded = line().model_copy(update={"queues": QueueSettings(length=100)})
    assert saturation.counted(line(), 1e6, 100)[0] > 1
    assert {saturation.counted(limited, 1e6, 100)[0] for limited in (pending, bounded)} == {1}


@pytest.mark.parametrize(
    ("spouts", "key"),
    [
        ({"kind": "values", "values": (1, 2)}, "topology.s"),
        (ONES | {"arrivals": Ramp(start=1, end=5)}, "topology.s.arrivals"),
    ],
)
def test_what_has_no_rate_is_refused(spouts, key):
    """A stream with an end, and a load curve."""
    with pytest.raises(ScenarioError, match=f"--saturate: {key}: "):
        saturate(world({"s": spout(**spouts), "a": bolt("forward", {"s": "shuffle"}, 1)}))


def test_a_load_over_a_day_is_scaled_at_its_peak():
    """The same search as with its peak as a constant rate, whatever the hour of the scenario's failure."""
    day = Day(by_hour=(1.0,) * 23 + (4.0,), peak=100)
    found = {}
    for name, arrivals in {"day": day, "constant": Periodic(rate=100)}.items():
        topology = {"s": spout(**ONES, arrivals=arrivals), "a": bolt("forward", {"s": "shuffle"}, 1)}
        found[name] = saturate(world(topology))
    assert found["day"].sustained == found["constant"].sustained == pytest.approx(1000, rel=0.01)
    assert found["day"].scenario.topology["s"].arrivals == day


def test_the_record_and_the_page_say_it():
    """The rates, the bottleneck, how busy each group is, what was tried."""
    result = tideover.saturate(tideover.Scenario.of(line(1)))
    record = result.to_dict()
    assert json.loads(json.dumps(record)) == record
    assert record["sustained_per_s"] == pytest.approx(1000, rel=0.01)
    assert record["resources"][0]["group"] == "tasks of a"
    probes = record["probes"]
    assert len({probe["rate_per_s"] for probe in probes}) == len(probes)
    thorough = {
        carried: [p for p in probes if p["thorough"] and p["carried"] is carried] for carried in (True, False)
    }
    assert max(probe["rate_per_s"] for probe in thorough[True]) == record["sustained_per_s"]
    assert min(probe["rate_per_s"] for probe in thorough[False]) == record["exceeded_per_s"]
    shown = render(saturation_page([result]))
    assert saturation_answer([result]) in shown
    assert "task a.0" in shown


@pytest.mark.parametrize(
    ("spouts", "bolts", "card", "then"),
    [(1, 2, "card out of host 0", None), (2, 1, "card in of host 2", 2000)],
)
def test_a_card(spouts, bolts, card, then):
    """A spout sends to two other hosts, or two spouts to one: 1,000/s pass the one card."""
    topology = {
        "s": spout(gap=10, parallelism=spouts, **ONES),
        "a": bolt("forward", {"s": "shuffle"}, 0.01, parallelism=bolts),
    }
    result = found(on_cards(topology, 3), 1000, f"{card} is ")
    assert then is None or result.groups[1].full_at == pytest.approx(then, rel=0.02)


def test_cards_that_several_levels_share():
    """s and b on host 0, a and c on host 1, 1,000 bytes a tuple: two of three ways lead out of host 0, over a
    card of 1 MB/s, so 500/s.
    """
    topology = {
        "s": spout(hosts=(0,), **ONES),
        "a": bolt("forward", {"s": "shuffle"}, 0.01, hosts=(1,)),
        "b": bolt("forward", {"a": "shuffle"}, 0.01, hosts=(0,)),
        "c": bolt("forward", {"b": "shuffle"}, 0.01, hosts=(1,)),
    }
    limit = found(on_cards(topology, 2), 500).limit
    assert limit.startswith(("card out of host 0 is ", "card in of host 1 is "))


@pytest.mark.parametrize(
    ("spouts", "service", "nics", "bound", "limit"),
    [
        (1, 0.1, (10_000_000, 10_000_000), 5000, "cores of host 1 are "),
        (1, 0.01, (1_000_000, 2_000_000), 1000, "card out of host 0 is "),
        (2, 0.01, (1_000_000, 1_000_000), 1000, "card in of host 2 is "),
    ],
    ids=("a core", "a card out", "a card in"),
)
def test_full_queues_cores_and_cards_together(spouts, service, nics, bound, limit):
    """Spouts on hosts of their own ──▶ a ──▶ b, two tasks of each on one more host with a core, 1,000 bytes a
    tuple, queues of 50. Each tuple takes twice the service on the core, and goes out through its spout's card
    and in through one.
    """
    two = (spouts, spouts)
    topology = {
        "s": spout(gap=10, parallelism=spouts, hosts=tuple(range(spouts)), **ONES),
        "a": bolt("forward", {"s": "shuffle"}, service, parallelism=2, hosts=two),
        "b": bolt("forward", {"a": "shuffle"}, service, parallelism=2, hosts=two),
    }
    scenario = on_cards(topology, 1)
    sources, one = MachineType(count=spouts, nic=nics[0]), MachineType(count=1, cores=1, nic=nics[1])
    full = {"hosts": Hosts(machines={"sources": sources, "m": one}), "queues": QueueSettings(length=50)}
    found(scenario.model_copy(update=full), bound, limit, (500, 3_000))


SMALL = """
name: small
topology:
  s: {spout: keys, keys: 64, rate: 100/s}
  a: {bolt: forward, from: {s: shuffle}, service: 0.1 ms, parallelism: 2}
hosts: {machines: {m: {count: 2, cores: 1}}}
strategy: {kind: none}
strategies: {none: {}, active_replication: {k: 1}}
run: {duration: 10 s}
"""


def test_one_command_answers_before_and_after_k_is_1(monkeypatch, tmp_path, tideover):
    """Twice the work on the same cores: half of the rate; as JSON, and on one page."""
    monkeypatch.setattr(saturation, "THOROUGH", 8_000)
    (tmp_path / "day.yaml").write_text(SMALL)
    asked = ("compare", tmp_path / "day.yaml", "--saturate", "--json", "--out", tmp_path / "out")
    code, out, _ = tideover(*asked)
    assert code == 0
    plain, replicated = json.loads(out)
    assert replicated["sustained_per_s"] == pytest.approx(plain["sustained_per_s"] / 2, rel=0.03)
    assert replicated["bottleneck"].startswith("cores of host ")
    shown = (tmp_path / "out" / "report.html").read_text()
    assert "how much it carries" in shown
    assert "of what none (amnesia) does." in shown
    for strategy in ("none (amnesia)", "active replication"):
        assert f"tuples/s: {strategy}.</b>" in shown  # hosts as they are at the sustained rate


def test_a_trace_of_many_runs_is_refused(tideover):
    """It goes with one run."""
    code, _, err = tideover("run", "wordcount", "--saturate", "--trace")
    assert (code, err[:9]) == (2, "--trace: ")


def test_a_long_search_says_how_many_rates_it_tries_and_how_long_about(monkeypatch, capsys):
    """Four short and six thorough tries as a rule. 4 x 0.5 + 6 x 5 s are announced, 10 x 0.5 s are not; two
    scenarios take as long as both.
    """
    one = line(1)
    monkeypatch.setattr(saturation, "seconds", lambda scenario, thorough: 5.0 if thorough else 0.5)
    announced.announce([one])
    assert capsys.readouterr().err == (
        "Note: about 10 rates are tried; that takes about 32 seconds, give or take a factor of three\n"
    )
    announced.announce([one, one, one, one])
    assert "tried under each strategy; that takes about 2 minutes" in capsys.readouterr().err
    monkeypatch.setattr(saturation, "seconds", lambda scenario, thorough: 0.5)
    announced.announce([one])
    assert capsys.readouterr().err == ""


def test_a_try_takes_longer_with_more_roots_and_with_full_queues():
    """30,000 roots instead of 4,000, each two tuples, are 7.5 times the work, but for what every run has to
    do. Full queues make it one order of events.
    """
    one, full = line(1), {"queues": QueueSettings(length=10)}
    rough, thorough = (saturation.seconds(one, thorough=each) for each in (False, True))
    every = 10 * COSTS["actions"] + (80 + 2 + 1) * COSTS["built"]
    assert thorough - every == pytest.approx(7.5 * (rough - every), rel=0.01)
    ordered = saturation.seconds(one.model_copy(update=full), thorough=True)
    assert (ordered - every) / (thorough - every) == pytest.approx(COSTS["events"] / COSTS["flows"])
