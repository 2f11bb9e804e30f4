"""What an expert would remark about failures that a run had not recovered from when it ended: why not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tideover.models.advice.loads import overloaded
from tideover.models.config import Scenario
from tideover.models.evaluation.normal import SLACK
from tideover.models.simulation import Replication
from tideover.sim.units import format_duration

STEADY = 0.03
"""A backlog that falls by less than this part of its excess, from one third of the time to the next, has
settled.
"""


def waits(replication: Replication, row: Mapping[str, Any]) -> bool:
    """Whether a failure is not caught up with, and more is queued at the end than would be without it."""
    if row["catch_up_s"] is not None or not replication.timeline:
        return False
    last = replication.timeline[-1]
    return bool(last["backlog"] > SLACK * last["backlog_without_failures"])


def remarks(scenario: Scenario, replications: Sequence[Replication]) -> list[str]:
    """One sentence, on the earliest failure of those that are the last of their runs and not recovered
    from.
    """
    ends = [(r.recoveries[-1], r) for r in replications if r.recoveries]
    ends = [(row, r) for row, r in ends if row["time_to_recover_s"] is None]
    if not ends:
        return []
    row, replication = min(ends, key=lambda end: float(end[0]["failed_at_s"]))
    end = format_duration(scenario.run.duration)
    return [f"failure at {row['failed_at_s']:g} s: {_why(scenario, replication, row, end)}"]


def _why(scenario: Scenario, replication: Replication, row: Mapping[str, Any], end: str) -> str:
    longer = f"try run.duration={format_duration(2 * scenario.run.duration).replace(' ', '')}"
    if row["catch_up_s"] is not None:
        wrong = "a state lacks something or has it twice" if _state(row) else "windows come out wrong"
        return f"caught up with, but {wrong} to the end of the run ({end})"
    if overloaded(scenario):
        return (
            f"its backlog is not gone at the end of the run ({end}); at this rate it never is, however long "
            "run.duration is"
        )
    if not waits(replication, row):
        return f"whether it is over is not known at the end of the run ({end}); {longer}"
    last = replication.timeline[-1]
    if _settled(replication, float(row["failed_at_s"])):
        return (
            f"its backlog stays at {last['backlog']:,}, and would be {last['backlog_without_failures']:,} "
            "without failures: the job goes on more slowly, which is not called recovered"
        )
    return f"its backlog is not gone at the end of the run ({end}); it takes longer, or never ends; {longer}"


def _state(row: Mapping[str, Any]) -> bool:
    return bool(row["missing"] or row["extra"])


def _settled(replication: Replication, since: float) -> bool:
    """Whether the backlog gets no less: the peak of what it has more than it would have, in the last third of
    the time since that was greatest, beside the peak in the third before.
    """
    rows = [row for row in replication.timeline if row["second"] >= since]
    excess = np.array([row["backlog"] - row["backlog_without_failures"] for row in rows], float)
    third = (len(excess) - int(np.argmax(excess))) // 3 if len(excess) else 0  # it may be struck at the end
    if not third:
        return False
    before, after = excess[-2 * third : -third].max(), excess[-third:].max()
    return bool(after >= (1 - STEADY) * before)
