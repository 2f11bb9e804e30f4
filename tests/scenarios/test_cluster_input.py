"""Clusters in scenario files: what is read, what is written, and what is refused, with the key."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tideover
from tideover import parts
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load_text
from tideover.scenarios.part_builder import to_data
from tideover.scenarios.resolved import where_tasks_run

GOOD = """\
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


def test_a_cluster_is_read_and_written() -> None:
    found = load_text(GOOD, "good.yaml")
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


def test_a_cluster_of_typed_objects() -> None:
    """The same by parts, and a number of hosts instead, and none."""
    small = parts.MachineType(count=2, cores=2, nic="1 Gbit/s", slots=1, price=0.1)
    machines = {"small": small, "big": parts.MachineType(count=2, slots=4)}
    by_parts = parts.Hosts(machines=machines, racks=2, workers=2, reserve=1, placement=parts.RoundRobin())
    base = tideover.load(load_text(GOOD, "good.yaml"))
    assert base.hosts == by_parts
    assert base.with_(hosts=3).hosts == 3
    assert base.with_(hosts=3).with_(hosts=by_parts) == base
    assert base.with_({"hosts.workers": 5}).hosts == by_parts.model_copy(update={"workers": 5})
    assert tideover.Scenario(**{name: getattr(base, name) for name in type(base).model_fields}) == base


@pytest.mark.parametrize(
    ("setting", "said"),
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
def test_what_cannot_be_is_refused_with_its_key(setting: str, said: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load_text(GOOD, "broken.yaml", [setting])
    (line,) = str(caught.value).splitlines()
    assert said in line


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            "placement: k_safe",
            "hosts: no host is left for replica 2 of task 0 of c: its 3 replicas need different",
        ),
        (
            "placement: estorm",
            "hosts: no host is left for replica 2 of task 0 of c: its 3 replicas need different",
        ),
        (
            f"placement: {{kind: by_hand, tasks: {{s: [[0], [1]], c: {[[0, 1, 1]] * 4}}}}}",
            "hosts.placement.tasks.c.0.2: two replicas of task 0 of c on host 1; give each a host of its own",
        ),
    ],
)
def test_replicas_need_hosts_of_their_own(more: str, said: str) -> None:
    """Three replicas, and two hosts for tasks."""
    settings = [
        f"hosts={{machines: {{m: {{count: 2}}}}, {more}}}",
        "strategy={kind: active_replication, k: 2}",
    ]
    with pytest.raises(ScenarioError) as caught:
        load_text(GOOD, "broken.yaml", settings)
    (line,) = str(caught.value).splitlines()
    assert said in line


def test_what_is_wrong_with_a_cluster_is_said_once() -> None:
    """Not again by what looks for a host in it."""
    text = GOOD.replace("racks: 2", "racks: 5") + "links: {pairs: {'0-3': 1 ms}}\n"
    with pytest.raises(ScenarioError) as caught:
        load_text(text, "broken.yaml")
    assert str(caught.value).splitlines() == [
        "broken.yaml:6: hosts: racks: 5 racks are too many for 4 hosts; at most one for each"
    ]


def test_objects_are_checked_at_once() -> None:
    def refused(make: Callable[[], object], said: str) -> None:
        with pytest.raises(ScenarioError, match=said):
            make()

    one = parts.MachineType(count=1)
    refused(lambda: parts.MachineType(count=1, nic=125), "MachineType: nic: 125 has no unit")
    refused(lambda: parts.Hosts(machines={"a": one}, reserve=1), "Hosts: reserve: .* at most 0")
    refused(lambda: parts.Hosts(machines={"a": one}, placement="k_sage"), "Hosts: placement: unknown")


def test_who_runs_where_is_said_in_comments() -> None:
    """A line a host, its workers between bars; what is printed is still the scenario."""
    found = load_text(GOOD, "good.yaml")
    assert where_tasks_run(found).splitlines()[1:] == [
        "#   host 0 (small, rack 0)  s.0",
        "#   host 1 (small, rack 1)  s.1",
        "#   host 2 (big, rack 0)    c.0 c.2 | c.1 c.3",
        "#   host 3 (big, rack 1)    in reserve",
    ]
    replicated = "hosts=3", "strategy={kind: active_replication, k: 1}"
    assert where_tasks_run(load_text(GOOD, "good.yaml", replicated)).splitlines()[1:] == [
        "#   host 0  s.0 c.0/1 c.1 c.3/1",
        "#   host 1  s.1 c.1/1 c.2",
        "#   host 2  c.0 c.2/1 c.3",
    ]
    assert where_tasks_run(load_text(GOOD, "good.yaml", ["hosts=null"])) == ""
    assert load_text(GOOD + where_tasks_run(found), "good.yaml") == found
