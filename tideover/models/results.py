"""The result of a scenario: all its replications as one record, as tables (columns: `schema`), and its
headline. The library returns it, reports read it; a new table or block of the record is added here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import tideover
from tideover.models import advice, schema
from tideover.models.accounts.trace import Trace
from tideover.models.coarsening import finest
from tideover.models.config import Scenario, dump
from tideover.models.evaluation import bottleneck
from tideover.models.evaluation.bottleneck import Load
from tideover.models.schema import HEADLINE, RECORD, TABLES, frame, named, nested
from tideover.models.simulation import Replication
from tideover.sim.faults import FAULTS
from tideover.sim.histogram import Histogram, merged
from tideover.sim.registry import kind_of
from tideover.sim.units import MS, S

if TYPE_CHECKING:
    import pandas as pd


RECOVERY = named("recoveries", HEADLINE).label_with_unit
"""Mean of the recoveries in which it is defined."""

_MOST_ROWS = 40


def figures(replications: Sequence[Replication]) -> dict[str, Any]:
    """What a result shows of itself at a prompt or in a notebook, by label: number of replications and
    failures, mean recovery from these (s; None: undefined), how they ended, roots lost and wrong windows in
    all replications together.
    """
    recoveries = [row for one in replications for row in one.recoveries if row["kind"] in FAULTS]
    times = [row[HEADLINE] for row in recoveries if row[HEADLINE] is not None]
    return {
        "replications": len(replications),
        "failures": len(recoveries),
        RECOVERY: sum(times) / len(times) if times else None,
        "ended": schema.counted(row["ended"] for row in recoveries),
        "roots lost": sum(one.ledger["lost"] for one in replications),
        "wrong windows": sum(one.windows["wrong"] for one in replications),
    }


def sentence(found: Mapping[str, Any]) -> str:
    """The figures in a few words.

    >>> found = {"failures": 5, RECOVERY: 56.2563, "ended": "recovered", "roots lost": 0, "wrong windows": 15}
    >>> sentence(found)
    'time to recover 56.26 s (recovered), 0 roots lost, 15 wrong windows'
    """
    name, unit = RECOVERY.split(", ")
    time = "undefined" if found[RECOVERY] is None else f"{found[RECOVERY]:.4g} {unit}"
    recovered = f"{name} {time} ({found['ended']})" if found["failures"] else "no failures"
    return f"{recovered}, {found['roots lost']:,} roots lost, {found['wrong windows']:,} wrong windows"


def html(rows: Iterable[Mapping[str, Any]]) -> str:
    """A small table for a notebook; texts are escaped, of many rows the middle is left out."""
    import pandas as pd

    frame = pd.DataFrame(list(rows))
    return frame.to_html(index=False, border=0, na_rep="–", float_format="{:.4g}".format, max_rows=_MOST_ROWS)


def counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


LAYOUT = 1
"""Version of the record's layout."""


def _table(name: str) -> cached_property[pd.DataFrame]:
    return cached_property(lambda result: frame(name, result.rows(name)))


class Result:
    """What ``tideover run`` says of a scenario.

    recoveries, runs, timeline, tasks, usage    tidy tables (columns: `tideover.models.schema`)
    warnings                             what an expert would remark before running, and then of the run
    replications                         the single replications, with their traces if they were asked for
    document                             the whole scenario in plain data, as the record has it
    """

    def __init__(
        self,
        scenario: Scenario,
        replications: Sequence[Replication],
        document: Mapping[str, Any] | None = None,
    ) -> None:
        """``document``: the scenario as a file would say it; by default its fields, durations in ns."""
        self.scenario = scenario
        self.document = dump(scenario) if document is None else document
        self.replications = list(replications)
        self.version = tideover.__version__
        self.prediction: dict[str, Any] | None = None
        """Estimates with intervals, if the scenario was completed from a profile that allows them."""
        self.strategy = kind_of(scenario.strategy)

    @cached_property
    def warnings(self) -> list[str]:
        return [*advice.warnings(self.scenario), *self.remarks]

    @property
    def remarks(self) -> list[str]:
        """Those of the run alone."""
        return [
            *advice.remarks_on_limits(self.scenario, self.replications),
            *advice.remarks_on_endings(self.scenario, self.replications),
        ]

    def __repr__(self) -> str:
        about = f"{self.strategy}, seed {self.scenario.run.seed}"
        count, found = counted(len(self.replications), "replication"), figures(self.replications)
        return f"<Result {self.scenario.name!r}: {about}, {count}; {sentence(found)}>"

    def _repr_html_(self) -> str:
        return html([self.headline()])

    def headline(self) -> dict[str, Any]:
        """What a notebook shows: scenario, strategy, and the figures of its headline."""
        about = {"scenario": self.scenario.name, "strategy": self.strategy}
        return about | figures(self.replications)

    recoveries, runs, timeline = _table("recoveries"), _table("runs"), _table("timeline")
    tasks, usage = _table("tasks"), _table("usage")

    @cached_property
    def loads(self) -> list[Load]:
        """Which part of the time after the warm-up each resource was busy, the busiest first; none if tasks
        share nothing.
        """
        run = self.scenario.run
        used = [one.used for one in self.replications if one.used is not None]
        return bottleneck.mean_loads(each.loads(run.warmup, run.duration) for each in used)

    def rows(self, table: str) -> list[dict[str, Any]]:
        if table == "runs":
            return [self._run(one) for one in self.replications]
        return [self._identity(one.number) | row for one in self.replications for row in getattr(one, table)]

    def failed_run(self, replication: int, error: str) -> dict[str, Any]:
        """The row of ``runs`` of a replication that could not be simulated."""
        return self._identity(replication) | self._origin | {"error": error}

    def _run(self, one: Replication) -> dict[str, Any]:
        least = self._shortest
        told = {name: times.if_median(least).summary(MS) for name, times in one.histograms.items()}
        blocks, row = told | one.totals, self._identity(one.number)
        for column in TABLES["runs"]:
            block, key = column.record if len(column.record) == 2 else ("", "")
            if block and not (column.optional and key not in blocks[block]):
                row[column.name] = blocks[block][key]
        for name, times in one.histograms.items() if least else ():
            what, values = name.removesuffix("_ms"), times.summary(MS)
            row |= {f"{what}_{key}_at_most_ms": value for key, value in values.items() if key != "std"}
        return row | self._origin | {"error": None}

    @cached_property
    def _shortest(self) -> float:
        """The shortest latency (ns) that can be told."""
        return finest(self.scenario)

    def _identity(self, replication: int) -> dict[str, Any]:
        return {
            "scenario": self.scenario.name,
            "strategy": self.strategy,
            "seed": self.scenario.run.seed,
            "replication": replication,
        }

    @cached_property
    def _origin(self) -> dict[str, Any]:
        """What a reader of a table needs to do its runs again."""
        return {"scenario_json": json.dumps(self.document, ensure_ascii=False), "version": self.version}

    @property
    def traces(self) -> list[Trace]:
        return [one.trace for one in self.replications if one.trace is not None]

    def to_dict(self) -> dict[str, Any]:
        """The record that ``run --json`` prints. Undefined is None; no wall-clock time is in it."""
        found = {
            "schema": LAYOUT,
            "scenario": self.document,
            "strategy": self.strategy,
            "seed": self.scenario.run.seed,
            "replications": len(self.replications),
            "warnings": self.warnings,
            "recoveries": [nested(row, TABLES["recoveries"]) for row in self.rows("recoveries")],
            "utilisation": _utilisation(self.replications),
            "prediction": self.prediction,
            "version": self.version,
        }
        record = {each.name: found.get(each.name) for each in RECORD}
        record |= {name: self._block(name) for name in record if name not in found}
        if not self.loads:
            return record
        duration_s = self.scenario.run.duration / S
        acked = [one.complete for one in self.replications if one.complete is not None]
        return record | {
            "complete_latency_ms": self._pooled(acked),
            "resources": bottleneck.as_record(self.loads),
            "flows": bottleneck.flows([one.edges for one in self.replications], duration_s),
            "between_hosts": bottleneck.between_hosts([one.pairs for one in self.replications], duration_s),
            "bottleneck": bottleneck.sentence(self.loads),
        }

    def _block(self, name: str) -> dict[str, Any]:
        """A block of the record: its figures of all replications together."""
        if not self.replications and name in ("ledger", "windows", "cost"):
            return {}  # nothing was counted; of latencies and throughput it is known that they are undefined
        blocks = [one.totals[name] for one in self.replications if name in one.totals]
        columns = schema.block("runs", name, blocks[0] if blocks else ())
        if any(column.pool == "histogram" for column in columns):
            return self._pooled(one.histograms[name] for one in self.replications)
        found: dict[str, Any] = {}
        for column in columns:
            values = [block[column.key] for block in blocks if block[column.key] is not None]
            found[column.key] = _POOLS[column.pool](values) if values else None
        return found

    def _pooled(self, parts: Iterable[Histogram]) -> dict[str, float | None]:
        """The six figures (ms) of all together, if they can be told."""
        return merged(parts).if_median(self._shortest).summary(MS)

    def to_json(self) -> str:
        """``to_dict`` as text, the same bytes for the same seed."""
        return json.dumps(self.to_dict(), allow_nan=False)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


_POOLS: dict[str, Callable[[Sequence[Any]], Any]] = {"sum": sum, "mean": _mean, "min": min, "max": max}


def _utilisation(replications: Sequence[Replication]) -> dict[str, Any]:
    """By task the mean over the replications, the task with the greatest of them, and the peak: the greatest
    of any task in any replication; and where queues have an end the part of its time that each was blocked.
    """
    found: dict[str, list[float]] = {}
    blocked: dict[str, list[float]] = {}
    for row in (row for r in replications for row in r.tasks if row["utilisation"] is not None):
        found.setdefault(row["task"], []).append(row["utilisation"])
        if "blocked_s" in row:
            blocked.setdefault(row["task"], []).append(row["blocked_s"] / row["up_s"])
    means = {task: _mean(values) for task, values in found.items()}
    held_up = {"blocked": {task: _mean(values) for task, values in blocked.items()}} if blocked else {}
    return {
        "tasks": means,
        "busiest": max(means, key=lambda task: means[task], default=None),
        "peak": max((value for values in found.values() for value in values), default=None),
    } | held_up
