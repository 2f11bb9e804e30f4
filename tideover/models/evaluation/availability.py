"""Availability: how much of the time the output is what it would have been without failures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tideover.models.schema.fields import HEADLINE


def availability(
    recoveries: Iterable[Mapping[str, Any]], begin_s: float, end_s: float
) -> dict[str, float | None]:
    """``availability``: the part of the time from ``begin_s`` to ``end_s`` outside of every recovery.

    Those that overlap count once; what is not recovered from by the end lasts until then. None: there is no
    such time.

    Availability is readiness for correct service (Avizienis et al., Basic Concepts and Taxonomy of Dependable
    and Secure Computing, 2004, section 2.3); correct is here what would have been without failures.
    """
    spans = [
        (one["failed_at_s"], end_s if one[HEADLINE] is None else one["failed_at_s"] + one[HEADLINE])
        for one in recoveries
    ]
    if end_s <= begin_s:
        return {"availability": None}
    down, reached = 0.0, begin_s
    for first, last in sorted(spans):
        down += max(0.0, min(last, end_s) - max(first, reached))
        reached = max(reached, last)
    return {"availability": 1 - down / (end_s - begin_s)}
