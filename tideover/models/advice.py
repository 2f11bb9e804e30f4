"""What an expert would remark about a scenario before running it (``warnings``), and about runs that are done
(``remarks_on_limits``, ``remarks_on_endings``): each remark one sentence, none if there is nothing to say.
Results, sweeps and commands ask for them; what is about a strategy alone goes into that one's ``remarks``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any

import numpy as np

from tideover.models import remarks as failures
from tideover.models.coarsening import coarseness, finest
from tideover.models.config import Scenario, deployment_of, heaviest, topology_of
from tideover.models.evaluation.curves import SLACK
from tideover.models.job.arrivals import Periodic
from tideover.models.job.components import BoltConfig, SpoutConfig, WhenFull, bounds_of
from tideover.models.job.topology import Topology, key_labels, leaving, spread, traffic
from tideover.models.remarks import Load, Plan
from tideover.models.runtime.context import crowded
from tideover.models.simulation import Replication
from tideover.models.strategies.base import Strategy, given
from tideover.sim.units import S, format_duration

UNEVEN = 1.05
"""A task that has so many times the load of the average one is named."""
HOT = 0.25
"""A key is named if it makes up so great a part of what a task gets."""
WHEN_FULL: dict[WhenFull | None, str] = {
    None: "its queue grows without end",
    "block": "its queue fills, and who sends to it has to wait",
    "credits": "its queue fills, and who sends to it has to wait",
    "drop": "its queue fills, and what finds it full is lost",
}
"""What comes of a load that is too much, by what bounds the queue (None: nothing)."""


def task_loads(topology: Topology, strategy: Strategy, over: int | None = None) -> dict[str, Load]:
    """The load of each bolt. What the strategy adds is part of the work.

    Of rates that change the greatest counts; with ``over`` their mean over the first so many ns.
    """
    rates = traffic(topology, over)
    found = {}
    for c in topology.components:
        if isinstance(c.config, BoltConfig):
            each = np.sum([rates[e.name] for e in c.inputs], axis=0)
            added = strategy.load(c)
            work = c.config.service.mean_ns + added.per_tuple
            found[c.name] = Load(each, each * work / S + added.saving)
    return found


def overloaded(scenario: Scenario) -> bool:
    """Whether a backlog can never be worked off, for sure: a task gets as much from a log as it can do, or
    more, evenly and without end.
    """
    strategy, topology = scenario.strategy, topology_of(scenario)
    spouts = [c.config for c in topology.components if isinstance(c.config, SpoutConfig)]
    endless = all(isinstance(c.arrivals, Periodic) and c.spout.limit is None for c in spouts)
    if not endless or not strategy.needs.log or strategy.needs.batches:
        return False
    bolts = ((c.name, c.config) for c in topology.components if isinstance(c.config, BoltConfig))
    found = task_loads(topology, strategy)
    return any(found[name].rate * config.service.mean_ns >= S for name, config in bolts)


def overloads(scenario: Scenario) -> list[str]:
    """Remarks if tasks get more than they can work off, the one with the greatest load first; and if tasks
    that share the cores of a host have more to do than these can, on the worst host.
    """
    deployment, strategy = deployment_of(heaviest(scenario)), scenario.strategy
    if strategy.needs.batches:  # what limits batches is how long all their stages take
        return []
    found = []
    topology, loads = deployment.topology, task_loads(deployment.topology, strategy)
    means = task_loads(topology, strategy, scenario.run.duration)
    over = sorted((name for name in loads if loads[name].load >= 1), key=lambda name: -loads[name].load)
    if over:
        first, load = over[0], loads[over[0]]
        bound = bounds_of(scenario.topology, scenario.queues)[first]
        if means[first].load < 1:
            what = "its queue grows while the input is at its highest"
        elif caps := given(strategy, strategy.spouts_wait):
            what = f"the spouts have to wait ({', '.join(caps)})"
        else:
            what = WHEN_FULL[bound.when_full if bound.length is not None else None]
        also = f"; nor can {', '.join(over[1:])}" if over[1:] else ""
        mean = float(load.loads.sum()) / scenario.topology[first].parallelism
        if load.load <= UNEVEN * mean:
            said = f"{first}: load {load.load:.2f}: a task gets {load.rate:.4g} tuples/s"
        else:
            part = 100 * load.rate / float(load.rates.sum())
            task = int(load.loads.argmax())
            said = (
                f"{first}.{task}: load {load.load:.2f}: this task gets {part:.0f} % of the tuples of "
                f"{first}, {load.rate:.4g}/s{_hottest(topology, first, task)} (the average task has a load "
                f"of {mean:.2f}),"
            )
        found.append(f"{said} and cannot keep up; {what}{also}")
    work: dict[int, float] = {}
    for (name, task, _), host in deployment.hosts.items():
        if host in crowded(deployment) and name in means:
            work[host] = work.get(host, 0.0) + float(means[name].loads[task])
    cores = {host: deployment.cluster.hosts[host].cores or inf for host in work}
    worst = max(work, key=lambda one: work[one] / cores[one], default=None)
    if worst is not None and work[worst] >= cores[worst]:
        has = "a core" if cores[worst] == 1 else f"{cores[worst]} cores"
        found.append(
            f"host {worst}: load {work[worst] / cores[worst]:.2f}: its tasks have {work[worst]:.3g} s of "
            f"work a second for {has}, and cannot keep up"
        )
    return found


def _hottest(topology: Topology, name: str, task: int) -> str:
    """The key that makes a task's load, if one makes a good part of it, in words."""
    out, reads = leaving(topology), topology.by_name[name].inputs
    rates = np.zeros(max(edge.up.keys for edge in reads))
    total = 0.0
    for edge in reads:
        owners = edge.owners(edge.up.keys)
        mine = out[edge.up.name] * (owners == task) if owners is not None else out[edge.up.name] * 0
        rates[: len(mine)] += mine
        total += float(spread(edge, out[edge.up.name])[task])
    key = int(rates.argmax())
    if rates[key] < HOT * total:
        return ""
    names = key_labels(topology, reads[0].up)
    return f", {100 * rates[key] / total:.0f} % of them with the key {names[key] if names else key}"


def _in_step(scenario: Scenario) -> list[str]:
    """On failures that strike at the same part of the strategy's interval in every replication, where nothing
    says that it is meant.
    """
    cycle = scenario.strategy.cycle()
    fixed = [
        (f"failures.{i}", fault.at)
        for i, fault in enumerate(scenario.failures)
        if fault.at is not None and fault.within is None and fault.in_interval is None
    ]
    if cycle is None or scenario.run.replications == 1 or not fixed:
        return []
    (first, period), (key, at) = cycle, fixed[0]
    into, interval = (at - first) % period, format_duration(period)
    # what is due at the fault's own instant comes too late
    where = f"{format_duration(into)} into" if into else "at the end of"
    cure = f"{key}.within={interval.replace(' ', '')} draws the moment"
    if at + period > scenario.run.duration:
        cure = f"{key}.in_interval says how far into it"
    return [
        f"{key}.at: in every replication it strikes {where} an interval of {interval}; other intervals are "
        f"struck at other parts, and can look better for that alone: {cure}, {key}.within=0s says that this "
        "one is meant"
    ]


STEADY = 0.03
"""A backlog that falls by less than this part of its excess, from one third of the time to the next, has
settled.
"""


def waits(replication: Replication, row: Mapping[str, Any]) -> bool:
    """Whether a failure is not caught up with, and more is queued at the end than would be without it."""
    if row["catch_up_s"] is not None or not replication.timeline:
        return False
    last = replication.timeline[-1]
    return bool(last["backlog"] > SLACK * last["backlog_without_failures"])


def remarks_on_endings(scenario: Scenario, replications: Sequence[Replication]) -> list[str]:
    """One sentence, on the earliest failure of those that are the last of their runs and not recovered
    from.
    """
    ends = [(r.recoveries[-1], r) for r in replications if r.recoveries]
    ends = [(row, r) for row, r in ends if row["time_to_recover_s"] is None]
    if not ends:
        return []
    row, replication = min(ends, key=lambda end: float(end[0]["failed_at_s"]))
    end = format_duration(scenario.run.duration)
    longer = f"try run.duration={format_duration(2 * scenario.run.duration).replace(' ', '')}"
    if row["catch_up_s"] is not None:
        state = row["missing"] or row["extra"]
        wrong = "a state lacks something or has it twice" if state else "windows come out wrong"
        why = f"caught up with, but {wrong} to the end of the run ({end})"
    elif overloaded(scenario):
        why = (
            f"its backlog is not gone at the end of the run ({end}); at this rate it never is, however long "
        )
        why += "run.duration is"
    elif not waits(replication, row):
        why = f"whether it is over is not known at the end of the run ({end}); {longer}"
    elif _settled(replication, float(row["failed_at_s"])):
        last = replication.timeline[-1]
        why = f"its backlog stays at {last['backlog']:,}, and would be {last['backlog_without_failures']:,} "
        why += "without failures: the job goes on more slowly, which is not called recovered"
    else:
        why = (
            f"its backlog is not gone at the end of the run ({end}); it takes longer, or never ends; {longer}"
        )
    return [f"failure at {row['failed_at_s']:g} s: {why}"]


def _settled(replication: Replication, since: float) -> bool:
    """Whether the backlog gets no less: the peak of what it has more than it would have, in the last third of
    the time since that was greatest, beside the peak in the third before.
    """
    rows = [row for row in replication.timeline if row["second"] >= since]
    excess = np.array([row["backlog"] - row["backlog_without_failures"] for row in rows], float)
    third = (len(excess) - int(np.argmax(excess))) // 3 if len(excess) else 0  # it may be struck at the end
    if not third:
        return False
    before, after = excess[-2 * third : -third].max(), excess[-third:].max()
    return bool(after >= (1 - STEADY) * before)


BUSY = 0.95
"""A task that was busy for so much of its time limits the run."""
LEFT = 0.05
"""So does one for which so much work waits at the end, as a part of the run's length."""


def remarks_on_limits(scenario: Scenario, replications: Sequence[Replication]) -> list[str]:
    """What lumps cannot tell, which task had most to do for its time (in the replication where that was
    most), and what was counted that should not have been.
    """
    lump, remarks, run = coarseness(scenario), [], scenario.run
    if lump > 1:
        remarks.append(
            f"a simulated tuple stands for {lump:,} (run.lump, run.lump_rate): of latencies under about "
            f"{finest(scenario) / S:.2g} s nothing can be told, and they are left out; for these make "
            "a run without lumps, which may be short"
        )

    rows = [row for r in replications for row in r.tasks if row["utilisation"] is not None]
    bounds = bounds_of(scenario.topology, scenario.queues)
    # where queues have bounds, what waits for a task may wait for the one behind it
    left = inf if any(bound.length is not None for bound in bounds.values()) else LEFT * (run.duration / S)
    over = [row for row in rows if row["utilisation"] >= BUSY or row["queued_s"] >= left]
    if over:
        most = max(over, key=lambda row: (row["queued_s"], row["utilisation"]))
        others = len({row["task"] for row in over} - {most["task"]})
        also = f", as {others} other{'s' if others > 1 else ''} did" if others else ""
        waits = f", and {most['queued']:,} tuples, {most['queued_s']:.3g} s of work, wait for it at the end"
        remarks.append(
            f"{most['task']} limited the run{also}: it was busy {100 * most['utilisation']:.0f} % of the "
            f"time in which it was up{waits if most['queued'] else ''}"
        )

    emitted, given_up, late = (
        sum(r.ledger[name] for r in replications) for name in ("emitted", "false_timeouts", "late")
    )
    if given_up:
        timeouts = given(scenario.strategy, scenario.strategy.gives_up)
        said = "".join(f" (strategy.{key} is {timeout / S:g} s)" for key, timeout in timeouts.items())
        remarks.append(
            f"false timeouts: {given_up:,} of {emitted:,} roots: nothing of them was lost, but they waited "
            f"so long that they were emitted again{said}, which makes others wait"
        )
    if late:
        remarks.append(
            f"late: {late:,} of {emitted:,} roots ({100 * late / emitted:.2g} %) came too late for a window "
            "by event; a longer window.lag waits for more of them, and puts windows out later by as much"
        )
    wrong = sum(r.wrong_without for r in replications)
    if wrong:  # recoveries are judged against that
        remarks.append(
            f"windows: {wrong:,} are wrong or missing without any failure, too: a time to recover says when "
            "all is as bad as it would have been"
        )
    return remarks


def warnings(scenario: Scenario) -> list[str]:
    """Remarks before a run, each said once."""
    deployment, strategy = deployment_of(heaviest(scenario)), scenario.strategy
    topology = deployment.topology
    plan = Plan(
        topology=topology,
        loads=task_loads(topology, strategy),
        cluster=deployment.cluster,
        failures=scenario.failures,
        store=scenario.store,
        run=scenario.run,
    )
    remarks = [
        *overloads(scenario),
        *strategy.remarks(plan),
        *failures.without_effect(plan, strategy.kind, strategy.roles),
        *failures.not_survived(plan, strategy.kind, strategy.survives, strategy.uses_store),
        *_in_step(scenario),
    ]
    drawn = [f"failures.{i}" for i, fault in enumerate(scenario.failures) if fault.drawn]
    if scenario.run.replications == 1 and drawn:
        remarks.append(
            f"run.replications is 1, and the moment of {', '.join(drawn)} is drawn: another seed gives "
            "another result, and no interval can be stated; try run.replications=10"
        )
    # keys that are given, by the scenario or by a profile, have been chosen, be they 0
    free = strategy.unstated(bool(scenario.failures))
    if free and any(c.window for c in topology.components):  # else there is no state to be saved
        listed = f"{', '.join(free[:-1])} and {free[-1]}" if len(free) > 1 else free[0]
        remarks.append(
            f"strategy {strategy.kind}: nothing says how long {listed} take, so they take no time, and "
            "short intervals look free; give these keys (0 s if that is meant)"
        )
    profile = scenario.profile
    if profile is not None and not profile.taken:
        remarks.append(f"profile {profile.name}: gives nothing under {strategy.kind}; no value was measured")
    return list(dict.fromkeys(remarks))


_NUMBER = re.compile(r"\d[\d.,]*")


def in_short(remarks: Iterable[str]) -> list[str]:
    """The remarks on many scenarios: of those on one key (what stands before the colon, numbers aside) the
    first, and how many others there are.
    """
    found: dict[str, dict[str, None]] = {}
    for text in remarks:
        found.setdefault(_NUMBER.sub("", text.partition(":")[0]), {})[text] = None
    return [
        f"{first} (and {len(others)} more of this kind)" if others else first
        for first, *others in found.values()
    ]
