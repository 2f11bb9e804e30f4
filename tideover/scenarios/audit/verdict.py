"""What became of the tuples of a run, and which guarantee that leaves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class Verdict(NamedTuple):
    """What a run lost, counted twice, or put out wrong.

    emitted, lost, duplicated  roots
    windows, wrong, missing    windows
    error                      why it could not be simulated; else empty
    """

    emitted: int = 0
    lost: int = 0
    duplicated: int = 0
    windows: int = 0
    wrong: int = 0
    missing: int = 0
    error: str = ""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Verdict:
        """Of a run's row in a table ``runs``."""
        if row["error"]:
            return cls(error=row["error"])
        names = ("emitted", "lost", "duplicated", "windows_emitted", "windows_wrong", "windows_missing")
        return cls(*(int(row[name]) for name in names))  # type: ignore[arg-type]  # all of them

    @property
    def harm(self) -> str:
        """What is wrong, in words: losses, duplicates, both; without these, windows. Empty: nothing."""
        found = [word for word, n in (("lost", self.lost), ("duplicated", self.duplicated)) if n]
        if not found:
            found = [
                word for word, n in (("wrong windows", self.wrong), ("missing windows", self.missing)) if n
            ]
        return ", ".join(found)

    @property
    def size(self) -> int:
        """How much is wrong: roots, and windows."""
        return self.lost + self.duplicated + self.wrong + self.missing


def guarantee(verdicts: Iterable[Verdict]) -> str:
    """What some runs leave: each effect at least once (nothing lost), at most once (nothing duplicated), both
    and all windows right (exactly once), or none. Where effects are right, and windows are not, they are in
    other windows than without the failure: that is at least once, too.
    """
    lost = duplicated = shifted = False
    for verdict in verdicts:
        lost |= verdict.lost > 0
        duplicated |= verdict.duplicated > 0
        shifted |= verdict.wrong + verdict.missing > 0
    if lost:
        return "none" if duplicated else "at most once"
    return "at least once" if duplicated or shifted else "exactly once"


def holds(claimed: str, observed: str) -> bool:
    """Whether what was observed is as good as what is claimed."""
    return claimed == "none" or observed in ("exactly once", claimed)
