"""How profiles are written as YAML."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted keys as nested mappings."""
    found: dict[str, Any] = {}
    for key, value in flat.items():
        *path, last = key.split(".")
        place = found
        for step in path:
            place = place.setdefault(step, {})
        place[last] = value
    return found


def text(data: Mapping[str, Any], width: int) -> str:
    """Plain data as YAML; ``width``: of a line."""
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.default_flow_style = None
    yaml.width = width
    stream = io.StringIO()
    yaml.dump(dict(data), stream)
    return stream.getvalue()
