"""``--plugin FILE``: a strategy of one's own, on every command and in every process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from tideover.cli.app import app
from tideover.models.strategies.base import STRATEGIES
from tideover.scenarios import plugins
from tideover.scenarios.sweeps.sweep_file import read as read_sweep

SOURCE = Path(__file__).parents[2] / "examples" / "approximate_backup.py"
SHORT = [
    "--set",
    "strategy.kind=approximate_backup",
    "--set",
    "strategy.interval=1s",
    "--set",
    "run.duration=100s",
]
SWEEP = "scenario: wordcount\ngrid: {strategy.kind: [approximate_backup], strategy.interval: [1 s, 2 s]}\n"


@pytest.fixture
def plugin(tmp_path: Path) -> Iterator[Path]:
    """A copy of the example under another name, which no process can import."""
    path = tmp_path / "mine.py"
    path.write_text(SOURCE.read_text())
    yield path
    STRATEGIES.discard("approximate_backup")
    plugins._files.clear()


def leaves(command: Any) -> Iterator[Any]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield command
    else:
        for one in inner.values():
            yield from leaves(one)


def test_every_command_takes_plugins() -> None:
    every = list(leaves(typer.main.get_command(app)))
    assert len(every) > 10
    assert [c.name for c in every if "--plugin" not in [o for p in c.params for o in p.opts]] == []


def test_a_strategy_of_a_file_runs(tideover: Any, plugin: Path) -> None:
    """Without the option its name is unknown; with it, given twice even, it is there."""
    code, _, err = tideover("run", "wordcount", "--json", *SHORT)
    assert (code, "unknown strategy 'approximate_backup'" in err) == (2, True)
    code, out, _ = tideover("run", "wordcount", "--json", *SHORT, "--plugin", plugin, "--plugin", plugin)
    assert (code, '"strategy": "approximate_backup"' in out) == (0, True)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.txt", "", "{}: --plugin: is no Python file; its name has to end with .py"),
        ("a.py", "x = 1\n", "{}: --plugin: registers nothing; it may register any "),
        ("a.py", "def f(:\n", "{}:1: --plugin: does not run: SyntaxError: "),
        ("a.py", "\nimport no_such_thing\n", "{}:2: --plugin: does not run: ModuleNotFoundError: "),
        (".", None, "{}: --plugin: is no file; give a Python file that registers a strategy or another part"),
    ],
)
def test_what_is_no_plugin_is_refused(
    tideover: Any, tmp_path: Path, name: str, text: str | None, message: str
) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    code, out, err = tideover("scenarios", "list", "--plugin", path)
    assert (code, out) == (2, "")
    assert err.startswith(message.format(path))


def test_other_processes_need_no_file(plugin: Path, tmp_path: Path) -> None:
    """A recipe that was pickled as Spark pickles it builds its points in a process that has never seen the
    plugin, whose file is gone.
    """
    from pyspark import cloudpickle

    from tideover.scenarios.spark.session import _send_plugins

    plugins.load_file(plugin)
    _send_plugins()
    sweep = tmp_path / "sweep.yaml"
    sweep.write_text(SWEEP)
    (tmp_path / "sent").write_bytes(cloudpickle.dumps(read_sweep(sweep)))
    plugin.unlink()
    code = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb')).point(1).scenario.strategy)"
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "sent"], capture_output=True, text=True)
    assert "interval=2000000000" in done.stdout, done.stderr
