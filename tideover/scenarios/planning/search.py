"""How the cheapest candidate is looked for: a coarse grid, ever finer steps around the best, and races.

Whoever searches is asked what to run and is told what came of it (``Search``); anybody's optimiser can do
that in place of ``Racing``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from tideover.scenarios.planning.candidate import Candidate, Floats, best_of, margin, saved
from tideover.scenarios.planning.evaluator import Ask
from tideover.scenarios.planning.offers import Effort
from tideover.scenarios.planning.space import Index, Space
from tideover.scenarios.planning.surrogate import promising

INDIFFERENT = 0.01
"""A candidate that is cheaper by less than this part is not worth more replications."""
SHARE = 0.25
"""Part of an exhaustive search's runs, beyond which nobody but a leader gets more replications."""
_COARSE = 5
_BATCH = 4
_MOST_DIAGONAL = 3


class Search(Protocol):
    """What a plan needs of whoever searches."""

    def ask(self) -> Sequence[Ask]:
        """What is to be run next, all at once; nothing: the search is over."""

    def tell(self, candidates: Sequence[Candidate]) -> None:
        """What is known of each candidate that was asked for, in that order: all its replications so far."""


class Racing:
    """The planner's own search.

    - What a candidate's machines cost is known before any run (``floor``; None: it cannot be built). Of a
      coarse grid the cheapest are tried first, with ``least`` replications, until nothing that is left can be
      cheaper than one that holds. So is it known which are ``overloaded``: they come after all others, as
      they rarely meet an objective.
    - Refinement: for each combination of choices that have no order, steps along the ordered ones, half as
      long whenever none of them helps (pattern search: Hooke and Jeeves (1961), "Direct search solution of
      numerical and statistical problems", JACM 8(2)); a point is better if it misses its objectives by less,
      or meets them for less. Then whatever is better by what is interpolated between the points that were
      tried (`surrogate`): along a limit, steps of one length get stuck. So it is assumed that there is no
      second best beyond a ridge of the coarse grid.
    - Race: the cheapest that holds so far (the leader) gets more replications, twice as many each time, up to
      ``most``; so does each candidate that may be better than it: one that is cheaper and not broken beyond
      doubt, or one whose cost is not clearly higher, by the paired differences of their replications. Each of
      at most K looks at a candidate is taken at the level 1 - (1 - confidence) / K, so one that is as good is
      dropped with a probability of at most 1 - confidence for each objective, and as much for its cost
      (Bonferroni). Candidates drop out one by one, as in Maron and Moore (1994), "Hoeffding races", NIPS 6.
      The race ends when a quarter of the runs is spent that all candidates with all replications would take;
      only leaders still get all of theirs. What is not decided then is told (``Plan.undecided``).
    - What is left of that quarter goes to the rest of the coarse grid, for the front.
    """

    def __init__(
        self,
        space: Space,
        effort: Effort,
        confidence: float,
        floor: Callable[[Index], float | None],
        overloaded: Callable[[Index], bool],
    ) -> None:
        self._space, self._effort, self._floor, self._overloaded = space, effort, floor, overloaded
        self._known: dict[Index, Candidate] = {}
        self._asked: list[Index] = []
        self._spent = 0
        self._counts = looks(effort)
        self._level = 1 - (1 - confidence) / len(self._counts)
        strides = [stride(len(c.levels)) if c.ordered else 1 for c in space.choices]
        self._ordered = [i for i, c in enumerate(space.choices) if c.ordered and len(c.levels) > 1]
        self._strides: dict[Index, list[int]] = {}
        self._first = strides
        self.waiting = self._coarse(strides)
        """Of the coarse grid what was not tried yet."""

    def ask(self) -> list[Ask]:
        """What to run next."""
        for wanted in (self._next_coarse, self._refine, self._predicted, self._race, self._for_the_front):
            asks = [self._ask(index) for index in wanted()]
            if asks:
                self._spent += sum(ask.runs for ask in asks)
                return asks
        return []

    def tell(self, candidates: Sequence[Candidate]) -> None:
        """What came of it."""
        self._known.update(zip(self._asked, candidates, strict=True))
        self._asked = []

    def _ask(self, index: Index) -> Ask:
        """The next look at a candidate."""
        self._asked.append(index)
        done = self._known[index].n if index in self._known else 0
        return Ask(self._space.values(index), done, done + self._more(index) - 1)

    # -- the coarse grid -------------------------------------------------------------------------------------

    def _coarse(self, strides: Sequence[int]) -> list[Index]:
        """The candidates of the coarse grid that can be built, those with the cheapest machines first, and
        last those that cannot keep up.
        """
        axes = [
            sorted({*range(0, len(choice.levels), step), len(choice.levels) - 1})
            for choice, step in zip(self._space.choices, strides, strict=True)
        ]
        every = dict.fromkeys(map(self._space.canonical, itertools.product(*axes)))
        floors = {index: floor for index in every if (floor := self._floor(index)) is not None}
        return sorted(floors, key=lambda index: (self._overloaded(index), floors[index]))

    def _next_coarse(self) -> list[Index]:
        """Those of the next machines, if they may be cheaper than the leader."""
        leader = self._leader()
        worth = (one for one in self.waiting if leader is None or not self._dearest(one, leader))
        if (first := next(worth, None)) is None:
            return []
        alike = [one for one in self.waiting if self._overloaded(one) == self._overloaded(first)]
        floor = self._floor(alike[min(_BATCH, len(alike)) - 1])
        assert floor is not None
        batch = [index for index in alike if (self._floor(index) or 0.0) <= floor]
        self.waiting = [index for index in self.waiting if index not in batch]
        return batch

    def _dearest(self, index: Index, leader: Candidate) -> bool:
        """Whether a candidate's machines alone cost as much as the leader."""
        floor = self._floor(index)
        return floor is None or floor >= leader.cost

    # -- refinement ------------------------------------------------------------------------------------------

    def _refine(self) -> list[Index]:
        """New neighbours of the best of each combination of choices without order."""
        leader, found = self._leader(), dict[Index, None]()
        for group in self._groups():
            steps = self._strides.setdefault(group, list(self._first))
            best = min(self._members(group), key=self._merit)
            while True:
                near = [
                    index
                    for index in self._neighbours(best, steps)
                    if index not in self._known and (leader is None or not self._dearest(index, leader))
                ]
                if near or all(step == 1 for step in steps):
                    break
                steps[:] = [max(1, step // 2) for step in steps]
            found |= dict.fromkeys(near)
        return list(found)

    def _predicted(self) -> list[Index]:
        """Candidates that may be better by what is interpolated between those that were tried."""
        leader, found = self._leader(), list[Index]()
        for group in self._groups():
            tried = [index for index in self._members(group) if self._known[index].error is None]
            others = [index for index in self._grid[group] if index not in self._known]
            if self.left <= 0 or not self._ordered or not tried:
                break
            near = promising(
                self._places(tried),
                np.array([self._known[index].cost for index in tried]),
                np.array([[margin(each) for each in self._known[index].judgements] for index in tried]),
                self._places(others),
                None if leader is None else leader.cost,
            )
            worth = (others[number] for number in near if self._floor(others[number]) is not None)
            found += itertools.islice(worth, _BATCH)
        return found

    @cached_property
    def _grid(self) -> dict[Index, list[Index]]:
        """All candidates of each combination of choices without order."""
        found: dict[Index, list[Index]] = {}
        for index in self._space:
            found.setdefault(self._group(index), []).append(index)
        return found

    def _places(self, indices: Sequence[Index]) -> Floats:
        """Where candidates are, by their ordered choices."""
        return np.array([[index[i] for i in self._ordered] for index in indices], np.float64)

    def _groups(self) -> Iterable[Index]:
        return dict.fromkeys(self._group(index) for index in self._known)

    def _group(self, index: Index) -> Index:
        return tuple(0 if i in self._ordered else at for i, at in enumerate(index))

    def _members(self, group: Index) -> list[Index]:
        return [index for index in self._known if self._group(index) == group]

    def _merit(self, index: Index) -> tuple[float, float]:
        """The less the better: what is missed, then what it costs."""
        one = self._known[index]
        return one.violation if not one.holds else -1.0, one.cost

    def _neighbours(self, index: Index, steps: Sequence[int]) -> Iterator[Index]:
        """One step away, along each ordered choice or some of them at once."""
        axes = self._ordered
        together = len(axes) if len(axes) <= _MOST_DIAGONAL else 2
        for moves in itertools.product((-1, 0, 1), repeat=len(axes)):
            if not 0 < sum(map(abs, moves)) <= together:
                continue
            to = list(index)
            for axis, move in zip(axes, moves, strict=True):
                to[axis] += move * steps[axis]
            inside = all(0 <= to[axis] < len(self._space.choices[axis].levels) for axis in axes)
            if (
                inside
                and (near := self._space.canonical(tuple(to))) != index
                and self._floor(near) is not None
            ):
                yield near

    # -- the race --------------------------------------------------------------------------------------------

    def _leader(self) -> Candidate | None:
        return best_of(list(self._known.values()))

    def _race(self) -> list[Index]:
        """The leader and whatever may be better, the most promising first, as far as they have not got all
        their replications, and the rest as far as a quarter of all runs goes.
        """
        leader = self._leader()
        open_ = [index for index, one in self._known.items() if one.n < self._effort.most]
        racing = [index for index in open_ if self._known[index] is not leader]
        racing = [index for index in racing if contends(self._known[index], leader, self._level)]
        racing.sort(key=self._merit)
        found = [index for index in open_ if self._known[index] is leader]
        left = self.left - sum(self._effort.most - self._known[index].n for index in found)
        for index in racing:
            left -= self._more(index)
            if left < 0:
                break
            found.append(index)
        return found

    @property
    def left(self) -> int:
        """So many runs of a quarter of an exhaustive search are left."""
        return int(SHARE * self._space.total * self._effort.most) - self._spent

    def _more(self, index: Index) -> int:
        """Replications until the next look at a candidate."""
        done = self._known[index].n if index in self._known else 0
        return next(count for count in self._counts if count > done) - done

    # -- the front -------------------------------------------------------------------------------------------

    def _for_the_front(self) -> list[Index]:
        """The rest of the coarse grid, as far as a quarter of all runs goes."""
        many = max(0, self.left // self._effort.least)
        batch, self.waiting = self.waiting[:many], []
        return [index for index in batch if index not in self._known]


def contends(one: Candidate, leader: Candidate | None, level: float) -> bool:
    """Whether a candidate may be better than the leader, as far as is known at this level."""
    if leader is not None and saved(one, leader, level)[1] <= INDIFFERENT * leader.cost:
        return False
    return one.holds or not one.broken(level)


def looks(effort: Effort) -> list[int]:
    """After how many replications a candidate is looked at: twice as many each time.

    >>> looks(Effort(least=4, most=20))
    [4, 8, 16, 20]
    """
    found = [effort.least]
    while found[-1] < effort.most:
        found.append(min(effort.most, 2 * found[-1]))
    return found


def stride(levels: int) -> int:
    """How many values of so many a coarse grid goes on at a time: it has three to five of them.

    >>> [stride(n) for n in (2, 5, 6, 9, 17, 33)]
    [1, 1, 2, 4, 8, 16]
    """
    if levels <= _COARSE:
        return 1
    return 1 << ((levels - 1) // 2).bit_length() - 1
