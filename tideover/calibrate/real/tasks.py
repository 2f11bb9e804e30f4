"""When Spark's tasks began and ended, and on which executors: from Spark's own event log."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tideover.calibrate.real.session import NAN, Row


def read_tasks(directory: Path, since: Callable[[float], float]) -> list[Row]:
    """The tasks that one life of a driver ran for its batches.

    directory: where Spark wrote its log. since: turns a unix time into s since t0; what ran before that has
    warmed up. A batch has two stages: the one that reads the rows and writes the shuffle is called map, the
    other one reduce.
    """
    rows: list[Row] = []
    for path in sorted(directory.glob("*")):
        rows += [row for row in _from_log(path, since) if row["launch_s"] >= 0]
    return rows


def _from_log(path: Path, since: Callable[[float], float]) -> list[Row]:
    batches: dict[int, tuple[str, int]] = {}  # by stage: the run of the query, and the batch
    rows = []
    for line in path.read_text(errors="replace").splitlines(keepends=True):
        if line.startswith('{"Event":"SparkListenerJobStart"') and line.endswith("\n"):
            event = json.loads(line)
            properties = event.get("Properties") or {}
            if "streaming.sql.batchId" in properties:
                found = properties["spark.jobGroup.id"], int(properties["streaming.sql.batchId"])
                batches |= dict.fromkeys(event["Stage IDs"], found)
        elif line.startswith('{"Event":"SparkListenerTaskEnd"') and line.endswith("\n"):
            event = json.loads(line)
            if event["Stage ID"] in batches:
                rows.append(_row(event, *batches[event["Stage ID"]], since))
    return rows


def _row(event: Row, run_id: str, batch: int, since: Callable[[float], float]) -> Row:
    info, metrics = event["Task Info"], event.get("Task Metrics") or {}
    return {
        "run_id": run_id,
        "batch": batch,
        "stage": "map" if event["Task Type"] == "ShuffleMapTask" else "reduce",
        "stage_attempt": event["Stage Attempt ID"],
        "partition": info["Index"],
        "attempt": info["Attempt"],
        "executor": info["Executor ID"],
        "locality": info["Locality"],
        "result": event["Task End Reason"]["Reason"],
        "launch_s": since(info["Launch Time"] / 1000),
        "finish_s": since(info["Finish Time"] / 1000),
        "run_ms": metrics.get("Executor Run Time", NAN),
        "cold_ms": metrics.get("Executor Deserialize Time", NAN),
    }
