"""Which resource a run is short of: use of tasks, and what flows where. `simulation` asks of one run,
results and searches for the most load of several.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tideover.models.accounts.usage import Usage, busy_ns
from tideover.models.runtime.job import Job
from tideover.sim.units import S


def utilisation(job: Job) -> list[dict[str, Any]]:
    """One row for each bolt task and replica of a run that has ended, in the physical order.

    ``busy_s`` / ``up_s`` is its ``utilisation`` (None: it was never up). Where full queues can make it wait,
    ``blocked_s`` is how long they did. ``queued`` tuples, ``queued_s`` of work, waited for it at the end or
    were in service there.
    """
    rows = []
    bounded = any(bounds.length is not None for bounds in job.deployment.bounds.values())
    for task in job.bolt_tasks:
        up = job.kernel.now - job.supervisor.down_ns(task)
        busy = busy_ns(job.context, task, job.kernel.now)
        blocked = 0 if task.line is None else task.line.blocked_until(job.kernel.now)
        queue = task.queue.trains()
        rows.append(
            {
                "task": task.name,
                "utilisation": busy / up if up else None,
                "busy_s": busy / S,
                "up_s": up / S,
                **({"blocked_s": blocked / S} if bounded else {}),
                "queued": sum(train.n for train in queue),
                "queued_s": task.queue.demand(*queue) / S,
            }
        )
    return rows


Counts = dict[str, int]


def edges(job: Job) -> dict[str, Counts]:
    """Of each edge messages, bytes, and those of them that went to another host, in a run that has ended."""
    found = {e.name: {"messages": 0, "bytes": 0, "remote_bytes": 0} for e in job.topology.edges}
    for channel in (channel for task in job.bolt_tasks for channel in task.inputs):
        count = found[f"{channel.up.component.name}->{channel.down.component.name}"]
        count["messages"] += channel.messages
        count["bytes"] += channel.bytes
        count["remote_bytes"] += channel.remote_bytes
    return found


def pairs(job: Job) -> list[Counts]:
    """The same of hosts, that of the sender and of the receiver, that differ."""
    found: dict[tuple[int, int], Counts] = {}
    for way in (way for task in job.bolt_tasks for channel in task.inputs for way in channel.by_way):
        if way.remote and way.messages:
            new = {"from_host": way.from_host, "to_host": way.to_host, "messages": 0, "bytes": 0}
            pair = found.setdefault((way.from_host, way.to_host), new)
            pair["messages"] += way.messages
            pair["bytes"] += way.bytes
    return list(found.values())


def flows(runs: Sequence[Mapping[str, Counts]], duration_s: float) -> list[dict[str, float | str]]:
    """By edge, the mean over the runs and all of their time: messages and bytes per second, and bytes per
    second between hosts.
    """
    columns = {"messages": "messages_per_s", "bytes": "bytes_per_s", "remote_bytes": "between_hosts_per_s"}
    whole = len(runs) * duration_s
    return [
        {"edge": name, **{key: sum(run[name][of] for run in runs) / whole for of, key in columns.items()}}
        for name in (runs[0] if runs else ())
    ]


def between_hosts(runs: Sequence[Sequence[Counts]], duration_s: float) -> list[dict[str, float | int]]:
    """By sender's and receiver's host, the mean over the runs and all of their time: messages and bytes per
    second. Pairs of which no run sent anything are left out.
    """
    counts: dict[tuple[int, int], list[int]] = {}
    for pair in (pair for run in runs for pair in run):
        count = counts.setdefault((pair["from_host"], pair["to_host"]), [0, 0])
        count[0] += pair["messages"]
        count[1] += pair["bytes"]
    whole = len(runs) * duration_s
    return [
        {"from_host": up, "to_host": down, "messages_per_s": messages / whole, "bytes_per_s": bytes_ / whole}
        for (up, down), (messages, bytes_) in sorted(counts.items())
    ]


FULL = 0.95
"""A resource that is busy for so much of the time is what is short."""


class Load(NamedTuple):
    """A resource, and which part of the time it was busy."""

    name: str
    kind: str
    host: int | None
    busy: float

    @property
    def words(self) -> str:
        """What it is.

        >>> Load("card out", "card out", 3, 0.5).words, Load("split.2", "task", 3, 0.5).words
        ('card out of host 3', 'task split.2')
        >>> Load("files", "store", 3, 0.5).words, Load("redis", "store", None, 0.5).words
        ('store files of host 3', 'store redis')
        """
        if self.kind in ("cores", "card in", "card out"):
            return f"{self.kind} of host {self.host}"
        words = f"{self.kind} {self.name}"
        return f"{words} of host {self.host}" if self.kind == "store" and self.host is not None else words

    @property
    def words_of_kind(self) -> str:
        return {"card in": "cards in", "card out": "cards out"}.get(self.kind, f"{self.kind.rstrip('s')}s")

    @property
    def verb(self) -> str:
        return "are" if self.kind == "cores" else "is"


def shortage(load: Load) -> tuple[bool, float]:
    """Sorts loads by what is short: the busiest first, but a full store before tasks, which count as busy
    while they wait for it.

    >>> loads = [Load("count.0", "task", 3, 1.0), Load("redis", "store", None, 0.996)]
    >>> min(loads, key=shortage).name
    'redis'
    """
    return not (load.kind == "store" and load.busy >= FULL), -load.busy


class Used(NamedTuple):
    """What a run's resources did (see `tideover.models.accounts.usage.Usage`), in plain data.

    resources   name, kind and host of each
    times       when it was looked (ns)
    busy        for each of these moments, how long each resource had been busy (ns)
    """

    resources: Sequence[tuple[str, str, int | None]]
    times: Sequence[int]
    busy: Sequence[Sequence[float]]

    @staticmethod
    def of(usage: Usage) -> Used:
        return Used(usage.resources, usage.times, usage.busy)

    def loads(self, begin: int, end: int) -> list[Load]:
        """Which part of the time from ``begin`` to ``end`` (ns) each was busy, in their order. The stretch
        goes from the first look at or after ``begin`` to the last at or before ``end``; nothing if there are
        no two.
        """
        inside = [i for i, moment in enumerate(self.times) if begin <= moment <= end]
        if len(inside) < 2:
            return []
        first, last = inside[0], inside[-1]
        span = self.times[last] - self.times[first]
        found = zip(self.resources, self.busy[first], self.busy[last], strict=True)
        return [Load(*names, (after - before) / span) for names, before, after in found]

    def rows(self) -> list[dict[str, Any]]:
        return [
            {"begin_s": begin / S, "end_s": end / S}
            | {"resource": name, "kind": kind, "host": host, "busy": (b - a) / (end - begin)}
            for begin, end, before, after in zip(
                self.times, self.times[1:], self.busy, self.busy[1:], strict=False
            )
            for (name, kind, host), a, b in zip(self.resources, before, after, strict=True)
        ]


def mean_loads(replications: Iterable[Sequence[Load]]) -> list[Load]:
    """The mean of all replications, by ``shortage``; what is equally busy stays in its order."""
    found: dict[tuple[str, str, int | None], list[float]] = {}
    for loads in replications:
        for load in loads:
            found.setdefault((load.name, load.kind, load.host), []).append(load.busy)
    means = [Load(*names, sum(busy) / len(busy)) for names, busy in found.items()]
    return sorted(means, key=shortage)


def sentence(loads: Sequence[Load]) -> str:
    """The busiest resource in words, and the next; ``loads``: the busiest first. Nothing is known of none.

    >>> loads = [Load("card out", "card out", 3, 0.996), Load("split.2", "task", 3, 0.71)]
    >>> sentence(loads)
    'card out of host 3 is 99.6 % busy; next: task split.2, 71.0 %'
    """
    if not loads:
        return "nothing was measured"
    first = loads[0]
    told = f"{first.words} {first.verb} {100 * first.busy:.1f} % busy"
    return f"{told}; next: {loads[1].words}, {100 * loads[1].busy:.1f} %" if loads[1:] else told


def as_record(loads: Sequence[Load]) -> list[Mapping[str, Any]]:
    return [load._asdict() for load in loads]
