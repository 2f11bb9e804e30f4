"""(d) Peak memory at 100,000 roots/s, window and timeout of 5 s, over ten simulated minutes.

In a process of its own, sampled after each simulated minute.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

from benchmarks.table import Row
from benchmarks.worlds import bolt, heaviest_share, scenario
from tideover.models.config import Scenario
from tideover.models.job.arrivals import Poisson
from tideover.models.job.components import SpoutConfig
from tideover.models.job.spouts import SPOUTS
from tideover.models.strategies.source_replay import SourceReplay
from tideover.models.world import World
from tideover.sim.distributions import Exponential
from tideover.sim.units import S

MINUTE = 60 * S
COLUMNS = (
    "a held tuple keeps its uid (8 bytes; 16 with an attempt, once there are retries), "
    "and a byte in the ledger; its root 41 bytes in the spout's pending map and 21 in the backlog"
)


def word_count_for_memory(rate: float, minutes: int) -> Scenario:
    """Word count under source replay without failures: it holds what window and timeout need."""
    topology = {
        "sentences": SpoutConfig(spout=SPOUTS["sentences"](), arrivals=Poisson(rate=rate)),
        "split": bolt("split_words", "sentences", "shuffle", Exponential(mean=round(2.8e9 / rate)), 4),
        "count": bolt(
            "windowed_count",
            "split",
            "fields",
            Exponential(mean=round(0.7e9 / rate / heaviest_share())),
            8,
            window={"length": 5 * S},
        ),
    }
    replay = SourceReplay(message_timeout=5 * S)
    return scenario("memory", topology, replay, 60 * minutes)


def peak_mb() -> float:
    """Greatest resident size of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def sample(rate: float, minutes: int) -> None:
    """Run, and print the peak after each simulated minute as JSON."""
    before = peak_mb()
    world = World(word_count_for_memory(rate, minutes))
    world.start()
    peaks = []
    for minute in range(1, minutes + 1):
        world.kernel.run(minute * MINUTE)
        peaks.append(peak_mb())
    print(json.dumps({"before": before, "peaks": peaks, "emitted": world.job.spouts[0].next_root}))


def rows(quick: bool) -> list[Row]:
    rate, minutes = (10_000, 2) if quick else (100_000, 10)
    root = Path(__file__).resolve().parent.parent
    command = [sys.executable, "-m", "benchmarks.memory", str(rate), str(minutes)]
    done = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    peaks = found["peaks"]
    where = f"{rate:,} roots/s, {minutes} simulated minutes"
    return [
        Row("memory", where, peaks[-1], 1000, False, "peak RSS, MB", COLUMNS),
        Row(
            "memory, growth",
            "per minute: " + " ".join(f"{p:.0f}" for p in peaks),
            peaks[-1] / peaks[0],
            1.15,
            False,
            "peak / peak after the first minute",
            "what stays of a simulated second is a histogram (about 4 KB) and five series (4 KB)",
        ),
    ]


if __name__ == "__main__":
    sample(float(sys.argv[1]), int(sys.argv[2]))
