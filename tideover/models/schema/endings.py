"""How recoveries end. A time to recover means little without that: whatever shows the one says the other."""

from __future__ import annotations

from collections.abc import Collection

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
    ('1 of 2 with loss', 'with loss', 'not affected', '')
    """
    ended = [each for each in endings if each != OPEN]
    lossy = ended.count(LOSSY)
    if lossy:
        return "with loss" if lossy == len(ended) else f"{lossy} of {len(ended)} with loss"
    return UNAFFECTED if ended and ended.count(UNAFFECTED) == len(ended) else ""
