"""The figures that a result shows of itself at a prompt or in a notebook; reports have all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tideover.models.schema import endings
from tideover.models.schema.fields import HEADLINE, named
from tideover.sim.faults.base import FAULTS

if TYPE_CHECKING:
    from tideover.models.simulation import Replication

RECOVERY = named("recoveries", HEADLINE).label_with_unit
"""Mean of the recoveries in which it is defined."""

_MOST_ROWS = 40


def figures(replications: Sequence[Replication]) -> dict[str, Any]:
    """Label and value: number of replications and failures, mean recovery from these (s; None: undefined),
    how they ended, roots lost and wrong windows in all replications together.
    """
    recoveries = [row for one in replications for row in one.recoveries if row["kind"] in FAULTS]
    times = [row[HEADLINE] for row in recoveries if row[HEADLINE] is not None]
    return {
        "replications": len(replications),
        "failures": len(recoveries),
        RECOVERY: sum(times) / len(times) if times else None,
        "ended": endings.counted(row["ended"] for row in recoveries),
        "roots lost": sum(one.ledger["lost"] for one in replications),
        "wrong windows": sum(one.windows["wrong"] for one in replications),
    }


def sentence(found: Mapping[str, Any]) -> str:
    """The figures in a few words.

    >>> found = {"failures": 5, RECOVERY: 56.2563, "ended": "recovered", "roots lost": 0, "wrong windows": 15}
    >>> sentence(found)
    'time to recover 56.26 s (recovered), 0 roots lost, 15 wrong windows'
    """
    name, unit = RECOVERY.split(", ")
    time = "undefined" if found[RECOVERY] is None else f"{found[RECOVERY]:.4g} {unit}"
    recovered = f"{name} {time} ({found['ended']})" if found["failures"] else "no failures"
    return f"{recovered}, {found['roots lost']:,} roots lost, {found['wrong windows']:,} wrong windows"


def html(rows: Iterable[Mapping[str, Any]]) -> str:
    """A small table for a notebook; texts are escaped, of many rows the middle is left out."""
    import pandas as pd

    frame = pd.DataFrame(list(rows))
    return frame.to_html(index=False, border=0, na_rep="–", float_format="{:.4g}".format, max_rows=_MOST_ROWS)


def counted(count: int, what: str) -> str:
    """``1 point``, ``8 points``."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
