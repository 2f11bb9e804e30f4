"""What a result says of a sink whose readers see what is put out when it is committed."""

from __future__ import annotations

from tideover.models.schema.columns import Column, Pool, count

_WHERE = "with a transactional sink"


def _delay(name: str, label: str, meaning: str, pool: Pool) -> Column:
    return Column(
        name,
        f"{meaning}; {_WHERE}",
        "s",
        undefined="nothing was seen",
        record=("cost", name),
        label=label,
        pool=pool,
        optional=True,
    )


DELAYS = (
    _delay(
        "visible_s",
        "delay of visibility",
        "mean time from when a window (or a tuple that leaves) is put out until its readers see it",
        "mean",
    ),
    _delay("visible_max_s", "longest delay of visibility", "the longest of them", "max"),
)


def expired(failed_run: str) -> Column:
    """Of windows; ``failed_run``: what to say of a run without figures."""
    return count(
        "windows_expired",
        "windows that were to be committed, but the broker had aborted their transaction by then (they are "
        f"missing); {_WHERE}",
        "windows",
        failed_run,
        record=("windows", "expired"),
        label="expired",
        pool="sum",
        optional=True,
    )
