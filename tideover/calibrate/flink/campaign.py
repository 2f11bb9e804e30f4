"""Sessions on Flink: ``tideover calibrate --engine flink`` calls ``run``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from tideover.calibrate.episodes import Progress
from tideover.calibrate.flink import cluster
from tideover.calibrate.flink.plan import OVERHEAD_S, Episode, Plan, SessionPlan
from tideover.calibrate.flink.supervisor import Supervisor
from tideover.calibrate.flink.tables import TABLES, described, tables
from tideover.calibrate.real import sessions
from tideover.calibrate.real.processes import Registry
from tideover.scenarios.java import Java

NEEDED_BYTES = 3 * 2**30
"""Free memory for a JobManager and three TaskManagers, of which one is ending."""


def _carry_out(
    session: SessionPlan, directory: Path, registry: Registry, java: Java, tell: Callable[[float], None]
) -> None:
    job = directory / "job.jar"
    cluster.build_job(java, job)
    Supervisor(session, directory, registry, java, job, tell).run()


def _fault(episode: Episode) -> str:
    return f"TaskManager {episode.victim} killed"


ENGINE = sessions.Engine(
    needed_bytes=NEEDED_BYTES,
    overhead_s=OVERHEAD_S,
    columns=TABLES,
    carry_out=_carry_out,
    tables=tables,
    described=described,
    fault=_fault,
    litter=("out-*.csv", "*_LOG*", "job.jar", "go"),
)


def run(plan: Plan, out: Path, progress: Progress = lambda fraction, text: None) -> dict[str, pd.DataFrame]:
    """Carry a plan out on Flink; see `sessions.run`. Raises NotPossible if Flink is not installed, too."""
    cluster.jars()
    return sessions.run(ENGINE, plan, out, progress)
