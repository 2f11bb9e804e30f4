"""What an expert would remark about runs that are done: what limited them, and timeouts without a cause."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from tideover.models.coarsening import coarseness, finest
from tideover.models.config import Scenario
from tideover.models.job.queues import bounds_of
from tideover.models.simulation import Replication
from tideover.models.strategies.base import given as of_strategy
from tideover.sim.units import S

BUSY = 0.95
"""A task that was busy for so much of its time limits the run."""
LEFT = 0.05
"""So does one for which so much work waits at the end, as a part of the run's length."""


def remarks(scenario: Scenario, replications: Sequence[Replication]) -> list[str]:
    """Remarks, each one sentence; none if there is nothing to remark."""
    return [
        *_lumps(scenario),
        *_limits(scenario, replications),
        *_false_timeouts(scenario, replications),
        *_late(replications),
        *_wrong_anyway(replications),
    ]


def _lumps(scenario: Scenario) -> list[str]:
    """A remark on what is not told where a simulated tuple stands for several."""
    lump = coarseness(scenario)
    if lump == 1:
        return []
    return [
        f"a simulated tuple stands for {lump:,} (run.lump, run.lump_rate): of latencies under about "
        f"{finest(scenario, lump) / S:.2g} s nothing can be told, and they are left out; for these make a "
        "run without lumps, which may be short"
    ]


def _limits(scenario: Scenario, replications: Sequence[Replication]) -> list[str]:
    """A remark on the task that had most to do for its time, in the replication where that was most."""
    seconds = scenario.run.duration / S
    rows = [row for r in replications for row in r.tasks if row["utilisation"] is not None]
    bounds = bounds_of(scenario.topology, scenario.queues)
    # where queues have bounds, what waits for a task may wait for the one behind it
    left = inf if any(bound.length is not None for bound in bounds.values()) else LEFT * seconds
    over = [row for row in rows if row["utilisation"] >= BUSY or row["queued_s"] >= left]
    if not over:
        return []
    most = max(over, key=lambda row: (row["queued_s"], row["utilisation"]))
    others = len({row["task"] for row in over} - {most["task"]})
    also = f", as {others} other{'s' if others > 1 else ''} did" if others else ""
    waits = f", and {most['queued']:,} tuples, {most['queued_s']:.3g} s of work, wait for it at the end"
    return [
        f"{most['task']} limited the run{also}: it was busy {100 * most['utilisation']:.0f} % of the time in "
        f"which it was up{waits if most['queued'] else ''}"
    ]


def _false_timeouts(scenario: Scenario, replications: Sequence[Replication]) -> list[str]:
    """A remark if roots were emitted again of which no failure had destroyed anything."""
    count, emitted = (sum(r.ledger[name] for r in replications) for name in ("false_timeouts", "emitted"))
    if not count:
        return []
    timeouts = of_strategy(scenario.strategy, scenario.strategy.gives_up)
    said = "".join(f" (strategy.{key} is {timeout / S:g} s)" for key, timeout in timeouts.items())
    return [
        f"false timeouts: {count:,} of {emitted:,} roots: nothing of them was lost, but they waited so long "
        f"that they were emitted again{said}, which makes others wait"
    ]


def _late(replications: Sequence[Replication]) -> list[str]:
    """A remark if tuples came too late for windows by event."""
    late, emitted = (sum(r.ledger[name] for r in replications) for name in ("late", "emitted"))
    if not late:
        return []
    return [
        f"late: {late:,} of {emitted:,} roots ({100 * late / emitted:.2g} %) came too late for a window by "
        "event; a longer window.lag waits for more of them, and puts windows out later by as much"
    ]


def _wrong_anyway(replications: Sequence[Replication]) -> list[str]:
    """A remark if windows are wrong without any failure: recoveries are judged against that."""
    wrong = sum(r.wrong_without for r in replications)
    if not wrong:
        return []
    return [
        f"windows: {wrong:,} are wrong or missing without any failure, too: a time to recover says when all "
        "is as bad as it would have been"
    ]
