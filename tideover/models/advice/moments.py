"""When failures strike: always at the same part of an interval, or drawn and seen once."""

from __future__ import annotations

from tideover.models.config import Scenario
from tideover.sim.faults.base import Fault
from tideover.sim.units import format_duration


def in_step(scenario: Scenario) -> list[str]:
    """A remark if a failure strikes at the same part of the strategy's interval in every replication, and
    nothing says that it is meant.
    """
    cycle = scenario.strategy.cycle()
    fixed = [i for i, fault in enumerate(scenario.failures) if _at_a_fixed_part(fault)]
    if cycle is None or scenario.run.replications == 1 or not fixed:
        return []
    first, period = cycle
    key, at = f"failures.{fixed[0]}", scenario.failures[fixed[0]].at or 0
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


def _at_a_fixed_part(fault: Fault) -> bool:
    return fault.at is not None and fault.within is None and fault.in_interval is None


def seen_once(scenario: Scenario) -> list[str]:
    """A remark if the moment of a failure is drawn, and there is one replication."""
    drawn = [f"failures.{i}" for i, fault in enumerate(scenario.failures) if fault.drawn]
    if scenario.run.replications > 1 or not drawn:
        return []
    return [
        f"run.replications is 1, and the moment of {', '.join(drawn)} is drawn: another seed gives another "
        "result, and no interval can be stated; try run.replications=10"
    ]
