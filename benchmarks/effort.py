"""How long runs are said to take, and how long they took: every built-in scenario, every example, the word
count under each strategy, and what goes in one order of events.

``python -m benchmarks.effort`` prints CPU seconds of one replication; with ``--fit`` also the table of costs
that would fit them best, for `tideover/models/effort.py`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np

from benchmarks.table import Row
from tideover.api import compared
from tideover.models.config import Scenario
from tideover.models.effort import COSTS, Effort, effort, slowness
from tideover.models.evaluation import undisturbed
from tideover.models.simulation import simulate
from tideover.scenarios import library
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load, load_text
from tideover.scenarios.plugins import load_file

EXAMPLES = Path(__file__).parent.parent / "examples"
PLUGINS = ("approximate_backup.py", "running_distinct.py", "warm_standby.py")

CHAIN = """\
topology:
  s: {{spout: keys, keys: 1000, parallelism: 4, rate: 500/s, tuple_size: 1 kB}}
  a: {{bolt: forward, from: {{s: shuffle}}, service: 1 ms, parallelism: {tasks}}}
  b: {{bolt: forward, from: {{a: shuffle}}, service: 1 ms, parallelism: {tasks}}}
  c: {{bolt: windowed_count, from: {{b: {{fields: [key]}}}}, service: 1 ms, parallelism: {tasks},
      window: 5 s}}
strategy: none
hosts: {{machines: {{m: {{count: 4, cores: 2}}}}}}
run: {{duration: 1 s, seed: 1}}
"""
CARDS = "hosts.machines.m.nic=1 Gbit/s"
SNAPSHOTS = "strategy={kind: aligned_snapshots, checkpoint_interval: 500 ms, unaligned: true}"
CHAINS: dict[str, tuple[int, tuple[str, ...]]] = {
    "cores shared by levels": (8, ()),
    "the same, overloaded": (8, ("hosts.machines.m.count=2",)),
    "queues of 50 and shared cores, 8 tasks": (8, ("queues=50",)),
    "the same, 32 tasks": (32, ("queues=50",)),
    "queues of 1, credits, cards and cores": (16, ("queues={length: 1, when_full: credits}", CARDS)),
    "the same, with snapshots": (8, ("queues={length: 1, when_full: credits}", CARDS, SNAPSHOTS)),
}
"""Tasks of each bolt, and settings."""


@dataclass(frozen=True)
class Timed:
    """A run that was made: CPU seconds, as on the machine of the table of costs."""

    name: str
    effort: Effort
    seconds: float

    @property
    def ratio(self) -> float:
        """Of what was said and what it took."""
        return self.effort.seconds / self.seconds

    @property
    def wrong_by(self) -> float:
        """The same, or what is one through it: at least 1."""
        return max(self.ratio, 1 / self.ratio)


def scenarios() -> Iterator[tuple[str, Scenario]]:
    """All that are timed."""
    for name in PLUGINS:
        load_file(EXAMPLES / name)
    for name in (*library.names(), *sorted(map(str, EXAMPLES.glob("*.yaml")))):
        try:
            yield Path(name).name, load(name)
        except ScenarioError:  # a sweep or a plan
            continue
    for kind, one in compared("wordcount").items():
        yield f"wordcount, {kind}", one
    for name, (tasks, settings) in CHAINS.items():
        yield name, load_text(CHAIN.format(tasks=tasks), settings=settings)


def timed(name: str, scenario: Scenario, times: int = 2) -> Timed:
    """The quickest of so many replications, each with a run without failures of its own."""
    took = []
    for number in range(times):
        undisturbed.forget()
        begun = time.process_time()
        simulate(scenario, number)
        took.append(time.process_time() - begun)
    return Timed(name, effort(scenario), min(took) / slowness())


def fitted(runs: list[Timed]) -> dict[str, float]:
    """The costs that are wrong by the least factors, great ones counting most."""
    from scipy.optimize import least_squares

    todo = np.array([astuple(one.effort) for one in runs])
    took = np.array([one.seconds for one in runs])
    names = [field.name for field in fields(Effort)]
    first = np.log([COSTS[name] for name in names])

    def wrong(costs: np.ndarray) -> np.ndarray:
        return np.log(todo @ np.exp(costs) / took) ** 3

    found = least_squares(wrong, first, bounds=(first - 2, first + 2)).x
    return {name: float(f"{cost:.2g}") for name, cost in zip(names, np.exp(found), strict=True)}


def rows(quick: bool) -> list[Row]:
    """The greatest factor by which one is wrong."""
    runs = [timed(name, one, 1 if quick else 2) for name, one in scenarios()]
    worst = max(runs, key=lambda one: one.wrong_by)
    figure = f"{worst.effort.seconds:.3g} s for {worst.seconds:.3g} s"
    return [Row("estimates of CPU time", figure, worst.wrong_by, 2, False, worst.name)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.effort", description=__doc__)
    parser.add_argument("--fit", action="store_true", help="print the costs that fit best, too")
    asked = parser.parse_args()
    runs = []
    print(f"{'scenario':40s} {'estimated':>10s} {'measured':>10s}  ratio, and what it goes into")
    for name, scenario in scenarios():
        one = timed(name, scenario)
        runs.append(one)
        most = max(one.effort.parts, key=one.effort.parts.__getitem__)
        print(f"{name:40s} {one.effort.seconds:8.3f} s {one.seconds:8.3f} s  {one.ratio:5.2f}  {most}")
    print(
        f"worst: wrong by a factor of {max(one.wrong_by for one in runs):.2f}; this machine: {slowness():.2f}"
    )
    if asked.fit:
        print(fitted(runs))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
