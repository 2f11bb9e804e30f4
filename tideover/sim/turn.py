"""A place among the control actions of one instant."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, NamedTuple, Self

from pydantic import AfterValidator

from tideover.sim.kernel import ORDER, Rank

RANKS = {rank.name.lower(): rank for rank in Rank if rank is not Rank.SAMPLE}
_TEXT = re.compile(r"(before|after) ([a-z]+)(?: of (\S+))?")


class Turn(NamedTuple):
    """Just before, or just after, what acts at an instant with a rank.

    side  -1: before, 1: after
    rank  of those actions
    of    name of the task that acts, or the number by which it has its turn; None: all of this rank
    """

    side: int
    rank: Rank
    of: str | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads ``after checkpoint of count.1``; raises ValueError.

        >>> Turn.parse("before trim of split.0")
        Turn(side=-1, rank=<Rank.TRIM: 15>, of='split.0')
        """
        found = _TEXT.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is no turn; write before or after, a rank, a task: after trim of a.0")
        side, rank, of = found.groups()
        if rank not in RANKS:
            raise ValueError(f"unknown rank {rank!r}; the ranks of an instant are {', '.join(RANKS)}")
        return cls(1 if side == "after" else -1, RANKS[rank], of)

    def order(self, tasks: Mapping[str, int]) -> float:
        """Where that is among the orders of its rank; ``tasks``: the number of each task, by its name.
        Raises ValueError if no task has the name.
        """
        if self.of is None:
            return ORDER - 2 if self.side > 0 else -1  # ahead of what strikes before the next rank
        if self.of in tasks:
            return tasks[self.of] + self.side / 3
        if self.of.isdecimal():
            return int(self.of) + self.side / 3
        raise ValueError(f"there is no task {self.of!r}; tasks are {', '.join(tasks)}")


def _checked(text: str) -> str:
    Turn.parse(text)
    return text


TurnText = Annotated[str, AfterValidator(_checked)]
"""A turn as a scenario writes it."""
