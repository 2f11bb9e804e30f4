"""README.md: what it shows of commands is what they print, and it stays short."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tideover.cli.app import app

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
SHOWN = re.findall(r"^```console\n\$ tideover (.*?)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
MOST_LINES = 120
"""Three screens."""


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


@pytest.mark.parametrize(("command", "shown"), SHOWN)
def test_a_command_prints_what_is_shown(
    command: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it up to the line ``…``, which stands for the rest."""
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, shlex.split(command), env={"COLUMNS": "100", "NO_COLOR": "1"})
    assert done.exit_code == 0
    wanted = lines(shown)
    assert wanted[-1] == "…"
    assert lines(done.output)[: len(wanted) - 1] == wanted[:-1]


def test_it_fits_three_screens_and_answers_a_question() -> None:
    assert len(README.splitlines()) <= MOST_LINES
    assert len(SHOWN) == 1
