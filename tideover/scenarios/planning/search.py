"""How the cheapest candidate is looked for (`Racing`), what has been found out so far (`Session`), and what
one candidate costs and keeps (`judged`).

`plan` asks a `Search` and tells it; anybody's optimiser can take its place, and anybody's `Evaluator` do the
runs. What is tried next is changed in `Racing`.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tideover.models import config
from tideover.models.advice import overloads
from tideover.models.config import daily_share
from tideover.models.job.cluster import Hosts
from tideover.models.schema import HEADLINE, frame
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import Scenario
from tideover.scenarios.objectives.objective import Judgement
from tideover.scenarios.planning.spec import HOURS_PER_MONTH, Effort, Index, Space, Spec, Wanted
from tideover.scenarios.statistics.intervals import of_mean
from tideover.sim.draws import Draws
from tideover.sim.units import S

if TYPE_CHECKING:
    import pandas as pd

SECONDS_PER_MONTH = HOURS_PER_MONTH * 3600
GB = 1e9
PARTS = ("machines", "store", "network", "downtime")
"""What a month's cost consists of."""
Floats = npt.NDArray[np.float64]


def machines_per_month(scenario: config.Scenario) -> float:
    """What all machines of a scenario cost in a month, those without work among them: they are paid for."""
    if not isinstance(scenario.hosts, Hosts):
        return 0.0
    each = ((machine.price or 0.0) * machine.count for machine in scenario.hosts.machines.values())
    return HOURS_PER_MONTH * sum(each)


@dataclass(frozen=True)
class Candidate:
    """A candidate, by the values of the plan's choices, and the tables of its replications so far; ``costs``:
    per month, one of each replication, by their parts; ``error``: why a run of it failed.
    """

    values: Mapping[str, Any]
    scenario: Scenario
    runs: pd.DataFrame
    recoveries: pd.DataFrame
    costs: Mapping[str, Floats]
    judgements: tuple[Judgement, ...]
    level: float
    error: str | None = None

    @property
    def n(self) -> int:
        return len(self.runs)

    @property
    def total(self) -> Floats:
        """What it costs per month, by replication."""
        return np.sum([self.costs[part] for part in PARTS], axis=0)

    @property
    def cost(self) -> float:
        return float(self.total.mean())

    @property
    def mean_costs(self) -> dict[str, float]:
        """What each part costs per month."""
        return {part: float(self.costs[part].mean()) for part in PARTS}

    @property
    def cost_interval(self) -> tuple[float, float]:
        return of_mean(self.total, self.level) or (-math.inf, math.inf)

    @property
    def holds(self) -> bool:
        """Whether all objectives hold, as far as these replications show."""
        return self.error is None and all(one.holds for one in self.judgements)

    @property
    def violation(self) -> float:
        """By how much the objective that is missed most is missed, in parts of its limit; 0: none is."""
        if self.error is not None:
            return math.inf
        return max((max(0.0, -margin(one)) for one in self.judgements), default=0.0)

    @property
    def missed(self) -> list[str]:
        """The objectives that do not hold, the one that is missed most first."""
        if self.error is not None:
            return [self.error]
        missed = sorted((one for one in self.judgements if not one.holds), key=margin)
        return [one.objective.text for one in missed]

    def broken(self, level: float) -> bool:
        """Whether an objective is broken beyond doubt, at this level."""
        if self.error is not None:
            return True
        doubted = (replace(one.objective, level=level) for one in self.judgements if not one.holds)
        return any(one.judge(self.runs, self.recoveries).verdict == "broken" for one in doubted)


def judged(
    wanted: Wanted,
    values: Mapping[str, Any],
    scenario: Scenario,
    runs: pd.DataFrame,
    recoveries: pd.DataFrame,
) -> Candidate:
    """A candidate from the tables of its replications. Where the plan says how often what fails, each
    replication's availability is the one that its recoveries mean for such failures
    (`tideover.scenarios.statistics.availability`), not that of a run with the failures of its scenario.

    What a month costs: machines all the time; what is sent as the load of the day is, where it follows the
    hour; what is written and read, and recoveries, as in the runs.
    """
    failed = runs["error"].dropna()
    error = str(failed.iloc[0]) if len(failed) else None
    times = recoveries[HEADLINE].to_numpy(np.float64)
    times = np.where(np.isnan(times), np.inf, times)
    of, kinds = recoveries["replication"].to_numpy(np.int64), recoveries["kind"].to_numpy()
    # for each replication, seconds of recovery for each second between failures; infinite if something was
    # not recovered from by the end of the run
    down = np.zeros(len(runs))
    for kind, breaks in wanted.failures.items():
        for at, number in enumerate(runs["replication"].to_numpy(np.int64)):
            each = times[(kinds == kind) & (of == number)]
            down[at] += breaks.per_s(scenario) * (float(each.mean()) if each.size else 0.0)
    if wanted.failures:
        runs = runs.assign(availability=np.exp(-down))
    seconds = scenario.run.duration / S
    month = SECONDS_PER_MONTH / seconds
    draws = (Draws(scenario.run.seed, number) for number in runs["replication"].tolist())
    share = np.array([daily_share(scenario, each) for each in draws])
    prices = wanted.prices
    costs = {
        "machines": np.full(len(runs), machines_per_month(scenario)),
        "store": runs["store_bytes"].to_numpy(np.float64) / GB * prices.store_per_gb * month,
        "network": runs["network_bytes"].to_numpy(np.float64) / GB * prices.network_per_gb * month * share,
        # down: per hour between failures; what overlaps counts once (see the same module)
        "downtime": -np.expm1(-down) * HOURS_PER_MONTH * prices.downtime_per_hour,
    }
    judgements = tuple(one.judge(runs, recoveries) for one in wanted.objectives)
    return Candidate(values, scenario, runs, recoveries, costs, judgements, wanted.level, error)


def margin(judgement: Judgement) -> float:
    """How far a value is from its limit, in parts of the limit: positive where it holds. Of parts (an
    availability, a share of runs) what is missing to one is held against what may be missing. Infinite for
    ``=``: that holds or does not.
    """
    objective, value = judgement.objective, judgement.value
    if value is None:
        return -math.inf
    limit, above = judgement.limit, objective.is_least
    if objective.is_of_parts or (objective.metric.column.unit == "ratio" and above):
        value, limit, above = 1 - value, 1 - limit, False
    scale = abs(limit) if abs(limit) > 1e-12 else 1.0
    if objective.sign == "=" and not objective.is_of_parts:
        return math.inf if judgement.holds else -abs(value - limit) / scale
    return ((value - limit) if above else (limit - value)) / scale


def saved(candidate: Candidate, other: Candidate, level: float) -> tuple[float, float]:
    """How much less a candidate costs than another, in replications that both have: the interval."""
    n = min(candidate.n, other.n)
    return of_mean(other.total[:n] - candidate.total[:n], level) or (-math.inf, math.inf)


def best_of(candidates: Sequence[Candidate]) -> Candidate | None:
    return min((one for one in candidates if one.holds), key=lambda one: one.cost, default=None)


ASK = "ask"


@dataclass(frozen=True)
class Ask:
    """Replications ``first`` to ``last`` with these values of the choices, its rates times ``load``."""

    values: Mapping[str, Any]
    first: int
    last: int
    load: float = 1.0

    @property
    def runs(self) -> int:
        return self.last - self.first + 1


class Tables(NamedTuple):
    """What was found: tables with the columns of a result, and ``ask``: the number of the request, from 0. A
    run that failed is a row of ``runs`` with its ``error``.
    """

    runs: pd.DataFrame
    recoveries: pd.DataFrame


class Evaluator(Protocol):
    """Does all the runs that are asked for, all of one call at once if it can. Replications of one number
    have the same luck in all candidates. Requests can be built: ``Space.at`` was tried.
    """

    def __call__(self, asks: Sequence[Ask]) -> Tables:
        """The tables of these requests, which depend on nothing else."""


def tables(runs: Sequence[Mapping[str, Any]], recoveries: Sequence[Mapping[str, Any]]) -> Tables:
    """Tables of these rows, in the types of their columns."""
    return Tables(frame("runs", runs), frame("recoveries", recoveries))


Key = tuple[str, float]
"""Values of a candidate as JSON, and the load."""


class Session:
    """Does what is asked for, each run once, and judges it; ``impossible``: why a candidate cannot be built,
    by its values as JSON; ``runs`` were made at the planned load, and ``elsewhere`` at other loads.
    """

    def __init__(self, space: Space, wanted: Wanted, evaluator: Evaluator) -> None:
        self._space, self._wanted, self._evaluator = space, wanted, evaluator
        self._scenarios: dict[Key, Scenario | None] = {}
        self._found: dict[Key, Candidate] = {}
        self._overloaded: dict[Index, bool] = {}
        self.impossible: dict[str, str] = {}
        self.runs = self.elsewhere = 0

    @property
    def candidates(self) -> list[Candidate]:
        """Those at the planned load, in the order in which they were first asked for."""
        return [one for (_, load), one in self._found.items() if load == 1]

    def floor(self, index: Index) -> float | None:
        """What a candidate's machines cost in a month; None: it cannot be built."""
        scenario = self._built(self._space.values(index))
        return None if scenario is None else machines_per_month(scenario)

    def scenario(self, index: Index) -> Scenario:
        """The scenario of a candidate that can be built."""
        found = self._built(self._space.values(index))
        assert found is not None
        return found

    def overloaded(self, index: Index) -> bool:
        """Whether tasks or hosts of a candidate that can be built have more to do than they can."""
        if index not in self._overloaded:
            self._overloaded[index] = bool(overloads(self.scenario(index)))
        return self._overloaded[index]

    def evaluate(self, asks: Sequence[Ask]) -> list[Candidate]:
        """All that is known of each candidate that is asked for: runs that are not there are done, and it is
        judged anew. Raises ScenarioError for one that cannot be built.
        """
        import pandas as pd

        keys = [(json.dumps(ask.values), ask.load) for ask in asks]
        todo: dict[Key, Ask] = {}
        for key, ask in zip(keys, asks, strict=True):
            done = self._found[key].n if key in self._found else 0
            if self._built(ask.values, ask.load) is None:
                self._space.at(ask.values, ask.load)  # raises
            if ask.last >= max(done, todo[key].last + 1 if key in todo else 0):
                todo[key] = Ask(ask.values, done, ask.last, ask.load)
        found = self._evaluator([*todo.values()]) if todo else ()
        for number, (key, ask) in enumerate(todo.items()):
            before, frames = self._found.get(key), []
            for place, table in enumerate(found):
                mine = table[table[ASK] == number].drop(columns=ASK)
                mine = mine.sort_values("replication", kind="stable", ignore_index=True)
                if before is not None and len(earlier := (before.runs, before.recoveries)[place]):
                    mine = pd.concat([earlier, mine], ignore_index=True) if len(mine) else earlier
                frames.append(mine)
            scenario = self._built(ask.values, ask.load)
            assert scenario is not None
            self._found[key] = judged(self._wanted, ask.values, scenario, *frames)
            if ask.load == 1:
                self.runs += ask.runs
            else:
                self.elsewhere += ask.runs
        return [self._found[key] for key in keys]

    def _built(self, values: Mapping[str, Any], load: float = 1.0) -> Scenario | None:
        key = json.dumps(values), load
        if key not in self._scenarios:
            try:
                self._scenarios[key] = self._space.at(values, load)
            except ScenarioError as error:
                self._scenarios[key] = None
                self.impossible[key[0]] = error.problems[0].message
        return self._scenarios[key]


SLACK = 0.02
"""An objective that is predicted to be missed by less than this part of its limit may be met after all."""
BETTER = 0.01
"""A candidate is tried if it is predicted to be cheaper by this part, or to miss less by so much."""
_MOST = 0.99
"""A greater margin says no more than that the limit is far."""
_LEAST = 1e-9
"""Less than this part of the most is as good as nothing: it has to have a logarithm."""


def promising(
    tried: Floats, costs: Floats, margins: Floats, others: Floats, leader: float | None
) -> list[int]:
    """Which of ``others`` may be better, the most promising first: their numbers.

    tried    where candidates were tried, (n, d): numbers of values of ordered choices
    costs    what they cost, (n,)
    margins  how far each objective is from its limit, (n, m); at least 0 where it holds
    others   where candidates were not tried, (k, d)
    leader   cost of the cheapest that holds; None: none does

    Costs and margins are interpolated by thin plate splines: radial basis functions, as in Gutmann (2001), "A
    radial basis function method for global optimization", J. Global Optimization 19. Nothing is predicted
    from fewer points than determine a plane.
    """
    from scipy.interpolate import RBFInterpolator

    if not len(others) or np.linalg.matrix_rank(tried - tried.mean(axis=0)) < tried.shape[1]:
        return []
    scale = np.maximum(np.ptp(tried, axis=0), 1.0)
    least = -np.log1p(-np.minimum(margins, _MOST))  # of a value and its limit the logarithm of their quotient
    dearest = max(float(np.max(costs)), 1e-300)
    seen = np.column_stack([np.log(np.maximum(costs / dearest, _LEAST)), np.maximum(least, np.log(_LEAST))])
    found = RBFInterpolator(tried / scale, seen, kernel="thin_plate_spline")(others / scale)
    cost, margin = np.exp(found[:, 0]) * dearest, found[:, 1:].min(axis=1)
    if leader is not None:
        good = np.flatnonzero((cost < (1 - BETTER) * leader) & (margin > -SLACK))
        return good[np.argsort(cost[good], kind="stable")].tolist()
    good = np.flatnonzero(margin > least.min(axis=1).max() + BETTER)
    return good[np.argsort(-margin[good], kind="stable")].tolist()


INDIFFERENT = 0.01
"""A candidate that is cheaper by less than this part is not worth more replications."""
SHARE = 0.25
"""Part of an exhaustive search's runs, beyond which nobody but a leader gets more replications."""
_COARSE = 5
_BATCH = 4
_MOST_DIAGONAL = 3


class Search(Protocol):
    """What a plan needs of whoever searches; anybody's optimiser can do that in place of ``Racing``."""

    def ask(self) -> Sequence[Ask]:
        """What is to be run next, all at once; nothing: the search is over."""

    def tell(self, candidates: Sequence[Candidate]) -> None:
        """What is known of each candidate that was asked for, in that order: all its replications so far."""


class Racing:
    """The planner's own search.

    - What a candidate's machines cost is known before any run (`Session.floor`). Of a
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

    def __init__(self, spec: Spec, session: Session) -> None:
        space, effort = spec.space, spec.effort
        self._space, self._effort = space, effort
        self._floor, self._overloaded = session.floor, session.overloaded
        self._known: dict[Index, Candidate] = {}
        self._asked: list[Index] = []
        self._spent = 0
        self._counts = looks(effort)
        self._level = 1 - (1 - spec.wanted.level) / len(self._counts)
        self._first = [stride(len(c.levels)) if c.ordered else 1 for c in space.choices]
        self._ordered = [i for i, c in enumerate(space.choices) if c.ordered and len(c.levels) > 1]
        self._strides: dict[Index, list[int]] = {}
        axes = [
            sorted({*range(0, len(choice.levels), step), len(choice.levels) - 1})
            for choice, step in zip(space.choices, self._first, strict=True)
        ]
        every = dict.fromkeys(map(space.canonical, itertools.product(*axes)))
        floors = {index: cost for index in every if (cost := self._floor(index)) is not None}
        self.waiting = sorted(floors, key=lambda index: (self._overloaded(index), floors[index]))
        """Of the coarse grid what was not tried: cheap machines first, those that cannot keep up last."""

    def ask(self) -> list[Ask]:
        for wanted in (self._next_coarse, self._refine, self._predicted, self._race, self._for_the_front):
            if indices := wanted():
                self._asked = indices
                more = {index: self._more(index) for index in indices}
                self._spent += sum(more.values())
                return [
                    Ask(self._space.values(index), self._done(index), self._done(index) + more[index] - 1)
                    for index in indices
                ]
        return []

    def tell(self, candidates: Sequence[Candidate]) -> None:
        self._known.update(zip(self._asked, candidates, strict=True))
        self._asked = []

    def _done(self, index: Index) -> int:
        """Replications that a candidate has."""
        return self._known[index].n if index in self._known else 0

    def _more(self, index: Index) -> int:
        """Replications until the next look at a candidate."""
        done = self._done(index)
        return next(count for count in self._counts if count > done) - done

    @property
    def left(self) -> int:
        """So many runs of a quarter of an exhaustive search are left."""
        return int(SHARE * self._space.total * self._effort.most) - self._spent

    def _leader(self) -> Candidate | None:
        return best_of(list(self._known.values()))

    def _merit(self, index: Index) -> tuple[float, float]:
        """The less the better: what is missed, then what it costs."""
        one = self._known[index]
        return one.violation if not one.holds else -1.0, one.cost

    def _group(self, index: Index) -> Index:
        """What a candidate has of the choices without order."""
        return tuple(0 if i in self._ordered else at for i, at in enumerate(index))

    def _groups(self) -> dict[Index, list[Index]]:
        """The candidates that are known, by the choices without order."""
        found: dict[Index, list[Index]] = {}
        for index in self._known:
            found.setdefault(self._group(index), []).append(index)
        return found

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

    def _refine(self) -> list[Index]:
        """New neighbours of the best of each combination of choices without order."""
        leader, found = self._leader(), dict[Index, None]()
        for group, members in self._groups().items():
            steps = self._strides.setdefault(group, list(self._first))
            best = min(members, key=self._merit)
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
            if all(0 <= to[axis] < len(self._space.choices[axis].levels) for axis in axes):
                near = self._space.canonical(tuple(to))
                if near != index and self._floor(near) is not None:
                    yield near

    def _predicted(self) -> list[Index]:
        """Candidates that may be better by what is interpolated between those that were tried."""

        def places(indices: Sequence[Index]) -> Floats:
            return np.array([[index[i] for i in self._ordered] for index in indices], np.float64)

        leader, found = self._leader(), list[Index]()
        for group, members in self._groups().items():
            tried = [index for index in members if self._known[index].error is None]
            if self.left <= 0 or not self._ordered or not tried:
                break
            others = [index for index in self._grid[group] if index not in self._known]
            near = promising(
                places(tried),
                np.array([self._known[index].cost for index in tried]),
                np.array([[margin(each) for each in self._known[index].judgements] for index in tried]),
                places(others),
                None if leader is None else leader.cost,
            )
            worth = (others[number] for number in near if self._floor(others[number]) is not None)
            found += itertools.islice(worth, _BATCH)
        return found

    @cached_property
    def _grid(self) -> dict[Index, list[Index]]:
        """All candidates, by the choices without order."""
        found: dict[Index, list[Index]] = {}
        for index in self._space:
            found.setdefault(self._group(index), []).append(index)
        return found

    def _race(self) -> list[Index]:
        """The leader and what may be better, as far as replications, and a quarter of all runs, are left."""
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
