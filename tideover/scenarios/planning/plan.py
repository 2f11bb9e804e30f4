"""Finding a plan: who searches is asked, who runs is told, until there is nothing to ask."""

from __future__ import annotations

from collections.abc import Callable

from tideover.scenarios.planning.candidate import Candidate, best_of
from tideover.scenarios.planning.evaluator import Ask, Evaluator
from tideover.scenarios.planning.headroom import Headroom, headroom
from tideover.scenarios.planning.result import Plan
from tideover.scenarios.planning.search import Racing, Search
from tideover.scenarios.planning.session import Session
from tideover.scenarios.planning.spec import Spec
from tideover.scenarios.probe import scales

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
    """The search of its own."""
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
