"""Finding a plan: who searches is asked, who runs is told, until there is an answer."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np

from tideover.models.effort import effort, slowness
from tideover.models.schema import TABLES, conform
from tideover.scenarios.planning.candidate import Candidate, best_of
from tideover.scenarios.planning.result import TRIES, Headroom, Plan, headroom
from tideover.scenarios.planning.search import ASK, Ask, Evaluator, Racing, Search, Session, Tables, tables
from tideover.scenarios.planning.spec import Space, Spec
from tideover.scenarios.saturation import scales
from tideover.scenarios.scenario import Scenario
from tideover.scenarios.spark.settings import Place
from tideover.scenarios.sweeps import rows, sweep
from tideover.scenarios.sweeps.engine import Engine
from tideover.scenarios.sweeps.survey import LEAST_S, Made
from tideover.scenarios.sweeps.sweep import runs_of

_LOOKED_AT = 40
"""So many candidates, evenly spread over those of the coarse grid, stand for the rest."""


@dataclass(frozen=True)
class Forecast:
    """Of a plan, on one core of this machine.

    most_runs    if all candidates took all replications
    runs         that are made as a rule: the coarse grid and one candidate in full, a quarter of the former
                 if this is less, and those at other loads
    run_s        how long one takes; None: none of the candidates that were looked at can be built
    first_s      until the first candidates have their least replications
    """

    candidates: int
    most_runs: int
    runs: int
    run_s: float | None
    first_s: float | None

    @property
    def core_s(self) -> float | None:
        return None if self.run_s is None else self.run_s * self.runs


def forecast(spec: Spec) -> Forecast:
    """Without any run."""
    session = Session(spec.space, spec.wanted, lambda asks: tables([], []))  # nothing is run
    most = spec.space.total * spec.effort.most
    search = racing(spec, session)
    coarse = search.waiting
    runs = min(search.left, len(coarse) * spec.effort.least + spec.effort.most)
    runs += TRIES * spec.effort.most
    each = {
        index: LEAST_S + effort(session.scenario(index)).seconds * slowness()
        for index in coarse[:: max(1, len(coarse) // _LOOKED_AT)]
    }
    if not each:
        return Forecast(spec.space.total, most, runs, None, None)
    first = sum(ask.runs for ask in search.ask()) * each[coarse[0]]
    return Forecast(spec.space.total, most, runs, float(np.mean(list(each.values()))), first)


Say = Callable[[str, float], None]
"""Called with what is being done, and the number of runs at the planned load that are done."""


def _scenario(space: Space, ask: Ask) -> Scenario:
    return space.at(ask.values, ask.load)


class OnEngine:
    def __init__(self, space: Space, doer: Engine, say: Say) -> None:
        self._space, self._engine, self._say = space, doer, say
        self._runs = 0  # at the planned load

    def __call__(self, asks: Sequence[Ask]) -> Tables:
        # a run is known by its scenario, so what an earlier call or an interrupted plan has done is there
        asked = Made("plan", tuple(asks), partial(_scenario, self._space))
        wanted = [(ask.first, ask.last + 1) for ask in asks]
        planned = all(ask.load == 1 for ask in asks)

        def tell(what: str, done: float, total: int) -> None:
            self._say(*((what, self._runs + done) if planned else ("trying other loads", self._runs)))

        found = runs_of(asked, wanted, self._engine, tell)
        if planned:
            self._runs += sum(ask.runs for ask in asks)
        frames = {name: rows.tidy(found, name, {}).to_pandas() for name in ("runs", "recoveries")}
        return Tables(
            *(conform(f.rename(columns={"point": ASK}), TABLES[name]) for name, f in frames.items())
        )


@contextmanager
def kept(space: Space, out: str | os.PathLike[str] | None, where: Place, say: Say) -> Iterator[OnEngine]:
    """The evaluator of a plan's runs, which are kept in ``out``, a directory for results (None: only for
    now), and done by ``where``. Raises as a sweep does.
    """
    with sweep.kept(out, where, lambda what: say(what, 0)) as doer:
        yield OnEngine(space, doer, say)


MakeSearch = Callable[[Spec, Session], Search]
Report = Callable[[str, int, int], None]
"""Called with what is done, the number of runs so far, and the most that there may be."""


class Interrupted(KeyboardInterrupt):
    """Somebody has ended the search early; ``plan``: what it had found by then."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.plan = plan


def plan(
    spec: Spec,
    evaluator: Evaluator,
    search: MakeSearch | None = None,
    report: Report = lambda what, done, most: None,
    answered: Callable[[Plan], None] = lambda plan: None,
) -> Plan:
    """Find the cheapest candidate on which all objectives hold.

    ``evaluator``: who does the runs. ``search``: makes who decides what is run, from the
    plan and what it has found (`tideover.scenarios.planning.search.Search`); None: `Racing`. ``report`` hears
    how many runs are done, ``answered`` of each better answer on the way, be it one that is surer: a plan of
    what is known then, without headroom. Raises Interrupted on Ctrl-C.
    """
    exhaustive = spec.space.total * spec.effort.most
    session = Session(spec.space, spec.wanted, evaluator)

    def result(more: Headroom | None, why: str, whole: bool = True) -> Plan:
        runs = session.runs, session.elsewhere, exhaustive
        return Plan(spec, session.candidates, *runs, more, why, dict(session.impossible), whole)

    before: Candidate | None = None
    try:
        searching = search(spec, session) if search else racing(spec, session)
        while asks := searching.ask():
            searching.tell(session.evaluate(asks))
            report("simulating", session.runs, exhaustive)
            found = result(None, "the search is not over", whole=False)
            if found.nearest is not before:
                before = found.nearest
                answered(found)
        return result(*_headroom(spec, session, best_of(session.candidates)))
    except KeyboardInterrupt:
        raise Interrupted(result(None, "the search was ended early", whole=False)) from None


def racing(spec: Spec, session: Session) -> Racing:
    return Racing(spec.space, spec.effort, spec.wanted.level, session.floor, session.overloaded)


def _headroom(spec: Spec, session: Session, best: Candidate | None) -> tuple[Headroom | None, str]:
    """What more load the optimum takes, or why that is not known."""
    if best is None:
        return None, "nothing is feasible"
    if not scales(best.scenario):
        return None, "its arrivals have no rate to scale"

    def at_load(load: float) -> Candidate:
        (found,) = session.evaluate([Ask(best.values, 0, best.n - 1, load)])
        return found

    return headroom(best, at_load), ""
