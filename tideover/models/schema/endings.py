"""How recoveries end. A time to recover means little without that: whatever shows the one says the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from tideover.models.schema.columns import at_top, count, text

RECOVERED = "recovered"
UNAFFECTED = "not affected"
LOSSY = "recovered with loss"
OPEN = "not recovered"

ENDED = at_top(
    text(
        "ended",
        f"how the recovery ended. {RECOVERED}: all is as it would have been; {UNAFFECTED}: it never was "
        f"otherwise, and the time to recover is 0; {LOSSY}: it is so again, but roots were lost for good; "
        f"{OPEN}: it was not so by the end of the run, and the time to recover is undefined",
    ),
    count(
        "roots_lost",
        "roots that were lost for good because of this failure, and would not have been without failures",
        "roots",
    ),
)
"""The columns of recoveries that say it."""
TIMES = ("time_to_recover_s", "catch_up_s")
"""Columns that say when all was over: never told without how it ended."""


def ending(time: float | None, roots_lost: int) -> str:
    """How a recovery ended that took this time (s; None: it was not over when the run was)."""
    if time is None:
        return OPEN
    if roots_lost:
        return LOSSY
    return RECOVERED if time else UNAFFECTED


def remark(endings: Collection[str]) -> str:
    """What stands beside a mean time of recoveries that ended so, those without an end aside; empty: nothing.

    >>> remark([RECOVERED, LOSSY]), remark([LOSSY]), remark([UNAFFECTED]), remark([RECOVERED, UNAFFECTED])
    ('loss in 1 of 2', 'loss', 'not affected', '')
    """
    ended = [each for each in endings if each != OPEN]
    lossy = ended.count(LOSSY)
    if lossy:
        return "loss" if lossy == len(ended) else f"loss in {lossy} of {len(ended)}"
    return UNAFFECTED if ended and ended.count(UNAFFECTED) == len(ended) else ""


def counted(endings: Iterable[str]) -> str:
    """How so many recoveries ended, in words.

    >>> counted([RECOVERED, RECOVERED, LOSSY]), counted([OPEN]), counted([])
    ('2 recovered, 1 recovered with loss', 'not recovered', '')
    """
    found = Counter(endings)
    return ", ".join(how if len(found) == 1 else f"{n} {how}" for how, n in found.items())
