"""The calibration that a user runs, on this machine: all strategies, both kinds of kills, predictions."""

import pytest

from tideover.cli import main
from tideover.reports.parquet import read_tables

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.alone]


def test_quick_calibration(tmp_path, capsys, monkeypatch):
    out = tmp_path / "measured"
    monkeypatch.setattr("sys.argv", ["tideover", "calibrate", "--quick", "--out", str(out)])
    with pytest.raises(SystemExit) as done:
        main()
    assert not done.value.code, capsys.readouterr()
    tables = read_tables(out)
    correct = tables["correctness"]
    assert set(correct["strategy"]) == {"micro_batch", "source_replay", "active_replication"}
    assert (correct["exact"] == correct["kills"]).all()
    assert (correct[["missing", "extra", "simulated_lost", "simulated_duplicated"]] == 0).all(axis=None)
    gaps = tables["pairs"].query("measure == 'output_gap_s' and held_out")
    assert set(gaps["strategy"]) == set(correct["strategy"])
    assert gaps["error"].abs().median() < 0.3
    first = tables["ranking"].query("measured_rank == 1 and fault != 'stop_executor'")
    assert set(first["strategy"]) == {"active_replication"}
    assert (first["simulated_rank"] == 1).all()
    assert sorted(path.name for path in out.glob("*-word-count.yaml")) == [
        "active-replication-word-count.yaml",
        "micro-batch-word-count.yaml",
        "source-replay-word-count.yaml",
    ]
    assert "<svg" in (out / "report.html").read_text(encoding="utf-8")
