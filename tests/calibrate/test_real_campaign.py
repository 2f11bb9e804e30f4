"""Sessions that cannot be carried out: what there is to read afterwards."""

from pathlib import Path

import pytest

from tideover.calibrate.real import campaign
from tideover.calibrate.real.plan import quick
from tideover.calibrate.real.supervisor import SessionFailed
from tideover.calibrate.real.tables import TABLES
from tideover.scenarios.java import Java


class NoSpark:
    """Stands for a supervisor whose drivers do not start."""

    def __init__(self, plan, directory, *rest):
        assert directory.is_absolute()  # Spark's processes work elsewhere
        self.reason = f"session {plan.name}: not ready"

    def run(self):
        raise SessionFailed(self.reason)


@pytest.fixture
def failed(tmp_path, monkeypatch):
    """(plan, directory, tables) of a calibration of which no session begins; the directory is relative."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(campaign, "requirements", list)
    monkeypatch.setattr(campaign, "find_java", lambda: Java(Path("/java"), 17, "PATH"))
    monkeypatch.setattr(campaign, "Supervisor", NoSpark)
    return quick(), Path("measured"), campaign.run(quick(), Path("measured"))


def test_a_session_that_never_began_has_its_reason_in_the_tables(failed):
    plan, _, tables = failed
    assert tables["sessions"].error.tolist() == [f"session {s.name}: not ready" for s in plan.sessions]
    assert tables["sessions"].strategy.tolist() == [s.strategy for s in plan.sessions]
    assert all(tables[name].empty for name in TABLES if name != "sessions")


def test_it_is_not_done_and_its_tables_can_be_read_again(failed):
    plan, out, tables = failed
    assert not any(campaign.is_done(out / "sessions" / s.name, s) for s in plan.sessions)
    again = campaign.collect(plan, out)
    assert all(table.equals(again[name]) for name, table in tables.items())
