"""Where tasks sit: hosts, workers, racks, and what is between them."""

from __future__ import annotations

import math
from typing import Any

from tideover.models.config import Scenario
from tideover.models.job.cluster import Hosts
from tideover.sim.distributions import Distribution
from tideover.sim.registry import kind_of

Logical = tuple[str, int]  # component, task
Physical = tuple[str, int, int]  # component, task, replica


class Placement:
    """Who is on which host, and in which worker of it."""

    scenario: Scenario
    config: Any
    physical: list[Physical]

    def __init__(self) -> None:
        plain = self.scenario.hosts is None or isinstance(self.scenario.hosts, int)
        self.host = self._hosts() if plain else self._on_machines(self.scenario.hosts)
        self.worker = self._workers()

    def replicas(self, name: str) -> int:
        """Of each task of a component."""
        raise NotImplementedError

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
        if not isinstance(self.scenario.hosts, Hosts):
            return None
        each = [m.nic for m in self.scenario.hosts.machines.values() for _ in range(m.count)]
        return each[self.host[physical]]

    def _on_machines(self, cluster: Any) -> dict[Physical, int]:
        """Tasks with a list of hosts; the others one after the other; all first replicas behind their
        primaries, one after the other; and so on. A placement that this program does not know is to be named
        by hand.
        """
        kind = kind_of(cluster.placement)
        assert kind in ("round_robin", "k_safe", "by_hand"), f"no rules for {kind}"
        slots = [machine.slots for machine in cluster.machines.values() for _ in range(machine.count)]
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
        """Whether a fault of a worker, a host or a rack takes down this worker of this host."""
        kind = kind_of(fault)
        if kind == "crash_rack":
            return host % getattr(self.scenario.hosts, "racks", 1) == fault.rack
        return host == fault.host and (kind == "crash_host" or worker == fault.worker)

    @property
    def cores(self) -> dict[int, float]:
        """Of each host on which they matter."""
        machines = getattr(self.scenario.hosts, "machines", {}).values()
        each = enumerate(machine.cores for machine in machines for _ in range(machine.count))
        slow = {fault.host for fault in self.scenario.failures if kind_of(fault) == "slow_host"}
        return dict.fromkeys(slow, math.inf) | {host: cores for host, cores in each if cores is not None}

    def latency(self, up: Physical, down: Physical) -> Distribution:
        a, b = sorted((self.host[up], self.host[down]))
        links = self.scenario.links
        if a == b:
            return links.local
        return links.pairs.get(f"{a}-{b}", links.pairs.get(f"{b}-{a}", links.latency))
