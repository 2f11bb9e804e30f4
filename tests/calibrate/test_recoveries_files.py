"""Files of recoveries come from anywhere: what cannot be used is refused, the rest is warned of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tideover.calibrate.recoveries.measurements import COLUMNS, MOST, read
from tideover.scenarios.errors import ScenarioError

ROWS = ("30,600,78.1", "30,1800,102.3", "90,600,87.4", "90,1800,140.2", "90,2700,260")
GOOD = "\n".join((",".join(COLUMNS), *(f"mine,{row}" for row in ROWS))) + "\n"
OTHER = "\n".join(f"Mine,{row}" for row in ROWS) + "\n"

# What is replaced in the good file, by what; line, column, part of the message.
BROKEN = [
    ("recovery_s", "recovery", 1, "recovery_s", "is missing; the columns are"),
    ("mine,30,600", "mine,30,-600", 2, "rate_per_s", "must be a number above 0, not '-600'"),
    ("mine,30,600", "mine,,600", 2, "checkpoint_interval_s", "must be a number above 0, not ''"),
    ("mine,30,600", "mine,nan,600", 2, "checkpoint_interval_s", "must be a number above 0, not 'nan'"),
    (
        "mine,30,600",
        "mine,1e300,600",
        2,
        "checkpoint_interval_s",
        "must be from 0.001 to 86,400, not '1e300'",
    ),
    ("mine,30,600", "mine,30,1e300", 2, "rate_per_s", "must be from 0.01 to 10,000,000, not '1e300'"),
    ("78.1", "1e-300", 2, "recovery_s", "must be from 0.1 to 36,000, not '1e-300'"),
    ("78.1", "1e400", 2, "recovery_s", "must be a number above 0, not '1e400'"),
    ("mine,30,600", "../mine,30,600", 2, "workload", "cannot be the name of a file"),
    ("mine,30,600", "other,30,600", 2, "workload", "other has 1 point; at least 5"),
    ("mine,30,600", "mine,30,600,7", 2, "(row)", "has 5 cells; the first line has 4"),
    ("mine,30,600", 'mine,30,"\n600\n\n",7', 2, "(row)", "has 5 cells; the first line has 4"),
    ("mine,90,600", "mine,\x0090,600", 4, "(row)", "holds the control character"),
    ("mine,90,600", "m" * 140_000 + ",90,600", 4, "(row)", "is no row of a CSV file: field larger than"),
    (GOOD, "", 1, "(file)", "has none of the columns"),
    (GOOD, ",".join(COLUMNS), 1, "(file)", "has no measurement"),
    (GOOD, GOOD[: GOOD.index("mine,30,1800")], 2, "workload", "mine has 1 point; at least 5"),
    (
        GOOD,
        GOOD.replace("1800", "600").replace("2700", "600"),
        2,
        "workload",
        "5 points, all at one rate; at",
    ),
    (GOOD, GOOD + "mine,30,700,80\n" * MOST, 2, "workload", f"has {MOST + 5} points; at most {MOST}"),
    (GOOD, GOOD.replace("workload", "rate_per_s,workload"), 1, "rate_per_s", "is the name of two columns"),
    (GOOD, GOOD + OTHER, 7, "workload", "Mine and mine differ only in case"),
]


@pytest.mark.parametrize(("old", "new", "line", "column", "says"), BROKEN)
def test_broken_files(
    tmp_path: Path, old: str, new: str, line: int, column: str, says: str, tideover_command: Any
) -> None:
    """Nothing is written either: neither a result nor the directory for it."""
    path, out = tmp_path / "a.csv", tmp_path / "out"
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(ScenarioError) as caught:
        read(path)
    assert f"{path}:{line}: {column}: " in str(caught.value)
    assert says in str(caught.value)
    code, _, err = tideover_command("calibrate", "--from", path, "--out", out)
    assert code == 2
    assert "Traceback" not in err
    assert not out.exists()


def test_files_that_cannot_be_read(tmp_path: Path, tideover_command: Any) -> None:
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "c.csv").write_text(GOOD, encoding="utf-16")
    (tmp_path / "d.csv").write_text(GOOD, encoding="utf-16-le")
    broken = {
        ".": "is a directory",
        "a.csv": "does not exist",
        "b.csv": "UTF-8",
        "c.csv": "UTF-8",
        "d.csv": "UTF-8",
    }
    for name, says in broken.items():
        code, _, err = tideover_command("calibrate", "--from", tmp_path / name)
        assert code == 2
        assert says in err


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_what_other_programs_write_is_read(tmp_path: Path, encoding: str, end: str) -> None:
    """Quotes, blanks, empty lines, a mark of the byte order, other columns, any end of a line."""
    (tmp_path / "good.csv").write_text(GOOD)
    path = tmp_path / "a.csv"
    header, first, *others = GOOD.splitlines()
    first = first.replace("mine,30", '" mine ", 30').replace("78.1", "7.81e1")
    lines = [f"{header},note", f'{first},"a, b"', "", ",,,,", *(f"{line}," for line in others), ""]
    path.write_bytes(end.join(lines).encode(encoding))
    found, wanted = read(path).workloads["mine"], read(tmp_path / "good.csv").workloads["mine"]
    assert found.recovery.tolist() == wanted.recovery.tolist()
    assert found.interval.tolist() == wanted.interval.tolist()
    assert read(path).remarks == ()


def test_the_command_warns_of_what_such_data_cannot_say(tmp_path: Path, tideover_command: Any) -> None:
    """One interval only, and a row that is there twice: on the terminal, in JSON and on the page."""
    path, out = tmp_path / "a.csv", tmp_path / "out"
    path.write_text(GOOD.replace("90,", "30,").replace("30,1800,140.2", "30,600,78.1"))
    wanted = read(path).remarks
    assert len(wanted) == 2
    assert "a.csv:5: says the same as line 2" in wanted[0]
    assert "an interval of 30 s" in wanted[1]
    code, told, err = tideover_command("calibrate", "--from", path, "--out", out, "--json")
    assert code == 0
    assert json.loads(told)["warnings"] == list(wanted)
    page = (out / "report.html").read_text()
    for text in wanted:
        assert f"Warning: {text}" in err
        assert text[:60] in page
