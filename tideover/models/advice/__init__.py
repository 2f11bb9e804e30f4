"""What an expert would remark about a scenario before running it, and about its runs."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tideover.models.advice import costs, loads, moments
from tideover.models.config import Scenario, deployment_of
from tideover.models.job.deployment import Deployment
from tideover.models.remarks import failures
from tideover.models.remarks.plan import Plan
from tideover.models.time_of_day import heaviest


def warnings(scenario: Scenario) -> list[str]:
    """Remarks before a run, each one sentence, said once; none if there is nothing to remark."""
    deployment, strategy = deployment_of(heaviest(scenario)), scenario.strategy
    plan = planned(scenario, deployment)
    remarks = [
        *_overloads(scenario, deployment),
        *strategy.remarks(plan),
        *failures.without_effect(plan, strategy.kind, strategy.roles),
        *failures.not_survived(plan, strategy.kind, strategy.survives, strategy.uses_store),
        *moments.in_step(scenario),
        *moments.seen_once(scenario),
        *costs.unstated(scenario, plan.topology),
        *_profile(scenario),
    ]
    return list(dict.fromkeys(remarks))


def overloads(scenario: Scenario) -> list[str]:
    """Those of them on tasks and hosts that cannot keep up."""
    return _overloads(scenario, deployment_of(heaviest(scenario)))


def _overloads(scenario: Scenario, deployment: Deployment) -> list[str]:
    found = loads.task_loads(deployment.topology, scenario.strategy)
    return [
        *loads.overloads(scenario, deployment.topology, found),
        *loads.overloaded_hosts(scenario, deployment),
    ]


def planned(scenario: Scenario, deployment: Deployment) -> Plan:
    """What the scenario's strategy may look at."""
    return Plan(
        topology=deployment.topology,
        loads=loads.task_loads(deployment.topology, scenario.strategy),
        cluster=deployment.cluster,
        failures=scenario.failures,
        store=scenario.store,
        run=scenario.run,
    )


_NUMBER = re.compile(r"\d[\d.,]*")


def in_short(remarks: Iterable[str]) -> list[str]:
    """The remarks on many scenarios: of those on one key (what stands before the colon, numbers aside) the
    first, and how many others there are.
    """
    found: dict[str, dict[str, None]] = {}
    for text in remarks:
        found.setdefault(_NUMBER.sub("", text.partition(":")[0]), {})[text] = None
    shown = []
    for first, *others in found.values():
        shown.append(f"{first} (and {len(others)} more of this kind)" if others else first)
    return shown


def _profile(scenario: Scenario) -> list[str]:
    profile = scenario.profile
    if profile is None or profile.taken:
        return []
    return [f"profile {profile.name}: gives nothing under {scenario.strategy.kind}; no value was measured"]
