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
import tideover

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
"""
REVEALED = {
    3: r"def \(scenario: .*\) -> tideover\.models\.results\.result\.Result",
    5: r"tideover\.models\.results\.result\.Result",
    6: r"pandas\..*DataFrame",
    7: r"tideover\.api\.Comparison",
    8: r"typing\.Mapping\[str, str\]",
    9: r"int",
    10: r"str",
    11: r"list\[str\]",
}
"""By line of the program, what mypy says a thing is."""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What ``mypy --strict`` says of the program. The cache is the project's: a cold start takes long."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "program.py").write_text(PROGRAM)
    (folder / "mypy.ini").write_text("[mypy]\n[mypy-pyspark.*]\nfollow_imports = skip\n")
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
    sequence of texts), so only the flag of a wrong type is found in line 13.
    """
    errors = [line for line in said if " error: " in line]
    assert [int(line.split(":")[1]) for line in errors] == [13, 14]
    assert 'Argument "trace" to "run" has incompatible type "str"' in errors[0]
    assert 'Module has no attribute "Nope"' in errors[1]


def test_type_checkers_see_what_is_exported() -> None:
    """The stub names what the module imports on demand, each from the module where it is."""
    tree = ast.parse((ROOT / "tideover" / "__init__.pyi").read_text())
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    seen = {alias.name: node.module for node in imports for alias in node.names}
    assert sorted([*seen, "__version__"]) == sorted(tideover.__all__)
    for name, module in seen.items():
        assert getattr(tideover, name) is getattr(import_module(str(module)), name)
