"""Studies on which something is fitted: what is left out is predicted, and judged by its aim."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.cli_worlds import SATURATED
from tideover.calibrate.recoveries import catch_up
from tideover.reports.calibration import recoveries
from tideover.reports.calibration.recoveries import Aim

EXAMPLES = Path(__file__).parents[2] / "examples"


def errors(*rows: tuple[str, str, str, float, float]) -> pd.DataFrame:
    """Workload, model, kind, mean error, and the same in seconds; nine of ten in their intervals."""
    columns = ("workload", "model", "kind", "mean_error", "mean_error_s")
    same = {"n": 10, "median_error": 0.0, "worst_error": 0.5, "coverage": 0.9, "mean_width": 0.25}
    return pd.DataFrame([dict(zip(columns, row, strict=True)) | same for row in rows])


def test_each_quantity_is_judged_by_its_own_aim() -> None:
    """Seconds where the aim has seconds, else the ratio; what has no aim is not judged. The plain law, and
    what the fit has seen, are left out.
    """
    table = errors(
        ("A", "mechanism", "fit", 0.01, 0.1),
        ("A", "mechanism", "leave_one_out", 0.12, 9.0),
        ("A", "fluid", "leave_one_out", 0.01, 0.1),
        ("A", "mechanism", "outage_end", 0.01, 2.1),
        ("B", "mechanism", "leave_one_out", 0.121, 9.0),
        ("B", "mechanism", "other", 0.9, 9.0),
    )
    kinds = {"leave_one_out": "latency", "outage_end": "outage", "other": "other"}
    found = recoveries.left_out_rows(
        table, kinds, {("", "latency"): Aim(0.12), ("A", "outage"): Aim(2.0, "s")}
    )
    assert [(row["workload"], row["quantity"], row["verdict"]) for row in found] == [
        ("A", "latency", "predicted"),
        ("A", "outage", "failed"),
        ("B", "latency", "failed"),
        ("B", "other", "no aim"),
    ]
    assert recoveries.left_out_verdict(found) == (
        "1 of 3 quantities are predicted within their aims; not A, outage; not B, latency."
    )
    shown = recoveries.left_out_table(found, "Left out").rows
    assert shown[0][3:] == ("9.0", "12 %", "50 %", "9 (90 %)", "25 %", "12 %", "predicted")
    assert [row[8] for row in shown] == ["12 %", "2 s", "12 %", "–"]


def test_a_loss_is_noticed_between_the_timeout_and_an_interval_before() -> None:
    """20 s after the last heartbeat, which is up to 5 s old: losses are noticed in [15, 20] s; with a timeout
    of 30 s in [25, 30] s, which is not what was published.
    """
    few = ("run.replications=3",)
    mean, least, most = (row["simulated_s"] for row in recoveries.detection_rows(few))
    assert 15 <= least < mean < most <= 20
    late = recoveries.detection_rows((*few, "heartbeat_timeout=30s"))
    assert {row["verdict"] for row in late} == {"failed"}
    assert min(row["simulated_s"] for row in late) >= 25


@pytest.mark.long
def test_recoveries_of_profiling_runs_are_a_row_of_their_own(
    tideover: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A third of the settings left out; nobody has set an aim for them. Of 14 that ended, fewer than 8 in
    their 90 % intervals would come once in 10,000 times.
    """
    monkeypatch.setattr(catch_up.fits, "__defaults__", (1, 100))
    given = ("--from", EXAMPLES / "profiling.csv", "--set", "run.replications=2")
    code, printed, _ = tideover("reproduce", "demeter", *given, "--json")
    assert code == 0
    capacity, recovery = json.loads(printed)["left_out"]
    assert capacity["quantity"] == "capacity"
    assert (recovery["quantity"], recovery["points"]) == ("recovery in profiling runs", 14)
    assert recovery["verdict"] == "no aim"
    assert recovery["coverage"] * 14 >= 8


def test_capacities_that_are_left_out_are_predicted(tideover: Any, tmp_path: Path) -> None:
    """Runs that scatter by 5 % are predicted within a few percent; on one page with the detection."""
    (tmp_path / "made.csv").write_text(SATURATED)
    given = ("--from", tmp_path / "made.csv", "--set", "run.replications=2")
    code, printed, _ = tideover("reproduce", "demeter", *given, "--json", "--out", tmp_path / "out")
    assert code == 0
    record = json.loads(printed)
    (row,) = record["left_out"]
    assert (row["workload"], row["quantity"], row["points"]) == ("made", "capacity", 12)
    assert row["verdict"] == "predicted"
    assert 0.01 < row["mean_error"] < 0.08
    assert len(record["detection"]) == 3
    assert set(record["fits"]) == {"made.csv"}
    page = (tmp_path / "out" / "report.html").read_text()
    assert "1 of 1 quantities are predicted within their aims." in page
    assert "Left out and predicted: made.csv" in page
