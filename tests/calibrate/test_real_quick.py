"""The calibration that a user runs, on this machine: all strategies, both kinds of kills, predictions."""

import pytest

from tideover.cli import main
from tideover.reports.parquet import read_tables

pytestmark = [pytest.mark.long, pytest.mark.spark]


def test_quick_calibration(tmp_path, capsys):
    out = tmp_path / "measured"
    with pytest.raises(SystemExit) as done:
        main(["calibrate", "--quick", "--out", str(out)])
    assert not done.value.code, capsys.readouterr()
    tables = read_tables(out)
    correct = tables["correctness"]
    assert set(correct["strategy"]) == {"micro_batch", "source_replay", "active_replication"}
    assert (correct["exact"] == correct["kills"]).all()
    assert (correct[["missing", "extra", "simulated_lost", "simulated_duplicated"]] == 0).all(axis=None)
    gaps = tables["pairs"].query("measure == 'output_gap_s' and held_out")
    assert set(gaps["strategy"]) == set(correct["strategy"])
    assert gaps["error"].abs().median() < 0.3
    assert (tables["ranking"]["measured_rank"] == tables["ranking"]["simulated_rank"]).all()
    assert sorted(path.name for path in out.glob("*-word-count.yaml")) == [
        "active-replication-word-count.yaml",
        "micro-batch-word-count.yaml",
        "source-replay-word-count.yaml",
    ]
    assert "<svg" in (out / "report.html").read_text(encoding="utf-8")
