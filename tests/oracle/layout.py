"""What depends on no clock: what tuples are called, what they contain and where they go; where tasks sit."""

from __future__ import annotations

import math
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from tideover.models.config import Scenario
from tideover.models.job.components import SpoutConfig
from tideover.sim.distributions import Distribution, Zipf
from tideover.sim.draws import Draws, Purpose, below, uniform01
from tideover.sim.faults import FAULTS, Fault, MachineFault
from tideover.sim.registry import kind_of

Logical = tuple[str, int]  # component, task
Physical = tuple[str, int, int]  # component, task, replica


class Limit(NamedTuple):
    """Of a component: places of each task's queue (None: no end), what happens when they are taken, and how
    many tuples may be left in a task's line when it begins with the next.
    """

    length: int | None = None
    when_full: str = "block"
    send: int = 0


SENTENCES = (
    "tinker taylor soldier spy",
    "the good the bad and the ugly",
    "from dusk till dawn",
    "alice in wonderland",
    "gone with the wind",
)
WORDS = list(dict.fromkeys(" ".join(SENTENCES).split()))

MS = 1_000_000

MACHINES = [
    kind
    for kind, part in FAULTS.items()
    if part.kills and part.hits is not Fault.hits and part.strikes is Fault.strikes
]
"""Faults that take down all that is there."""


class Datum(NamedTuple):
    """One tuple, as the task sees it that has it."""

    root: int
    path: int
    uid: int
    key: int
    value: int
    attempt: int = 0
    born: int = 0  # creation stamp
    epoch: int = 0
    anchored: bool = True
    route: tuple[Logical, ...] = ()
    event: int = 0  # when it took place, for windows by event
    ident: int = 0  # for the acker: each tuple sent has an id of its own


class Panes(NamedTuple):
    """Of windows that slide."""

    length: int  # ns, or tuples
    per_window: int
    slide: int  # so many panes from one window's end to the next
    stays: bool = True  # a tuple leaves with the first window that ends without it, not with its last


def digits(n: int) -> int:
    """Bits that tell n things apart."""
    return (n - 1).bit_length()


@lru_cache(1 << 16)
def drawn(seed: int, replication: int, name: str, purpose: Purpose, index: int, attempt: int) -> np.ndarray:
    """One draw, shape (1,): kept, since a run, its twin, and the run without failures make the same ones."""
    draws = Draws(seed, replication)
    return draws.bits(name, purpose, np.array([index], np.int64), np.array([attempt], np.int64))


@lru_cache(1 << 16)
def sampled(
    what: Distribution, seed: int, replication: int, name: str, purpose: Purpose, index: int, attempt: int
) -> int:
    """One duration; kept for the same reason."""
    return int(what.sample(drawn(seed, replication, name, purpose, index, attempt).copy())[0])


class Layout:
    """The scenario, looked at without time."""

    def __init__(self, scenario: Scenario, draws: Draws) -> None:
        self.scenario = scenario
        self.draws = draws
        self.needs = scenario.strategy.needs
        self.config = scenario.topology
        self._inputs = {name: getattr(config, "from_", {}) for name, config in self.config.items()}
        self.order = self._topological()
        for name, inputs in self._inputs.items():
            self._inputs[name] = {up: inputs[up] for up in self.order if up in inputs}
        self.spouts = [name for name in self.order if isinstance(self.config[name], SpoutConfig)]
        self.spout_tasks = [
            (name, task) for name in self.spouts for task in range(self.config[name].parallelism)
        ]
        self.spout_bits = digits(len(self.spout_tasks))
        self.down = {up: [name for name in self.order if up in self.inputs(name)] for up in self.order}
        self.bits: dict[str, int] = {}
        self.edge_bits: dict[str, int] = {}
        self.task_bits: dict[str, int] = {}
        self.key_count: dict[str, int] = {}
        self._kinds = {
            name: kind_of(config.spout if isinstance(config, SpoutConfig) else config.bolt)
            for name, config in self.config.items()
        }
        for name in self.order:
            self._widths(name)
        self.working = {name: config.parallelism for name, config in self.config.items()}
        """Of each component, tasks that tuples go to now: the first ones."""
        self.working_at: dict[tuple[str, int, int], dict[int, int]] = {}
        """How many there were when a task had put out a window, by when that was."""
        self.physical = self._physical()
        plain = scenario.hosts is None or isinstance(scenario.hosts, int)
        self.host = self._hosts() if plain else self._on_machines(scenario.hosts)
        self.worker = self._workers()

    def inputs(self, name: str) -> dict:
        """{upstream: grouping}, in topological order."""
        return self._inputs[name]

    def kind(self, name: str) -> str:
        """The registered name of the bolt, or of the spout."""
        return self._kinds[name]

    def stateful(self, name: str) -> bool:
        return self.kind(name) in ("windowed_count", "windowed_join", "running_count")

    def goes_on(self, name: str) -> bool:
        """Whether it keeps what its windows have put out."""
        return self.kind(name) == "running_count"

    def keeps_state(self, name: str) -> bool:
        """Its own, or a `state`."""
        return self.stateful(name) or (name not in self.spouts and self.config[name].state is not None)

    def by_tuples(self, name: str) -> bool:
        """Whether a number of tuples ends the windows of a count."""
        return self.config[name].bolt.window.tuples is not None

    def panes(self, name: str) -> Panes | None:
        """Of a count's windows; None: they neither slide nor go by event."""
        window = self.config[name].bolt.window
        length, slide = window.length or window.tuples, window.slide or window.slide_tuples
        if window.gap is not None:
            return Panes(MS, 1, 1, stays=False)
        if slide is None:
            return Panes(length, 1, 1, stays=False) if window.by == "event" else None
        pane = math.gcd(length, slide)
        return Panes(pane, length // pane, slide // pane)

    def beat(self, name: str) -> int | None:
        """Time from one end to the next: of panes, or of windows; None: they are of tuples."""
        panes, length = self.panes(name), self.config[name].bolt.window.length
        window = self.config[name].bolt.window
        if self.by_event(name):
            return window.watermark_interval
        if window.gap is not None:
            return min(window.gap, window.watermark_interval)
        return length if panes is None or length is None else panes.length

    def by_event(self, name: str) -> bool:
        """Whether watermarks end the windows of a count."""
        return self.config[name].bolt.window.by == "event"

    def by_tick(self, name: str) -> bool:
        """Whether the task's own clock ends the windows of a count."""
        return not (self.by_event(name) or self.by_tuples(name) or self.by_marker(name))

    def by_marker(self, name: str) -> bool:
        """Whether markers end the windows of a count."""
        window = self.config[name].bolt.window
        if window.length is None or window.by == "event":
            return False
        return window.trigger == "marker" or self.needs.log

    def _topological(self) -> list[str]:
        order: list[str] = []
        while len(order) < len(self.config):
            ready = (n for n in self.config if n not in order and all(up in order for up in self.inputs(n)))
            order.append(next(ready))
        return order

    def _physical(self) -> list[Physical]:
        tasks = []
        for name in self.order:
            for task in range(self.places(name)):
                tasks += [(name, task, replica) for replica in range(self.replicas(name))]
        return tasks

    def member(self, name: str) -> Any:
        """The strategy of a bolt: that of the scenario, or its own in a hybrid."""
        strategy: Any = self.scenario.strategy
        if kind_of(strategy) != "hybrid":
            return strategy
        if name in strategy.bolts:
            return strategy.bolts[name]
        return strategy.rest if strategy.stateless is None or self.keeps_state(name) else strategy.stateless

    def replicas(self, name: str) -> int:
        strategy = self.scenario.strategy
        if self.has_shadows:
            return strategy.members if self.keeps_state(name) else 1
        if kind_of(strategy) == "active_standby":
            return 1 if name in self.spouts else 2
        if name in self.spouts:
            return 1
        strategy = self.member(name)
        if kind_of(strategy) != "active_replication":
            return 1
        return 1 + strategy.k if strategy.components is None or name in strategy.components else 1

    @property
    def has_shadows(self) -> bool:
        """Whether all replicas but the first say nothing."""
        return kind_of(self.scenario.strategy) == "estorm"

    def size(self, name: str, remote: bool) -> int:
        """Bytes of a message that a component sends, within a host or to another."""
        return self.config[name].tuple_size + (self.scenario.links.header if remote else 0)

    def limit(self, name: str) -> Limit:
        """What bounds the queues of a component's tasks, and their lines."""
        given: dict[str, Any] = {}
        for queue in (self.scenario.queues, self.config[name].queue):
            fields = {} if queue is None else {field: getattr(queue, field) for field in Limit._fields}
            given |= {field: value for field, value in fields.items() if value is not None}
        return Limit(**given)

    def fan_bits(self, name: str) -> int:
        kind = self.kind(name)
        if kind == "split_words":
            return digits(7)
        if kind == "generic":
            return digits(max(1, math.ceil(self.config[name].bolt.selectivity)))
        return 0

    def out_bits(self, name: str) -> int:
        """Width of the path of what a component sends; an aggregate is a root of its own."""
        return 0 if self.stateful(name) else self.bits[name] + self.fan_bits(name)

    def _widths(self, name: str) -> None:
        inputs = self.inputs(name)
        self.bits[name] = self.edge_bits[name] = self.task_bits[name] = 0
        if not inputs:
            spout = self.config[name].spout
            self.key_count[name] = {"sentences": 5, "values": 1}.get(kind_of(spout)) or spout.keys
            return
        self.edge_bits[name] = digits(len(inputs))
        if any(kind_of(grouping) == "all" for grouping in inputs.values()):
            self.task_bits[name] = digits(self.config[name].parallelism)
        width = max(self.out_bits(up) for up in inputs)
        self.bits[name] = width + self.edge_bits[name] + self.task_bits[name]
        keys = max(self.key_count[up] for up in inputs)
        self.key_count[name] = len(WORDS) if self.kind(name) == "split_words" else keys

    def cross(self, up: str, down: str, datum: Datum) -> list[tuple[int, Datum]]:
        """Where a tuple sent by ``up`` goes on this edge, and what it is called there: (task, tuple)."""
        path = datum.path << self.edge_bits[down] | list(self.inputs(down)).index(up)
        grouping, bits, task_bits = kind_of(self.inputs(down)[up]), self.bits[down], self.task_bits[down]
        before = datum.root << bits | path << task_bits
        crossed = []
        for task in self._targets(grouping, up, down, datum.key, before):
            own = task if grouping == "all" else 0
            longer = path << task_bits | own
            crossed.append((task, datum._replace(path=longer, uid=datum.root << bits | longer)))
        return crossed

    def places(self, name: str) -> int:
        """How many tasks there can be."""
        return getattr(self.config[name], "max_parallelism", None) or self.config[name].parallelism

    def owner_of(self, name: str, key: int, working: int) -> int:
        """The task that has a key, if so many work. Groups of keys go to them, if that may change."""
        groups = getattr(self.config[name], "max_parallelism", None)
        return key % working if groups is None else key % groups * working // groups

    def _targets(self, grouping: str, up: str, down: str, key: int, uid: int) -> list[int]:
        """The receiving tasks; ``uid`` is the receiver's, with 0 for the digit of the task."""
        n = self.working[down]
        if grouping == "all":
            return list(range(n))
        if grouping == "global":
            return [0]
        if grouping == "shuffle":
            return [int(below(self._bits(f"{up}->{down}", Purpose.TARGET, uid), n)[0])]
        return [self.owner_of(down, key, n)]  # fields, direct

    @cached_property
    def measured(self) -> str:
        """Where latency and throughput are taken: the last stateful bolt for anchored tuples, else the last
        component that gets any.
        """
        anchored = [name for name in self.order if self.anchored(name)]
        stateful = [name for name in anchored if self.stateful(name)]
        return (stateful or anchored)[-1]

    def anchored(self, name: str) -> bool:
        """Whether what a component gets belongs to roots."""
        return all(
            up in self.spouts or (self.anchored(up) and not self.stateful(up)) for up in self.inputs(name)
        )

    def owner(self, root: int) -> Logical:
        """The spout task that makes it."""
        return self.spout_tasks[root & ((1 << self.spout_bits) - 1)]

    def _bits(self, name: str, purpose: Purpose, index: int, attempt: int = 0) -> np.ndarray:
        return drawn(self.draws.seed, self.draws.replication, name, purpose, index, attempt).copy()

    def sample(self, what: Distribution, name: str, purpose: Purpose, index: int, attempt: int = 0) -> int:
        """One duration."""
        return sampled(what, self.draws.seed, self.draws.replication, name, purpose, index, attempt)

    def phase(self, name: str, purpose: Purpose, period: int, number: int = 0) -> int:
        """When what comes every ``period`` comes first."""
        return int(self._bits(name, purpose, number)[0] >> np.uint64(11)) * period >> 53

    def root(self, spout: str, task: int, number: int) -> Datum | None:
        """The spout task's new tuple of that number (from 0); None: it has no more."""
        config = self.config[spout].spout
        root = number << self.spout_bits | self.spout_tasks.index((spout, task))
        key, value = 0, 1
        if kind_of(config) == "values":
            if number >= len(config.values) and not config.repeat:
                return None
            value = config.values[number % len(config.values)]
        else:
            bits = self._bits(spout, Purpose.CONTENT, root)
            if kind_of(config) == "keys" and config.exponent > 0:
                key = int(Zipf(keys=config.keys, exponent=config.exponent).index(bits)[0])
            else:
                key = int(below(bits, self.key_count[spout])[0])
        return Datum(root, 0, root, key, value)

    def event(self, spout: str, root: int, born: int) -> int:
        """When what a root tells of took place, if it was emitted (or appended) at ``born``."""
        config = self.config[spout]
        stamps = getattr(config.spout, "stamps", None)
        if stamps is not None:
            return stamps[root >> self.spout_bits]
        return max(0, born - self.sample(config.event_delay, spout, Purpose.EVENT, root))

    def children(self, name: str, datum: Datum) -> list[Datum]:
        """What a bolt (not a windowed count) makes of a tuple, in order."""
        bolt, kind = self.config[name].bolt, self.kind(name)
        keys = [datum.key]
        if kind == "split_words":
            keys = [WORDS.index(word) for word in SENTENCES[datum.key].split()]
        elif kind == "filter":
            keys *= self._chance(name, datum) < bolt.keep
        elif kind == "generic":
            whole = math.floor(bolt.selectivity)
            keys *= whole + (self._chance(name, datum) < bolt.selectivity - whole)
        made = []
        for position, key in enumerate(keys):
            path = datum.path << self.fan_bits(name) | position
            uid = datum.root << self.out_bits(name) | path
            made.append(datum._replace(path=path, uid=uid, key=key))
        return made

    def _chance(self, name: str, datum: Datum) -> float:
        return float(uniform01(self._bits(name, Purpose.SELECT, datum.uid))[0])

    def aggregate(self, name: str, task: int, window: int, key: int, value: int, epoch: int) -> Datum:
        """One sum of a window."""
        key_bits = max(1, digits(self.key_count[name]))
        uid = (window * self.places(name) + task) << key_bits | key
        return Datum(uid, 0, uid, key, value, epoch=epoch, anchored=False)

    def effects(self, name: str, datum: Datum) -> set[tuple[str, int]]:
        """(component, uid) of all places where the tree under an anchored tuple at ``name`` ends."""
        if self.stateful(name) or not self.down[name]:
            return {(name, datum.uid)}
        found = set()
        for child in [datum] if name in self.spouts else self.children(name, datum):
            for down in self.down[name]:
                for _, crossed in self.cross(name, down, child):
                    found |= self.effects(down, crossed)
        return found

    # -- where tasks sit: hosts, workers, racks, and what is between them ----------------------------------

    def _hosts(self) -> dict[Physical, int]:
        """Tasks without a list of hosts: one after the other; replica r sits r hosts further."""
        hosts: dict[Physical, int] = {}
        logical = [(name, task) for name, task, replica in self.physical if replica == 0]
        for number, (name, task) in enumerate(logical):
            given, n = self.config[name].hosts, self.scenario.hosts
            for replica in range(self.replicas(name)):
                host = number if given is None else given[task % len(given)]
                further = host + replica * (len(logical) if n is None else 1)
                hosts[name, task, replica] = further if n is None else further % n
        return hosts

    @property
    def every_host(self) -> range:
        """Those that there are."""
        hosts = self.scenario.hosts
        if hosts is None:
            return range(1 + max(self.host.values()))
        return range(hosts if isinstance(hosts, int) else hosts.count)

    def nic(self, physical: Physical) -> int | None:
        """Bandwidth of the card of a task's host; None: no limit."""
        return self.machines[self.host[physical]].nic if self.machines else None

    @property
    def machines(self) -> list[Any]:
        """By host; none, if hosts are only numbered."""
        kinds = getattr(self.scenario.hosts, "machines", {}).values()
        return [machine for machine in kinds for _ in range(machine.count)]

    def _on_machines(self, cluster: Any) -> dict[Physical, int]:
        """Tasks with a list of hosts; the others one after the other; all first replicas behind their
        primaries, one after the other; and so on. A placement that this program does not know is to be named
        by hand.
        """
        kind = kind_of(cluster.placement)
        assert kind in ("round_robin", "k_safe", "by_hand"), f"no rules for {kind}"
        slots = [machine.slots for machine in self.machines]
        usable = len(slots) - cluster.reserve
        logical = [(name, task) for name, task, replica in self.physical if replica == 0]
        sits: dict[Physical, int] = {}
        for name, task in logical:
            if self.config[name].hosts is not None:
                sits[name, task, 0] = self.config[name].hosts[task]
        order = sorted(self.physical, key=lambda place: (place[2], logical.index(place[:2])))
        for name, task, replica in order:
            if (name, task, replica) in sits:
                continue
            first = sits[name, task, 0] + replica if replica else logical.index((name, task))
            if kind == "by_hand":
                sits[name, task, replica] = cluster.placement.tasks[name][task][replica]
                continue
            turns = [(first + further) % usable for further in range(usable)]
            there = list(sits.values())
            turns = [host for host in turns if slots[host] is None or there.count(host) < slots[host]]
            fleet = [sits[name, task, other] for other in range(replica)]
            apart = [host for host in turns if host not in fleet]
            if kind == "k_safe":
                if min(cluster.racks, usable) >= self.replicas(name):
                    racks = [host % cluster.racks for host in fleet]
                    apart = [host for host in apart if host % cluster.racks not in racks]
                apart.sort(key=there.count)
            else:
                apart = apart or turns
            sits[name, task, replica] = apart[0]
        return sits

    def _workers(self) -> dict[Physical, int]:
        """The tasks of a host go round its workers."""
        processes = getattr(self.scenario.hosts, "workers", 1)
        seen: dict[int, int] = {}
        workers = {}
        for physical in self.physical:
            host = self.host[physical]
            workers[physical] = seen.get(host, 0) % processes
            seen[host] = seen.get(host, 0) + 1
        return workers

    def fails(self, fault: Any, host: int, worker: int) -> bool:
        """Whether a fault of machines takes down this worker of this host."""
        return bool(fault.hits(host % getattr(self.scenario.hosts, "racks", 1), host, worker))

    def breaks(self, fault: Any, host: int) -> bool:
        """Whether a fault takes down this host as a whole."""
        return isinstance(fault, MachineFault) and self.fails(fault, host, -1)

    @property
    def cores(self) -> dict[int, float]:
        """Of each host on which they matter."""
        each = enumerate(machine.cores for machine in self.machines)
        slow = {fault.host for fault in self.scenario.failures if kind_of(fault) == "slow_host"}
        return dict.fromkeys(slow, math.inf) | {host: cores for host, cores in each if cores is not None}

    def latency(self, up: Physical, down: Physical) -> Distribution:
        a, b = sorted((self.host[up], self.host[down]))
        links = self.scenario.links
        if a == b:
            return links.local
        return links.pairs.get(f"{a}-{b}", links.pairs.get(f"{b}-{a}", links.latency))
