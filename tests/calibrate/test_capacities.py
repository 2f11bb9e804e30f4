"""Capacities of others: the law is found again, unseen runs are predicted, other files are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tideover.calibrate import capacities
from tideover.calibrate.capacities import NUMBERS, Profiles, fit, is_one, left_out, read
from tideover.reports.columns import CAPACITY_FITS
from tideover.scenarios.errors import ScenarioError

PUBLISHED = Path(__file__).parents[2].parent / "shared" / "published" / "demeter_profile_recoveries.csv"


def lawful(seed: int, scatter: float, n: int = 200) -> Profiles:
    """A core carries 9000/s, slots slow it by the root, and below 512 MB memory does by its 0.7th power."""
    rng = np.random.default_rng(seed)
    cores, sharing = rng.integers(1, 20, n).astype(float), rng.choice([0.5, 1.0, 2.0, 4.0], n)
    memory = rng.choice([128.0, 256.0, 1024.0, 4096.0], n)
    rate = 9000 * cores / np.sqrt(sharing) * np.minimum(memory / 512, 1) ** 0.7
    return Profiles(cores, sharing, memory, rate * np.exp(scatter * rng.standard_normal(n)), np.ones(n, bool))


def test_the_law_is_found_again() -> None:
    law = fit(lawful(1, 0.0))
    assert law.knee == 512
    assert np.exp(law.values[0]) == pytest.approx(9000)
    assert law.values[1:] == pytest.approx([0.5, 0.7])
    two = Profiles(*(np.array([x]) for x in (6.0, 4.0, 256.0, 1.0, 1.0)))
    assert law.capacity(two)[0] == pytest.approx(6 * 9000 / 2 * 0.5**0.7)


def test_intervals_hold_nine_in_ten() -> None:
    """Of 200 runs that scatter by 20 %, each left out; three standard deviations are 6.4 %."""
    runs = lawful(2, 0.2)
    found = left_out(runs)
    inside = (found[:, 1] <= runs.rate) & (runs.rate <= found[:, 2])
    assert inside.mean() == pytest.approx(0.9, abs=0.064)
    assert np.log(found[:, 2] / found[:, 1]).mean() == pytest.approx(2 * 1.645 * 0.2, rel=0.1)


def lines(*saturated: int) -> list[str]:
    """Four slots of 8 make 2 TaskManagers of 3 cores; runs of 1000/s, 2000/s, …"""
    rows = [f"mine,8,3,2048,4,{1000 * (i + 1)},{one}" for i, one in enumerate(saturated)]
    return ["# made up", ",".join(("workload", *NUMBERS)), *rows]


def test_slots_make_task_managers_and_these_have_cores(tmp_path: Path) -> None:
    """The last one is only half used, but it is there."""
    path = tmp_path / "a.csv"
    path.write_text("\n".join([*lines(*[1] * 8), "mine,9,3,2048,4,500,0"]) + "\n")
    assert is_one(path)
    runs = read(path).workloads["mine"]
    assert runs.cores.tolist() == [6.0] * 8 + [9.0]
    assert runs.sharing[0] == pytest.approx(4 / 3)
    assert runs.memory[0] == 512
    assert runs.saturated.tolist() == [True] * 8 + [False]


FIRST = "mine,8,3,2048,4,1000,1"
BROKEN = [
    (FIRST, "mine,8,0,2048,4,1000,1", r"a.csv:3: cpu_per_tm: must be a number above 0, not '0'"),
    (FIRST, "mine,8,3,2048,4,1000,2", r"a.csv:3: saturated: must be from 0 to 1, not '2'"),
    (FIRST, "mine,8,3,2048,4,1000,-1", r"a.csv:3: saturated: must be from 0 to 1, not '-1'"),
    (FIRST, "mine,8,3,2048,4,1000", r"a.csv:3: \(row\): has 6 cells; the first line has 7"),
    (FIRST, "mine,8,3,2048,4,1000,0", r"a.csv:2: saturated: mine has 7 saturated runs; at least 8"),
    ("slots_per_tm", "slots", r"a.csv:2: slots_per_tm: is missing; the columns are workload, parallel"),
]


@pytest.mark.parametrize(("old", "new", "says"), BROKEN)
def test_broken_files(tmp_path: Path, old: str, new: str, says: str, tideover_command: Any) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\n".join(lines(*[1] * 8)).replace(old, new, 1) + "\n")
    with pytest.raises(ScenarioError, match=says):
        read(path)
    code, _, err = tideover_command("calibrate", "--from", path, "--out", tmp_path / "out")
    assert code == 2
    assert "Traceback" not in err
    assert not (tmp_path / "out").exists()


def test_the_command_writes_tables_and_a_page(tmp_path: Path, tideover_command: Any) -> None:
    """As documented, column by column; one run that was not saturated exceeds what the law gives it."""
    runs = lawful(3, 0.1, n=12)
    rows = zip(runs.cores, runs.sharing, runs.memory, runs.rate, strict=True)
    made = [f"mine,{s * c:g},{1},{m * s:g},{s:g},{r:.0f},1" for c, s, m, r in rows if s >= 1]
    path, out = tmp_path / "a.csv", tmp_path / "out"
    path.write_text("\n".join([*lines()[:2], *made, "mine,4,1,2048,4,99999,0"]) + "\n")
    code, told, _ = tideover_command("calibrate", "--from", path, "--out", out, "--json")
    assert code == 0
    errors = json.loads(told)["errors"]
    assert [row["kind"] for row in errors] == ["fit", "leave_one_out"]
    for table, frame in capacities.frames(read(path)).items():
        assert set(frame.columns) <= {column.name for column in CAPACITY_FITS[table]}
    page = (out / "report.html").read_text()
    assert "of 1 runs that were not saturated, 1 had a rate above" in page


@pytest.mark.skipif(not PUBLISHED.exists(), reason="the measurements are not here")
def test_capacities_of_demeter_are_predicted() -> None:
    """Unseen ones within 15 % in the mean, nine in ten within their intervals."""
    for runs in read(PUBLISHED).workloads.values():
        saturated = runs.only(runs.saturated)
        middle, low, high = left_out(saturated).T
        assert np.abs(middle / saturated.rate - 1).mean() < 0.15
        assert 0.85 <= ((low <= saturated.rate) & (saturated.rate <= high)).mean() <= 0.95
