"""Parts from outside the package: a file with a strategy of one's own, say, and packages that offer some."""

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
    """Import what other packages offer under the entry-point group ``tideover.plugins``; once per process.

    One that fails to import is left out, with a warning.
    """
    for entry in entry_points(group=GROUP):
        try:
            entry.load()
        except Exception as error:
            warnings.warn(f"plugin {entry.name!r} could not be loaded: {error}", RuntimeWarning, stacklevel=2)


def load_file(path: Path) -> None:
    """Run a Python file that registers parts; once per process. It is told of as ``--plugin``.

    Raises ScenarioError: it is no file, does not run, or registers nothing.
    """
    if path.resolve() in _files:
        return
    if not is_file(path):
        raise _refused(path, None, "is no file; give a Python file that registers a strategy or another part")
    before = _registered()
    module = _run(path)
    if _registered() == before:
        known = ", ".join(registry.what for registry in REGISTRIES.values())
        raise _refused(path, None, f"registers nothing; it may register any {known}")
    _files[path.resolve()] = module


def of_files() -> list[ModuleType]:
    """Modules that no other process can import: those made from files."""
    return list(_files.values())


def _registered() -> int:
    return sum(len(registry.items()) for registry in REGISTRIES.values())


def _run(path: Path) -> ModuleType:
    # A name of its own: a file called `random.py` is not to take that module's place.
    spec = spec_from_file_location(f"tideover_plugin_{len(_files)}_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise _refused(path, None, "is no Python file; its name has to end with .py")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # annotations of its classes are resolved there
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[spec.name]
        raise _refused(path, _line(error, path), f"does not run: {type(error).__name__}: {error}") from error
    return module


def _line(error: Exception, path: Path) -> int | None:
    """The line of the file at which it failed."""
    if isinstance(error, SyntaxError):
        return error.lineno
    lines = [
        f.lineno for f in traceback.extract_tb(error.__traceback__) if Path(f.filename) == path.absolute()
    ]
    return lines[-1] if lines else None


def _refused(path: Path, line: int | None, message: str) -> ScenarioError:
    return ScenarioError([Problem(str(path), line, "--plugin", message)])


class Carrier:
    """A dataclass that is sent to other processes together with the parts that are not of this package: their
    names are known here only because somebody imported or defined them.
    """

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
