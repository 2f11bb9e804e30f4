"""Parts from outside the package: a file with a strategy of one's own, say, and packages that offer some.

Whoever reads a scenario calls `load_installed`; ``--plugin`` calls `load_file`.
"""

from __future__ import annotations

import sys
import traceback
import warnings
from dataclasses import fields
from functools import lru_cache
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from tideover.scenarios.errors import Problem, ScenarioError
from tideover.scenarios.part_builder import REGISTRIES
from tideover.sim.registry import Part
from tideover.sim.text_files import is_file

GROUP = "tideover.plugins"
"""Entry-point group of modules that register parts when they are imported."""

_files: dict[Path, ModuleType] = {}


@lru_cache(maxsize=1)
def load_installed() -> None:
    """Import what packages offer as ``tideover.plugins``, once; what fails is left out, with a warning."""
    for entry in entry_points(group=GROUP):
        try:
            entry.load()
        except Exception as error:
            warnings.warn(f"plugin {entry.name!r} could not be loaded: {error}", RuntimeWarning, stacklevel=2)


def load_file(path: Path) -> None:
    """Run a Python file (``--plugin``) that registers parts, once per process; raises ScenarioError."""
    if path.resolve() in _files:
        return

    def refused(line: int | None, message: str) -> ScenarioError:
        return ScenarioError([Problem(str(path), line, "--plugin", message)])

    def registered() -> int:
        return sum(len(registry.items()) for registry in REGISTRIES.values())

    if not is_file(path):
        raise refused(None, "is no file; give a Python file that registers a strategy or another part")
    before = registered()
    # A name of its own: a file called `random.py` is not to take that module's place.
    spec = spec_from_file_location(f"tideover_plugin_{len(_files)}_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise refused(None, "is no Python file; its name has to end with .py")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # annotations of its classes are resolved there
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[spec.name]
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if Path(frame.filename) == path.absolute()]
        line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
        raise refused(line, f"does not run: {type(error).__name__}: {error}") from error
    if registered() == before:
        known = ", ".join(registry.what for registry in REGISTRIES.values())
        raise refused(None, f"registers nothing; it may register any {known}")
    _files[path.resolve()] = module


def of_files() -> list[ModuleType]:
    """Modules that no other process can import: those made from files."""
    return list(_files.values())


class Carrier:
    """A dataclass that is sent to other processes with the parts from outside, which are not known there."""

    def __getstate__(self) -> dict[str, Any]:
        """The fields, and those parts."""
        parts = [
            (sort, name, part)
            for sort, registry in REGISTRIES.items()
            for name, part in registry.items()
            if not part.__module__.startswith("tideover.")
        ]
        return {one.name: getattr(self, one.name) for one in fields(self)} | {"": parts}  # type: ignore[arg-type]

    def __setstate__(self, state: dict[str, Any]) -> None:
        """The same; its parts are registered where they are not."""
        parts: list[tuple[type[Part], str, type[Part]]] = state.pop("")
        for sort, name, part in parts:
            if name not in REGISTRIES[sort]:
                REGISTRIES[sort].register(name)(part)
        vars(self).update(state)
