"""Which tasks have to be moved together, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise


def groups(tasks: int, ways: Iterable[tuple[int, int]], feel: Iterable[Sequence[int]]) -> list[list[int]]:
    """Tasks, by number, in groups: those that ``feel`` one another at any instant, and all that are on a way
    from one of a group to another; a group comes before those that it sends to (``ways``: from, to).
    """
    below: list[set[int]] = [set() for _ in range(tasks)]
    above: list[set[int]] = [set() for _ in range(tasks)]
    circles = (pair for together in feel for pair in pairwise((*together, together[0])))
    for up, down in (*ways, *circles):
        below[up].add(down)
        above[down].add(up)
    found: list[list[int]] = []
    seen: set[int] = set()
    for task in reversed(_finished(range(tasks), below, set())):
        if task not in seen:
            found.append(sorted(_finished([task], above, seen)))
    return found


def _finished(starts: Iterable[int], to: Sequence[set[int]], seen: set[int]) -> list[int]:
    """All that can be reached and was not ``seen``, each when all that it leads to is finished."""
    finished: list[int] = []
    for start in starts:
        ahead = [] if start in seen else [(start, iter(sorted(to[start])))]
        seen.add(start)
        while ahead:
            task, others = ahead[-1]
            other = next((other for other in others if other not in seen), None)
            if other is None:
                finished.append(task)
                ahead.pop()
            else:
                seen.add(other)
                ahead.append((other, iter(sorted(to[other]))))
    return finished
