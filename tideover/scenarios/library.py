"""What is built in: scenarios and sweeps, as files in ``library/``, and profiles in ``measured/``; what is
put there is built in; `loader` and `sweep_file` ask here.
"""

from __future__ import annotations

import os
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from tideover.scenarios.errors import Problem, ScenarioError, suggest
from tideover.scenarios.yaml_source import WHOLE, Node, parse

SWEEP = "-sweep"
"""Names of sweeps end so."""


@cache
def _in(folder: str) -> tuple[str, ...]:
    """The names of the YAML files in a folder of this package, sorted."""
    entries = files("tideover.scenarios").joinpath(folder)
    found = [entry.name for entry in entries.iterdir()] if entries.is_dir() else []
    return tuple(sorted(name.removesuffix(".yaml") for name in found if name.endswith(".yaml")))


def names() -> tuple[str, ...]:
    return tuple(name for name in _in("library") if not name.endswith(SWEEP))


def sweeps() -> tuple[str, ...]:
    return tuple(name for name in _in("library") if name.endswith(SWEEP))


def profiles() -> tuple[str, ...]:
    return _in("measured")


def catalogue() -> list[dict[str, Any]]:
    """Name, sort (``scenario`` or ``sweep``), description and short parameters of all that is built in."""
    found = []
    for name in _in("library"):
        root = _tree(name).plain()
        about = " ".join(str(root.get("description", "")).split())
        sort = "sweep" if name.endswith(SWEEP) else "scenario"
        parameters = list(root.get("parameters", ()))
        found.append({"name": name, "sort": sort, "description": about, "parameters": parameters})
    return found


def is_path(source: str) -> bool:
    """Whether a SCENARIO argument means a file; a bare name means something built in if there is such."""
    if not source or source in _in("library"):
        return False
    return os.sep in source or source.endswith((".yaml", ".yml")) or os.path.exists(source)


def file_name(name: str) -> str:
    """What messages call the file of something built in."""
    return f"{name}.yaml"


def profile_text(name: str) -> str:
    """The YAML text of a built-in profile, one of ``profiles()``."""
    return files("tideover.scenarios").joinpath("measured", file_name(name)).read_text("utf-8")


def text(name: str, sort: str = "scenario") -> str:
    """The YAML text of a scenario, a ``sweep``, or ``either``; raises ScenarioError for an unknown name."""
    known = {"scenario": names(), "sweep": sweeps(), "either": _in("library")}[sort]
    if sort == "scenario" and name in sweeps():
        message = f"is a sweep, not a scenario; use it as in tideover sweep {name}"
        raise ScenarioError([Problem(name, 1, WHOLE, message)])
    if name not in known:
        what = "sweep" if sort == "sweep" else "scenario"
        message = f"neither a file nor a built-in {what}; {suggest(name, known, are='built in')}"
        raise ScenarioError([Problem(name or "''", 1, WHOLE, message)])
    return files("tideover.scenarios").joinpath("library", file_name(name)).read_text("utf-8")


def tree(name: str) -> Node:
    """What a built-in scenario says; raises ScenarioError for an unknown name."""
    return _tree(name) if name in names() else parse(text(name), file_name(name))  # which refuses the name


@cache
def _tree(name: str) -> Node:
    """Read once: whoever changes a tree makes another, and reading takes longer than all that comes after."""
    return parse(text(name, "either"), file_name(name))


def copy(name: str, target: Path) -> Path:
    """Write a built-in scenario or sweep to a file, or into a directory; returns the file. Raises
    ScenarioError for an unknown name, FileExistsError if the file is there.
    """
    content = text(name, "either")
    path = target / file_name(name) if target.is_dir() else target
    with path.open("x", encoding="utf-8") as stream:
        stream.write(content)
    return path
