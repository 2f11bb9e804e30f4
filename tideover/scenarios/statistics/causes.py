"""What fails, how often, and as whom: causes of failures, each of which strikes once in a run of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tideover.models.config import Scenario, deployment_of
from tideover.models.job.deployment import Deployment
from tideover.scenarios.errors import Problem, ScenarioError, suggest
from tideover.sim.faults.base import FAULTS, Fault
from tideover.sim.faults.machines_fail import MachinesFail
from tideover.sim.units import S, format_duration, parse_duration

UNITS = {
    "host": ("crash_host",),
    "rack": ("crash_rack",),
    "worker": ("crash_worker",),
    "task": ("crash_task", "lose_state"),
}
"""What can fail as one, and the kinds of failures that say how."""


@dataclass(frozen=True)
class Cause:
    """Failures of one sort.

    ``rate_per_s``: how many come in a second, of all units together; ``strikes``: the failure of each unit,
    once, at a drawn moment.
    """

    name: str
    rate_per_s: float
    strikes: tuple[Fault, ...]

    def struck(self, scenario: Scenario, replication: int) -> Scenario:
        """The scenario with this failure alone; the units take turns, from one replication to the next."""
        strike = self.strikes[replication % len(self.strikes)]
        return scenario.model_copy(update={"failures": (strike,)})


def causes(scenario: Scenario, mtbf: Mapping[str, str]) -> tuple[list[Cause], list[str]]:
    """The causes of failures of a scenario, and remarks on them.

    Failures that come again and again (``every``, ``machines_fail``) have a rate of their own. Of others
    ``mtbf`` says how much time is between two of them on average: ``host``, ``rack``, ``worker`` or ``task``,
    for each one that the scenario has (its failure of such a kind, or else its detector, says how long it is
    down), or ``failures.0`` for that failure as it stands.

    Raises ScenarioError for anything else in ``mtbf``, and if nothing fails.
    """
    given = {key: _pause(key, text) for key, text in mtbf.items()}
    deployment = deployment_of(scenario)
    found: list[Cause] = []
    remarks: list[str] = []
    used: set[int] = set()
    for key, pause in given.items():
        if key in UNITS:
            place, fault = _pattern(scenario, key)
            strikes = tuple(of_each(key, fault, deployment))
            if not strikes:
                raise _refused(key, f"the scenario has no {key}")
            used.add(place)
            many = f"{len(strikes)} {key}{'s' if len(strikes) > 1 else ''}"
            found.append(Cause(many, len(strikes) / pause, tuple(_at_random(f, scenario) for f in strikes)))
        else:
            place = _numbered(key, scenario)
            used.add(place)
            fault = scenario.failures[place]
            if fault.drawn and not fault.within:
                raise _refused(key, "has a rate of its own, by every or as machines_fail")
            found.append(Cause(f"{key} ({fault.kind})", 1 / pause, (_at_random(fault, scenario),)))
    for i, fault in enumerate(scenario.failures):
        if i in used:
            continue
        if cause := _recurring(f"failures.{i}", fault, scenario, deployment):
            found.append(cause)
            if fault.every is not None and fault.every.kind != "exponential":
                remarks.append(
                    f"failures.{i}.every is {fault.every.kind}: availability takes its failures for a "
                    "Poisson process of the same rate, which matters only where recoveries overlap"
                )
        else:
            remarks.append(f"failures.{i} ({fault.kind}) is left out: nothing says how often it comes")
    if not found:
        units = ", ".join(UNITS)
        message = f"is needed: the mean time between failures, as host=30d (known: {units}, failures.0)"
        raise _refused("", f"{message}; failures with every, and machines_fail, have one of their own")
    return found, remarks


def _refused(key: str, message: str) -> ScenarioError:
    return ScenarioError([Problem("--mtbf", None, key or "(option)", message)])


def _pause(key: str, text: str) -> float:
    """Seconds of a mean time between failures."""
    try:
        pause = parse_duration(text)
    except ValueError as error:
        raise _refused(key, str(error)) from None
    if pause <= 0:
        raise _refused(key, f"{text!r}: more than 0 s is needed")
    return pause / S


def _numbered(key: str, scenario: Scenario) -> int:
    known = [f"failures.{i}" for i in range(len(scenario.failures))]
    if key not in known:
        raise _refused(key, f"unknown; {suggest(key, [*UNITS, *known])}")
    return known.index(key)


def _pattern(scenario: Scenario, unit: str) -> tuple[int, Fault]:
    """The scenario's failure that says how such a unit fails; without one what its detector makes of it."""
    for i, fault in enumerate(scenario.failures):
        if fault.kind in UNITS[unit]:
            return i, fault
    if scenario.detector is None or scenario.detector.by_fault:
        kinds = " or ".join(UNITS[unit])
        raise _refused(
            unit,
            f"needs a failure of kind {kinds} in the scenario, which says how long it takes to detect "
            "it and to restart, or a detector",
        )
    kind = FAULTS[UNITS[unit][0]]
    aimed = kind.aimed_at(next(iter(scenario.topology)), 0)
    return -1, kind.model_validate({"at": scenario.run.warmup, "within": None} | aimed)


def of_each(unit: str, fault: Fault, deployment: Deployment) -> Iterator[Fault]:
    """The failure of each ``unit`` (of `UNITS`) that has tasks."""
    cluster = deployment.cluster
    hosts = sorted(set(cluster.at.values()))
    if unit == "host":
        aims: Sequence[dict[str, Any]] = [{"host": host} for host in hosts]
    elif unit == "rack":
        aims = [{"rack": rack} for rack in sorted({cluster.hosts[host].rack for host in hosts})]
    elif unit == "worker":
        aims = [{"host": host, "worker": number} for host, number in cluster.workers]
    else:
        components = deployment.topology.components
        hit = {c.name for c in components if c.keeps_state or not (c.is_spout or fault.kind == "lose_state")}
        aims = [
            {"component": component, "task": task, "replica": replica}
            for component, task, replica in cluster.at
            if component in hit
        ]
    for aim in aims:
        yield fault.model_copy(update=aim)


def _recurring(key: str, fault: Fault, scenario: Scenario, deployment: Deployment) -> Cause | None:
    """The cause of a failure that comes again and again by itself."""
    if isinstance(fault, MachinesFail):
        if fault.repair.kind != "constant":
            raise _refused(key, "repairs of drawn lengths cannot be struck one at a time; give their mean")
        repair = round(fault.repair.mean_ns)
        same = {name: getattr(fault, name) for name in ("detection", "restart", "while_down")}
        crash = FAULTS["crash_host"].model_validate(same | {"at": 0, "host": 0, "repair": repair or None})
        strikes = tuple(_at_random(each, scenario) for each in of_each("host", crash, deployment))
        rate = len(strikes) / ((fault.lifetime.mean_ns + repair) / S)
        return Cause(f"{key} ({len(strikes)} machines)", rate, strikes)
    if fault.every is not None:
        once = fault.model_copy(update={"every": None})
        return Cause(f"{key} ({fault.kind})", S / fault.every.mean_ns, (_at_random(once, scenario),))
    return None


def _at_random(fault: Fault, scenario: Scenario) -> Fault:
    """The failure, once: at the moments that the scenario says it draws; otherwise at any moment of the
    first half of what is left of the run, so that there is time to recover.
    """
    if fault.within is not None:
        return fault
    run = scenario.run
    first = run.warmup if fault.at is None else fault.at
    return fault.model_copy(update={"at": first, "within": (run.duration - first) // 2, "in_interval": None})


def moments(cause: Cause) -> str:
    """When it strikes, in words."""
    one = cause.strikes[0]
    at, within = one.at or 0, one.within or 0
    return f"{format_duration(at)} to {format_duration(at + within)}" if within else format_duration(at)
