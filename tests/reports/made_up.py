"""Made-up results in the form of real ones: plausible figures, none of them simulated."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from rich.console import Console

from tideover.models.schema import TABLES, block, ending, nested
from tideover.reports.columns import DOCUMENTED, conform
from tideover.reports.published import with_cells
from tideover.reports.sweeps.points import Points, points
from tideover.scenarios.sweeps.rows import summarise

LATENCY = ("median", "mean", "std", "p95", "p99", "max")
NAN = float("nan")
EVIL = "<script>alert(1)</script>"
PARAMETERS = {"strategy.kind": "", "topology.sentences.rate": "1/s", "failures.0.at": "s"}
"""What a made-up reproduction has swept, with units."""
POOLS = {"sum": sum, "mean": np.mean, "min": min, "max": max, "histogram": np.mean}


def read_tables(directory: Path) -> dict[str, pd.DataFrame]:
    """The tables that are written to a directory, by name."""
    paths = {name: directory / f"{name}.parquet" for name in DOCUMENTED}
    return {name: pd.read_parquet(path) for name, path in paths.items() if path.is_file()}


def shown(view: Any, width: int = 100) -> str:
    """What a terminal of this width shows, none of its lines longer."""
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    console.print(view)
    text = console.file.getvalue()
    assert max(map(len, text.splitlines()), default=0) <= width
    return text


class Shape(NamedTuple):
    """What a strategy's results look like: state recovery and output gap (s), the lengths of its stages (s),
    how late latencies of retries are (ms), and costs, network and CPU relative to those of amnesia.

    The stages add up to the time to recover; restore, wait and replay to state recovery.
    """

    recovery: float = NAN
    gap: float = 30.0
    stages: tuple[float, ...] = (0.0,) * 7
    late: float = 0.0
    network: float = 1.0
    cpu: float = 1.0
    store: int = 0
    buffered: int = 0
    lost: int = 0
    wrong: int = 0
    replayed: int = 0


WAITS, REPLAYS = (0.0, 0.0, 0.0, 25.0, 35.0, 14.0, 1.0), (0.0, 0.0, 0.05, 0.0, 0.37, 0.48, 0.0)
SHAPES = {
    "source_replay": Shape(60.0, 60.0, WAITS, 30_000.0, 1.25, 1.2, buffered=600, wrong=1, replayed=150),
    "rsm": Shape(0.42, 30.0, REPLAYS, 0.0, 1.6, 1.1, store=96_000, buffered=700, replayed=44),
    "active_replication": Shape(network=3.4, cpu=2.0),
    "none": Shape(stages=(0.0,) * 6 + (15.0,), lost=150, wrong=1),
}


@dataclass
class FakeResult:
    recoveries: pd.DataFrame
    runs: pd.DataFrame
    timeline: pd.DataFrame
    tasks: pd.DataFrame
    usage: pd.DataFrame
    record: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return self.record


def filled(table: str, row: dict[str, Any]) -> dict[str, Any]:
    """A row with all columns that any result has: 0, or an empty text, where it says nothing."""
    nothing = {"string": "", "int64": 0, "float64": 0.0, "bool": False}
    columns = (column for column in TABLES[table] if not column.optional)
    return {column.name: nothing[column.dtype] for column in columns} | row


def fake_result(
    strategy: str = "source_replay",
    *,
    name: str = "word count",
    replications: int = 5,
    rate: float = 10.0,
    failed_at: float | None = 75.0,
    spread: float = 0.05,
    warnings: tuple[str, ...] = (),
    recovery: float | None = None,
) -> FakeResult:
    shape = SHAPES[strategy]
    if failed_at is None:
        shape = shape._replace(lost=0, wrong=0, replayed=0)
    if recovery is not None:
        detect, restart, restore, wait, _, *rest = shape.stages
        stages = (detect, restart, restore, wait, recovery - restore - wait, *rest)
        shape = shape._replace(recovery=recovery, stages=stages)
    scenario = _scenario(name, strategy, rate, failed_at, replications)
    head = {"scenario": name, "strategy": strategy, "seed": 1}
    numbers, origin = range(replications), {"scenario_json": json.dumps(scenario), "version": "0.1.0"}
    made = [_recovery(shape, r, failed_at, spread, rate) for r in numbers if failed_at]
    recoveries = [filled("recoveries", head | row) for row in made]
    runs = [filled("runs", head | _run(shape, r, rate) | origin) for r in numbers]
    record = {"schema": 1, "scenario": scenario, "strategy": strategy, "seed": 1}
    record |= {"replications": replications, "warnings": list(warnings)} | _figures(recoveries, runs)
    columns = [column.name for column in TABLES["recoveries"] if not column.optional]
    return FakeResult(
        pd.DataFrame(recoveries, columns=columns),
        pd.DataFrame(runs),
        pd.concat([_timeline(head, shape, r, rate, failed_at) for r in numbers], ignore_index=True),
        pd.DataFrame([filled("tasks", head | _task(shape, r)) for r in numbers]),
        conform("usage", pd.DataFrame()),
        record,
    )


def joined(results: list[FakeResult], table: str) -> pd.DataFrame:
    """One table of several results, one after the other."""
    return pd.concat([getattr(result, table) for result in results], ignore_index=True)


class Reproduction(NamedTuple):
    """Three strategies, two rates, three times of failure, as a sweep gives them."""

    recoveries: pd.DataFrame
    runs: pd.DataFrame

    @property
    def cells(self) -> pd.DataFrame:
        return cells_of(self.recoveries)


def cells_of(recoveries: pd.DataFrame) -> pd.DataFrame:
    return with_cells(recoveries, rate="topology.sentences.rate", window_s=30.0)


def points_of(recoveries: pd.DataFrame, runs: pd.DataFrame, parameters: Any = PARAMETERS) -> Points:
    """What a sweep has of its points."""
    return points(*summarise(recoveries, runs, parameters), parameters)


def fake_reproduction() -> Reproduction:
    recoveries, runs = [], []
    kinds = ("source_replay", "rsm", "active_replication")
    points = [(kind, rate, into) for kind in kinds for rate in (10.0, 20.0) for into in (5.0, 15.0, 30.0)]
    for point, (kind, rate, into) in enumerate(points):
        slow = 0.3 + (rate - 10.0) * 0.16 if kind == "rsm" else None
        result = fake_result(kind, replications=10, rate=rate, failed_at=60.0 + into, recovery=slow)
        added = {"point": point, **dict(zip(PARAMETERS, (kind, rate, 60.0 + into), strict=True))}
        recoveries.append(result.recoveries.assign(**added))
        runs.append(result.runs.assign(**added))
    return Reproduction(pd.concat(recoveries, ignore_index=True), pd.concat(runs, ignore_index=True))


def _latencies(values: tuple[float, ...], late: float = 0.0) -> dict[str, float]:
    """From the creation stamp, and from the first emission, ``late`` ms before: retries have a new stamp."""
    both = (("latency", 0.0), ("end_to_end", late))
    return {f"{k}_{key}_ms": v + more for k, more in both for key, v in zip(LATENCY, values, strict=True)}


def _recovery(shape: Shape, r: int, failed_at: float, spread: float, rate: float) -> dict[str, Any]:
    wobble = spread * float(np.sin(1.0 + 2.3 * r))
    stages = dict(zip((column.name for column in block("recoveries", "stages_s")), shape.stages, strict=True))
    if shape.recovery > 0:
        stages["replay_s"] += wobble
    whole, lost = sum(stages.values()), int(shape.lost * rate / 10)
    return {
        "replication": r,
        "kind": "lose_state",
        "component": "count",
        **dict.fromkeys(("failed_at_s", "detected_at_s", "ready_at_s"), failed_at),
        "time_to_recover_s": whole,
        "ended": ending(whole, lost),
        "roots_lost": lost,
        "state_recovery_s": shape.recovery + wobble,
        "catch_up_s": whole - stages["windows_stage_s"],
        "throughput_90_s": 10.0,
        "output_gap_s": shape.gap,
        "sink_spacing_s": 30.0,
        **stages,
        "replayed": int(shape.replayed * rate / 10),
        "missing": lost,
        **_latencies((2.0, 40.0 + wobble, 120.0, 300.0, 600.0, 700.0 + r), shape.late),
    }


def _run(shape: Shape, r: int, rate: float) -> dict[str, Any]:
    emitted, lost = int(240 * rate) - r, int(shape.lost * rate / 10)
    return {
        "replication": r,
        "error": None,
        "emitted": emitted,
        "completed": emitted - lost - 3,
        "in_flight": 3,
        "lost": lost,
        "replayed": int(shape.replayed * rate / 10),
        "windows_emitted": 8,
        "windows_correct": 8 - shape.wrong,
        "windows_wrong": shape.wrong,
        "cpu_s": 1.5 * shape.cpu * rate / 10 + 0.001 * r,
        "network_bytes": int(3_300_000 * shape.network * rate / 10) + 100 * r,
        "normal_cpu_s": 1.4 * shape.cpu * rate / 10,
        "normal_network_bytes": int(3_100_000 * shape.network * rate / 10),
        "store_bytes": shape.store,
        "peak_buffered_tuples": shape.buffered,
        "hosts": 6 if shape.network > 3 else 3,
        **_latencies((2.0, 3.4, 14.1, 4.0, 60.0, 90.0 + r)),
        "throughput_mean_per_s": 4.4 * rate,
        "throughput_max_per_s": 8.8 * rate,
        "availability": 1.0,
    }


def _task(shape: Shape, r: int) -> dict[str, Any]:
    busy = 10.0 * shape.cpu + r
    queue = {"queued": r, "queued_s": 0.1 * r}
    return {
        "replication": r,
        "task": "count.0",
        "utilisation": busy / 240,
        "busy_s": busy,
        "up_s": 240.0,
    } | queue


def _timeline(
    head: dict[str, Any], shape: Shape, r: int, rate: float, failed_at: float | None
) -> pd.DataFrame:
    second = np.arange(240)
    ripple = np.sin(second * 1.7 + r)
    throughput = 4.4 * rate + 3 * ripple
    mean, largest = 2.2 + 0.2 * ripple, 6.0 + ripple
    backlog = np.ones(240, dtype=np.int64)
    if failed_at is not None and shape.recovery > 10:
        late = (second >= failed_at + 45) & (second < failed_at + 74)
        backlog[late] = np.round(10 * rate * (1 - np.abs(second[late] - failed_at - 59.5) / 15)).astype(int)
        mean = np.where(late, 60 + 10 * ripple, mean)
        largest = np.where(late, 400 + 50 * ripple, largest)
    elif failed_at is not None and shape.recovery > 0:
        burst = second == int(failed_at)
        throughput = np.where(burst, 30 * rate, throughput)
        largest, mean = np.where(burst, 420.0, largest), np.where(burst, 190.0, mean)
    made = {
        "replication": r,
        "second": second,
        "throughput_per_s": throughput,
        "latency_mean_ms": mean,
        "latency_max_ms": largest,
        "end_to_end_mean_ms": np.where(mean > 50, mean + shape.late, mean),
        "end_to_end_max_ms": np.where(mean > 50, largest + shape.late, largest),
        "backlog": backlog,
        "backlog_without_failures": np.ones(240, dtype=np.int64),
    }
    return pd.DataFrame(filled("timeline", head | made))


def _scenario(name: str, strategy: str, rate: float, failed_at: float | None, many: int) -> dict[str, Any]:
    failure = {"at": f"{failed_at:g} s", "kind": "lose_state", "component": "count"} if failed_at else None
    return {
        "name": name,
        "topology": {
            "sentences": {"spout": "sentences", "rate": f"{rate:g}/s"},
            "split": {"bolt": "split_words", "from": {"sentences": "shuffle"}, "service": "0.2 ms"},
            "count": {"bolt": "windowed_count", "from": {"split": {"fields": ["word"]}}, "window": "30 s"},
        },
        "strategy": {"kind": strategy},
        "failures": [failure] if failure else [],
        "run": {"duration": "240 s", "warmup": "60 s", "seed": 1, "replications": many},
    }


def _figures(recoveries: list[dict[str, Any]], runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Recoveries and blocks of a record, where the schema says that each figure stands."""
    plain = [{k: None if v != v else v for k, v in row.items()} for row in recoveries]
    columns = [column for column in TABLES["runs"] if column.name in runs[0]]
    pooled = {c.name: POOLS[c.pool]([row[c.name] for row in runs]) for c in columns if c.pool}
    listed = [nested(row, [c for c in TABLES["recoveries"] if c.name in row]) for row in plain]
    return {"recoveries": listed} | nested(pooled, [column for column in columns if column.pool])


# Tables of calibrations that never ran: pairs, rankings, counts and backlogs, row by row.


def pair(measured, predicted, low=NAN, high=NAN, **more):
    """One row of pairs: by default an output gap after a killed executor, held out."""
    row = {"session": "s1", "episode": 0, "purpose": "recovery", "held_out": True, "strategy": "micro_batch"}
    row |= {"pipeline": "word_count", "master": "local-cluster[2,1,1024]", "fault": "kill_executor"}
    row |= {"rate_per_s": 1000.0, "keys": NAN, "moment_s": 0.5, "measure": "output_gap_s"}
    row |= {"measured": measured, "predicted": predicted, "low": low, "high": high}
    return row | {"error": predicted / measured - 1 if measured else NAN} | more


def steady(measured, predicted, **more):
    quiet = {"purpose": "steady", "fault": "none", "measure": "batch_duration_s", "moment_s": NAN}
    return pair(measured, predicted, **(quiet | more))


def table(*rows):
    return pd.DataFrame(list(rows))


def ranks(measured, simulated):
    names = ["micro_batch", "source_replay", "active_replication"]
    gaps = {"measured_gap_s": 2.0, "simulated_gap_s": 2.0, "n": 3, "fault": "kill_driver"}
    found = zip(names, measured, simulated, strict=False)
    return table(
        *({"strategy": name, "measured_rank": m, "simulated_rank": s, **gaps} for name, m, s in found)
    )


def counts(**more):
    row = {
        "strategy": "micro_batch",
        "fault": "kill_driver",
        "kills": 6,
        "exact": 6,
        "missing": 0,
        "extra": 0,
    }
    return row | {"simulated_lost": 0, "simulated_duplicated": 0, "promise": "exactly once"} | more


def episodes(count, strategy="micro_batch", fault="kill_executor"):
    """Backlogs of several episodes, real and simulated: a triangle of an episode's own height."""
    at = np.arange(-2.0, 6.0)
    triangle = 100.0 * np.clip(3 - np.abs(at - 2), 0, None)
    head = {"session": "s1", "strategy": strategy, "fault": fault, "at_s": at}
    return pd.concat(
        pd.DataFrame({**head, "episode": number, "kind": kind, "backlog": (number + 1) * triangle})
        for number in range(count)
        for kind in ("measured", "simulated")
    )


def every_table():
    """Every table, with one failed prediction for each reason that there is."""
    rows = [
        steady(1.0, 1.1, episode=1, keys=100.0),
        steady(2.0, 1.8, episode=2, keys=1000.0, rate_per_s=4000.0),
        steady(2.0, 2.1, episode=3, keys=1000.0, held_out=False),
        pair(4.0, 4.4, 3.5, 5.5, episode=4),
        pair(4.0, 6.0, 3.0, 9.0, episode=5, rate_per_s=2000.0),
        pair(4.0, 4.8, 4.2, 5.4, episode=6, moment_s=0.2),
        pair(8.0, NAN, episode=7, strategy="source_replay", measure="catch_up_s"),
        pair(NAN, 5.0, 4.0, 6.0, episode=8, strategy="source_replay", measure="catch_up_s"),
    ]
    parameter = {"strategy": "micro_batch", "parameter": "output_time", "value": 0.12, "low": 0.10}
    parameter |= {"high": 0.15, "unit": "s", "identified": False}
    return {
        "pairs": table(*rows),
        "parameters": table(parameter | {"meaning": "end of a batch until the sink has it"}),
        "timelines": pd.concat([episodes(6), episodes(2, "source_replay", "kill_driver")]),
        "ranking": ranks([1, 2, 3], [1, 3, 2]),
        "correctness": table(counts(), counts(strategy="source_replay", exact=5, extra=31)),
    }


# Fits to somebody else's recoveries.


def fluid(interval: float, rate: float, capacity: float = 1000.0) -> float:
    """Recovery of a plain fluid queue after an outage of 50 s that lost a whole interval."""
    return 50 + rate * (interval + 50) / (capacity - rate) if rate < capacity else NAN


def point(interval, rate, factor, **more):
    """A point whose fitted, left-out and fluid predictions are 1, ``factor`` and twice what was measured."""
    measured = fluid(interval, rate)
    row = {"workload": "mine", "checkpoint_interval_s": float(interval), "rate_per_s": rate}
    row |= {"measured_s": measured, "fitted_s": measured, "left_out_s": factor * measured}
    return row | {"fluid_s": 2 * measured, "fluid_left_out_s": 2 * measured} | more


def recovery_fit():
    """Three points: one is missed, one never ends by the plain law; curves up to saturation."""
    points = [point(30, 100.0, 1.1), point(30, 500.0, 1.4), point(90, 900.0, 0.9, fluid_left_out_s=NAN)]
    curves = [
        {"workload": "mine", "checkpoint_interval_s": t, "rate_per_s": r, "predicted_s": fluid(t, r)}
        | {"low_s": 0.8 * fluid(t, r), "high_s": 1.2 * fluid(t, r)}
        for t in (30.0, 60.0, 90.0)
        for r in (100.0, 500.0, 900.0, 1000.0)
    ]
    errors = [
        {"workload": "mine", "model": model, "kind": kind, "n": 3}
        | {"mean_error": error, "median_error": error, "worst_error": 2 * error}
        for model, kind, error in (
            ("mechanism", "fit", 0.02),
            ("mechanism", "leave_one_out", 0.2),
            ("fluid", "leave_one_out", 1.0),
        )
    ]
    parameters = [
        {"workload": "mine", "parameter": name, "value": 1.0, "low": 0.5, "high": 2.0, "unit": "s"}
        | {"identified": known, "meaning": f"what {name} is"}
        for name, known in (("detection", True), ("restart", False), ("reload", False))
    ]
    tables = {"points": points, "fit_parameters": parameters, "errors": errors, "curves": curves}
    return {name: pd.DataFrame(rows) for name, rows in tables.items()}
