"""``tideover audit`` on the command line: what it says, and what it refuses."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

QUICK = ("--no-spark", "--no-second", "--each", "1", "--kinds", "lose_state", "--until", "20.02 s")
SHORT = ("--set", "run.duration=42s")


def test_a_strategy_is_audited_and_each_example_can_be_run_again(tideover: Any) -> None:
    code, out, _ = tideover("audit", "none", *QUICK, *SHORT, "--json")
    found = json.loads(out)
    assert (code, found["claimed"], found["observed"]) == (0, "at most once", "at most once")
    example = found["examples"][0]
    assert example["harm"] == "lost"
    _, *command = [one for one in shlex.split(example["replay"]) if one != "--trace"]
    code, again, _ = tideover(*command, "--json")
    assert code == 0
    assert json.loads(again)["ledger"]["lost"] > 0


def test_several_are_audited_at_once(tideover: Any) -> None:
    code, out, _ = tideover("audit", "none,rsm", *QUICK, *SHORT)
    assert code == 0
    rows = [line.split("  ") for line in out.splitlines() if line.startswith(("none (amnesia)  ", "R+SM  "))]
    told = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert told[0][1:5] == ["at most once", "at most once", "–", "all"]
    assert told[1][1:5] == ["exactly once", "exactly once", "–", "all"]
    assert out.startswith("2 of 2 keep their word.\n")
    assert "lost: lose_state of count." not in out  # it is allowed, and the page has it


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["rsmm"], "rsmm: neither a strategy, a file nor a built-in scenario; did you mean 'rsm'?"),
        (["rsm", "--kinds", "crash_tsk"], "--kinds: 'crash_tsk' is not audited; did you mean 'crash_task'?"),
        (["rsm", "--kinds", "slow_link"], "--kinds: 'slow_link' is not audited"),
        (["rsm", "--from", "90 s"], "--from: is not within the run, which ends at 80 s"),
        (["rsm", "--from", "9 s", "--until", "8 s"], "--until: must be after --from"),
        (["rsm", "--restart", "soon"], "--restart: "),
        (["rsm", "--set", "strategy.checkpoint=3s"], "strategy.checkpoint"),
    ],
)
def test_what_cannot_be_audited_is_told(tideover: Any, arguments: list[str], says: str) -> None:
    code, out, err = tideover("audit", *arguments, "--no-spark")
    assert code == 2
    assert says in err
    assert not out
