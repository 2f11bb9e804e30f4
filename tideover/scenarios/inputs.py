"""What the outputs of a sweep depend on, as one hash: whoever has it need not even check the points."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from tideover.scenarios import library, plugins, yaml_source
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.runs import code
from tideover.scenarios.settings import read_settings
from tideover.sim.text_files import Unreadable, is_file, read_bytes

_LONGEST_NAME = 255


def fingerprint(source: str | Path | Mapping[str, Any], settings: Sequence[str] = ()) -> str | None:
    """A hash of a sweep's file, of the settings, of every file that one of them may name, and of the code.

    None if something cannot be read: then the sweep itself says what is wrong. A text counts as the name of a
    file if there is one, seen from where the command runs or from the file that holds the text; so the hash
    may change without need, but does not stay the same if a result would be another.
    """
    plugins.load_installed()
    digest = hashlib.sha256(f"{_package()} {code()}".encode())
    try:
        for part in _parts(source, settings):
            digest.update(hashlib.sha256(part).digest())
    except (OSError, Unreadable, ScenarioError):
        return None
    return digest.hexdigest()


def _parts(source: str | Path | Mapping[str, Any], settings: Sequence[str]) -> Iterator[bytes]:
    """The texts and files that count."""
    yield json.dumps(list(settings)).encode()
    for setting in read_settings(settings):
        if setting.faults:
            raise ScenarioError(setting.faults)
        yield from _named(setting.node.plain(), Path())
    if isinstance(source, Mapping):
        yield json.dumps(source, default=repr).encode()
        yield from _swept(source, Path())
    elif isinstance(source, str) and not library.is_path(source):
        yield source.encode()  # a built-in one is part of the package
    else:
        text = yaml_source.text_of(Path(source))
        yield from (str(source).encode(), text.encode())
        yield from _swept(yaml_source.parse(text, str(source)).plain(), Path(source).parent)


def _swept(data: Any, directory: Path) -> Iterator[bytes]:
    """The files that a sweep file names, and those that its scenario does."""
    yield from _named(data, directory)
    scenario = data.get("scenario") if isinstance(data, Mapping) else None
    if isinstance(scenario, str) and is_file(path := directory / scenario):
        yield from _named(yaml_source.read(path).plain(), path.parent)


def _named(value: Any, directory: Path) -> Iterator[bytes]:
    """The files that texts in a value name."""
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _named(item, directory)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _named(item, directory)
    elif isinstance(value, str) and 0 < len(value) < _LONGEST_NAME and "\0" not in value:
        for path in (directory / value, Path(value)):
            if is_file(path):
                yield read_bytes(path)


def _package() -> str:
    """A hash of everything that this package consists of: reports are made by all of it."""
    digest = hashlib.sha256()
    for name, content in _contents(files("tideover"), ""):
        digest.update(f"{name} {len(content)} ".encode())
        digest.update(content)
    return digest.hexdigest()


def _contents(folder: Traversable, under: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if entry.is_dir() and entry.name != "__pycache__":
            yield from _contents(entry, f"{under}{entry.name}/")
        elif entry.is_file():
            yield f"{under}{entry.name}", entry.read_bytes()
