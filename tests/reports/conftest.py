"""Made-up results in the form of real ones: plausible figures, none of them simulated."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tideover.models.schema import ending
from tideover.reports.columns import conform

LATENCY = ("median", "mean", "std", "p95", "p99", "max")
NAN = float("nan")

STAGES = ("detect_s", "restart_s", "restore_s", "wait_s", "replay_s", "catch_up_stage_s", "windows_stage_s")
# Their lengths add up to the time to recover; restore, wait and replay to state recovery.
SHAPES: dict[str, dict[str, Any]] = {
    "source_replay": {
        "recovery": 60.0,
        "gap": 60.0,
        "stages": (0.0, 0.0, 0.0, 25.0, 35.0, 14.0, 1.0),
        "late": 30_000.0,
        "network": 1.25,
        "cpu": 1.2,
        "store": 0,
        "buffered": 600,
        "lost": 0,
        "wrong": 1,
        "replayed": 150,
    },
    "rsm": {
        "recovery": 0.42,
        "gap": 30.0,
        "stages": (0.0, 0.0, 0.05, 0.0, 0.37, 0.48, 0.0),
        "late": 0.0,
        "network": 1.6,
        "cpu": 1.1,
        "store": 96_000,
        "buffered": 700,
        "lost": 0,
        "wrong": 0,
        "replayed": 44,
    },
    "active_replication": {
        "recovery": NAN,
        "gap": 30.0,
        "stages": (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        "late": 0.0,
        "network": 3.4,
        "cpu": 2.0,
        "store": 0,
        "buffered": 0,
        "lost": 0,
        "wrong": 0,
        "replayed": 0,
    },
    "none": {
        "recovery": NAN,
        "gap": 30.0,
        "stages": (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 15.0),
        "late": 0.0,
        "network": 1.0,
        "cpu": 1.0,
        "store": 0,
        "buffered": 0,
        "lost": 150,
        "wrong": 1,
        "replayed": 0,
    },
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


def fake_result(
    strategy: str = "source_replay",
    *,
    name: str = "word count",
    replications: int = 5,
    rate: float = 10.0,
    failed_at: float | None = 75.0,
    spread: float = 0.05,
    seed: int = 1,
    warnings: tuple[str, ...] = (),
    recovery: float | None = None,
) -> FakeResult:
    shape = dict(SHAPES[strategy])
    if failed_at is None:
        shape |= {"lost": 0, "wrong": 0, "replayed": 0}
    if recovery is not None:
        shape["recovery"] = recovery
        detect, restart, restore, wait, _, *rest = shape["stages"]
        shape["stages"] = (detect, restart, restore, wait, recovery - restore - wait, *rest)
    scenario = _scenario(name, strategy, rate, failed_at, replications, seed)
    rows = [_recovery(shape, r, failed_at, spread, rate) for r in range(replications)] if failed_at else []
    head = {"scenario": name, "strategy": strategy, "seed": seed}
    recoveries = pd.DataFrame([{**head, **row} for row in rows], columns=recovery_columns())
    runs = pd.DataFrame(
        [
            {**head, **_run(shape, r, rate), "scenario_json": json.dumps(scenario), "version": "0.1.0"}
            for r in range(replications)
        ]
    )
    timeline = pd.concat(
        [_timeline(name, strategy, shape, r, rate, failed_at) for r in range(replications)], ignore_index=True
    )
    record = _record(recoveries, runs, scenario, list(warnings), strategy, seed)
    tasks = pd.DataFrame([{**head, **_task(shape, r)} for r in range(replications)])
    usage = conform("usage", pd.DataFrame())
    return FakeResult(recoveries, runs, timeline, tasks, usage, record)


def fake_reproduction(replications: int = 10) -> tuple[pd.DataFrame, pd.DataFrame, list[FakeResult]]:
    """Three strategies, two rates, three times of failure, as a sweep gives them."""
    recoveries, runs, results, point = [], [], [], 0
    for strategy in ("source_replay", "rsm", "active_replication"):
        for rate in (10.0, 20.0):
            for into in (5.0, 15.0, 30.0):
                slow = 0.3 + (rate - 10.0) * 0.16
                result = fake_result(
                    strategy,
                    replications=replications,
                    rate=rate,
                    failed_at=60.0 + into,
                    recovery=slow if strategy == "rsm" else None,
                )
                added = {
                    "point": point,
                    "strategy.kind": strategy,
                    "topology.sentences.rate": rate,
                    "failures.0.at": 60.0 + into,
                }
                recoveries.append(result.recoveries.assign(**added))
                runs.append(result.runs.assign(**added))
                results.append(result)
                point += 1
    return pd.concat(recoveries, ignore_index=True), pd.concat(runs, ignore_index=True), results


def recovery_columns() -> list[str]:
    head = "scenario strategy seed replication kind component failed_at_s detected_at_s ready_at_s"
    measures = "time_to_recover_s ended roots_lost state_recovery_s catch_up_s throughput_90_s"
    gaps = "output_gap_s sink_spacing_s"
    stages = "detect_s restart_s restore_s wait_s replay_s catch_up_stage_s windows_stage_s"
    content = "restored replayed dropped missing extra"
    latencies = [f"{kind}_{key}_ms" for kind in ("latency", "end_to_end") for key in LATENCY]
    return [*f"{head} {measures} {gaps} {stages} {content}".split(), *latencies]


def _latencies(values: dict[str, float], late: float = 0.0) -> dict[str, float]:
    """From the creation stamp, and from the first emission, ``late`` ms before: retries have a new stamp."""
    added = {"latency": 0.0, "end_to_end": late}
    return {f"{k}_{key}_ms": value + more for k, more in added.items() for key, value in values.items()}


def _jitter(replication: int, spread: float) -> float:
    return spread * float(np.sin(1.0 + 2.3 * replication))


def _recovery(shape: dict[str, Any], r: int, failed_at: float, spread: float, rate: float) -> dict[str, Any]:
    wobble = _jitter(r, spread)
    stages = dict(zip(STAGES, shape["stages"], strict=True))
    if shape["recovery"] > 0:
        stages["replay_s"] += wobble
    whole, roots_lost = sum(stages.values()), int(shape["lost"] * rate / 10)
    latency = dict(zip(LATENCY, (2.0, 40.0 + wobble, 120.0, 300.0, 600.0, 700.0 + r), strict=True))
    return {
        "replication": r,
        "kind": "lose_state",
        "component": "count",
        "failed_at_s": failed_at,
        "detected_at_s": failed_at,
        "ready_at_s": failed_at,
        "time_to_recover_s": whole,
        "ended": ending(whole, roots_lost),
        "roots_lost": roots_lost,
        "state_recovery_s": shape["recovery"] + wobble,
        "catch_up_s": whole - stages["windows_stage_s"],
        "throughput_90_s": 10.0,
        "output_gap_s": shape["gap"],
        "sink_spacing_s": 30.0,
        **stages,
        "restored": 0,
        "replayed": int(shape["replayed"] * rate / 10),
        "dropped": 0,
        "missing": int(shape["lost"] * rate / 10),
        "extra": 0,
        **_latencies(latency, shape["late"]),
    }


def _run(shape: dict[str, Any], r: int, rate: float) -> dict[str, Any]:
    emitted = int(240 * rate) - r
    lost = int(shape["lost"] * rate / 10)
    latency = dict(zip(LATENCY, (2.0, 3.4, 14.1, 4.0, 60.0, 90.0 + r), strict=True))
    return {
        "replication": r,
        "error": None,
        "emitted": emitted,
        "completed": emitted - lost - 3,
        "in_flight": 3,
        "lost": lost,
        "replayed": int(shape["replayed"] * rate / 10),
        "duplicated": 0,
        "false_timeouts": 0,
        "late": 0,
        "windows_emitted": 8,
        "windows_correct": 8 - shape["wrong"],
        "windows_wrong": shape["wrong"],
        "windows_missing": 0,
        "cpu_s": 1.5 * shape["cpu"] * rate / 10 + 0.001 * r,
        "network_bytes": int(3_300_000 * shape["network"] * rate / 10) + 100 * r,
        "normal_cpu_s": 1.4 * shape["cpu"] * rate / 10,
        "normal_network_bytes": int(3_100_000 * shape["network"] * rate / 10),
        "store_bytes": int(shape["store"]),
        "peak_buffered_tuples": shape["buffered"],
        "hosts": 6 if shape["network"] > 3 else 3,
        **_latencies(latency),
        "throughput_mean_per_s": 4.4 * rate,
        "throughput_min_per_s": 0.0,
        "throughput_max_per_s": 8.8 * rate,
        "availability": 1.0,
    }


def _task(shape: dict[str, Any], r: int) -> dict[str, Any]:
    busy = 10.0 * shape["cpu"] + r
    return {
        "replication": r,
        "task": "count.0",
        "utilisation": busy / 240,
        "busy_s": busy,
        "up_s": 240.0,
        "queued": r,
        "queued_s": 0.1 * r,
    }


def _timeline(
    name: str, strategy: str, shape: dict[str, Any], r: int, rate: float, failed_at: float | None
) -> pd.DataFrame:
    second = np.arange(240)
    ripple = np.sin(second * 1.7 + r)
    throughput = 4.4 * rate + 3 * ripple
    mean, largest = 2.2 + 0.2 * ripple, 6.0 + ripple
    backlog = np.ones(240, dtype=np.int64)
    if failed_at is not None and shape["recovery"] > 10:
        late = (second >= failed_at + 45) & (second < failed_at + 74)
        backlog[late] = np.round(10 * rate * (1 - np.abs(second[late] - failed_at - 59.5) / 15)).astype(int)
        mean = np.where(late, 60 + 10 * ripple, mean)
        largest = np.where(late, 400 + 50 * ripple, largest)
    elif failed_at is not None and shape["recovery"] > 0:
        burst = second == int(failed_at)
        throughput = np.where(burst, 30 * rate, throughput)
        largest, mean = np.where(burst, 420.0, largest), np.where(burst, 190.0, mean)
    return pd.DataFrame(
        {
            "scenario": name,
            "strategy": strategy,
            "seed": 1,
            "replication": r,
            "second": second,
            "throughput_per_s": throughput,
            "latency_mean_ms": mean,
            "latency_max_ms": largest,
            "end_to_end_mean_ms": np.where(mean > 50, mean + shape["late"], mean),
            "end_to_end_max_ms": np.where(mean > 50, largest + shape["late"], largest),
            "backlog": backlog,
            "backlog_without_failures": np.ones(240, dtype=np.int64),
        }
    )


def _scenario(
    name: str, strategy: str, rate: float, failed_at: float | None, replications: int, seed: int
) -> dict[str, Any]:
    failures = (
        [] if failed_at is None else [{"at": f"{failed_at:g} s", "kind": "lose_state", "component": "count"}]
    )
    return {
        "name": name,
        "topology": {
            "sentences": {"spout": "sentences", "rate": f"{rate:g}/s"},
            "split": {"bolt": "split_words", "from": {"sentences": "shuffle"}, "service": "0.2 ms"},
            "count": {"bolt": "windowed_count", "from": {"split": {"fields": ["word"]}}, "window": "30 s"},
        },
        "strategy": {"kind": strategy},
        "failures": failures,
        "run": {"duration": "240 s", "warmup": "60 s", "seed": seed, "replications": replications},
    }


def _plain(value: Any) -> Any:
    return None if pd.isna(value) else value.item() if hasattr(value, "item") else value


def _record(
    recoveries: pd.DataFrame,
    runs: pd.DataFrame,
    scenario: dict[str, Any],
    warnings: list[str],
    strategy: str,
    seed: int,
) -> dict[str, Any]:
    plain = (
        "replication kind component failed_at_s detected_at_s ready_at_s time_to_recover_s ended roots_lost "
        "state_recovery_s catch_up_s throughput_90_s output_gap_s sink_spacing_s"
    )
    listed = []
    for _, row in recoveries.iterrows():
        entry = {key: _plain(row[key]) for key in plain.split()}
        stages = {key: _plain(row[f"{key}_s"]) for key in ("detect", "restart", "restore", "wait", "replay")}
        late = {key: _plain(row[f"{key}_stage_s"]) for key in ("catch_up", "windows")}
        entry["stages_s"] = stages | late
        entry["state"] = {
            key: _plain(row[key]) for key in ("restored", "replayed", "dropped", "missing", "extra")
        }
        for kind in ("latency", "end_to_end"):
            entry[f"{kind}_ms"] = {key: _plain(row[f"{kind}_{key}_ms"]) for key in LATENCY}
        listed.append(entry)
    ledger = ("emitted", "completed", "in_flight", "lost", "replayed", "duplicated", "false_timeouts", "late")
    cost = ("cpu_s", "network_bytes", "normal_cpu_s", "normal_network_bytes", "store_bytes")
    cost += ("peak_buffered_tuples", "hosts")
    windows = ("emitted", "correct", "wrong", "missing")
    return {
        "schema": 1,
        "scenario": scenario,
        "strategy": strategy,
        "seed": seed,
        "replications": len(runs),
        "warnings": warnings,
        "recoveries": listed,
        "latency_ms": {key: _plain(runs[f"latency_{key}_ms"].mean()) for key in LATENCY},
        "end_to_end_ms": {key: _plain(runs[f"end_to_end_{key}_ms"].mean()) for key in LATENCY},
        "throughput_per_s": {
            key: _plain(runs[f"throughput_{key}_per_s"].mean()) for key in ("mean", "min", "max")
        },
        "ledger": {key: _plain(runs[key].sum()) for key in ledger},
        "windows": {key: _plain(runs[f"windows_{key}"].sum()) for key in windows},
        "cost": {key: _plain(runs[key].mean()) for key in cost},
    }


# Fixtures that hand out the makers, since test modules cannot import each other.


@pytest.fixture(scope="session")
def make_result() -> Callable[..., FakeResult]:
    return fake_result


@pytest.fixture(scope="session")
def four() -> list[FakeResult]:
    """One result for each strategy."""
    return [fake_result(name) for name in SHAPES]


@pytest.fixture(scope="session")
def reproduction() -> tuple[pd.DataFrame, pd.DataFrame, list[FakeResult]]:
    return fake_reproduction()


@pytest.fixture
def joined() -> Callable[..., pd.DataFrame]:
    """One table of several results, one after the other."""
    return lambda results, table: pd.concat([getattr(r, table) for r in results], ignore_index=True)
