"""Published measurements beside simulated ones, paper by paper.

Called by `tideover reproduce` and its pages. The figures lie in ``scenarios/published/*.toml``, a file a
study, with their citation; the sweeps behind them, and what is found in them, in
``scenarios/published/sweeps``. A study whose figures are recovery times by cell needs no code here.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from tideover.models.config import Scenario
from tideover.models.evaluation.bottleneck import Load
from tideover.models.results import Result
from tideover.models.schema import named
from tideover.reports.formatting import UNDEFINED, fixed, is_undefined, number, strategy_name
from tideover.reports.tables import Notes, Table
from tideover.scenarios import runs
from tideover.scenarios.loader import load
from tideover.scenarios.statistics.intervals import Estimate, estimate
from tideover.sim.histogram import merged
from tideover.sim.registry import kind_of
from tideover.sim.units import MS, parse_rate

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]


@dataclass(frozen=True)
class Group:
    """One published table: ``rows`` of ``keys`` (what was run) and ``values`` (what was measured).

    Raises ValueError for a row that is too long or too short.
    """

    study: str
    name: str
    title: str
    citation: str
    where: str
    unit: str
    keys: Sequence[str]
    values: Sequence[str]
    rows: Sequence[Sequence[Any]]
    log_resolution_s: float = 1.0

    def __post_init__(self) -> None:
        width = len(self.keys) + len(self.values)
        if any(len(row) != width for row in self.rows):
            raise ValueError(f"{self.study}.toml: {self.name}: a row must have {width} entries")

    @property
    def source(self) -> str:
        """Citation with the place in it."""
        return f"{self.citation}, {self.where}"

    def frame(self) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame(self.rows, columns=[*self.keys, *self.values])


def _read(*folder: str) -> dict[str, dict[str, Any]]:
    found = files("tideover.scenarios").joinpath("published", *folder).iterdir()
    named = {file.name.removesuffix(".toml"): file for file in found if file.name.endswith(".toml")}
    return {name: tomllib.loads(named[name].read_text(encoding="utf-8")) for name in sorted(named)}


@cache
def published() -> tuple[Group, ...]:
    return tuple(
        Group(study, name, citation=tables["citation"], **given)
        for study, tables in _read().items()
        for name, given in tables.items()
        if name != "citation"
    )


@cache
def papers() -> dict[str, dict[str, Any]]:
    """The ``sweep`` behind each published table that has one, and ``findings`` on what it comes to."""
    return _read("sweeps")


def group(study: str, name: str) -> Group:
    """One published table, such as ``group("stableford", "recovery")``; ValueError with the known ones
    otherwise.
    """
    found = {(one.study, one.name): one for one in published()}
    if (study, name) not in found:
        known = ", ".join(map(".".join, found))
        raise ValueError(f"no published table {study}.{name} (known: {known})")
    return found[study, name]


# Recovery times cell by cell, and whether they agree with what a log of whole seconds shows.

SOURCE_REPLAY_TOLERANCE_S = 1.5
"""Source replay comes from mechanism alone; it has to be this near to the published figure in every cell."""


@dataclass(frozen=True)
class Range:
    """Simulated values that agree with a published one; ``ends``: which of them belong to it, as ``[)``."""

    low: float
    high: float
    ends: str

    def __contains__(self, value: float) -> bool:
        closed = [end for end, mark in zip((self.low, self.high), self.ends, strict=True) if mark in "[]"]
        return self.low < value < self.high or value in closed

    def __str__(self) -> str:
        return f"{self.ends[0]}{self.low:g}, {self.high:g}{self.ends[1]}"


def agreeing(published_s: float, resolution_s: float = 1.0) -> Range:
    """Durations that two stamps cut to ``resolution_s`` can show as ``published_s``.

    Cutting moves each stamp by less than one step, so the true duration lies less than one step from the
    difference. 0 means [0, 1), 1 means (0, 2), 2 means (1, 3).
    """
    low = published_s - resolution_s
    return Range(max(0.0, low), published_s + resolution_s, "()" if low >= 0 else "[)")


def required(strategy: str, published_s: float, resolution_s: float = 1.0) -> Range:
    """What the simulated recovery has to lie in: the log's resolution; for source replay 1.5 s around it."""
    if strategy == "source_replay":
        low, high = published_s - SOURCE_REPLAY_TOLERANCE_S, published_s + SOURCE_REPLAY_TOLERANCE_S
        return Range(max(0.0, low), high, "[]")
    return agreeing(published_s, resolution_s)


def into_window(failed_at_s: float, window_s: float) -> float:
    """Seconds from the start of the window to the failure; at the very end of a window it is the window's
    length.

    >>> into_window(65.0, 30.0), into_window(90.0, 30.0)
    (5.0, 30.0)
    """
    nanoseconds, window = round(failed_at_s * 1e9), round(window_s * 1e9)
    return ((nanoseconds - 1) % window + 1) / 1e9


def with_cells(recoveries: pd.DataFrame, *, rate: str, window_s: float) -> pd.DataFrame:
    """The recoveries with the published keys: ``tuples_per_s`` (from column ``rate``, which has numbers, or
    texts as ``10/s``) and ``fail_at_s``.
    """
    rates = [parse_rate(value) if isinstance(value, str) else float(value) for value in recoveries[rate]]
    into = [into_window(value, window_s) for value in recoveries["failed_at_s"]]
    return recoveries.assign(tuples_per_s=rates, fail_at_s=into)


def uncut(recoveries: pd.DataFrame) -> pd.Series[float]:
    """Recovery time before ``run.log_resolution`` cuts its two stamps: the stages restore, wait and
    replay together.
    """
    recovery = recoveries["state_recovery_s"].astype(float)
    stages = recoveries[["restore_s", "wait_s", "replay_s"]].astype(float)
    return stages.sum(axis=1).where(recovery.notna())


def pair_recoveries(recoveries: pd.DataFrame, table: Group | None = None) -> pd.DataFrame:
    """Published and simulated recovery times, one row for each cell.

    ``recoveries`` has the columns of ``with_cells``. ``logged_s`` is the mean recovery time over replications
    as a log of the study's resolution shows it; ``simulated_s`` is the mean of the exact times, ``low_s`` and
    ``high_s`` its 95 % t-interval, ``least_s`` and ``most_s`` the extremes. ``error_s``: logged minus
    published. ``required`` is the range that agrees with the published figure: for source replay a logged
    one, for the others an uncut one (see ``required``). ``within``: the mean is in it (None if nothing was
    simulated); ``n_within``: so many replications are. Cells of strategies that the study did not measure
    follow, with an undefined published figure.
    """
    import pandas as pd

    table = table or group("stableford", "recovery")
    cells = {tuple(row[: len(table.keys)]): float(row[-1]) for row in table.rows}
    data = recoveries.assign(_uncut=uncut(recoveries), _logged=recoveries["state_recovery_s"].astype(float))
    simulated = {  # a key as published: a whole number is an int
        tuple(int(one) if isinstance(one, float) and one == int(one) else one for one in key): part
        for key, part in data.groupby(list(table.keys), sort=False)
    }
    rows = []
    for key in [*cells, *(key for key in simulated if key not in cells)]:
        part, strategy, known = simulated.get(key, data[:0]), str(key[0]), cells.get(key)
        logged, exact = list(part["_logged"]), list(part["_uncut"])
        shown, result = estimate(logged), estimate(exact)
        low, high = result.t or (result.mean, result.mean)
        defined = [value for value in exact if not is_undefined(value)]
        wanted = None if known is None else required(strategy, known, table.log_resolution_s)
        error = within = n_within = None
        if known is not None and wanted is not None and shown.mean is not None and result.mean is not None:
            as_logged = strategy == "source_replay"
            error = shown.mean - known
            within = (shown.mean if as_logged else result.mean) in wanted
            n_within = sum(value in wanted for value in (logged if as_logged else exact))
        figures = {
            "published_s": known,
            "logged_s": shown.mean,
            "simulated_s": result.mean,
            "low_s": low,
            "high_s": high,
            "least_s": min(defined, default=None),
            "most_s": max(defined, default=None),
            "n": result.n,
            "undefined": result.undefined,
            "error_s": error,
            "required": None if wanted is None else str(wanted),
            "within": within,
            "n_within": n_within,
        }
        rows.append(dict(zip(table.keys, key, strict=True)) | figures)
    return pd.DataFrame(rows)


def reproduction_table(pairs: pd.DataFrame, title: str) -> Table:
    """Published and simulated recovery times (from ``pair_recoveries``)."""
    notes = Notes()

    def known(name: str, written: Callable[[Any], str] = "{:g}".format) -> Callable[[Any], str]:
        return lambda row: UNDEFINED if is_undefined(row[name]) else written(row[name])

    def agrees(row: Mapping[Any, Any]) -> str:
        if is_undefined(row["within"]):
            return UNDEFINED
        return f"{'yes' if row['within'] else 'NO'} {row['n_within']:.0f}/{row['n']}"

    def exact(row: Mapping[Any, Any]) -> str:
        found = Estimate(0, row["undefined"], None, None, None, None)
        if not is_undefined(row["simulated_s"]):
            spread = None if row["n"] < 2 else (row["low_s"], row["high_s"])
            std = None if spread is None else row["most_s"] - row["least_s"]
            found = Estimate(row["n"], row["undefined"], row["simulated_s"], std, spread, None)
        return notes.mean(found, "uncut", named("recoveries", "state_recovery_s"))

    columns: dict[str, Callable[[Any], str]] = {
        "": lambda row: f"{row['tuples_per_s']:g} tuples/s",
        "into window": lambda row: f"{row['fail_at_s']:g}",
        "published": known("published_s"),
        "as logged": lambda row: number(row["logged_s"]),
        "error": lambda row: fixed(row["error_s"], 2),
        "uncut": exact,
        "agrees if in": known("required", str),
        "agrees": agrees,
    }
    extra = [
        "into window: when it failed, from the start of the window. All durations are in seconds.",
        "as logged: simulated, from stamps cut as in the study's logs; uncut: simulated, before that.",
        "agrees: the mean lies in the range that the published figure allows, and so do n of m replications.",
    ]
    if pairs["published_s"].isna().any():
        extra.append(f"{UNDEFINED} published: the study did not measure this")
    rows = pairs.to_dict("records")
    made = Table.of(title, rows, columns, heading=lambda row: strategy_name(row["strategy"]))
    return replace(made, notes=(*extra, *notes.lines()))


# The published figures of E-Storm beside simulated ones.

OVERHEAD, RECOVERY = "estorm-synthetic", "estorm-recovery"
DEFAULT, BARE = "default", "source_replay"
"""The parameters as they stand, which are also the least that was measured; no state management, but acks."""
STAGES = {
    "worker_restart_s": "detect_s",
    "task_prepare_s": "restart_s",
    "write_state_s": "write_s",
    "read_state_s": "restore_s",
    "total_s": "catch_up_s",
}
"""The stages of a recovery as published, and as ours are called."""


def overhead(settings: Sequence[str] = ()) -> Iterator[Row]:
    """The rows of the published table of overheads, each with what is simulated; a run at a time."""
    done: dict[tuple[str, ...], Result] = {}

    def run(method: str, parameter: str = DEFAULT, value: str = "") -> Result:
        more = () if parameter == DEFAULT else (f"{parameter}={value}",)
        asked = (f"strategy.kind={method}", *more)
        if asked not in done:
            done[asked] = runs.run(load(OVERHEAD, [*settings, *asked]))
        return done[asked]

    table = group("estorm", "overhead")
    for method, parameter, value, metric, relative_to, published in table.rows:
        mine = measured(run(method, parameter, value), metric)
        bare = relative_to == "no state management"  # with as many tasks
        other = run(BARE, parameter, value) if bare else run(method)
        reference = measured(other, metric)
        simulated = 100 * mine / reference
        of = dict(zip(table.keys, (method, parameter, value, metric, relative_to), strict=True))
        yield {**of, "published": published, "simulated": simulated, "error": simulated / published - 1}


def measured(result: Result, metric: str) -> float:
    """Throughput (tuples/s) or complete latency (ms, of batched tuples, as in the fit) of a run, means."""
    if metric == "throughput":
        return float(result.to_dict()["throughput_per_s"]["mean"])
    latency = merged(one.complete for one in result.replications if one.complete is not None).mean
    assert latency is not None
    return latency / MS


def recovery(settings: Sequence[str] = ()) -> Iterator[Row]:
    """The published stages of recovery, by the number of tasks with state that were hit."""
    for affected, *published in group("estorm", "recovery").rows:
        rows = runs.run(load(RECOVERY, [*settings, f"tasks_affected={affected}"])).rows("recoveries")
        for (name, column), known in zip(STAGES.items(), published, strict=True):
            simulated = sum(float(row[column]) for row in rows) / len(rows)
            yield {
                "stateful_tasks_affected": affected,
                "stage": name,
                "published": known,
                "simulated": simulated,
                "error": simulated / known - 1,
            }


# The maximum throughput of k-safety beside the published one.

ROWS = {
    ("none", 4): ("Storm without acking", "1x", "fitted (emit_cost)"),
    ("active_replication", 4): ("k-safety k=1", "1x", "fitted (service)"),
    ("active_replication", 8): ("k-safety k=1", "2x", "predicted"),
    ("source_replay", 4): ("Storm with acking", "1x", "predicted, not published"),
}
"""The published names of strategies and machines, and where the figure comes from."""


def ksafety_rows(scenarios: Sequence[Scenario], records: Sequence[Mapping[str, Any]]) -> list[Row]:
    """One for each system: what the busiest resource leaves room for, or the spout, if that is less; all
    loads grow with the rate.

    ``records``: of the runs of the scenarios, as ``run --json`` has them.
    """
    known = {(row[0], row[1]): row[2] for row in group("ksafety", "throughput").rows}
    found = {}
    for scenario, record in zip(scenarios, records, strict=True):
        place = kind_of(scenario.strategy), getattr(scenario.hosts, "count", 0)
        if place not in ROWS:
            continue
        source: Any = scenario.topology["source"]
        links, calls = scenario.links, source.arrivals
        acks = links.serialise + links.deserialise if place[0] == "source_replay" else 0
        spout = 1e9 / (calls.emit_cost + acks)
        busiest = Load(**max(record["resources"], key=lambda resource: resource["busy"]))
        room = 1e9 / (calls.pause + calls.emit_cost) / busiest.busy
        carried, limit = (spout, "the spout") if spout <= room else (room, busiest.words)
        system, size, verdict = ROWS[place]
        measured = known.get((system, size))
        found[place] = {
            "system": system,
            "machines": size,
            "published_per_s": measured,
            "simulated_per_s": carried,
            "error": None if measured is None else carried / measured - 1,
            "limited_by": limit,
            "verdict": verdict,
        }
    return [found[place] for place in ROWS if place in found]


def ksafety_table(found: list[Row]) -> Table:
    columns: dict[str, Callable[[Row], str]] = {
        "system": lambda row: row["system"],
        "machines": lambda row: row["machines"],
        "published/s": lambda row: "–" if row["published_per_s"] is None else f"{row['published_per_s']:,}",
        "simulated/s": lambda row: f"{row['simulated_per_s']:,.0f}",
        "error": lambda row: "–" if row["error"] is None else f"{100 * row['error']:+.1f} %",
        "limited by": lambda row: row["limited_by"],
        "verdict": lambda row: row["verdict"],
    }
    return Table.of(group("ksafety", "throughput").title, found, columns, text_columns=2)


# Stableford's first phase as a table: a real restart under both strategies, and what settings change.

NIMBUS, COST, QUEUE = "detector.nimbus_task_timeout", "strategies.rsm.replay_cost", "queues.length"
TASKS = 3
"""Each has a worker of its own."""
PHASE_ONE_SOURCE = (
    'T. Stableford, "Implementing operator state checkpoint based fault-tolerance in Apache Storm", City '
    "University London, 2015, phase 1"
)


def phase_one_rows(recoveries: pd.DataFrame, runs: pd.DataFrame, timeline: pd.DataFrame) -> list[Row]:
    """One a point of the sweep; times from the failure, means over the replications. ``replayed_in``: of how
    many of them ``replayed_until_s`` is the mean; nothing was replayed in the others.
    """
    known = {strategy: measured for strategy, _, measured in group("stableford", "real_restart").rows}
    found = []
    for point in sorted(set(recoveries["point"].tolist())):
        mine, seconds, done = (part[part["point"] == point] for part in (recoveries, timeline, runs))
        over = mine.assign(over=mine["ready_at_s"] + mine["state_recovery_s"]).groupby("replication")
        failed = over["failed_at_s"].first()
        until, strategy = over["over"].max() - failed, str(mine["strategy"].iloc[0])
        found.append(
            {
                "point": point,
                "strategy": strategy,
                "free_workers": int(mine["hosts"].iloc[0]) - TASKS,
                "queue_length": int(mine[QUEUE].iloc[0]) if QUEUE in mine else None,
                "nimbus_s": float(mine[NIMBUS].iloc[0]),
                "replay_cost_s": float(mine[COST].iloc[0]),
                "restarts": len(mine) / len(failed),
                "back_s": float((over["ready_at_s"].max() - failed).mean()),
                "replayed_until_s": float(until.mean()) if until.count() else None,
                "replayed_in": int(until.count()),
                "replications": len(failed),
                "published_s": known.get(strategy),
                "growth_s_per_min": _growth(seconds, mine),
                "greatest_latency_s": float(seconds["latency_max_ms"].max()) / 1000,
                "new_roots_per_s": float(done["emitted"].mean())
                / float(seconds.groupby("replication").size().mean()),
                "roots_lost": float(done["lost"].mean()),
            }
        )
    return found


def _growth(timeline: pd.DataFrame, recoveries: pd.DataFrame) -> float:
    """By how much the mean latency grows (s per minute) in the 30 s after all is back, by least squares."""
    found = []
    for replication, mine in recoveries.groupby("replication"):
        begin = float(mine["ready_at_s"].max()) + 2
        shown = timeline[timeline["replication"] == replication].dropna(subset=["latency_mean_ms"])
        part = shown[(shown["second"] >= begin) & (shown["second"] < begin + 30)]
        if len(part) > 1:
            slope = np.polyfit(part["second"].astype(float), part["latency_mean_ms"].astype(float), 1)[0]
            found.append(float(slope) * 60 / 1000)
    return sum(found) / len(found) if found else 0.0


def phase_one_table(found: list[Row]) -> Table:
    """As a reader sees it; what a replay costs is of no account under source replay, which has one row."""

    def until(row: Row) -> str:
        """When the replay was over, and in how many replications there was one, if not in all."""
        if row["replayed_until_s"] is None:
            return "nothing"
        few = row["replayed_in"] < row["replications"]
        of = f" in {row['replayed_in']} of {row['replications']}" if few else ""
        return f"{row['replayed_until_s']:.1f}{of}"

    columns: dict[str, Callable[[Row], str]] = {
        "strategy": lambda row: strategy_name(row["strategy"]),
        "free workers": lambda row: str(row["free_workers"]),
        "queues": lambda row: "no end" if row["queue_length"] is None else f"{row['queue_length']:,}",
        "Nimbus's timeout": lambda row: f"{row['nimbus_s']:g} s",
        "replay of a tuple": lambda row: (
            f"{1000 * row['replay_cost_s']:g} ms" if row["strategy"] == "rsm" else UNDEFINED
        ),
        "restarts": lambda row: f"{row['restarts']:.1f}",
        "all back after, s": lambda row: f"{row['back_s']:.1f}",
        "replayed until, s": until,
        "published, s": lambda row: UNDEFINED if row["published_s"] is None else f"{row['published_s']:g}",
        "latency grows, s/min": lambda row: f"{row['growth_s_per_min']:.1f}",
        "greatest latency, s": lambda row: f"{row['greatest_latency_s']:.1f}",
        "new roots/s": lambda row: f"{row['new_roots_per_s']:.1f}",
        "roots lost": lambda row: f"{row['roots_lost']:,.0f}",
    }
    shown = [
        row for row in found if row["strategy"] == "rsm" or row["replay_cost_s"] == found[0]["replay_cost_s"]
    ]
    return Table.of("A count whose process dies, at 95 tuples/s", shown, columns)
