"""Files of recoveries and of capacities come from anywhere: what cannot be used is refused, or warned of."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tideover.calibrate import capacities
from tideover.calibrate.capacities import NUMBERS, fit, is_one, left_out
from tideover.calibrate.capacities import read as read_capacities
from tideover.calibrate.recoveries.measurements import COLUMNS, MOST, read
from tideover.reports.columns import CAPACITY_FITS
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
def test_broken_files(tmp_path, old, new, line, column, says, tideover):
    """Nothing is written either: neither a result nor the directory for it."""
    path, out = tmp_path / "a.csv", tmp_path / "out"
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(ScenarioError) as caught:
        read(path)
    assert f"{path}:{line}: {column}: " in str(caught.value)
    assert says in str(caught.value)
    code, _, err = tideover("calibrate", "--from", path, "--out", out)
    assert code == 2
    assert "Traceback" not in err
    assert not out.exists()


def test_files_that_cannot_be_read(tmp_path, tideover):
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "c.csv").write_text(GOOD, encoding="utf-16")
    (tmp_path / "d.csv").write_text(GOOD, encoding="utf-16-le")
    broken = {
        ".": "none of its 3 files is of a kind",
        "a.csv": "does not exist",
        "b.csv": "UTF-8",
        "c.csv": "UTF-8",
        "d.csv": "UTF-8",
    }
    for name, says in broken.items():
        code, _, err = tideover("calibrate", "--from", tmp_path / name)
        assert code == 2
        assert says in err


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_what_other_programs_write_is_read(tmp_path, encoding, end):
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


def test_the_command_warns_of_what_such_data_cannot_say(tmp_path, tideover):
    """One interval only, and a row that is there twice: on the terminal, in JSON and on the page."""
    path, out = tmp_path / "a.csv", tmp_path / "out"
    path.write_text(GOOD.replace("90,", "30,").replace("30,1800,140.2", "30,600,78.1"))
    wanted = read(path).remarks
    assert len(wanted) == 2
    assert "a.csv:5: says the same as line 2" in wanted[0]
    assert "an interval of 30 s" in wanted[1]
    code, told, err = tideover("calibrate", "--from", path, "--out", out, "--json")
    assert code == 0
    assert json.loads(told)["warnings"] == list(wanted)
    page = (out / "report.html").read_text()
    for text in wanted:
        assert f"Warning: {text}" in err
        assert text[:60] in page


PUBLISHED = Path(__file__).parents[2].parent / "shared" / "published" / "demeter_profile_recoveries.csv"


def runs_as(*columns: Any) -> pd.DataFrame:
    names = ("cores", "slots_per_core", "memory_per_slot_mb", "rate_per_s", "saturated")
    return pd.DataFrame(dict(zip(names, columns, strict=True)))


def lawful(seed: int, scatter: float, n: int = 200) -> pd.DataFrame:
    """A core carries 9000/s, slots slow it by the root, and below 512 MB memory does by its 0.7th power."""
    rng = np.random.default_rng(seed)
    cores, sharing = rng.integers(1, 20, n).astype(float), rng.choice([0.5, 1.0, 2.0, 4.0], n)
    memory = rng.choice([128.0, 256.0, 1024.0, 4096.0], n)
    rate = 9000 * cores / np.sqrt(sharing) * np.minimum(memory / 512, 1) ** 0.7
    return runs_as(cores, sharing, memory, rate * np.exp(scatter * rng.standard_normal(n)), np.ones(n, bool))


def test_the_law_is_found_again():
    law = fit(lawful(1, 0.0))
    assert law.knee == 512
    assert np.exp(law.values[0]) == pytest.approx(9000)
    assert law.values[1:] == pytest.approx([0.5, 0.7])
    two = runs_as(*([x] for x in (6.0, 4.0, 256.0, 1.0, True)))
    assert law.capacity(two)[0] == pytest.approx(6 * 9000 / 2 * 0.5**0.7)


def test_intervals_hold_nine_in_ten():
    """Of 200 runs that scatter by 20 %, each left out; three standard deviations are 6.4 %."""
    runs = lawful(2, 0.2)
    found = left_out(runs)
    inside = (found[:, 1] <= runs.rate_per_s) & (runs.rate_per_s <= found[:, 2])
    assert inside.mean() == pytest.approx(0.9, abs=0.064)
    assert np.log(found[:, 2] / found[:, 1]).mean() == pytest.approx(2 * 1.645 * 0.2, rel=0.1)


def runs_of(*saturated: int) -> list[str]:
    """Four slots of 8 make 2 TaskManagers of 3 cores; runs of 1000/s, 2000/s, …"""
    rows = [f"mine,8,3,2048,4,{1000 * (i + 1)},{one}" for i, one in enumerate(saturated)]
    return ["# made up", ",".join(("workload", *NUMBERS)), *rows]


def test_slots_make_task_managers_and_these_have_cores(tmp_path):
    """The last one is only half used, but it is there."""
    path = tmp_path / "a.csv"
    path.write_text("\n".join([*runs_of(*[1] * 8), "mine,9,3,2048,4,500,0"]) + "\n")
    assert is_one(path)
    runs = read_capacities(path).workloads["mine"]
    assert runs.cores.tolist() == [6.0] * 8 + [9.0]
    assert runs.slots_per_core[0] == pytest.approx(4 / 3)
    assert runs.memory_per_slot_mb[0] == 512
    assert runs.saturated.tolist() == [True] * 8 + [False]


FIRST = "mine,8,3,2048,4,1000,1"
BROKEN_CAPACITIES = [
    (FIRST, "mine,8,0,2048,4,1000,1", r"a.csv:3: cpu_per_tm: must be a number above 0, not '0'"),
    (FIRST, "mine,8,3,2048,4,1000,2", r"a.csv:3: saturated: must be from 0 to 1, not '2'"),
    (FIRST, "mine,8,3,2048,4,1000,-1", r"a.csv:3: saturated: must be from 0 to 1, not '-1'"),
    (FIRST, "mine,8,3,2048,4,1000", r"a.csv:3: \(row\): has 6 cells; the first line has 7"),
    (FIRST, "mine,8,3,2048,4,1000,0", r"a.csv:2: saturated: mine has 7 saturated runs; at least 8"),
    ("slots_per_tm", "slots", r"a.csv:2: slots_per_tm: is missing; the columns are workload, parallel"),
]


@pytest.mark.parametrize(("old", "new", "says"), BROKEN_CAPACITIES)
def test_broken_capacities(tmp_path, old, new, says, tideover):
    path = tmp_path / "a.csv"
    path.write_text("\n".join(runs_of(*[1] * 8)).replace(old, new, 1) + "\n")
    with pytest.raises(ScenarioError, match=says):
        read_capacities(path)
    code, _, err = tideover("calibrate", "--from", path, "--out", tmp_path / "out")
    assert code == 2
    assert "Traceback" not in err
    assert not (tmp_path / "out").exists()


def test_the_command_writes_tables_and_a_page(tmp_path, tideover):
    """As documented, column by column; one run that was not saturated exceeds what the law gives it."""
    runs = lawful(3, 0.1, n=12)
    rows = runs.drop(columns="saturated").itertuples(index=False)
    made = [f"mine,{s * c:g},{1},{m * s:g},{s:g},{r:.0f},1" for c, s, m, r in rows if s >= 1]
    path, out = tmp_path / "a.csv", tmp_path / "out"
    path.write_text("\n".join([*runs_of()[:2], *made, "mine,4,1,2048,4,99999,0"]) + "\n")
    code, told, _ = tideover("calibrate", "--from", path, "--out", out, "--json")
    assert code == 0
    errors = json.loads(told)["errors"]
    assert [row["kind"] for row in errors] == ["fit", "leave_one_out"]
    for table, frame in capacities.frames(read_capacities(path)).items():
        assert set(frame.columns) <= {column.name for column in CAPACITY_FITS[table]}
    page = (out / "report.html").read_text()
    assert "of 1 runs that were not saturated, 1 had a rate above" in page


@pytest.mark.skipif(not PUBLISHED.exists(), reason="the measurements are not here")
def test_capacities_of_demeter_are_predicted():
    """Unseen ones within 15 % in the mean, nine in ten within their intervals."""
    for runs in read_capacities(PUBLISHED).workloads.values():
        saturated = runs[runs.saturated]
        middle, low, high = left_out(saturated).T
        assert np.abs(middle / saturated.rate_per_s - 1).mean() < 0.15
        assert 0.85 <= ((low <= saturated.rate_per_s) & (saturated.rate_per_s <= high)).mean() <= 0.95
