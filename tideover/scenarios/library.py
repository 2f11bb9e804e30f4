"""The built-in scenarios: ``library/*.yaml``."""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from tideover.scenarios.errors import Problem, ScenarioError
from tideover.scenarios.yaml_source import WHOLE, parse


@dataclass(frozen=True)
class BuiltIn:
    """A built-in scenario: its name on the command line, and what it is about."""

    name: str
    description: str


@lru_cache(maxsize=1)
def names() -> tuple[str, ...]:
    """Names of the built-in scenarios, sorted."""
    entries = files("tideover.scenarios").joinpath("library").iterdir()
    return tuple(
        sorted(entry.name.removesuffix(".yaml") for entry in entries if entry.name.endswith(".yaml"))
    )


def catalogue() -> list[BuiltIn]:
    """Every built-in scenario with its description."""
    found = []
    for name in names():
        description = parse(text(name), file_name(name)).value.get("description")
        found.append(BuiltIn(name, " ".join(str(description.value).split()) if description else ""))
    return found


def is_path(source: str) -> bool:
    """Whether a SCENARIO argument means a file; a bare name means a built-in scenario if there is one."""
    if not source or source in names():
        return False
    return os.sep in source or source.endswith((".yaml", ".yml")) or Path(source).exists()


def file_name(name: str) -> str:
    """What messages call the file of a built-in scenario."""
    return f"{name}.yaml"


def text(name: str) -> str:
    """The YAML text of a built-in scenario; raises ScenarioError for an unknown name."""
    if name not in names():
        near = difflib.get_close_matches(name[:100], names(), 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        message = f"neither a file nor a built-in scenario; {hint}(built in: {', '.join(names())})"
        raise ScenarioError([Problem(name or "''", 1, WHOLE, message)])
    return files("tideover.scenarios").joinpath("library", file_name(name)).read_text("utf-8")


def copy(name: str, target: Path) -> Path:
    """Write a built-in scenario to ``target`` (a file, or a directory), to be changed; returns the file.

    Raises ScenarioError for an unknown name, FileExistsError if the file is there.
    """
    content = text(name)
    path = target / file_name(name) if target.is_dir() else target
    with path.open("x", encoding="utf-8") as stream:
        stream.write(content)
    return path
