"""What ``--saturate`` shows: how much is carried, what it is short of, what breaks next."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tideover.models.job.cluster import Hosts
from tideover.reports.formatting import strategy_name
from tideover.reports.html import Page, Picture, Section
from tideover.reports.tables import Table
from tideover.scenarios.writer import to_data

if TYPE_CHECKING:
    from tideover.scenarios.probe import Probe
    from tideover.scenarios.saturation import Saturation

_MOST_GROUPS = 12
_SHORT = "A short try says where to look: what is sustained, long ones decide."


def answer(found: Sequence[Saturation]) -> str:
    """The answer in sentences, the first strategy's first."""
    parts = [f"{strategy_name(each.strategy)} {each.sentence}; then {each.then}." for each in found]
    first = found[0].sustained
    for each in found[1:]:
        if first and each.sustained:
            part = f"{strategy_name(each.strategy)} carries {each.sustained / first:.0%} of"
            parts.append(f"{part} what {strategy_name(found[0].strategy)} does.")
    return " ".join(part[0].upper() + part[1:] for part in parts)


def carried_table(found: Sequence[Saturation]) -> Table:
    """One column a strategy."""
    rows = [
        ("Sustained, tuples/s", *(_rate(each.sustained) for each in found)),
        ("  not sustained", *(_rate(each.exceeded) for each in found)),
        ("Throughput there, tuples/s", *(_rate(each.throughput and each.throughput[0]) for each in found)),
        ("  95 % interval", *(_interval(each) for each in found)),
        ("Busiest", *(_place(each, 0) for each in found)),
        ("Next", *(_place(each, 1) for each in found)),
    ]
    columns = ("Without failures", *(strategy_name(each.strategy) for each in found))
    return Table("Maximum sustained throughput", columns, tuple(rows))


def resources_table(each: Saturation) -> Table:
    """How busy everything is at the sustained rate."""
    rows = tuple(
        (
            group.name,
            group.busiest.words,
            f"{group.busiest.busy:.1%}",
            f"{group.busy:.1%}",
            _rate(group.full_at),
        )
        for group in each.groups[:_MOST_GROUPS]
        if group.full_at is not None
    )
    title = f"How busy everything is at {_rate(each.sustained)} tuples/s: {strategy_name(each.strategy)}"
    notes = ("Full at: the rate (tuples/s) at which the busiest would be busy all the time.",)
    return Table(title, ("resource", "busiest", "busy", "mean", "full at"), rows, notes, text_columns=2)


def page(found: Sequence[Saturation]) -> Page:
    """All on one page."""
    first = found[0].scenario
    setup = [
        ("Scenario", first.name),
        ("Description", first.description),
        ("Components", " → ".join(first.topology)),
        ("Strategies" if len(found) > 1 else "Strategy", ", ".join(strategy_name(e.strategy) for e in found)),
        ("Failures", "none: what is asked is what the system carries while nothing fails"),
        ("Seed", str(first.run.seed)),
    ]
    return Page(
        title=first.name,
        kind="how much it carries",
        verdict=answer(found),
        setup=tuple((label, text) for label, text in setup if text),
        sections=(
            Section("Results", "results", tables=(carried_table(found), *map(resources_table, found))),
            Section("The cluster", "cluster", pictures=tuple(p for each in found for p in _pictures(each))),
            Section("Rates that were tried", "probes", tables=tuple(map(_probes_table, found))),
        ),
        scenarios=tuple(
            (strategy_name(e.strategy), json.dumps(to_data(e.scenario), indent=2, ensure_ascii=False))
            for e in found
        ),
        glossary={},
    )


def _pictures(each: Saturation) -> tuple[Picture, ...]:
    hosts = each.scenario.hosts
    racks = hosts.racks if isinstance(hosts, Hosts) else 1
    rate = each.sustained if each.sustained is not None else each.exceeded
    from tideover.reports import cluster_pictures  # it draws, and a terminal shows no figure

    return cluster_pictures.at_capacity(each.loads, each.strategy, _rate(rate), racks)


def _probes_table(each: Saturation) -> Table:
    rows = tuple(
        (
            _rate(probe.rate),
            _carried(probe),
            "long" if probe.thorough else "short",
            f"{probe.part_done:.2%}",
            f"{probe.busiest:.1%}",
        )
        for probe in sorted(each.probes, key=lambda probe: probe.rate)
    )
    columns = ("tuples/s", "sustained", "try", "done in time", "busiest resource")
    return Table(strategy_name(each.strategy), columns, rows, (_SHORT,))


def _carried(probe: Probe) -> str:
    """A short try shows only what cannot be carried: what waits at its end may be the beginning of more."""
    return ("yes" if probe.thorough else "perhaps") if probe.carried else "no"


def _place(each: Saturation, place: int) -> str:
    if len(each.groups) <= place:
        return "–"
    load = each.groups[place].busiest
    return f"{load.words} ({load.busy:.0%})"


def _rate(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _interval(each: Saturation) -> str:
    return "–" if each.throughput is None else " to ".join(_rate(end) for end in each.throughput[1:])
