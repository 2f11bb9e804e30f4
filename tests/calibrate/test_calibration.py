"""What a user is told if the measurements are too little for any fit."""

import sys

import pandas as pd
import pytest

from tests.calibrate import campaigns
from tideover.calibrate.real.supervisor import PRINTED
from tideover.cli import main


def too_slow():
    """Episodes with two settled batches each, and a session that broke off."""
    tables = campaigns.steady("slow", (2000, 5000), lambda rows: 0.3, length=3.0)
    printed = 'Setting Spark log level to "ERROR".'  # as supervisor._failed joins them
    reason = f"session broken: a driver ended by itself.{PRINTED}\n{printed}"
    broken = campaigns.session("broken", schedule="{}", error=reason)
    return tables | {"sessions": pd.concat([tables["sessions"], pd.DataFrame([broken])])}


def test_what_is_too_little_is_named_with_what_to_do(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("tideover.calibrate.real.campaign.run", lambda plan, out, progress: too_slow())
    monkeypatch.setattr(sys, "argv", ["tideover", "calibrate", "--quick", "--out", str(tmp_path / "out")])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (1, "")
    assert [line for line in err.splitlines() if line.strip()] == [
        "tideover: nothing can be fitted: no episode has 3 batches of normal operation.",
        "  slow/0 (with 2000 rows/s): 2",
        "  slow/1 (with 5000 rows/s): 2",
        "  left out: session broken: a driver ended by itself.",
        "The machine is too slow, or has other work to do. Give another --out to measure anew; with the same "
        "one only sessions that failed are tried again.",
    ]
