"""Parts of scenario files: what is read, what is written, and what is refused, with the key."""

import json

import jsonschema
import numpy as np
import pytest

import tideover
from tests.scenarios.refused import changed, refused, told
from tideover import parts
from tideover.models.job.arrivals import Periodic, Poisson
from tideover.models.job.components import SpoutConfig
from tideover.models.job.spouts import Kafka
from tideover.models.runtime.spout_task import MOST
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load, load_text
from tideover.scenarios.part_builder import to_data
from tideover.scenarios.reference import json_schema
from tideover.scenarios.resolved import where_tasks_run
from tideover.scenarios.sweeps.factors import as_number, unit_of, written
from tideover.sim.draws import Draws
from tideover.sim.units import MAX_PERIOD, MAX_RUN, MIN_RATE, format_percent, parse_percent

# Clusters.

CLUSTER = """\
topology:
  s: {spout: keys, keys: 10, rate: 10/s, parallelism: 2}
  c: {bolt: windowed_count, from: {s: {fields: [key]}}, service: 1 ms, window: 10 s, parallelism: 4}
strategy: none
run: {duration: 30 s}
hosts:
  machines: {small: {count: 2, cores: 2, nic: 1 Gbit/s, slots: 1, price: 0.1}, big: {count: 2, slots: 4}}
  racks: 2
  workers: 2
  reserve: 1
  placement: round_robin
"""


def test_a_cluster_is_read_and_written():
    found = load_text(CLUSTER, "good.yaml")
    assert isinstance(found.hosts, parts.Hosts)
    assert found.hosts.machines["small"].nic == 125_000_000
    assert to_data(found)["hosts"] == {
        "machines": {
            "small": {"count": 2, "cores": 2, "nic": "125 MB/s", "slots": 1, "price": 0.1},
            "big": {"count": 2, "slots": 4},
        },
        "racks": 2,
        "workers": 2,
        "reserve": 1,
        "placement": {"kind": "round_robin"},
    }
    assert tideover.load(to_data(found)) == found


def test_a_cluster_of_typed_objects():
    """The same by parts, and a number of hosts instead, and none."""
    small = parts.MachineType(count=2, cores=2, nic="1 Gbit/s", slots=1, price=0.1)
    machines = {"small": small, "big": parts.MachineType(count=2, slots=4)}
    by_parts = parts.Hosts(machines=machines, racks=2, workers=2, reserve=1, placement=parts.RoundRobin())
    base = tideover.load(load_text(CLUSTER, "good.yaml"))
    assert base.hosts == by_parts
    assert base.with_(hosts=3).hosts == 3
    assert base.with_(hosts=3).with_(hosts=by_parts) == base
    assert base.with_({"hosts.workers": 5}).hosts == by_parts.model_copy(update={"workers": 5})
    assert tideover.Scenario(**{name: getattr(base, name) for name in type(base).model_fields}) == base


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("hosts.machines.big.slots=3", "hosts: no slot is left for task 3 of c: 6 tasks, and 5 slots on 3"),
        ("hosts.racks=5", "hosts: racks: 5 racks are too many for 4 hosts; at most one for each"),
        ("hosts.racks=0", "hosts.racks: must be at least 1"),
        ("hosts.workers=0", "hosts.workers: must be at least 1"),
        ("hosts.reserve=4", "hosts: reserve: 4 hosts in reserve of 4 leave none for the tasks; at most 3"),
        ("hosts.machines.small.cores=0", "hosts.machines.small.cores: must be at least 1, not 0"),
        ("hosts.machines.small.slots=0", "hosts.machines.small.slots: must be at least 1, not 0"),
        ("hosts.machines.small.count=0", "hosts.machines.small.count: must be at least 1, not 0"),
        ("hosts.machines.small.price=-1", "hosts.machines.small.price: must be at least 0, not -1"),
        ("hosts.machines.small.nic=5", "hosts.machines.small.nic: 5 has no unit; write a bandwidth"),
        ("hosts.machines.small.nic=0 B/s", "hosts.machines.small.nic: '0 B/s': a bandwidth must be positive"),
        ("hosts.machines.small.core=3", "unknown key; did you mean 'cores'?"),
        ("hosts.machines={}", "hosts.machines: must have at least 1 entries"),
        ("hosts.machines=4", "hosts.machines: must be a mapping of keys, not 4"),
        ("hosts.machines.small=4", "hosts.machines.small: must be a mapping of keys, not 4"),
        ("hosts={racks: 2}", "hosts.machines: is missing; types of machines, by name"),
        ("hosts.placement=round_robbin", "unknown placement 'round_robbin'; did you mean 'round_robin'?"),
        ("hosts.placement.kind=sparrow", "hosts.placement.kind: unknown placement 'sparrow'; known: "),
        ("hosts.rack=2", "hosts.rack: unknown key; did you mean 'racks'?"),
        (
            "hosts.placement=by_hand",
            "hosts.placement.tasks: is missing; by component: of each task the hosts of",
        ),
        (
            "hosts.placement={kind: by_hand, tasks: {c: [[0], [1], [2]]}}",
            "hosts.placement.tasks: says nothing of s; give the hosts of its 2 tasks, as in s: [[0]]",
        ),
        (
            "hosts.placement={kind: by_hand, tasks: {s: [[0], [1]], c: [[2], [2], [2], [4]]}}",
            "hosts.placement.tasks.c.3.0: there is no host 4 for tasks; those are 0 to 2",
        ),
        (
            "hosts.placement={kind: by_hand, tasks: {s: [[0], [0]], c: [[2], [2], [2], [2]]}}",
            "hosts.placement.tasks.s.1.0: host 0 has no slot left (slots: 1)",
        ),
        (
            "hosts.placement={kind: by_hand, tasks: {s: [[0], [1]], d: [[2]]}}",
            "hosts.placement.tasks.d: there is no component 'd' (known: s, c)",
        ),
        ("hosts.placement={kind: by_hand, tasks: {s: [0]}}", "hosts.placement.tasks.s.0: must be a list"),
        ("topology.c.hosts=[4, 2, 2, 2]", "topology.c.hosts.0: there is no host 4; the machines are hosts 0"),
        ("topology.c.hosts=[0, 0, 2, 2]", "topology.c.hosts.1: host 0 has no slot left (slots: 1)"),
        ("topology.c.hosts=[2, 3, 2, 2]", "topology.c.hosts.1: host 3 is in reserve and takes no task"),
        ("topology.c.hosts=[2, 2]", "topology.c.hosts: names 2 hosts for 4 tasks"),
        (
            'links={pairs: {"0-4": 1 ms}}',
            "links.pairs.0-4: there is no host 4; the machines are hosts 0 to 3",
        ),
        (
            "failures=[{kind: crash_worker, host: 1, worker: 2, at: 5 s}]",
            "failures.0.worker: there is no worker 2; each host has 2 of them (hosts.workers)",
        ),
        (
            "failures=[{kind: crash_rack, rack: 2, at: 5 s}]",
            "failures.0.rack: there is no rack 2; there are 2 of them (hosts.racks), numbered from 0",
        ),
        (
            "failures=[{kind: crash_host, host: 4, at: 5 s}]",
            "failures.0.host: there is no host 4; the machines are hosts 0 to 3",
        ),
    ],
)
def test_a_cluster_that_cannot_be_is_refused_with_its_key(setting, words):
    (line,) = refused(load_text, CLUSTER, "broken.yaml", [setting])
    assert words in line


@pytest.mark.parametrize(
    ("placement", "words"),
    [
        ("k_safe", "hosts: no host is left for replica 2 of task 0 of c: its 3 replicas need different"),
        ("estorm", "hosts: no host is left for replica 2 of task 0 of c: its 3 replicas need different"),
        (
            f"{{kind: by_hand, tasks: {{s: [[0], [1]], c: {[[0, 1, 1]] * 4}}}}}",
            "hosts.placement.tasks.c.0.2: two replicas of task 0 of c on host 1; give each a host of its own",
        ),
    ],
)
def test_replicas_need_hosts_of_their_own(placement, words):
    """Three replicas, and two hosts for tasks."""
    hosts = f"hosts={{machines: {{m: {{count: 2}}}}, placement: {placement}}}"
    settings = [hosts, "strategy={kind: active_replication, k: 2}"]
    (line,) = refused(load_text, CLUSTER, "broken.yaml", settings)
    assert words in line


def test_what_is_wrong_with_a_cluster_is_said_once():
    """Not again by what looks for a host in it."""
    text = CLUSTER.replace("racks: 2", "racks: 5") + "links: {pairs: {'0-3': 1 ms}}\n"
    assert refused(load_text, text, "broken.yaml") == [
        "broken.yaml:6: hosts: racks: 5 racks are too many for 4 hosts; at most one for each"
    ]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"placement": "k_sage"}, "Hosts: placement: unknown"),
        ({"reserve": 1}, "Hosts: reserve: .* at most 0"),
        ({"nic": 125}, "MachineType: nic: 125 has no unit"),
    ],
)
def test_objects_are_checked_at_once(more, words):
    of_machine = {"nic": more.pop("nic")} if "nic" in more else {}
    with pytest.raises(ScenarioError, match=words):
        parts.Hosts(machines={"a": parts.MachineType(count=1, **of_machine)}, **more)


def test_who_runs_where_is_said_in_comments():
    """A line a host, its workers between bars; what is printed is still the scenario."""
    found = load_text(CLUSTER, "good.yaml")
    assert where_tasks_run(found).splitlines()[1:] == [
        "#   host 0 (small, rack 0)  s.0",
        "#   host 1 (small, rack 1)  s.1",
        "#   host 2 (big, rack 0)    c.0 c.2 | c.1 c.3",
        "#   host 3 (big, rack 1)    in reserve",
    ]
    replicated = "hosts=3", "strategy={kind: active_replication, k: 1}"
    assert where_tasks_run(load_text(CLUSTER, "good.yaml", replicated)).splitlines()[1:] == [
        "#   host 0  s.0 c.0/1 c.1 c.3/1",
        "#   host 1  s.1 c.1/1 c.2",
        "#   host 2  c.0 c.2/1 c.3",
    ]
    assert where_tasks_run(load_text(CLUSTER, "good.yaml", ["hosts=null"])) == ""
    assert load_text(CLUSTER + where_tasks_run(found), "good.yaml") == found


# A load over a day, and the hour of a run.

BY_HOUR = str([1.0] * 12 + [2.0] * 12)
DAY = f"{{kind: day, peak: 40/s, by_hour: {BY_HOUR}, growth: 5 %, months: 6}}"
OVER_A_DAY = f"""\
topology:
  log: {{spout: keys, keys: 10, arrivals: {DAY}}}
  count: {{bolt: windowed_count, from: {{log: {{fields: [key]}}}}, service: 1 ms, window: 10 s}}
strategy: none
failures: [{{kind: crash_task, component: count, at: 20 s}}]
run: {{duration: 60 s, fails_at: 18:00}}
"""
ARRIVALS = "day.yaml:2: topology.log.arrivals"


def test_a_day_is_read_and_written():
    scenario = load_text(OVER_A_DAY)
    data = to_data(scenario)
    assert data["topology"]["log"]["arrivals"]["growth"] == "5 %"
    assert data["run"]["fails_at"] == "18:00"
    assert load(json.loads(json.dumps(data))) == scenario
    jsonschema.validate(data, json_schema())


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (BY_HOUR, str([1.0] * 23), f"{ARRIVALS}.by_hour: has 23 values; give 24, one for each hour"),
        (BY_HOUR, str([1.0] * 23 + [-1]), f"{ARRIVALS}.by_hour: the value at 23 o'clock is -1; it must be"),
        (BY_HOUR, str([0] * 24), f"{ARRIVALS}.by_hour: is 0 all day; at least one value must be above 0"),
        (BY_HOUR, "5", f"{ARRIVALS}.by_hour: must be a list"),
        ("peak: 40/s, ", "", f"{ARRIVALS}: by_hour says what the rates are in proportion; give peak"),
        (f", by_hour: {BY_HOUR}", "", f"{ARRIVALS}: give either by_hour (with peak) or a file"),
        ("by_hour", "file: x.csv, by_hour", f"{ARRIVALS}: give either by_hour (with peak) or a file"),
        ("5 %", "0.05", f"{ARRIVALS}.growth: 0.05 has no unit; write a percentage, such as 5 %"),
        ("5 %", "-5 %", f"{ARRIVALS}.growth: '-5 %' is negative; a percentage must not be"),
        ("months: 6", "months: -1", f"{ARRIVALS}.months: must be at least 0, not -1"),
        ("months: 6", "months: 900", f"{ARRIVALS}: comes to 4.704e+20/s at its highest; at most 1e+09/s"),
        ("peak:", "interpolation: cubic, peak:", f"{ARRIVALS}.interpolation: must be 'linear' or 'steps'"),
        ("fails_at: 18:00", "fails_at: 25:00", "day.yaml:6: run.fails_at: '25:00' is not a time of day; "),
        ("fails_at: 18:00", "fails_at: noon", "day.yaml:6: run.fails_at: 'noon' is not a time of day; "),
        ("fails_at: 18:00", "starts_at: peak", "day.yaml:6: run.starts_at: 'peak' is not a time of day; "),
        ("fails_at: 18:00", "fails_at: 18", "day.yaml:6: run.fails_at: must be a text, not 18"),
        ("fails_at: 18:00", "fails_at: 18:00, starts_at: 17:00", "day.yaml:6: run: give either starts_at"),
        ("at: 20 s", "every: 20 s", "day.yaml:6: run.fails_at: needs a failure with at, which is then"),
        (
            f"arrivals: {DAY}",
            "rate: 10/s",
            "day.yaml:6: run.fails_at: has no effect: the load follows the time of day only with arrivals",
        ),
    ],
)
def test_what_is_wrong_with_a_day_has_its_key(old, new, said):
    (found,) = refused(load_text, changed(OVER_A_DAY, old, new), "day.yaml")
    assert found.startswith(said)


HOURLY = "hour,rate_per_s\n"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            HOURLY + "".join(f"{h},1\n" for h in range(23)),
            "load.csv: has 23 hours; a day has 24",
        ),
        (HOURLY + "".join(f"{h},1\n" for h in range(25)), "load.csv:26: hours must be 0 to 23"),
        (HOURLY + "0,1\n2,1\n", "load.csv:3: hours must be 0 to 23, one after the other, not '2'"),
        (HOURLY + "0,-1\n", "load.csv:2: a rate must be 0/s, or 1.2e-07/s to 1e+09/s"),
        (HOURLY + "0,nan\n", "load.csv:2: a rate must be 0/s, or 1.2e-07/s to 1e+09/s"),
        (HOURLY + "0,1,1\n", "load.csv:2: a time and a rate are needed, found '0,1,1'"),
        (HOURLY + "0,many\n", "load.csv:2: a time and a rate are needed, found '0,many'"),
        ("hour,rate\n0,1\n", "load.csv:1: the first line must be hour,rate_per_s or time,rate_per_s"),
        ("", "load.csv:1: the first line must be hour,rate_per_s or time,rate_per_s"),
        ("time,rate_per_s\n", "load.csv: at least one row with a rate above 0 is needed"),
        ("time,rate_per_s\n08:00,1\n07:00,1\n", "load.csv:3: times must rise"),
        ("time,rate_per_s\n08:00,1\n08:00,1\n", "load.csv:3: times must rise"),
        ("time,rate_per_s\n8 am,1\n", "load.csv:2: '8 am' is not a time of day; write a time of day"),
    ],
)
def test_what_is_wrong_in_a_file_of_rates_has_its_line(rows, said, tmp_path):
    file = tmp_path / "load.csv"
    file.write_text(rows)
    text = OVER_A_DAY.replace(f"peak: 40/s, by_hour: {BY_HOUR}", f"file: {file}")
    (found,) = refused(load_text, text, "day.yaml")
    assert found.startswith(f"{ARRIVALS}: {said}")


def test_swept_hours_and_growth_are_numbers_in_tables():
    assert unit_of(["18:00", "04:30"]) == "h"
    assert (as_number("04:30", "h"), written(4.5, "h")) == (4.5, "04:30")
    assert unit_of(["5 %", "10 %"]) == "%"
    assert (as_number("5 %", "%"), written(5.0, "%")) == (5.0, "5 %")
    assert unit_of(["18:00", "peak"]) == ""


@pytest.mark.parametrize("ratio", [0.0, 0.05, 0.123, 0.07, 1.0, 10.0])
def test_percentages_are_read_back(ratio):
    assert parse_percent(format_percent(ratio)) == ratio


@pytest.mark.parametrize("text", ["", "5", "%", "5 % more", "1001 %"])
def test_what_is_no_percentage(text):
    with pytest.raises(ValueError, match="percentage"):
        parse_percent(text)


# Bounded queues, and queues before spouts.

BOUNDED = """\
topology:
  s: {spout: keys, arrivals: {kind: saturating, emit_cost: 5 us}, queue: {send: 3}}
  b: {bolt: forward, from: {s: shuffle}, service: 1 ms, queue: 10}
  c: {bolt: forward, from: {b: shuffle}, service: 1 ms, queue: {length: 7, when_full: drop}}
strategy: {kind: none}
run: {duration: 1 s}
queues: {length: 1000, send: 2}
"""


def test_bounds_are_read_and_written():
    found = load_text(BOUNDED, "good.yaml")
    assert found.queues is not None
    assert (found.queues.length, found.queues.when_full, found.queues.send) == (1000, None, 2)
    data = to_data(found)
    assert data["topology"]["b"]["queue"] == {"length": 10}
    assert data["topology"]["c"]["queue"] == {"length": 7, "when_full": "drop"}


@pytest.mark.parametrize("strategy", ["active_replication", "active_standby", "upstream_backup"])
def test_queues_have_bounds_under(strategy):
    text = BOUNDED.replace("kind: none", f"kind: {strategy}").replace(
        "queue: 10}", "queue: 10, parallelism: 1}"
    )
    found = load_text(text.replace("when_full: drop", "when_full: credits"), "good.yaml")
    assert found.strategy.kind == strategy


KAFKA = """\
topology:
  s: {spout: keys, rate: 100/s, parallelism: 2, source: {kind: kafka, partitions: 4, poll_cost: 2 ms}}
  b: {bolt: forward, from: {s: shuffle}, service: 1 ms}
strategy: {kind: none}
run: {duration: 1 s}
"""


def test_a_queue_is_read_and_written():
    found = load_text(KAFKA, "good.yaml")
    config = found.topology["s"]
    assert isinstance(config, SpoutConfig)
    assert config.source == Kafka(partitions=4, poll_cost=2_000_000)
    assert load_text(KAFKA, "good.yaml") == found
    assert to_data(found)["topology"]["s"]["source"]["kind"] == "kafka"


SNAPSHOTS = "{kind: aligned_snapshots, checkpoint_interval: 1 s}"


@pytest.mark.parametrize(
    ("good", "old", "new", "key", "words"),
    [
        (BOUNDED, "queue: 10}", "queue: 0}", "b.queue", "at least 1"),
        (
            BOUNDED,
            "10}",
            "{length: 10, when_full: wait}}",
            "b.queue.when_full",
            "'block', 'drop' or 'credits'",
        ),
        (BOUNDED, "{send: 3}", "{send: -1}", "s.queue.send", "at least 0"),
        (BOUNDED, "{send: 3}", "{length: 3}", "s.queue.length", "only send can be given"),
        (BOUNDED, "none", "micro_batch", "b.queue", "run in batches"),
        (BOUNDED, "none", "trident", "b.queue", "run in batches"),
        (
            BOUNDED,
            "none",
            "changelog, commit_interval: 1 s",
            "b.queue",
            "all that its tasks read waits",
        ),
        (BOUNDED, "10}", "{when_full: drop}}", "s.arrivals", "nothing holds back"),
        (BOUNDED, "{kind: none}", SNAPSHOTS, "s.arrivals", "wait in a log"),
        (
            BOUNDED,
            "{kind: none}",
            SNAPSHOTS,
            "c.queue.when_full",
            "only block and credits go with it",
        ),
        (KAFKA, "kind: kafka", "kind: kafk", "s.source", "did you mean 'kafka'"),
        (KAFKA, "kind: kafka, ", "", "s.source", "is missing"),
        (KAFKA, "partitions: 4", "partitions: 0", "s.source.partitions", "at least 1"),
        (KAFKA, "partitions: 4", "partitions: 1", "s.source.partitions", "at least parallelism (2)"),
        (KAFKA, "poll_cost: 2 ms", "poll_cost: 0 s", "s.source.poll_cost", "more than 0"),
        (KAFKA, "poll_cost: 2 ms", "retention: 0 s", "s.source.retention", "more than 0"),
        (
            KAFKA,
            "poll_cost: 2 ms",
            "commit_interval: 0 s",
            "s.source.commit_interval",
            "more than 0",
        ),
        (KAFKA, "kind: kafka", "kind: kestrel, timeout: 0 s", "s.source.timeout", "more than 0"),
        (KAFKA, "kind: kafka", "kind: kestrel, commit_interval: 1 s", "s.source", "unknown key"),
        (KAFKA, "poll_cost", "pol_cost", "s.source.pol_cost", "did you mean 'poll_cost'"),
        (KAFKA, "{kind: none}", SNAPSHOTS, "s.source", "its spouts stand for a log"),
        (
            KAFKA,
            "poll_cost: 2 ms}}\n  b: {",
            "retention: 1 s}}\n  b: {queue: 10, ",
            "s.source.retention",
            "bounded queues",
        ),
        (KAFKA, "rate: 100/s", "arrivals: {kind: saturating, emit_cost: 5 us}", "s", "saturat"),
        (KAFKA, "service: 1 ms", "service: 1 ms, source: {kind: kafka}", "b.source", "unknown key"),
    ],
)
def test_queues_that_cannot_be_are_refused(good, old, new, key, words):
    said = refused(load_text, changed(good, old, new), "bad.yaml")
    assert any(f": topology.{key}" in one and words in one for one in said), said


# How much may be simulated.

WORLD = """\
topology:
  s: {spout: keys, rate: 1/s}
  b: {bolt: forward, from: {s: shuffle}, service: 1 ms}
strategy: none
links: {latency: 1 ms}
run: {duration: 60 s}
"""
GROWING = (
    "arrivals: {kind: day, peak: 1/s, by_hour: [" + ",".join("1" * 24) + "], growth: 1000 %, months: 1200}"
)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("60 s", "1001 d", "6: run.duration: must be at most 1000 d, not '1001 d'"),
        ("rate: 1/s", "rate: 0.0099/d", "2: topology.s.rate: '0.0099/d': a rate must be between 0.01/d"),
        ("rate: 1/s", "pause: 101 d", "2: topology.s: has a call every 101 d; at most 100 d are allowed"),
        ("rate: 1/s", GROWING, "2: topology.s.arrivals: grows beyond all numbers"),
        ("rate: 1/s", "rate: 1e9/s", "2: topology.s: emits about 6e+10 tuples"),
        ("60 s}", "60 s, lump_rate: 0.01/d}", "6: run.lump_rate: lets one tuple stand for 8.64e+06; at most"),
        ("60 s}", "60 s, lump: 1000000, seed: 2}", None),
        ("rate: 1/s}", "rate: 1/h, parallelism: 1}", None),
        ("1 ms}\nstrategy", "1 ms, parallelism: 1024, hosts: [0]}\nstrategy", "names 1 hosts for 1024 tasks"),
        ("service: 1 ms", "service: 9999 d", "3: topology.b: leaves work for 6.1e+05 d and more in a run"),
        ("service: 1 ms", "service: {kind: exponential, mean: 9999 d}", "3: topology.b: leaves work for"),
        ("latency: 1 ms", "latency: 1 ms, deserialise_cost: 10 d", "2: topology.s: leaves work for"),
        ("keys, rate", "values, values: [9223372036854775807, 1], rate", "values add up to more than"),
        ("keys, rate", "values, repeat: true, values: [1000000000001], rate", "values add up to more than"),
        ("b: {bolt", "b: {tuple_size: 1073741823 GiB, bolt", "3: topology.b: sends 7.0e+19 bytes"),
    ],
)  # fmt: skip
def test_the_size_of_a_run_is_limited(old, new, said):
    """spout -> bolt, 60 tuples in 60 s; each change alone leaves what int64 or a day's patience holds."""
    text = changed(WORLD, old, new)
    if said is None:
        load_text(text)
    else:
        assert said in "\n".join(refused(load_text, text))


def test_a_long_run_has_to_fit_into_memory(monkeypatch):
    """1000 d are 8.64e9 slots, of 120 B each if something happens all the time; with a call in 10 h it is
    near 2,400 calls. A machine of 64 GB has room for one of them.
    """
    monkeypatch.setattr("os.sysconf", {"SC_PHYS_PAGES": 10**6, "SC_PAGE_SIZE": 64_000}.get)
    long = WORLD.replace("60 s", "1000 d")
    with pytest.raises(ScenarioError, match=r"6: run.duration: .* needs 1,037 GB .* has 64 GB"):
        load_text(long)
    assert load_text(long.replace("1/s", "0.1/h"))


def test_so_many_pairs_of_tasks_do_not_fit():
    """1024 x 1024 pairs fit; with six replicas each they do not."""
    wide = WORLD.replace("1/s}", "1/s, parallelism: 1024}").replace("1 ms}\ns", "1 ms, parallelism: 1024}\ns")
    load_text(wide)
    with pytest.raises(ScenarioError, match=r"3: topology.b: makes 6,291,456 pairs of tasks"):
        load_text(wide.replace("strategy: none", "strategy: {kind: active_replication, k: 5}"))


@pytest.mark.parametrize("arrivals", [Periodic(rate=MIN_RATE), Poisson(rate=MIN_RATE)])
def test_the_rarest_calls_stay_in_the_range_of_time(arrivals):
    """As many as are worked out at a time, from the end of the longest run on: they rise."""
    n = arrivals.at_once(MOST)
    assert 1 < n < MOST
    calls = arrivals.next_calls("s.0", Draws(1), MAX_RUN, 0, n)
    assert (np.diff(calls, prepend=MAX_RUN) > 0).all()


@pytest.mark.parametrize("strategy", ["none", "source_replay"])
def test_a_call_in_a_hundred_days(strategy):
    """A call every 100 d in a run of a minute: 0 or 1 tuples, by the offset; and the run ends."""
    arrivals = f"arrivals: {{kind: constant, pause: {MAX_PERIOD}ns, offset: 0 s}}"
    text = WORLD.replace("rate: 1/s", arrivals).replace("none", strategy)
    result = tideover.run(load_text(text))
    assert result.to_dict()["ledger"]["emitted"] == 0


# Windows.

WINDOWED = """\
topology:
  a: {spout: keys, keys: 3, rate: 10/s}
  b: {spout: keys, keys: 3, rate: 10/s}
  d: {bolt: windowed_count, from: {a: {fields: [key]}, b: {fields: [key]}}, service: 1 ms, window: 5 s}
  c:
    bolt: windowed_count
    from: {%s: {fields: [key]}}
    service: 1 ms
    window: %s
strategy: {kind: %s}
run: {duration: 60 s}
"""


@pytest.mark.parametrize(
    ("window", "strategy", "says"),
    [
        (
            "{length: 9 s, by: event}",
            "trident",
            ":9: topology.c.window.by: does not go with the strategy trident",
        ),
        (
            "{gap: 9 s, by: event}",
            "trident",
            ":9: topology.c.window.gap: does not go with the strategy trident",
        ),
        ("{length: 9 s, by: event, late: aside}", "estorm", "told for none, source_replay"),
        (
            "{gap: 9 s}",
            "changelog",
            ":9: topology.c.window.gap: does not go with the strategy changelog: what it reads again in a "
            "log comes at another time, so sessions by arrival would not be put out again as they were; add "
            "by: event; they go with active_replication, active_standby, ",
        ),
        ("{length: 9 s, slide: 3 s}", "upstream_backup", "what is sent again would fall into other panes"),
        ("{tuples: 9, slide_tuples: 3}", "upstream_backup", "what is sent again would fall into other panes"),
        ("{gap: 9 s, by: event}", "upstream_backup", "what becomes of sessions by event after a failure is"),
        ("{gap: 9 s}", "upstream_backup", "what becomes of sessions by arrival after a failure is told for"),
        (
            "{length: 9 s, saved: ids}",
            "source_replay",
            ":9: topology.c.window.saved: does not go with the strategy",
        ),
    ],
)
def test_a_strategy_says_which_windows_it_goes_with(window, strategy, says):
    told(refused(load_text, WINDOWED % ("a", window, strategy)), "scenario:", says)


def test_windows_put_out_no_events():
    said = refused(load_text, WINDOWED % ("d", "{length: 9 s, by: event}", "none"))
    told(said, "scenario:9: topology.c.window.by: ", "is of what spouts emit")
