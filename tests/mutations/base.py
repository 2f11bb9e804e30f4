"""Bugs that are planted in the package, one at a time."""

from __future__ import annotations

from typing import NamedTuple

MODELS = "tests/models"


class Mutation(NamedTuple):
    """``old`` is replaced by ``new``; ``caught_by``: arguments of pytest that choose the tests."""

    what: str
    old: str
    new: str
    caught_by: tuple[str, ...]


def exactness(strategy: str) -> tuple[str, ...]:
    """The per-tuple reference, in random worlds: first in few, then in many."""
    return (f"{MODELS}/test_exactness.py", "-m", "", "-k", f"equals_the_reference and {strategy}")


def mechanism(name: str) -> tuple[str, ...]:
    """The same, of a mechanism, in few worlds."""
    return (f"{MODELS}/test_exact_mechanisms.py", "-k", name)
