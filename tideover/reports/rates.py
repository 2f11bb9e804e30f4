"""What ``availability`` and ``--saturate`` show.

`terminal` and `pages` put the tables and answers together; a page of its own is here for ``--saturate``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tideover.models.job.cluster import Hosts
from tideover.models.schema import LOSSY
from tideover.reports.formatting import UNDEFINED, capitalised, number, strategy_name, with_ending
from tideover.reports.html import Page, Picture, Section, page_of_scenarios
from tideover.reports.tables import WITH_LOSS, Table
from tideover.scenarios.saturation import Probe, Saturation
from tideover.scenarios.statistics.availability import YEAR_S, Availability, Dependability
from tideover.sim.units import S, format_duration


def availability_table(found: Dependability) -> Table:
    """The answer, with intervals; times in minutes."""
    one = found.availability
    low, high = _minutes(one.down_low_s), _minutes(one.down_high_s)
    every = ((_percent(one.low), _percent(one.high)), (low, high))
    part, down = (UNDEFINED if UNDEFINED in ends else " to ".join(ends) for ends in every)
    rows: list[tuple[str, ...]] = [
        ("Availability", _percent(one.value), part),
        (f"Down {_in_period(one)}, min", _minutes(one.down_s), down),
        ("  median", _minutes(one.down_median_s), ""),
        ("  in 95 % of all such periods at most", _minutes(one.down_p95_s), ""),
    ]
    if one.objective is not None:
        rows += [
            (f"Error budget of {_percent(one.objective)}, min", _minutes(one.budget_s), ""),
            ("  burnt on average", UNDEFINED if one.burnt is None else f"{one.burnt:.1%}", ""),
            ("  probability that it is exceeded", _chance(one.exceeded), ""),
        ]
    columns = ("Rare failures", strategy_name(found.strategy), "95 % interval")
    notes = (
        "Available: output, state and backlog are as they would have been without failures. The interval is "
        "that of the mean recovery times over replications.",
    )
    return Table("Availability by conditioning", columns, tuple(rows), notes)


def causes_table(found: Dependability) -> Table:
    """What fails, how often, how long that takes, and which part of the time down it is."""
    one = found.availability
    load = sum(one.rate_per_s[name] * (each.mean or 0.0) for name, each in one.recovery_s.items())
    rows = []
    for name, each in one.recovery_s.items():
        rate, mean = one.rate_per_s[name], each.mean
        share = UNDEFINED if mean is None or not load or each.undefined else f"{rate * mean / load:.1%}"
        span = UNDEFINED if each.t is None else f"{number(max(0.0, each.t[0]))} to {number(each.t[1])}"
        of = f" ({each.n} of {each.n + each.undefined})" if each.undefined else ""
        time = with_ending(number(mean) + of, found.endings[name])
        rows.append((name, number(rate * YEAR_S), time, span, share, found.moments[name]))
    columns = ("cause", "failures a year", "recovery, s", "95 % interval", "share", "strikes at")
    notes = (
        "Recovery: mean over replications, one failure each; strikes at: drawn from this part of a run.",
    )
    lossy = any(LOSSY in each for each in found.endings.values())
    return Table("Causes", columns, tuple(rows), (*notes, WITH_LOSS) if lossy else notes)


def availability_answer(found: Dependability) -> str:
    one = found.availability
    who = capitalised(strategy_name(found.strategy))
    if one.value is None:
        return f"{who}: availability is unknown, as {one.undefined} runs had not recovered at their end."
    said = f"{who} is available {_percent(one.value)} of the time: {_minutes(one.down_s)} min down "
    said += _in_period(one)
    if one.objective is None or one.burnt is None:
        return f"{said}."
    budget = f"{one.burnt:.0%} of the error budget of {_percent(one.objective)}"
    if one.low is None or one.high is None:
        verdict = "one replication does not tell whether it is met"
    elif one.low >= one.objective:
        verdict = "the objective is met on average"
    elif one.high < one.objective:
        verdict = "the objective is broken on average"
    else:
        verdict = "whether the objective is met cannot be told from so few replications"
    return f"{said}, {budget}; {verdict}, and its budget exceeded in {_chance(one.exceeded)} of such periods."


def _in_period(one: Availability) -> str:
    return "a year" if one.over_s == YEAR_S else f"in {format_duration(round(one.over_s * S))}"


def _percent(value: float | None) -> str:
    """As many nines as there are, and two digits more."""
    if value is None:
        return UNDEFINED
    return f"{100 * value:.6f}".rstrip("0").rstrip(".") + " %"


def _minutes(seconds: float | None) -> str:
    return UNDEFINED if seconds is None else number(float(seconds) / 60)


def _chance(value: float | None) -> str:
    if value is None:
        return UNDEFINED
    if value < 1e-3:
        return "less than 0.1 %"
    return "more than 99.9 %" if value > 1 - 1e-3 else f"{value:.1%}"


# What ``--saturate`` shows: how much is carried, what it is short of, what breaks next.

_MOST_GROUPS = 12


def saturation_answer(found: Sequence[Saturation]) -> str:
    """The answer in sentences, the first strategy's first."""
    parts = [f"{strategy_name(each.strategy)} {each.sentence}; then {each.then}." for each in found]
    first = found[0].sustained
    for each in found[1:]:
        if first and each.sustained:
            part = f"{strategy_name(each.strategy)} carries {each.sustained / first:.0%} of"
            parts.append(f"{part} what {strategy_name(found[0].strategy)} does.")
    return " ".join(map(capitalised, parts))


def carried_table(found: Sequence[Saturation]) -> Table:
    def place(each: Saturation, number: int) -> str:
        if len(each.groups) <= number:
            return "–"
        load = each.groups[number].busiest
        return f"{load.words} ({load.busy:.0%})"

    def interval(each: Saturation) -> str:
        return "–" if each.throughput is None else " to ".join(map(_rate, each.throughput[1:]))

    rows = [
        ("Sustained, tuples/s", *(_rate(each.sustained) for each in found)),
        ("  not sustained", *(_rate(each.exceeded) for each in found)),
        ("Throughput there, tuples/s", *(_rate(each.throughput and each.throughput[0]) for each in found)),
        ("  95 % interval", *(interval(each) for each in found)),
        ("Busiest", *(place(each, 0) for each in found)),
        ("Next", *(place(each, 1) for each in found)),
    ]
    columns = ("Without failures", *(strategy_name(each.strategy) for each in found))
    return Table("Maximum sustained throughput", columns, tuple(rows))


def resources_table(each: Saturation) -> Table:
    columns: dict[str, Callable[[Any], str]] = {
        "resource": lambda group: group.name,
        "busiest": lambda group: group.busiest.words,
        "busy": lambda group: f"{group.busiest.busy:.1%}",
        "mean": lambda group: f"{group.busy:.1%}",
        "full at": lambda group: _rate(group.full_at),
    }
    title = f"How busy everything is at {_rate(each.sustained)} tuples/s: {strategy_name(each.strategy)}"
    notes = ("Full at: the rate (tuples/s) at which the busiest would be busy all the time.",)
    shown = [group for group in each.groups[:_MOST_GROUPS] if group.full_at is not None]
    return Table.of(title, shown, columns, notes, text_columns=2)


def saturation_page(found: Sequence[Saturation]) -> Page:
    first = found[0].scenario
    setup = {
        "Components": " → ".join(first.topology),
        "Strategies" if len(found) > 1 else "Strategy": ", ".join(strategy_name(e.strategy) for e in found),
        "Failures": "none: what is asked is what the system carries while nothing fails",
        "Seed": str(first.run.seed),
    }
    return page_of_scenarios(
        [each.scenario for each in found],
        setup,
        (
            Section("Results", "results", tables=(carried_table(found), *map(resources_table, found))),
            Section("The cluster", "cluster", pictures=tuple(p for each in found for p in _pictures(each))),
            Section("Rates that were tried", "probes", tables=tuple(map(_probes_table, found))),
        ),
        kind="how much it carries",
        verdict=saturation_answer(found),
        glossary={},
    )


def _pictures(each: Saturation) -> tuple[Picture, ...]:
    hosts = each.scenario.hosts
    racks = hosts.racks if isinstance(hosts, Hosts) else 1
    rate = each.sustained if each.sustained is not None else each.exceeded
    from tideover.reports import pages  # it draws, and a terminal shows no figure

    return pages.at_capacity(each.loads, each.strategy, _rate(rate), racks)


def _probes_table(each: Saturation) -> Table:
    """A short try shows only what cannot be carried: what waits at its end may be the beginning of more."""
    columns: dict[str, Callable[[Probe], str]] = {
        "tuples/s": lambda probe: _rate(probe.rate),
        "sustained": lambda probe: ("yes" if probe.thorough else "perhaps") if probe.carried else "no",
        "try": lambda probe: "long" if probe.thorough else "short",
        "done in time": lambda probe: f"{probe.part_done:.2%}",
        "busiest resource": lambda probe: f"{probe.busiest:.1%}",
    }
    probes = sorted(each.probes, key=lambda probe: probe.rate)
    note = "A short try says where to look: what is sustained, long ones decide."
    return Table.of(strategy_name(each.strategy), probes, columns, (note,))


def _rate(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
