"""The key tables, as plain text: the terminal and the HTML page show the same ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tideover.models.results.columns import LATENCY_FIGURES
from tideover.models.results.result import STAGE_COLUMNS
from tideover.reports.columns import undefined_reason
from tideover.reports.estimates import Estimate, estimate
from tideover.reports.words import (
    STAGE_NAMES,
    UNDEFINED,
    amount,
    fixed,
    is_undefined,
    number,
    places_for,
    size,
    strategy_name,
)

if TYPE_CHECKING:
    from tideover.reports.paired import Paired

Record = Mapping[str, Any]
"""A result as ``run --json`` prints it."""


@dataclass(frozen=True)
class Table:
    """The first ``text_columns`` are aligned left, others right. A row of one cell is a heading inside."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    text_columns: int = 1


MEASURES = {
    "time_to_recover_s": "time to recover, s",
    "state_recovery_s": "state recovery, s",
    "catch_up_s": "catch-up of the backlog, s",
    "throughput_90_s": "throughput back at 90 %, s",
    "output_gap_s": "longest output gap, s",
    "sink_spacing_s": "gap without failures, s",
}
"""The headline comes first."""
TIMES_MEANT = (
    "Time to recover: from the failure until output, state and backlog are as they would have been without "
    "failures; its stages add up to it. State recovery: from the task being ready until the last replayed "
    "tuple has arrived. Catch-up, and throughput (of the last 10 s) back at 90 %: from the failure."
)
LATENCIES_MEANT = (
    "End-to-end latency: from the first emission of a tuple's root; latency: from the tuple's creation "
    "stamp, which is a new one if the source sends it again."
)
_LATENCIES = {"end_to_end": "End-to-end latency", "latency": "Latency"}
_BRIEF_LATENCY = ("median", "mean", "std", "p95", "p99")
_LEDGER = {
    "emitted": "emitted",
    "completed": "completed",
    "in_flight": "in flight at the end",
    "lost": "lost",
    "replayed": "replayed",
    "duplicated": "counted twice",
    "false_timeouts": "false timeouts",
}
_COST = {
    "cpu_s": "CPU time, s",
    "network_bytes": "network",
    "store_bytes": "store",
    "peak_buffered_tuples": "peak of buffered tuples",
    "hosts": "hosts",
}


class Notes:
    """Footnotes: why a value is undefined, once for each reason; and how intervals are meant."""

    def __init__(self) -> None:
        self._reasons: dict[str, list[str]] = {}
        self.interval = False
        self.partial = False

    def undefined(self, label: str, column: str, table: str | None = None) -> str:
        reason = undefined_reason(column, table)
        labels = self._reasons.setdefault(reason, [])
        if reason and label not in labels:
            labels.append(label)
        return UNDEFINED

    def mean(self, found: Estimate, label: str, column: str) -> str:
        """``57.8 ± 0.6``; with the count if some values are undefined."""
        if found.mean is None:
            return self.undefined(label, column)
        text = self._mean(found)
        if found.undefined:
            self.partial = True
            self.undefined(label, column)
            text += f" ({found.n} of {found.n + found.undefined})"
        return text

    def _mean(self, found: Estimate) -> str:
        if found.half_width is None or found.constant or found.mean is None:
            return number(found.mean)
        places = places_for(found.half_width)
        half_width = fixed(found.half_width, places)
        if not half_width.strip("0."):  # would only show noughts
            return number(found.mean)
        self.interval = True
        return f"{fixed(found.mean, places)} ± {half_width}"

    def lines(self) -> tuple[str, ...]:
        lines = ["±: half the width of the 95 % t-interval of the mean"] if self.interval else []
        if self.partial:
            lines.append("(n of m): mean over the n recoveries in which the value is defined")
        for reason, labels in self._reasons.items():
            if reason:
                lines.append(f"{UNDEFINED} undefined ({', '.join(labels)}): {reason}")
        return tuple(lines)


def overview(results: Sequence[Record], *, brief: bool = False) -> Table:
    """One column a result: recovery, stages, latency, throughput, roots, windows, cost."""
    notes = Notes()
    rows: list[tuple[str, ...]] = []
    for heading, recoveries in _by_failure(results).items():
        rows += _recovery_rows(heading, recoveries, notes, brief)
    rows += _predicted_rows(results)
    rows += _pooled_rows(results, notes, brief)
    names = tuple(strategy_name(result["strategy"]) for result in results)
    meant = (TIMES_MEANT,) if any(result["recoveries"] for result in results) else ()
    return Table("Result", ("", *names), tuple(rows), (*meant, LATENCIES_MEANT, *notes.lines()))


def _by_failure(results: Sequence[Record]) -> dict[str, list[list[Record]]]:
    """The recoveries of each result, under a heading for each kind of failure and what it hits: a mean over
    different ones would say nothing. In the order in which they strike first.
    """
    every = sorted((r for result in results for r in result["recoveries"]), key=lambda r: r["failed_at_s"])
    kinds = list(dict.fromkeys((recovery["kind"], recovery["component"]) for recovery in every))
    found = {}
    for kind, component in kinds:
        heading = "Recovery" if len(kinds) == 1 else f"Recovery from {kind}: {component}"
        found[heading] = [
            [r for r in result["recoveries"] if (r["kind"], r["component"]) == (kind, component)]
            for result in results
        ]
    return found


def _recovery_rows(
    heading: str, recoveries: Sequence[Sequence[Record]], notes: Notes, brief: bool
) -> list[tuple[str, ...]]:
    """Means over the recoveries of each result."""

    def row(label: str, column: str, pick: Any, noted: str = "") -> tuple[str, ...]:
        found = [estimate(pick(recovery) for recovery in mine) for mine in recoveries]
        return (label, *(notes.mean(one, noted or label, column) for one in found))

    count = max(len(mine) for mine in recoveries)
    rows: list[tuple[str, ...]] = [(f"{heading} (mean of {count})" if count > 1 else heading,)]
    first, *others = [row(label, key, lambda r, k=key: r[k]) for key, label in MEASURES.items()]
    rows += [first, ("Its stages, s",)]
    rows += [row(STAGE_NAMES[s], c, lambda r, s=s: r["stages_s"][s]) for s, c in STAGE_COLUMNS.items()]
    rows += [("Other measures of the recovery",), *others]
    if not brief:
        rows.append(("Tuples of the state, per recovery",))
        content = ("restored", "replayed", "dropped", "missing", "extra")
        rows += [row(name, name, lambda r, n=name: r["state"][n]) for name in content]
    keys = _BRIEF_LATENCY if brief else tuple(LATENCY_FIGURES)
    for kind, name in _LATENCIES.items():
        rows.append((f"{name} in recovery, ms",))
        noted = f"{name.lower()} in recovery"
        for k in keys:
            rows.append(
                row(LATENCY_FIGURES[k], f"{kind}_{k}_ms", lambda r, k=k, w=f"{kind}_ms": r[w][k], noted)
            )
    return rows


def _predicted_rows(results: Sequence[Record]) -> list[tuple[str, ...]]:
    """What a profile lets one expect, with its interval; nothing without a profile."""
    found = [result.get("prediction") or {} for result in results]
    measures = [name for name in MEASURES if any(name in prediction for prediction in found)]
    if not measures:
        return []
    levels = {one["level"] for prediction in found for one in prediction.values()}
    interval = f" ({100 * levels.pop():g} % interval)" if len(levels) == 1 else ""
    rows: list[tuple[str, ...]] = [(f"Predicted from the profile{interval}",)]
    for name in measures:
        rows.append((MEASURES[name], *(_predicted(prediction.get(name)) for prediction in found)))
    return rows


def _predicted(one: Mapping[str, Any] | None) -> str:
    """``204 (173 to 235)``; a value that is not reached by the end of the run is ``never``."""
    if one is None:
        return UNDEFINED
    estimate, low, high = ("never" if one[k] is None else number(one[k]) for k in ("estimate", "low", "high"))
    return f"{estimate} ({low} to {high})"


def _pooled_rows(results: Sequence[Record], notes: Notes, brief: bool) -> list[tuple[str, ...]]:
    noted_as = {f"{kind}_ms": f"{name.lower()} otherwise" for kind, name in _LATENCIES.items()}

    def row(label: str, path: tuple[str, str], column: str, write: Any = number) -> tuple[str, ...]:
        values = [(result.get(path[0]) or {}).get(path[1]) for result in results]
        noted = noted_as.get(path[0], label)
        dash = UNDEFINED if not any(map(is_undefined, values)) else notes.undefined(noted, column, "runs")
        return (label, *(dash if is_undefined(v) else write(v) for v in values))

    keys = _BRIEF_LATENCY if brief else tuple(LATENCY_FIGURES)
    rows: list[tuple[str, ...]] = []
    for kind, name in _LATENCIES.items():
        rows.append((f"{name} otherwise, ms",))
        rows += [row(LATENCY_FIGURES[key], (f"{kind}_ms", key), f"{kind}_{key}_ms") for key in keys]
    rows.append(("Throughput, tuples/s",))
    shown = ("mean",) if brief else ("mean", "min", "max")
    rows += [row(key, ("throughput_per_s", key), f"throughput_{key}_per_s") for key in shown]
    total = results[0]["replications"]
    together = "" if total == 1 else f" ({total} replications)"
    rows.append((f"Roots{together}",))
    rows += [row(label, ("ledger", key), key) for key, label in _LEDGER.items()]
    rows.append((f"Windows{together}",))
    rows += [
        row(key, ("windows", key), f"windows_{key}") for key in ("emitted", "correct", "wrong", "missing")
    ]
    rows.append(("Cost" if total == 1 else "Cost (mean per run)",))
    write = {"network_bytes": size, "store_bytes": size, "hosts": amount, "peak_buffered_tuples": amount}
    rows += [row(label, ("cost", key), key, write.get(key, number)) for key, label in _COST.items()]
    rows.append(("busiest task", *(_busiest(result) for result in results)))
    return rows


def _busiest(result: Record) -> str:
    """``0.97 (count.3)``: the task that was busy for the greatest part of its time."""
    found = result.get("utilisation") or {}
    task = found.get("busiest")
    return UNDEFINED if task is None else f"{number(found['tasks'][task])} ({task})"


def pairs_tables(pairs: Iterable[Paired]) -> tuple[Table, ...]:
    """Paired differences, each strategy against the reference, with both intervals; none without failures."""
    rows: list[tuple[str, ...]] = []
    labels = dict(MEASURES)
    for kind, name in _LATENCIES.items():
        labels |= {f"{kind}_{key}_ms": f"{key} {name.lower()}, ms" for key in ("median", "mean")}
    previous = None
    for pair in pairs:
        if pair.difference.n == 0:
            continue
        heading = f"{strategy_name(pair.first)} − {strategy_name(pair.second)}"
        if heading != previous:
            rows.append((heading,))
            previous = heading
        rows.append(_pair_row(labels.get(pair.column, pair.column), pair))
    notes = (
        "A pair is one replication: same seed, same luck, same failure under both strategies.",
        f"{UNDEFINED}: an interval needs two pairs. No row: the quantity is undefined under one of the two.",
    )
    columns = ("", "difference", "95 % t-interval", "95 % bootstrap", "pairs")
    return (Table("Paired differences", columns, tuple(rows), notes),) if rows else ()


def _pair_row(label: str, pair: Paired) -> tuple[str, ...]:
    found = pair.difference
    places = 2 if found.constant else max(2, places_for(found.half_width))
    spans = [
        UNDEFINED if s is None else f"{fixed(s[0], places)} to {fixed(s[1], places)}" for s in _spans(found)
    ]
    more = f" (+{found.undefined} undefined)" if found.undefined else ""
    return (label, fixed(found.mean, places), *spans, f"{found.n}{more}")


def _spans(found: Estimate) -> tuple[tuple[float, float] | None, tuple[float, float] | None]:
    return (found.t, found.bootstrap)


def swept_value(value: Any, key: str) -> str:
    """A value of a key of the scenario, as a table shows it."""
    if is_undefined(value):
        return UNDEFINED
    return strategy_name(value) if key in ("strategy", "strategy.kind") else str(value)
