"""How long a lost TaskManager goes unnoticed: published and simulated, with nothing fitted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tideover.models.results.result import Result
from tideover.reports import published
from tideover.reports.tables import Table
from tideover.scenarios import runs
from tideover.scenarios.scenario import load

SCENARIO = "demeter-ads"
SETTINGS = ("run.replications=40", "run.duration=160s")
"""Long enough for a loss at 120 s to be noticed."""
COLUMNS = ("heartbeats", "", "published", "simulated", "verdict")


def rows(settings: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Mean, least and greatest, s. The log has whole seconds, so figures agree within one."""
    interval, timeout, *known = published.group("demeter", "detection").rows[0]
    asked = (f"detector.interval={interval}s", f"heartbeat_timeout={timeout}s")
    scenario = load(SCENARIO, [*SETTINGS, *asked, *settings])
    # Its profile has given its values, and would be asked for predictions of other figures.
    found = _noticed(runs.run(scenario.model_copy(update={"profile": None})))
    simulated = (sum(found) / len(found), min(found), max(found))
    return [
        {
            "interval_s": interval,
            "timeout_s": timeout,
            "figure": name,
            "published_s": there,
            "simulated_s": here,
            "verdict": "predicted" if abs(here - there) <= 1 else "failed",
        }
        for name, there, here in zip(("mean", "least", "greatest"), known, simulated, strict=True)
    ]


def _noticed(result: Result) -> list[float]:
    return [float(row["detect_s"]) for row in result.rows("recoveries")]


def table(found: Sequence[dict[str, Any]]) -> Table:
    """As a reader sees them."""
    cells = tuple(
        (
            f"every {row['interval_s']} s, timeout {row['timeout_s']} s",
            row["figure"],
            f"{row['published_s']:g} s",
            f"{row['simulated_s']:.1f} s",
            row["verdict"],
        )
        for row in found
    )
    title = published.group("demeter", "detection").title
    note = "Nothing is fitted: it is the timeout less the age of the last heartbeat."
    return Table(title, COLUMNS, cells, (note,), text_columns=2)
