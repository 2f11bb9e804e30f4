"""Plain data as the text of a file, of which the loader reads the same data."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from tideover.scenarios.yaml_source import scalar


def write(data: Mapping[str, Any]) -> str:
    """A line for each key. Texts are written as they are; see ``quoted``.

    >>> print(write({"run": {"duration": "90 s"}}), end="")
    run:
      duration: 90 s
    """
    from ruamel.yaml import YAML

    writer = YAML()
    writer.width = 2**31  # a value, and a comment, belong to one line
    stream = io.StringIO()
    writer.dump(data, stream)
    return stream.getvalue()


def quoted(value: Any) -> Any:
    """Data whose texts are in quotes where the loader would read something else without.

    >>> print(write(quoted({"name": "0x1F", "seed": 3})), end="")
    name: "0x1F"
    seed: 3
    """
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString

    if isinstance(value, dict):
        return {key: quoted(item) for key, item in value.items()}
    if isinstance(value, list):
        return [quoted(item) for item in value]
    plain = not isinstance(value, str) or (scalar(value) == value and value.isprintable())
    return value if plain else DoubleQuotedScalarString(value)
