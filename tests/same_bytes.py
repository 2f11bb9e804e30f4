"""Whether a change has changed any result: `run --json` of many scenarios, compared byte by byte.

    python tests/same_bytes.py record DIR   # before the change: scenario files and what each prints
    python tests/same_bytes.py compare DIR  # after it: runs the same files again; exit code 1 if any differ

The scenarios are every built-in one and made-up worlds of each strategy and kind of fault. They are written
out as files, so the tool needs nothing of the package but its command line.
"""

from __future__ import annotations

import argparse
import difflib
import json
import random
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

BUILT_IN = (
    "demeter-ads",
    "demeter-cars",
    "flink-recovery",
    "kill-host",
    "micro-batch",
    "running-count",
    "stableford-phase2",
    "wordcount",
)
STRATEGIES = ("none", "source_replay", "rsm", "active_replication", "aligned_snapshots", "micro_batch")
FAULTS = ("lose_state", "crash_task", "crash_host", "pause", "special", "two", "quiet")
ROUNDS = 3
"""Made-up worlds of each strategy and fault."""
SHORTER = {"stableford-phase2": ("run.replications=2",), "wordcount": ("run.replications=2",)}


def made_up(strategy: str, fault: str, number: int) -> dict[str, Any]:
    """A world of this strategy and fault, chosen by its number alone."""
    chance = random.Random(f"{strategy} {fault} {number}")
    trigger = chance.choice(("tick", "marker"))
    window = chance.choice(({"length": "5 s", "trigger": trigger}, {"length": "3 s", "trigger": trigger}))
    if chance.random() < 0.2:
        window = {"tuples": chance.choice((17, 40))}
    spread = chance.random() < 0.6
    service = {"kind": "exponential", "mean": "4 ms"} if spread else "2 ms"
    topology: dict[str, Any] = {
        "words": {
            "spout": "sentences",
            "rate": f"{chance.choice((5, 10, 20))}/s",
            "parallelism": _some(chance),
        },
        "split": {
            "bolt": "split_words",
            "from": {"words": "shuffle"},
            "service": service,
            "parallelism": _some(chance),
        },
        "count": {
            "bolt": "windowed_count",
            "from": {"split": {"fields": ["word"]}},
            "service": "1.5 ms",
            "window": window,
            "parallelism": _some(chance),
        },
    }
    if chance.random() < 0.4:
        topology["words"] |= {"arrivals": {"kind": "poisson", "rate": topology["words"].pop("rate")}}
    if chance.random() < 0.4:
        topology["sink"] = {"bolt": "forward", "from": {"count": "global"}, "service": "1 ms"}
    if chance.random() < 0.3:
        topology["direct"] = {"bolt": "forward", "from": {"split": "shuffle"}, "service": "1 ms"}
    return {
        "name": f"{strategy} {fault} {number}",
        "topology": topology,
        "strategy": _strategy(strategy, chance),
        "hosts": chance.choice((3, 4, 5)),
        "links": {"latency": {"kind": "exponential", "mean": "3 ms"} if spread else "1 ms", "local": "0 s"},
        "store": {"latency": "5 ms", "bandwidth": "1 MiB/s"},
        "failures": _failures(strategy, fault, chance),
        "run": {"duration": "40 s", "warmup": "5 s", "seed": number + 1, "replications": 2},
    }


def _some(chance: random.Random) -> int:
    return chance.choice((1, 1, 2, 3))


def _strategy(kind: str, chance: random.Random) -> dict[str, Any]:
    settings: dict[str, dict[str, Any]] = {
        "none": {},
        "source_replay": {
            "message_timeout": chance.choice(("4 s", "7 s")),
            "timeout_phase": chance.choice(("0 s", "1.3 s")),
            "ack_cost": chance.choice(("0 s", "0.3 ms")),
            "acker_host": chance.choice((None, 0)),
            "max_spout_pending": chance.choice((None, None, 200)),
        },
        "rsm": {
            "checkpoint_interval": chance.choice(("2 s", "3.1 s")),
            "spout_buffer": chance.choice((True, False)),
            "replay_cost": "0.5 ms",
            "serialise_time": "1 ms",
            "serialise_cost": "0.1 ms",
            "restore_time": "5 ms",
            "restore_cost": "0.1 ms",
        },
        "active_replication": {
            "k": chance.choice((0, 1, 2)),
            "copy_time": "20 ms",
            "copy_bandwidth": "10 KiB/s",
        },
        "aligned_snapshots": {
            "checkpoint_interval": chance.choice(("2 s", "3.1 s")),
            "min_pause": chance.choice(("0 s", "0.5 s")),
            "snapshot_time": "5 ms",
            "snapshot_cost": "0.1 ms",
            "upload_time": chance.choice(("0 s", "30 ms")),
            "restore_time": "10 ms",
        },
        "micro_batch": {
            "trigger_interval": chance.choice(("0 s", "0.5 s", "1 s")),
            "recovery": chance.choice(("checkpoint", "checkpoint", "replay")),
            "output_mode": chance.choice(("append", "update")),
            "plan_time": "10 ms",
            "task_time": "20 ms",
            "state_time": "5 ms",
            "commit_time": "10 ms",
            "reload_time": "50 ms",
            "recovery_time": "300 ms",
            "executor_cold": "100 ms",
        },
    }
    given = {name: value for name, value in settings[kind].items() if value is not None}
    return {"kind": kind, **given}


def _failures(strategy: str, fault: str, chance: random.Random) -> list[dict[str, Any]]:
    if fault == "quiet":
        return []
    component = {"source_replay": "acker", "micro_batch": "driver"}.get(strategy, "words")
    downtime = {"detection": chance.choice(("0 s", "0.7 s")), "restart": chance.choice(("0 s", "0.9 s"))}
    hold = {"while_down": chance.choice(("drop", "hold"))}
    at = {"at": f"{12 + chance.randrange(6000) / 1000} s"}
    hit = {"component": chance.choice(("split", "count", "count"))}
    if fault == "pause":
        return [{"kind": "pause", "duration": "1.2 s"} | at | hit]
    if fault == "crash_host":
        return [{"kind": "crash_host", "host": chance.randrange(3)} | at | downtime | hold]
    if fault == "special":
        return [{"kind": "crash_task", "component": component} | at | downtime]
    if fault == "two":
        second = {"kind": chance.choice(("lose_state", "crash_task")), "component": "split"} | downtime | hold
        return [
            {"kind": "crash_task"} | at | hit | downtime | hold,
            second | {"at": f"{18 + chance.randrange(2000) / 1000} s"},
        ]
    return [{"kind": fault} | at | hit | downtime | hold]


def scenarios() -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Name and content of every scenario; a built-in one has no content of its own."""
    for name in BUILT_IN:
        yield name, None
    for strategy in STRATEGIES:
        for fault in FAULTS:
            for number in range(ROUNDS):
                yield f"{strategy}-{fault}-{number}", made_up(strategy, fault, number)


def printed(source: str, settings: tuple[str, ...]) -> str:
    """What ``run --json`` prints for one scenario, and its exit code."""
    from tideover.cli.app import main

    out, err = StringIO(), StringIO()
    more = [part for setting in settings for part in ("--set", setting)]
    argv, code = sys.argv, 0
    sys.argv = ["tideover", "run", source, "--json", *more]
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    finally:
        sys.argv = argv
    return out.getvalue() + (err.getvalue() if code else "") + f"exit code {code}\n"


def _one(job: tuple[str, str]) -> tuple[str, str]:
    name, source = job
    return name, printed(source, SHORTER.get(name, ()))


def _all(jobs: list[tuple[str, str]], processes: int) -> Iterator[tuple[str, str]]:
    if processes == 1:
        yield from map(_one, jobs)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(_one, jobs, chunksize=8)


def record(folder: Path, processes: int) -> int:
    """Write the scenario files and what each prints."""
    folder.mkdir(parents=True, exist_ok=True)
    jobs = []
    for name, content in scenarios():
        file = folder / f"{name}.yaml"
        if content is not None:
            file.write_text(json.dumps(content, indent=1))
        jobs.append((name, name if content is None else str(file)))
    for name, text in _all(jobs, processes):
        (folder / f"{name}.json").write_text(text)
    print(f"{len(jobs)} scenarios recorded in {folder}")
    return 0


def compare(folder: Path, processes: int, only: str) -> int:
    """Run the recorded scenarios again; say which differ, and where."""
    names = sorted(file.stem for file in folder.glob("*.json") if only in file.stem)
    files = {name: folder / f"{name}.yaml" for name in names}
    jobs = [(name, str(file) if file.exists() else name) for name, file in files.items()]
    differ = 0
    for name, text in _all(jobs, processes):
        before = (folder / f"{name}.json").read_text()
        if text != before:
            differ += 1
            lines = difflib.unified_diff(
                before.splitlines(), text.splitlines(), name, "now", n=0, lineterm=""
            )
            print("\n".join(list(lines)[:14]))
    print(f"{len(names) - differ} of {len(names)} scenarios print the same")
    return 1 if differ or not names else 0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Compare the results of two versions byte by byte.")
    parser.add_argument("what", choices=("record", "compare"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", default="", help="compare the scenarios with this in their name")
    chosen = parser.parse_args()
    if chosen.what == "record":
        return record(chosen.folder, chosen.processes)
    return compare(chosen.folder, chosen.processes, chosen.only)


if __name__ == "__main__":
    sys.exit(main())
