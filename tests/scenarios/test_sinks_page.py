"""docs/sinks.md says what comes out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.oracle.worlds import MS
from tideover.models.simulation import simulate
from tideover.scenarios.loader import load

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "sinks.md").read_text()
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", PAGE, re.DOTALL)


def test_the_page_prints_what_it_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The block of Python, and the lines below it."""
    monkeypatch.chdir(ROOT)
    at, code = next((i, text) for i, (kind, text) in enumerate(BLOCKS) if kind == "python")
    exec(compile(code, "docs/sinks.md", "exec"), {})
    assert capsys.readouterr().out == BLOCKS[at + 1][1]


def test_the_page_has_the_steps_of_the_example() -> None:
    """Its lines are those of the trace, but for the crash."""
    run = simulate(load(str(ROOT / "examples" / "transactions.yaml")), trace=True)
    assert run.trace is not None
    steps = {f"{step.at / (1000 * MS):.6f} s  {step.text}" for step in run.trace.steps}
    told = [line.strip() for line in BLOCKS[0][1].splitlines()]
    assert [line for line in told if line not in steps] == [told[3]]
