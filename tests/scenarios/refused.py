"""What is refused, and in which words: FILE:LINE: KEY: MESSAGE for each problem."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tideover.scenarios.errors import ScenarioError

Row = tuple[str, str, int, str, str]
"""A change to a file, and what is said of it: the old text, the new one, line, key, words."""


def refused(read: Callable[..., Any], *given: Any) -> list[str]:
    """What is said of each problem if this is called."""
    with pytest.raises(ScenarioError) as caught:
        read(*given)
    return str(caught.value).split("\n")


def changed(good: str, old: str, new: str) -> str:
    """The text with something else in the one place of ``old``."""
    assert good.count(old) == 1, old
    return good.replace(old, new)


def broken_file(read: Callable[..., Any], path: Path, good: str, row: Row) -> None:
    """A file with one change is refused in its line."""
    old, new, line, key, words = row
    path.write_text(changed(good, old, new))
    told(refused(read, path), f"{path}:{line}: {key}: ", words)


def told(said: list[str], place: str, words: str) -> None:
    """One of the problems begins with this place, and has these words."""
    assert any(one.startswith(place) and words in one for one in said), said
