"""The pictures of a cluster: its topology, its hosts, and what flows between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tideover.models.evaluation.bottleneck import Load
from tideover.reports import figures
from tideover.reports.figures import shades
from tideover.reports.figures.hosts import MOST_HOSTS
from tideover.reports.figures.svg import to_svg
from tideover.reports.figures.traffic import MOST_WRITTEN
from tideover.reports.formatting import strategy_name
from tideover.reports.html import Picture
from tideover.sim.units import S, parse_duration

if TYPE_CHECKING:
    import pandas as pd

_BOXES = (
    "Each box is a host with what its tasks share and the tasks on it; the darker, the busier (mean after "
    "the warm-up)."
)
_MANY = f"Of many hosts the {MOST_HOSTS} with the busiest resources are drawn."
Legend = tuple[tuple[str, str, str], ...]


def cluster(usage: pd.DataFrame, recoveries: pd.DataFrame, record: Mapping[str, Any]) -> tuple[Picture, ...]:
    """What flows, who runs where and how busy all is, then over time; none where tasks share nothing."""
    if usage.empty:
        return ()
    after = parse_duration(str(record["scenario"]["run"]["warmup"])) / S
    return (
        _topology(usage, record, after),
        _hosts(usage, record, after),
        *_traffic(usage, record),
        _over_time(usage, recoveries, record, after),
    )


def at_capacity(loads: Sequence[Load], strategy: str, rate: str, racks: int) -> tuple[Picture, ...]:
    """Who runs where and how busy all is at the greatest ``rate`` (in words) that is sustained under a
    strategy; none where tasks share nothing.
    """
    import pandas as pd

    name = strategy_name(strategy)
    if all(load.kind == "task" for load in loads):
        return ()
    rows = [{"begin_s": 0.0, "end_s": 1.0, "resource": load.name, **load._asdict()} for load in loads]
    drawn = figures.hosts(pd.DataFrame(rows).drop(columns="name"), racks=racks).figure
    alt = (
        f"Hosts under {name}, each with its cores, cards and tasks, and how busy they are at {rate} tuples/s."
    )
    return (
        Picture(
            f"Who runs where, at {rate} tuples/s: {name}",
            f"{_BOXES} What is full sets the limit; what is dark comes next. {_MANY}",
            to_svg(drawn, prefix=f"capacity-{strategy}", alt=alt),
            _busy_legend(),
        ),
    )


def _topology(usage: pd.DataFrame, record: Mapping[str, Any], after: float) -> Picture:
    name = strategy_name(record["strategy"])
    alt = f"The topology under {name}: how busy components are, and what flows; the table has the figures."
    drawn = figures.topology(record["flows"], usage, after_s=after).figure
    return Picture(
        f"What flows: {name}",
        "Each box is a component, as dark as its busiest task is busy (mean after the warm-up); the wider an "
        "arrow, the more bytes flow there (mean over the whole run, without acks, checkpoints and copies).",
        to_svg(drawn, prefix=f"{_prefix(record)}-topology", alt=alt),
        _busy_legend(),
    )


def _hosts(usage: pd.DataFrame, record: Mapping[str, Any], after: float) -> Picture:
    name, long = strategy_name(record["strategy"]), record["scenario"].get("hosts")
    racks = int(long["racks"]) if isinstance(long, Mapping) else 1
    alt = f"Hosts under {name}, each with its cores, cards and tasks, and how busy they are."
    drawn = figures.hosts(usage, racks=racks, after_s=after).figure
    return Picture(
        f"Who runs where: {name}",
        f"{_BOXES} What is full carries no more; look for what is full while its neighbours idle. {_MANY}",
        to_svg(drawn, prefix=f"{_prefix(record)}-hosts", alt=alt),
        _busy_legend(),
    )


def _traffic(usage: pd.DataFrame, record: Mapping[str, Any]) -> tuple[Picture, ...]:
    """No picture if nothing flows between hosts."""
    pairs = record["between_hosts"]
    if not pairs:
        return ()
    name = strategy_name(record["strategy"])
    ends = {pair[end] for pair in pairs for end in ("from_host", "to_host")}
    hosts = sorted(ends | {int(host) for host in usage["host"].dropna().unique()})
    most = max(pair["bytes_per_s"] for pair in pairs)
    alt = f"Bytes per second from each host to each other one under {name}; result.json has the figures."
    caption = (
        "From the host of the row to that of the column, bytes per second (mean over the whole run). A dark "
        "row is a host that sends much, a dark column one that receives much; what stays on a host needs no "
        "card, and is not here."
    )
    if len(hosts) <= MOST_WRITTEN:
        caption += " In bold what each sends and receives in all."
    legend = tuple((words, "area", colour) for words, colour in shades.traffic_legend(most))
    svg = to_svg(figures.traffic(pairs, hosts).figure, prefix=f"{_prefix(record)}-traffic", alt=alt)
    return (Picture(f"What flows between hosts: {name}", caption, svg, legend),)


def _over_time(
    usage: pd.DataFrame, recoveries: pd.DataFrame, record: Mapping[str, Any], after: float
) -> Picture:
    name = strategy_name(record["strategy"])
    failures = tuple(sorted(set(recoveries["failed_at_s"].astype(float))))[:12]
    alt = f"How busy the busiest resources are over time under {name}."
    lines = figures.usage_over_time(usage, failures, after_s=after).figure
    return Picture(
        f"How busy, over time: {name}",
        "The busiest resources, the busiest first; red lines are failures. After a failure look at what gets "
        "full while the backlog is worked off: it sets how long that takes.",
        to_svg(lines, prefix=f"{_prefix(record)}-time", alt=alt),
        _busy_legend(),
    )


def _prefix(record: Mapping[str, Any]) -> str:
    return f"cluster-{record['strategy']}"


def _busy_legend() -> Legend:
    return tuple((words, "area", colour) for words, colour in shades.legend())
