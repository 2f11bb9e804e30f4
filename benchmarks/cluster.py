"""(g) A cluster: 100 hosts, 400 tasks, 1,000,000 tuples/s, and a host that crashes; with cards and without.

Each in a process of its own, for its memory. Time is that of the processor: one core's, whoever else is busy.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.memory import peak_mb
from benchmarks.table import Row
from benchmarks.worlds import bolt
from tideover.models.accounts.usage import SAMPLES
from tideover.models.config import Scenario
from tideover.models.job.arrivals import Poisson
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import Links, MachineType, Run, SpoutConfig
from tideover.models.job.spouts import Keys
from tideover.models.strategies.none import Amnesia
from tideover.models.world import World
from tideover.sim.distributions import Constant, Exponential
from tideover.sim.fault_kinds import CrashHost
from tideover.sim.units import US, S

HOSTS = 100
RATE = 1e6
GIGABIT = 125_000_000


def cluster(seconds: float, nic: int | None = GIGABIT) -> Scenario:
    """100 spouts, 100 parsers and 200 counters on 100 hosts, 0.2 ms apart: 30,000 channels; one host crashes
    in the middle. ``nic``: bytes/s of a card each way.
    """
    each = RATE / HOSTS
    topology = {
        "source": SpoutConfig(spout=Keys(keys=10_000), arrivals=Poisson(rate=each), parallelism=HOSTS),
        "parse": bolt("forward", "source", "shuffle", Exponential(mean=round(0.5e9 / each)), HOSTS),
        "count": bolt(
            "windowed_count",
            "parse",
            "fields",
            Exponential(mean=round(1e9 / each)),
            2 * HOSTS,
            window={"length": 5 * S},
        ),
    }
    return Scenario(
        name="cluster",
        topology=topology,
        strategy=Amnesia(),
        hosts=Hosts(machines={"m": MachineType(count=HOSTS, nic=nic)}),
        links=Links(latency=Constant(value=200 * US), local=Constant(value=0), pairs={}),
        failures=(CrashHost(at=round(seconds / 2 * S), host=7, detection=1 * S, restart=2 * S),),
        run=Run(duration=round(seconds * S)),
    )


def measure(seconds: float, nic: int | None) -> None:
    """Run, and print what it took as JSON; it is looked how busy everything is as often with cards as
    without.
    """
    begin = time.process_time()
    world = World(cluster(seconds, nic), judge_windows=False, looks=SAMPLES)
    wired = time.process_time()
    world.run()
    end = time.process_time()
    found = {
        "wired": wired - begin,
        "took": end - begin,
        "peak": peak_mb(),
        "emitted": sum(spout.next_root for spout in world.job.spouts),
        "cards": len(world.job.network.cards),
    }
    print(json.dumps(found))


def rows(quick: bool) -> list[Row]:
    """Time and memory, with cards and without."""
    seconds = 3 if quick else 60
    found: list[Row] = []
    for name, nic in (("cluster", GIGABIT), ("cluster, no cards", 0)):
        one = run_apart(seconds, nic)
        where = f"{one['emitted']:,} roots, {one['cards']} cards, {seconds} simulated seconds, one host crash"
        found += [
            Row(name, where, one["took"], 60, False, "CPU seconds", "one core, 30,000 channels"),
            Row(f"{name}, memory", where, one["peak"], 1500, False, "peak RSS, MB", ""),
        ]
    return found


def run_apart(seconds: float, nic: int) -> dict[str, float]:
    """What ``measure`` finds in a process of its own; ``nic``: 0 is none."""
    root = Path(__file__).resolve().parent.parent
    command = [sys.executable, "-m", "benchmarks.cluster", str(seconds), str(nic)]
    done = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    measure(float(sys.argv[1]), int(sys.argv[2]) or None)
