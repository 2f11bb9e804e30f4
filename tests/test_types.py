"""What a type checker makes of the library from outside: a user's program, in a folder of its own."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import tideover

ROOT = Path(__file__).parents[1]

PROGRAM = """\
from datetime import timedelta

import tideover
from tideover import CrashTask, Run, Scenario, SourceReplay, StateManagement, parts

reveal_type(tideover.run)
result = tideover.run("wordcount", {"run.seed": 3, "run.duration": tideover.seconds(90)})
reveal_type(result)
reveal_type(result.recoveries)
reveal_type(tideover.compare("wordcount"))
reveal_type(tideover.sweep("wordcount-sweep").parameters)
reveal_type(tideover.load("wordcount").run.duration)
reveal_type(tideover.seconds(3))
reveal_type(tideover.seconds([3, 4]))
error: type[Exception] = tideover.ScenarioError
tideover.run("wordcount", "run.seed=3", trace="yes")
tideover.Nope
base = tideover.load("wordcount").with_({"strategy.message_timeout": "9 s"}, hosts=None)
reveal_type(base.with_(failures=[CrashTask(at=timedelta(seconds=75), component="count")], rate="5/s"))
reveal_type(tideover.compare(base, [SourceReplay(), StateManagement(checkpoint_interval="5 s"), "none"]))
reveal_type(tideover.sweep(base, {"strategy": [SourceReplay()], "run.seed": range(2)}, master=None))
mine = Scenario(
    name="mine",
    topology={
        "in": parts.SpoutConfig(spout=parts.Keys(), arrivals=parts.Poisson(rate=tideover.per_second(5))),
        "out": parts.BoltConfig(
            bolt=parts.WindowedCount(window="5 s"),
            from_={"in": "shuffle"},
            service=parts.Exponential(mean="1 ms"),
        ),
    },
    strategy=base.strategy,
    run=Run(duration="60 s"),
)
reveal_type(mine.to_yaml("mine.yaml"))
reveal_type(SourceReplay().message_timeout)
SourceReplay(message_timeout=30)
SourceReplay(mesage_timeout="30 s")
base.with_(run="120 s")
"""
REVEALED = {
    6: r"def \(scenario: .*\) -> tideover\.models\.results\.Result",
    8: r"tideover\.models\.results\.Result",
    9: r"pandas\..*DataFrame",
    10: r"tideover\.api\.Comparison",
    11: r"dict\[str, str\]",
    12: r"int",
    13: r"str",
    14: r"list\[str\]",
    19: r"tideover\.scenarios\.loader\.Scenario",
    20: r"tideover\.api\.Comparison",
    21: r"tideover\.scenarios\.sweeps\.dataset\.Sweep",
    35: r"str",
    36: r"int",
}
"""By line of the program, what mypy says a thing is."""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What ``mypy --strict`` says of the program. The cache is the project's: a cold start takes long."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "program.py").write_text(PROGRAM)
    (folder / "mypy.ini").write_text(
        "[mypy]\n[mypy-pyspark.*,scipy.*,matplotlib.*,pyarrow.*]\nfollow_imports = skip\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--no-pretty", "program.py"]
    command += ["--cache-dir", str(ROOT / ".cache" / "mypy-user")]
    # On the path of Python, it is found as an installed package is: by its marker py.typed.
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return [line for line in done.stdout.splitlines() if line.startswith("program.py:")]


def test_what_is_exported_has_its_type(said: list[str]) -> None:
    """``reveal_type`` of functions, of what they return and of its attributes: none of them is Any."""
    notes = {int(line.split(":")[1]): line for line in said if "Revealed type is" in line}
    assert notes.keys() == REVEALED.keys()
    for line, pattern in REVEALED.items():
        (shown,) = re.findall(r'Revealed type is "(.*)"', notes[line])
        assert re.fullmatch(pattern, shown.replace("builtins.", "")), shown


def test_what_is_not_there_or_does_not_fit_is_an_error(said: list[str]) -> None:
    """A name that the module lacks; a text for a list of settings is one to a type checker (a text is a
    sequence of texts), so only the flag of a wrong type is found in line 16. Of typed objects: a number
    without a unit, a parameter that there is not, a text for an object.
    """
    errors = [line for line in said if " error: " in line]
    assert [int(line.split(":")[1]) for line in errors] == [16, 17, 37, 38, 39]
    assert 'Argument "trace" to "run" has incompatible type "str"' in errors[0]
    assert 'Module has no attribute "Nope"' in errors[1]
    assert 'Argument "message_timeout" to "SourceReplay" has incompatible type "int"' in errors[2]
    assert 'Unexpected keyword argument "mesage_timeout" for "SourceReplay"' in errors[3]
    assert 'Argument "run" to "with_" of "Scenario" has incompatible type "str"' in errors[4]


def test_type_checkers_see_what_is_exported() -> None:
    """The imports that type checkers see name what the module imports on demand, each from where it is."""
    tree = ast.parse((ROOT / "tideover" / "__init__.py").read_text())
    (branch,) = (node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in branch.body if isinstance(node, ast.ImportFrom)]
    seen = {alias.asname: node.module for node in imports for alias in node.names}
    assert sorted([*seen, "__version__"]) == sorted(tideover.__all__)
    for name, module in seen.items():
        assert getattr(tideover, name) is getattr(import_module(str(module)), str(name))
