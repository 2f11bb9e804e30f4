"""Tables of campaigns that never ran: batches whose costs are known exactly."""

import json

import numpy as np
import pandas as pd

T0 = 1_800_000_000


def session(name, **more):
    return {
        "session": name,
        "strategy": "micro_batch",
        "pipeline": "word_count",
        "master": "local-cluster[2,1,1024]",
        "keys": 0,
        "work": 0,
        "trigger_s": 1.0,
        "window_s": 2.0,
        "partitions": 2,
        "executors": 2,
        "cores": 2,
        "jvm": "shipped",
        "locality_wait_s": 0.0,
        "seed": 1,
        "t0": pd.Timestamp(T0, unit="s", tz="UTC").isoformat(),
        "machine": "a machine",
        "error": "",
    } | more


def batch_row(name, number, start, rows, first, cost, query=0):
    """A batch as the listener reports it. ``cost``: plan, work, commit (s), state_rows."""
    plan, work, commit, state_rows = cost
    return {
        "session": name,
        "query": query,
        "life": 0,
        "run": 0,
        "batch": number,
        "start_s": start,
        "latest_offset_ms": 0.0,
        "wal_ms": 600 * plan,
        "planning_ms": 400 * plan,
        "get_batch_ms": 0.0,
        "add_batch_ms": 1000 * work,
        "commit_ms": 1000 * commit,
        "first_row": first,
        "last_row": first + rows,
        "rows": rows,
        "state_rows": state_rows,
        "state_commit_ms": 40.0,
        "sink_s": start + plan + work,
        "end_s": start + plan + work + commit,
    }


def task_row(name, number, stage, start, executor="0", longer=0.0):
    """A task of 30 ms, or ``longer``; its batch may need more for its rows."""
    what = {"session": name, "query": 0, "life": 0, "run": 0, "batch": number, "stage": stage}
    when = {"launch_s": start, "finish_s": start + 0.03 + longer}
    return what | {"result": "Success", "executor": executor} | when


def steady(name, rates, work, state_rows=0.0, length=12.0, warmup=6.0, held_out=(), **more):
    """A session of episodes without faults; ``work``: time of tasks and sink (s) by rows of a batch."""
    pieces = [[0.0, rates[0]], *([warmup + i * length, rate] for i, rate in enumerate(rates))]
    end = warmup + length * len(rates)
    episodes = [
        {
            "session": name,
            "episode": i,
            "purpose": "steady",
            "held_out": i in held_out,
            "begin_s": warmup + i * length,
            "end_s": warmup + (i + 1) * length,
            "rate_per_s": rate,
            "fault": "none",
            "planned_s": np.nan,
            "stop_s": 0.0,
            "missing": 0,
            "others_cores": 0.1,
            "extra": 0,
        }
        for i, rate in enumerate(rates)
    ]
    edges, at = [p[0] for p in pieces], np.arange(1.0, end)
    created = np.interp(
        at, [*edges, end], np.concatenate([[0], np.cumsum([p[1] for p in pieces] * np.diff([*edges, end]))])
    )
    first, rows, tasks = 0, [], []
    for number, (start, upto) in enumerate(zip(at, created, strict=True)):
        n = int(upto) - first
        rows.append(batch_row(name, number, start, n, first, (0.05, work(n), 0.03, state_rows)))
        tasks += [task_row(name, number, stage, start + 0.05) for stage in ("map", "reduce")]
        first += n
    schedule = json.dumps({"t0": T0, "pieces": pieces, "end_s": end})
    return {
        "sessions": pd.DataFrame([session(name, schedule=schedule, **more)]),
        "episodes": pd.DataFrame(episodes),
        "batches": pd.DataFrame(rows),
        "faults": pd.DataFrame(columns=["session", "episode"]),
        "tasks": pd.DataFrame(tasks),
    }


def joined(*campaigns):
    return {name: pd.concat([c[name] for c in campaigns], ignore_index=True) for name in campaigns[0]}
