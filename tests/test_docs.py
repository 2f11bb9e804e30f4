"""What README.md and pages of docs/ show is what commands and programs print; and so do docstrings."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import tideover as library
from tideover.cli.app import app
from tideover.scenarios.sweeps.sweep_file import read

ROOT = Path(__file__).parents[1]
DOCTESTS = [
    "tideover",
    "tideover.api",
    "tideover.parts",
    "tideover.scenarios.quantities",
    "tideover.scenarios.loader",
    "tideover.scenarios.part_builder",
    "tideover.sim.units",
]
MOST_LINES = 120
"""Of README.md: three screens."""


def page(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def shown(text: str) -> list[str]:
    """Lines without spaces at their ends, which pages do not keep."""
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def run(name: str) -> dict[str, Any]:
    """Run the Python blocks of a page one after the other, as one program; each prints what the page says."""
    blocks = re.findall(
        r"^```python\n(.*?)^```\n(?:\n```\n(.*?)^```$)?", page(name), re.DOTALL | re.MULTILINE
    )
    assert blocks
    names: dict[str, Any] = {}
    for code, wanted in blocks:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, names)
        assert shown(printed.getvalue()) == shown(wanted)
    return names


def test_the_readme_is_short_and_its_command_prints_what_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it up to the line ``…``, which stands for the rest."""
    readme = page("README.md")
    assert len(readme.splitlines()) <= MOST_LINES
    ((command, text),) = re.findall(
        r"^```console\n\$ tideover (.*?)\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE
    )
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, shlex.split(command), env={"COLUMNS": "100", "NO_COLOR": "1"})
    assert done.exit_code == 0
    *wanted, last = shown(text)
    assert last == "…"
    assert shown(done.output)[: len(wanted)] == wanted


def test_the_library_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("docs/library.md")
    assert (tmp_path / "timeline.png").exists()


def test_a_sweeps_dataset_is_read_as_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = {
        "scenario": "wordcount",
        "set": {"run.duration": "40 s", "run.warmup": "10 s", "failures": []},
        "grid": {"run.seed": [1, 2, 3, 4]},
        "replications": 1,
    }
    library.sweep(spec, master=None, out=tmp_path / "sweep")
    monkeypatch.chdir(tmp_path)
    run("docs/dataset.md")


def test_checks(tideover: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command prints the block below it, and ends with the exit code that the page names."""
    monkeypatch.chdir(ROOT / "examples")
    blocks = re.findall(
        r"```\ntideover (check .*?)\n```\n\n```\n(.*?)```\n\n[^\n]*exit code (\d)",
        page("docs/checks.md"),
        re.DOTALL,
    )
    assert len(blocks) >= 2
    for command, text, code in blocks:
        got, out, _ = tideover(*command.split())
        assert (got, shown(out)) == (int(code), shown(text))
    run("docs/checks.md")


SWEEPS = re.findall(r"^```yaml\n(.*?)^```$", page("docs/sweeps.md"), re.MULTILINE | re.DOTALL)
POINTS = [40, 6, 32, 256, 2, 20]
"""Of the sweep files in docs/sweeps.md, as the text says."""


@pytest.mark.parametrize(("text", "points"), [*zip(SWEEPS, POINTS, strict=True)])
def test_a_sweep_has_the_points_that_the_text_says(text: str, points: int, tmp_path: Path) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text(text)
    recipe = read(path)
    assert recipe.total == points
    for number in range(0, points, 5):
        assert recipe.point(number).number == number
    assert recipe.point(points - 1).values == recipe.values(points - 1)


def test_the_indices_are_what_the_text_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```$", page("docs/sweeps.md"), re.MULTILINE | re.DOTALL)
    short = "set: {run.duration: 30 s, run.warmup: 5 s, failures.0.at: 10 s, "
    text = next(file for file in SWEEPS if "saltelli" in file)
    (tmp_path / "sweep.yaml").write_text(text.replace("set: {", short))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(program, names)
    found = names["indices"](names["sweep_file"].read("sweep.yaml"), names["outage"])
    assert found["first_order"].to_list() == pytest.approx([0.2, 0.8], abs=0.1)
    assert "failures.0.restart" in capsys.readouterr().out


@pytest.mark.parametrize("name", DOCTESTS)
def test_docstrings_examples_hold(name: str) -> None:
    """At least one example in each module, and none that fails."""
    found = doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS)
    assert found.failed == 0
    assert found.attempted > 0
