"""What is built in: scenarios, and sweeps over them, as files in ``library/``."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from tideover.scenarios.errors import Problem, ScenarioError
from tideover.scenarios.yaml_source import WHOLE, Node, parse

SWEEP = "-sweep"
"""Names of sweeps end so."""


@dataclass(frozen=True)
class BuiltIn:
    """Something built in: its name on the command line, ``scenario`` or ``sweep``, what it is about, and its
    short parameters.
    """

    name: str
    sort: str
    description: str
    parameters: tuple[str, ...] = ()


@cache
def _in(folder: str) -> tuple[str, ...]:
    """The names of the YAML files in a folder of this package, sorted."""
    entries = files("tideover.scenarios").joinpath(folder)
    found = [entry.name for entry in entries.iterdir()] if entries.is_dir() else []
    return tuple(sorted(name.removesuffix(".yaml") for name in found if name.endswith(".yaml")))


def _all() -> tuple[str, ...]:
    return _in("library")


def names() -> tuple[str, ...]:
    """Names of the built-in scenarios, sorted."""
    return tuple(name for name in _all() if not name.endswith(SWEEP))


def sweeps() -> tuple[str, ...]:
    """Names of the built-in sweeps, sorted."""
    return tuple(name for name in _all() if name.endswith(SWEEP))


def catalogue() -> list[BuiltIn]:
    """Every built-in scenario and sweep with its description and its short parameters."""
    found = []
    for name in _all():
        root = _tree(name).plain()
        about = " ".join(str(root.get("description", "")).split())
        sort = "sweep" if name in sweeps() else "scenario"
        found.append(BuiltIn(name, sort, about, tuple(root.get("parameters", ()))))
    return found


def profiles() -> tuple[str, ...]:
    """Names of the built-in profiles, sorted."""
    return _in("measured")


def profile_text(name: str) -> str:
    """The YAML text of a built-in profile, one of ``profiles()``."""
    return files("tideover.scenarios").joinpath("measured", file_name(name)).read_text("utf-8")


def is_path(source: str) -> bool:
    """Whether a SCENARIO argument means a file; a bare name means something built in if there is such."""
    if not source or source in _all():
        return False
    return os.sep in source or source.endswith((".yaml", ".yml")) or os.path.exists(source)


def file_name(name: str) -> str:
    """What messages call the file of something built in."""
    return f"{name}.yaml"


def text(name: str) -> str:
    """The YAML text of a built-in scenario; raises ScenarioError for an unknown name."""
    if name in sweeps():
        message = f"is a sweep, not a scenario; use it as in tideover sweep {name}"
        raise ScenarioError([Problem(name, 1, WHOLE, message)])
    return _read(name, names(), "scenario")


def tree(name: str) -> Node:
    """What a built-in scenario says; raises ScenarioError for an unknown name."""
    return _tree(name) if name in names() else parse(text(name), file_name(name))  # which refuses the name


@cache
def _tree(name: str) -> Node:
    """Read once: whoever changes a tree makes another, and reading takes longer than all that comes after."""
    return parse(file_text(name), file_name(name))


def sweep_text(name: str) -> str:
    """The YAML text of a built-in sweep; raises ScenarioError for an unknown name."""
    return _read(name, sweeps(), "sweep")


def file_text(name: str) -> str:
    """The YAML text of a built-in scenario or sweep; raises ScenarioError for an unknown name."""
    return _read(name, _all(), "scenario")


def _read(name: str, known: Sequence[str], what: str) -> str:
    if name not in known:
        near = difflib.get_close_matches(name[:100], known, 1)
        listed = f"built in: {', '.join(known)}"
        hint = f"did you mean {near[0]!r}? ({listed})" if near else listed
        message = f"neither a file nor a built-in {what}; {hint}"
        raise ScenarioError([Problem(name or "''", 1, WHOLE, message)])
    return files("tideover.scenarios").joinpath("library", file_name(name)).read_text("utf-8")


def copy(name: str, target: Path) -> Path:
    """Write a built-in scenario or sweep to ``target`` (a file, or a directory), to be changed.

    Returns the file. Raises ScenarioError for an unknown name, FileExistsError if the file is there.
    """
    content = file_text(name)
    path = target / file_name(name) if target.is_dir() else target
    with path.open("x", encoding="utf-8") as stream:
        stream.write(content)
    return path
