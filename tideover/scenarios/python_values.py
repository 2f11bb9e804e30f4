"""Values of Python to the tree that a file with the same content would give, without lines."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from tideover.scenarios.nodes import Node, Origin
from tideover.scenarios.writer import part_to_data
from tideover.scenarios.yaml_source import MAX_DEPTH
from tideover.sim.registry import Part
from tideover.sim.units import format_duration


def from_plain(value: Any, origin: Origin, path: tuple[str, ...] = ()) -> Node:
    """The tree of a value: what a file may hold, a path, what numpy and pandas have for numbers and lists, a
    timedelta, and typed parts. ``path``: where it stands.

    Raises ScenarioError for anything else, and if it is nested too deep; TypeError for the class of a part
    instead of an object, and for a part that no file could name.

    >>> from_plain([timedelta(minutes=1.5), 3], Origin("mine")).plain()
    ['90 s', 3]
    """
    if len(path) >= MAX_DEPTH:
        raise Node(None, origin).refused("", f"is nested more than {MAX_DEPTH} levels deep")
    value = _simple(value)
    if isinstance(value, Mapping):
        return Node({str(k): from_plain(v, origin, (*path, str(k))) for k, v in value.items()}, origin)
    if isinstance(value, list | tuple | range):
        return Node([from_plain(v, origin, (*path, str(i))) for i, v in enumerate(value)], origin)
    if value is None or isinstance(value, bool | int | float | str):
        return Node(value, origin)
    what = f"is a {type(value).__name__}; give a number, a text, a list or a mapping"
    raise Node(None, origin).refused(".".join(path), what)


def _simple(value: Any) -> Any:
    """What a file would hold instead of an object; anything else as it is."""
    if isinstance(value, type):
        raise TypeError(f"{value.__name__} is a class; give an object of it, {value.__name__}(…)")
    if isinstance(value, Part):
        return part_to_data(value)
    if hasattr(value, "tolist"):  # an array, a series, or one of their numbers
        value = value.tolist()
    if isinstance(value, timedelta):
        microseconds = value // timedelta(microseconds=1)
        return format_duration(microseconds * 1000 + getattr(value, "nanoseconds", 0))  # pandas' has more
    return os.fspath(value) if isinstance(value, os.PathLike) else value
