"""Sessions on PySpark: ``tideover calibrate`` calls ``run``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from tideover.calibrate.episodes import Progress
from tideover.calibrate.real import sessions
from tideover.calibrate.real.plan import OVERHEAD_S, Episode, Plan, SessionPlan
from tideover.calibrate.real.processes import Registry
from tideover.calibrate.real.supervisor import NEEDED_BYTES, Supervisor
from tideover.calibrate.real.tables import TABLES, described, tables
from tideover.scenarios.java import Java


def _carry_out(
    session: SessionPlan, directory: Path, registry: Registry, java: Java, tell: Callable[[float], None]
) -> None:
    Supervisor(session, directory, registry, java, tell).run()


def _fault(episode: Episode) -> str:
    return episode.fault.kind.replace("_", " ") if episode.fault else ""


ENGINE = sessions.Engine(
    needed_bytes=NEEDED_BYTES,
    overhead_s=OVERHEAD_S,
    columns=TABLES,
    carry_out=_carry_out,
    tables=tables,
    described=described,
    fault=_fault,
    litter=("checkpoints", "spark-events", "sink/batches"),
)


def run(plan: Plan, out: Path, progress: Progress = lambda fraction, text: None) -> dict[str, pd.DataFrame]:
    """Carry a plan out on PySpark; see `sessions.run`."""
    return sessions.run(ENGINE, plan, out, progress)
