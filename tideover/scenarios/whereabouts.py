"""Who runs where, as comments below a scenario's file, which then is still one."""

from __future__ import annotations

from collections.abc import Iterator

from tideover.models.config import Scenario, deployment_of
from tideover.models.job.cluster import Cluster, Hosts
from tideover.models.job.machines import Host
from tideover.models.job.placements.base import Place
from tideover.sim.registry import kind_of


def said(scenario: Scenario) -> str:
    """A line for each host with its tasks, those of its workers apart; empty if the scenario names no hosts,
    but gives each task its own.

    >>> from tideover.scenarios.loader import load
    >>> print(said(load("wordcount", ["hosts=2", "topology.split.parallelism=3"])))
    # Who runs where, as round_robin places tasks (TASK/REPLICA; workers of a host between bars):
    #   host 0  sentences.0 split.1 count.0
    #   host 1  split.0 split.2
    <BLANKLINE>
    """
    if scenario.hosts is None:
        return ""
    kind = kind_of(scenario.hosts.placement) if isinstance(scenario.hosts, Hosts) else "round_robin"
    head = f"Who runs where, as {kind} places tasks (TASK/REPLICA; workers of a host between bars):"
    cluster = deployment_of(scenario).cluster
    return "".join(f"# {line}\n" for line in [head, *_lines(cluster)])


def _lines(cluster: Cluster) -> Iterator[str]:
    heads = [f"host {host.number}{_more(cluster, host)}" for host in cluster.hosts]
    width = max(map(len, heads))
    for host, head in zip(cluster.hosts, heads, strict=True):
        workers = [w for key, w in cluster.workers.items() if key[0] == host.number]
        tasks = " | ".join(" ".join(map(_name, worker.places)) for worker in workers)
        yield f"  {head:{width}}  {tasks or ('in reserve' if host.reserve else 'nobody')}"


def _more(cluster: Cluster, host: Host) -> str:
    """Type and rack, if there is more than one of either."""
    several = len({other.rack for other in cluster.hosts}) > 1
    more = [host.type or "", f"rack {host.rack}" if several else ""]
    return f" ({', '.join(text for text in more if text)})" if any(more) else ""


def _name(place: Place) -> str:
    component, task, replica = place
    return f"{component}.{task}" + (f"/{replica}" if replica else "")
