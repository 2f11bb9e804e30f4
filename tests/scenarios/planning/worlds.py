"""Worlds whose answers are known: figures of a run as functions of what was chosen, with noise."""

import hashlib
import math

import numpy as np

from tideover.scenarios.planning.search import ASK, tables

BASE = {
    "name": "a small job",
    "topology": {
        "source": {"spout": "values", "values": [1], "repeat": True, "rate": "10/s"},
        "work": {
            "bolt": "windowed_count",
            "window": {"length": "2 s", "trigger": "marker"},
            "from": {"source": "shuffle"},
            "service": "20 ms",
        },
    },
    "strategy": {"kind": "aligned_snapshots", "checkpoint_interval": "5 s", "snapshot_time": "50 ms"},
    "strategies": {"none": {}, "active_replication": {"k": 1}},
    "failures": [{"kind": "lose_state", "at": "20 s", "within": "5 s", "component": "work"}],
    "run": {"duration": "40 s", "warmup": "5 s", "seed": 1},
}
MONTH_S = 730 * 3600.0
DURATION_S = 40.0


def asked(
    choices: dict[str, object], *objectives: str, replications: tuple[int, int], **more: object
) -> dict[str, object]:
    """A plan for the small job. ``objectives``: beside that no root is lost; ``more``: other keys."""
    search = {"replications": {"least": replications[0], "most": replications[1]}}
    lossless = {"objectives": [*objectives, "lost = 0"]}
    return {"scenario": BASE} | lossless | {"choices": choices, "search": search} | more


def seconds(text: str) -> float:
    """Of ``8.165 s`` or ``250 ms``."""
    number, unit = text.split()
    return float(number) * {"s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0, "h": 3600.0}[unit]


def noise(replication: int, *what: object) -> float:
    """A normal number of its own for each replication and whatever else is named."""
    digest = hashlib.sha256(repr((replication, what)).encode()).digest()
    return float(np.random.default_rng(int.from_bytes(digest[:8], "little")).standard_normal())


class World:
    """An evaluator. ``figures(values, replication, load)``: recovery (s), bytes to the store, p99 latency
    (ms), roots lost; it counts what it is asked for.
    """

    def __init__(self, figures):
        self.figures = figures
        self.rounds = []

    def __call__(self, asks):
        self.rounds.append(list(asks))
        runs, recoveries = [], []
        for number, ask in enumerate(asks):
            for replication in range(ask.first, ask.last + 1):
                found = self.figures(ask.values, replication, ask.load)
                runs.append(
                    {
                        ASK: number,
                        "replication": replication,
                        "error": None,
                        "lost": found.get("lost", 0),
                        "store_bytes": round(found.get("store_bytes", 0)),
                        "network_bytes": 0,
                        "latency_p99_ms": found.get("p99", 1.0),
                    }
                )
                recoveries.append(
                    {
                        ASK: number,
                        "replication": replication,
                        "kind": "lose_state",
                        "time_to_recover_s": found["recovery"],
                        "ended": "recovered with loss" if found.get("lost") else "recovered",
                    }
                )
        return tables(runs, recoveries)

    @property
    def runs(self):
        return sum(ask.runs for asks in self.rounds for ask in asks if ask.load == 1)


def bytes_that_cost(price: float, per_gb: float = 1.0) -> float:
    """So many bytes in a run cost so much a month."""
    return price / per_gb * 1e9 * DURATION_S / MONTH_S


def recovery_that_is_down(part: float, mtbf_s: float) -> float:
    """A recovery time with which so great a part of the time is down."""
    return -math.log(1 - part) * mtbf_s
