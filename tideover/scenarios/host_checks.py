"""Which hosts there are, as far as it can be told of a draft."""

from __future__ import annotations

from tideover.models.job.components import BoltConfig
from tideover.models.strategies.base import STRATEGIES
from tideover.scenarios.draft import Draft


def host_fault(draft: Draft, host: int) -> str | None:
    """What is wrong with the number of a host."""
    count = draft.host_count
    if count is None:
        return f"there is no host {host}; hosts are numbered from 0" if host < 0 else None
    if 0 <= host < count:
        return None
    said = f"hosts: {count} means" if isinstance(draft.hosts, int) else "the machines are hosts"
    return f"there is no host {host}; {said} 0 to {count - 1}"


def most_replicas(draft: Draft) -> int:
    """Of a task, under any strategy of the file: the same links serve all that are compared."""
    blocks = {kind: draft.keys("strategies", kind) for kind in draft.keys("strategies")}
    found = [replicas(draft)]
    for kind, block in blocks.items():
        if kind in STRATEGIES:
            found.append(STRATEGIES[kind].most_replicas({key: node.value for key, node in block.items()}))
    return max(found)


def replicas(draft: Draft) -> int:
    """Most replicas of a task, under the scenario's strategy."""
    strategy = draft.strategy
    if strategy is None:
        return 1
    bolts = {name: c for name, c in draft.topology.items() if isinstance(c, BoltConfig)}
    each = [strategy.replicas(name, c.keeps_state) for name, c in bolts.items()]
    return max([strategy.most_replicas(dict(strategy)), *each])


def used(draft: Draft, copies: int) -> int | None:
    """How many hosts there are if each task has its own, and each of its replicas (``copies`` with the first
    one); None: hosts are given, or nothing can be said.
    """
    configs = [c for c in draft.topology.values() if c is not None]
    if draft.hosts is not None or draft.hosts_unknown or len(configs) < len(draft.topology):
        return None
    logical = sum(c.parallelism for c in configs)
    return max([logical * copies, *(h + copies for c in configs for h in c.hosts or ())])


def missing(draft: Draft, host: int, copies: int) -> str | None:
    """What is wrong with the number of a host that must be used."""
    if reason := host_fault(draft, host):
        return reason
    count = used(draft, copies)
    if count is None or host < count:
        return None
    return f"there is no host {host}; this topology uses 0 to {count - 1}"
