"""Availability with rare failures, without waiting for them: `find`, for `tideover availability`.

Audits of lost time take causes and single runs from here, plans `conditioned`. Which failures make a cause is
changed in `causes`, what follows from their recoveries in `conditioned`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import tideover
from tideover.models.advice import warnings
from tideover.models.config import Scenario, deployment_of
from tideover.models.job.cluster import Deployment
from tideover.models.schema import HEADLINE, counted
from tideover.models.simulation import Replication, simulate
from tideover.scenarios.errors import Problem, ScenarioError, suggest
from tideover.scenarios.part_builder import to_data
from tideover.scenarios.runs import RunFailed, told
from tideover.scenarios.statistics.intervals import LEVEL, Estimate, estimate, t_quantile
from tideover.sim.fault_kinds import MachinesFail
from tideover.sim.faults import FAULTS, Fault
from tideover.sim.registry import kind_of
from tideover.sim.units import S, format_duration, parse_duration

# The sum of a random number of random times is compound Poisson. The characteristic function of the sum is
# exp(m (phi - 1)), with m the mean number of events and phi the characteristic function of one of them:
# Grubel and Hermesmeier, Computation of Compound Distributions I, ASTIN Bulletin 29, 1999. No draw is made,
# so the same input gives the same figures.

Floats = npt.NDArray[np.float64]

LEAST_CELLS, MOST_CELLS = 1 << 13, 1 << 20
"""Cells of the lattice on which the sum is found."""
FINE = 16
"""Cells to the root mean square of one event: dividing it between two cells adds 0.1 % to its square."""
_SPREAD = 12.0
"""Standard deviations on either side of the mean that the lattice has room for."""


@dataclass(frozen=True)
class Compound:
    """The distribution of the sum, on a lattice: ``chance[i]`` of ``first + i * step``."""

    first: float
    step: float
    chance: Floats

    def quantile(self, q: float) -> float:
        """The least value that the sum does not exceed with probability ``q``."""
        place = int(np.searchsorted(np.cumsum(self.chance), q - 1e-12))
        return self.first + self.step * min(place, len(self.chance) - 1)

    def above(self, limit: float) -> float:
        """The probability that the sum exceeds ``limit``."""
        values = self.first + self.step * np.arange(len(self.chance))
        return float(min(1.0, self.chance[values > limit + self.step / 2].sum()))


def compound_poisson(parts: Sequence[tuple[float, Floats]]) -> Compound:
    """The sum of independent compound Poisson sums.

    ``parts``: of each the mean number of events, and values of one event that are equally likely (none below
    0, at least one).
    """
    mean = sum(count * float(values.mean()) for count, values in parts)
    spread = sum(count * float((values**2).mean()) for count, values in parts) ** 0.5
    longest = max((float(values.max()) for _, values in parts), default=0.0)
    room = 2 * _SPREAD * spread + 2 * longest
    if room == 0:
        return Compound(0.0, 1.0, np.ones(1))
    events = sum(count for count, _ in parts)
    wanted = room / (spread / events**0.5) * FINE
    cells = min(MOST_CELLS, max(LEAST_CELLS, 1 << int(np.ceil(np.log2(wanted)))))
    step = room / cells
    first = max(0, int((mean - _SPREAD * spread - longest) / step))
    exponent = np.zeros(cells // 2 + 1, dtype=np.complex128)
    for count, values in parts:
        # each value's chance is divided between its two neighbours on the lattice so that the mean is kept
        low = np.floor(values / step).astype(np.int64)
        part = values / step - low
        on_lattice = np.bincount(low, 1 - part, cells) + np.bincount(low + 1, part, cells)
        exponent += count * (np.fft.rfft(on_lattice / len(values)) - 1)
    whole = np.maximum(np.fft.irfft(np.exp(exponent), cells), 0.0)  # of the sum modulo the lattice
    chance = np.roll(whole, -(first % cells))
    return Compound(first * step, step, chance / chance.sum())


UNITS = {
    "host": ("crash_host",),
    "rack": ("crash_rack",),
    "worker": ("crash_worker",),
    "task": ("crash_task", "lose_state"),
}


@dataclass(frozen=True)
class Cause:
    """Failures of one sort, each of which strikes once in a run of its own.

    ``rate_per_s``: how many come in a second, of all units together; ``strikes``: the failure of each unit,
    once, at a drawn moment.
    """

    name: str
    rate_per_s: float
    strikes: tuple[Fault, ...]

    def struck(self, scenario: Scenario, replication: int) -> Scenario:
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
    pauses: dict[str, float] = {}
    for key, text in mtbf.items():
        try:
            pauses[key] = parse_duration(text) / S
        except ValueError as error:
            raise _refused(key, str(error)) from None
        if pauses[key] <= 0:
            raise _refused(key, f"{text!r}: more than 0 s is needed")
    deployment = deployment_of(scenario)
    known = [f"failures.{i}" for i in range(len(scenario.failures))]
    found: list[Cause] = []
    remarks: list[str] = []
    used: set[int] = set()
    for key, pause in pauses.items():
        if key in UNITS:
            place, fault = _pattern(scenario, key)
            strikes = [_at_random(each, scenario) for each in of_each(key, fault, deployment)]
            if not strikes:
                raise _refused(key, f"the scenario has no {key}")
            many = f"{len(strikes)} {key}{'s' if len(strikes) > 1 else ''}"
            found.append(Cause(many, len(strikes) / pause, tuple(strikes)))
        elif key not in known:
            raise _refused(key, f"unknown; {suggest(key, [*UNITS, *known])}")
        else:
            place = known.index(key)
            fault = scenario.failures[place]
            if fault.drawn and not fault.within:
                raise _refused(key, "has a rate of its own, by every or as machines_fail")
            found.append(Cause(f"{key} ({fault.kind})", 1 / pause, (_at_random(fault, scenario),)))
        used.add(place)
    for i, fault in enumerate(scenario.failures):
        if i in used:
            continue
        if isinstance(fault, MachinesFail):
            found.append(_machines(f"failures.{i}", fault, scenario, deployment))
        elif fault.every is not None:
            once = _at_random(fault.model_copy(update={"every": None}), scenario)
            found.append(Cause(f"failures.{i} ({fault.kind})", S / fault.every.mean_ns, (once,)))
            if fault.every.kind != "exponential":
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


def of_each(unit: str, fault: Fault, deployment: Deployment) -> list[Fault]:
    """The failure of each ``unit`` (of `UNITS`) that has tasks."""
    cluster = deployment.cluster
    hosts = sorted(set(cluster.at.values()))
    aims: Sequence[dict[str, Any]]
    if unit == "host":
        aims = [{"host": host} for host in hosts]
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
    return [fault.model_copy(update=aim) for aim in aims]


def _machines(key: str, fault: MachinesFail, scenario: Scenario, deployment: Deployment) -> Cause:
    """Crashes of all hosts, as often as machines fail."""
    if fault.repair.kind != "constant":
        raise _refused(key, "repairs of drawn lengths cannot be struck one at a time; give their mean")
    repair = round(fault.repair.mean_ns)
    same = {name: getattr(fault, name) for name in ("detection", "restart", "while_down")}
    crash = FAULTS["crash_host"].model_validate(same | {"at": 0, "host": 0, "repair": repair or None})
    strikes = tuple(_at_random(each, scenario) for each in of_each("host", crash, deployment))
    rate = len(strikes) / ((fault.lifetime.mean_ns + repair) / S)
    return Cause(f"{key} ({len(strikes)} machines)", rate, strikes)


def _at_random(fault: Fault, scenario: Scenario) -> Fault:
    """The failure, once: at the moments that the scenario says it draws; otherwise at any moment of the
    first half of what is left of the run, so that there is time to recover.
    """
    if fault.within is not None:
        return fault
    run = scenario.run
    first = run.warmup if fault.at is None else fault.at
    return fault.model_copy(update={"at": first, "within": (run.duration - first) // 2, "in_interval": None})


# Availability with rare failures, without waiting for them. Failures of each kind come as a Poisson process:
# those of many machines together do, whatever the life of one is (Palm and Khintchine; Cox, Renewal Theory,
# 1962, chapter 6). Each makes the output other than it would have been for its recovery time R, and another
# failure meanwhile does not shorten that. So what is down is the busy server of an M/G/infinity queue, and
# for the part exp(-sum of rate * E[R]) of the time nothing is down, whatever the distributions of R (Takacs,
# Introduction to the Theory of Queues, 1962, chapter 3). If a failure made the recovery under way begin anew
# instead, it would be the product of E[exp(-rate * R)], which is no less (Jensen), and equal if R is
# constant; the two differ by half the variance of rate * R.

Recoveries = Sequence[float | None] | Sequence[Sequence[float | None]] | Floats
"""Recovery times (s) of replications: one each, or several each. None or NaN: not recovered."""

YEAR_S = 365.25 * 86_400.0
CROWDED = 0.05
"""With a failure in so great a part of recoveries, what failures do to one another begins to count."""


@dataclass(frozen=True)
class Availability:
    """The part of the time in which output, state and backlog are as without failures.

    recovery_s             of each kind of failure, over replications
    rate_per_s             failures of each kind, per second
    over_s                 the period that budgets and times down are of
    objective, budget_s    the availability that is demanded, and how long it may be down; None: none is
    value, low, high       with a 95 % interval; None if unknown: a replication had not recovered at its end,
                           or (low, high) there are fewer than two replications of a kind
    down_s                 mean time in the period that is down, and its interval; median, and what 95 % do
                           not exceed
    burnt                  part of the budget that is burnt on average; over 1: more than there is
    exceeded               probability that more than the budget is burnt
    """

    recovery_s: Mapping[str, Estimate]
    rate_per_s: Mapping[str, float]
    over_s: float
    objective: float | None
    budget_s: float | None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    down_s: float | None = None
    down_low_s: float | None = None
    down_high_s: float | None = None
    down_median_s: float | None = None
    down_p95_s: float | None = None
    burnt: float | None = None
    exceeded: float | None = None

    @property
    def minutes_per_year(self) -> float | None:
        """Mean minutes in a year that are down."""
        return None if self.value is None else (1 - self.value) * YEAR_S / 60

    @property
    def undefined(self) -> int:
        """Replications that had not recovered at their end."""
        return sum(one.undefined for one in self.recovery_s.values())

    def to_dict(self) -> dict[str, Any]:
        names = [name for name in self.__dataclass_fields__ if name not in ("recovery_s", "rate_per_s")]
        kinds = {
            kind: {
                "failures_per_year": self.rate_per_s[kind] * YEAR_S,
                "recovery_s": {k: one.record()[k] for k in ("mean", "low", "high", "n", "undefined")},
            }
            for kind, one in self.recovery_s.items()
        }
        found = {name: getattr(self, name) for name in names}
        return found | {"minutes_per_year": self.minutes_per_year, "failures": kinds}


def conditioned(
    recoveries_by_kind: Mapping[str, Recoveries],
    rate_per_s: Mapping[str, float],
    *,
    objective: float | None = None,
    over_s: float = YEAR_S,
) -> Availability:
    """Availability from recoveries that were simulated each after one failure, and how often failures come.

    ``recoveries_by_kind``: recovery times (s) of the replications of each kind of failure, (n,), or (n, m)
    with m failures each, which count as one replication (None or NaN: not recovered by the end of the run).
    ``rate_per_s``: failures of each of these kinds per second, of all that can fail together.
    ``objective``: the availability that is demanded, as 0.9995. ``over_s``: the period of the budget.

    The interval is Student's, of the mean recovery times, with Welch's degrees of freedom, through exp (the
    delta method). The time that is down in the period is compound Poisson, its mean corrected for overlaps.

    Raises ValueError for kinds without a rate, rates or recoveries below 0, no replications, an objective
    not within (0, 1).

    >>> found = conditioned({"host": [60.0, 90.0]}, {"host": 1e-6}, objective=0.9999)
    >>> round(found.value, 6), round(found.minutes_per_year, 1), round(found.burnt, 2)
    (0.999925, 39.4, 0.75)
    """
    times, rates = _checked(recoveries_by_kind, rate_per_s)
    if objective is not None and not 0 < objective < 1:
        raise ValueError(f"the objective is {objective}; more than 0 and less than 1 is allowed")
    if not 0 < over_s < math.inf:
        raise ValueError(f"the period is {over_s} s; more than 0 is allowed")
    means = {kind: estimate(rows.mean(axis=1), resample=False) for kind, rows in times.items()}
    budget = None if objective is None else (1 - objective) * over_s
    if any(one.undefined and rates[kind] for kind, one in means.items()):
        return Availability(means, rates, over_s, objective, budget)
    load = sum(rates[kind] * (one.mean or 0.0) for kind, one in means.items())
    half = _half_width(means, rates)
    low, high = (None, None) if half is None else (math.exp(-load - half), math.exp(-max(0.0, load - half)))
    # sums count twice what overlaps: rates are lowered so that the mean is right
    once = -math.expm1(-load) / load if load else 1.0
    every = ((rates[kind], rows) for kind, rows in times.items())
    known = [(rate, rows) for rate, rows in every if rate and not np.isnan(rows).any()]
    down = compound_poisson([(once * rate * over_s, rows.ravel()) for rate, rows in known])
    mean = -math.expm1(-load) * over_s
    return Availability(
        means,
        rates,
        over_s,
        objective,
        budget,
        value=math.exp(-load),
        low=low,
        high=high,
        down_s=mean,
        down_low_s=None if high is None else (1 - high) * over_s,
        down_high_s=None if low is None else (1 - low) * over_s,
        down_median_s=down.quantile(0.5),
        down_p95_s=down.quantile(0.95),
        burnt=None if budget is None else mean / budget,
        exceeded=None if budget is None else down.above(budget),
    )


def _checked(
    recoveries_by_kind: Mapping[str, Recoveries], rate_per_s: Mapping[str, float]
) -> tuple[dict[str, Floats], dict[str, float]]:
    """Recovery times, a row a replication, and the rate of each kind; raises ValueError as `conditioned`."""
    times: dict[str, Floats] = {}
    for kind, values in recoveries_by_kind.items():
        rows = np.array(values, dtype=np.float64)
        if rows.size == 0:
            raise ValueError(f"{kind}: recoveries of at least one replication are needed")
        if (rows < 0).any():
            raise ValueError(f"{kind}: a recovery time is below 0")
        times[kind] = rows.reshape(len(rows), -1)
    if not times:
        raise ValueError("no kind of failure")
    if missing := [kind for kind in times if kind not in rate_per_s]:
        raise ValueError(f"no rate is given for {', '.join(missing)}")
    rates = {kind: float(rate_per_s[kind]) for kind in times}
    for kind, rate in rates.items():
        if not 0 <= rate < math.inf:
            raise ValueError(f"{kind}: the rate is {rate_per_s[kind]}; 0 or more per second is allowed")
    return times, rates


def _half_width(means: Mapping[str, Estimate], rates: Mapping[str, float]) -> float | None:
    """Half the width of the interval of the sum of rate * E[R]; None: one of them has no interval."""
    parts = []
    for kind, one in means.items():
        if rates[kind] and one.std is None:
            return None
        if rates[kind] and one.std:
            parts.append((rates[kind] ** 2 * one.std**2 / one.n, one.n - 1))
    if not parts:
        return 0.0
    variance = sum(part for part, _ in parts)
    freedom = variance**2 / sum(part**2 / n for part, n in parts)
    return float(t_quantile(freedom, LEVEL)) * math.sqrt(variance)


FEW = 10
"""Fewer replications leave the recovery times, and so the budget, nearly unknown."""


@dataclass(frozen=True)
class Dependability:
    """What ``tideover availability`` says of a scenario; of each cause between which ``moments`` of a run it
    strikes, and how each of its recoveries ended.
    """

    scenario: Scenario
    strategy: str
    availability: Availability
    moments: Mapping[str, str]
    endings: Mapping[str, list[str]]
    warnings: list[str]

    def __repr__(self) -> str:
        value = self.availability.value
        found = "unknown" if value is None else f"{value:.6%}"
        return f"<Dependability {self.scenario.name!r}: {self.strategy}, availability {found}>"

    def to_dict(self) -> dict[str, Any]:
        run = self.scenario.run
        return {
            "scenario": to_data(self.scenario),
            "strategy": self.strategy,
            "seed": run.seed,
            "replications": run.replications,
            "warnings": self.warnings,
            "availability": self.availability.to_dict(),
            "ended": {name: counted(each) for name, each in self.endings.items()},
            "version": tideover.__version__,
        }


def find(
    scenario: Scenario,
    mtbf: Mapping[str, str],
    *,
    objective: float | None = None,
    over_s: float = YEAR_S,
    report: Callable[[int, int], None] | None = None,
) -> Dependability:
    """Availability from runs of the scenario in which one failure strikes, at a drawn moment.

    ``mtbf``: mean time between failures, as for `causes.causes`; ``objective`` and ``over_s`` as for
    `conditioned`. ``report``: called with the number of runs that are done, and of all.

    Raises ScenarioError, RunFailed, and ValueError like ``conditioned``.
    """
    found, remarks = causes(scenario, mtbf)
    if scenario.run.warmup >= scenario.run.duration:
        raise ScenarioError([Problem("run", None, "run.warmup", "nothing is measured after it")])
    count = scenario.run.replications
    down: dict[str, list[float | None]] = {cause.name: [] for cause in found}
    endings: dict[str, list[str]] = {cause.name: [] for cause in found}
    for replication in range(count):  # all causes of one share its run without failures
        for place, cause in enumerate(found):
            if report is not None:
                report(replication * len(found) + place, count * len(found))
            struck = cause.struck(scenario, replication)
            done = simulated(struck, replication, cause.name)
            down[cause.name].append(down_s(done, struck))
            endings[cause.name] += [row["ended"] for row in done.recoveries]
    rates = {cause.name: cause.rate_per_s for cause in found}
    availability = conditioned(down, rates, objective=objective, over_s=over_s)
    remarks = [*warnings(found[0].struck(scenario, 0)), *remarks]
    if availability.undefined:
        remarks.append(
            f"availability is unknown: {availability.undefined} runs had not recovered at their end; a "
            "longer run.duration may show when they do"
        )
    if count < FEW:
        remarks.append(f"run.replications is {count}: recovery times are hardly known; try 30")
    if availability.value is not None and 1 - availability.value > CROWDED:
        remarks.append(
            f"{1 - availability.value:.0%} of failures strike during a recovery from another: what they do "
            "to one another is not simulated; each is taken to last as long as it does alone"
        )
    times: dict[str, str] = {}
    for cause in found:
        at, within = cause.strikes[0].at or 0, cause.strikes[0].within or 0
        until = f" to {format_duration(at + within)}" if within else ""
        times[cause.name] = f"{format_duration(at)}{until}"
    return Dependability(scenario, kind_of(scenario.strategy), availability, times, endings, remarks)


def simulated(scenario: Scenario, replication: int, what: str) -> Replication:
    """A replication; raises RunFailed, which says in ``what``."""
    try:
        return simulate(scenario, replication)
    except Exception as error:
        raise RunFailed(f"{what}, replication {replication}: {told(error)}") from error


def down_s(done: Replication, scenario: Scenario) -> float | None:
    """How long (s) a run was other than without its failure; None: until its end."""
    if any(row[HEADLINE] is None for row in done.recoveries):
        return None
    part = done.dependability["availability"]
    assert part is not None
    return (1 - part) * (scenario.run.duration - scenario.run.warmup) / S
