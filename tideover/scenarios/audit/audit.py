"""An audit: a scenario once for each step of its protocol, kind of fault and victim, and once more during the
recoveries; what that leaves of the guarantee which its strategy claims.

``tideover audit`` and `tideover.api.audit` call ``audit``; `tideover.reports.audits` shows it. ``to_dict`` is
what ``--json`` prints: keys may be added there, and none renamed.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tideover.models.config import Scenario, deployment_of, if_nothing_fails
from tideover.scenarios.audit import cases
from tideover.scenarios.audit.examples import Example, examples, struck, told
from tideover.scenarios.part_builder import part_to_data, to_data
from tideover.scenarios.sweeps.engine import Engine
from tideover.scenarios.sweeps.sweep import Report
from tideover.sim.draws import Draws
from tideover.sim.registry import kind_of
from tideover.sim.units import S

QUIET = cases.Case((), (), ())


@dataclass(frozen=True)
class Audit:
    """What came out of a ``scenario`` without failures of its own: if nothing fails (``quiet``), and of each
    case with one fault (``singles``), and with a second one. ``command``: the beginning of one that runs it.
    """

    scenario: Scenario
    command: tuple[str, ...]
    quiet: cases.Verdict
    singles: list[tuple[cases.Case, cases.Verdict]]
    doubles: list[tuple[cases.Case, cases.Verdict]] = field(default_factory=list)

    @property
    def claimed(self) -> str:
        return self.scenario.strategy.promises_in(deployment_of(self.scenario).topology)

    @property
    def survives(self) -> list[str]:
        """The kinds of faults after which it claims to keep that, of those that were tried."""
        return [kind for kind in self.kinds if kind in self.scenario.strategy.survives]

    @property
    def kinds(self) -> list[str]:
        return list(dict.fromkeys(case.victims[0].kind for case, _ in self.singles))

    def by_kind(self, kind: str) -> list[cases.Verdict]:
        return [v for case, v in self.singles if case.victims[0].kind == kind and not v.error]

    @cached_property
    def claims(self) -> list[tuple[cases.Case, cases.Verdict]]:
        """The runs for which the strategy makes its promise: one fault, of a kind that it survives."""
        kinds, strategy = self.survives, self.scenario.strategy
        stateful = {name for name, c in self.scenario.topology.items() if getattr(c, "keeps_state", True)}
        return [
            (case, verdict)
            for case, verdict in self.singles
            if case.victims[0].kind in kinds
            and (strategy.stateless_too or case.victims[0].name.partition(".")[0] in stateful)
        ]

    @property
    def observed(self) -> str:
        return cases.guarantee([self.quiet, *(verdict for _, verdict in self.claims if not verdict.error)])

    @property
    def after_two(self) -> str | None:
        """What is left after a second fault, during the recovery from the first; None: not tried."""
        return cases.guarantee(v for _, v in self.doubles if not v.error) if self.doubles else None

    @property
    def holds(self) -> bool:
        """Whether that is what it claims, and all runs could be made."""
        return cases.holds(self.claimed, self.observed) and not self.failed

    @property
    def failed(self) -> list[tuple[cases.Case, cases.Verdict]]:
        return [(case, verdict) for case, verdict in [*self.singles, *self.doubles] if verdict.error]

    @cached_property
    def examples(self) -> list[Example]:
        found = [(QUIET, self.quiet), *self.singles, *self.doubles]
        return examples(self.scenario, found, self.broken)

    def broken(self, case: cases.Case, verdict: cases.Verdict) -> bool:
        claimed = case is QUIET or any(case is each for each, _ in self.claims)
        return claimed and not cases.holds(self.claimed, cases.guarantee([verdict]))

    def replay(self, case: cases.Case) -> str:
        failures = f"failures={json.dumps(_data(case))}"
        return shlex.join([*self.command, "--set", failures, "--set", "run.replications=1", "--trace"])

    def to_dict(self) -> dict[str, Any]:
        return {
            "scenario": to_data(self.scenario),
            "strategy": kind_of(self.scenario.strategy),
            "claimed": self.claimed,
            "observed": self.observed,
            "holds": self.holds,
            "without_failures": cases.guarantee([self.quiet]),
            "kinds": [
                {
                    "kind": kind,
                    "claimed": self.claimed if kind in self.survives else None,
                    "observed": cases.guarantee(self.by_kind(kind)),
                    "runs": len(self.by_kind(kind)),
                }
                for kind in self.kinds
            ],
            "second_fault": self.after_two,
            "runs": len(self.singles) + len(self.doubles),
            "errors": [
                {"what": told(case), "faults": _data(case), "error": verdict.error}
                for case, verdict in self.failed
            ],
            "examples": [
                {"harm": example.harm, "step": example.step, "what": example.text}
                | {"tuples": list(example.tuples), "causes": list(example.causes), "alike": example.alike}
                | {"broken": self.broken(example.case, example.verdict), "faults": _data(example.case)}
                | {"replay": self.replay(example.case)}
                for example in self.examples
            ],
        }


def _data(case: cases.Case) -> list[Any]:
    """The faults as a file would say them, without what is so by default."""
    told = []
    for fault in case.faults:
        said = {"kind"} | {
            name
            for name, field in type(fault).model_fields.items()
            if getattr(fault, name) != field.get_default(call_default_factory=True)
        }
        told.append({name: value for name, value in part_to_data(fault).items() if name in said})
    return told


def audit(
    scenario: Scenario,
    command: tuple[str, ...],
    asked: cases.Asked,
    doer: Engine,
    report: Report = lambda what, done, total: None,
) -> Audit:
    """Audit a scenario; its own failures are left out. ``command``: the beginning of one that runs it;
    ``doer``: who does the runs. Raises as a sweep does.
    """
    by_failure = scenario.run.fails_at is not None
    scenario = QUIET.scenario(if_nothing_fails(scenario, Draws(scenario.run.seed)))
    if by_failure:  # each case would begin at a time of day of its own
        command = (*command, "--set", "run.fails_at=null", "--set", f"run.starts_at={scenario.run.starts_at}")
    world = struck(scenario, QUIET)
    # Steps are struck in two windows, or periods of the strategy's cycle, after some windows have passed.
    lengths = [c.window.length for c in world.job.topology.components if c.window and c.window.length]
    cycle = scenario.strategy.cycle()
    period = max([*lengths, *([] if cycle is None else [cycle[1]]), S])
    begin = max(scenario.run.warmup, 2 * max([*lengths, S])) if asked.begin is None else asked.begin
    end = min(begin + 2 * period if asked.end is None else asked.end, scenario.run.duration)
    found = cases.moments(world, begin, end)
    every = cases.victims(world, asked.kinds, asked.tasks)
    hit = [strike for moment in cases.chosen(found, asked.each) for strike in cases.strikes(moment, found)]
    single = cases.different(cases.with_fault(QUIET, hit, every, asked))
    quiet, *verdict = cases.verdicts(scenario, (QUIET, *single), doer, report)
    singles = list(zip(single, verdict, strict=True))
    if not asked.second:
        return Audit(scenario, command, quiet, singles)
    again = cases.different(_again(scenario, singles, found, every, asked))
    doubles = list(zip(again, cases.verdicts(scenario, again, doer, report), strict=True))
    return Audit(scenario, command, quiet, singles, doubles)


def _again(
    scenario: Scenario,
    singles: Sequence[tuple[cases.Case, cases.Verdict]],
    quiet: Sequence[cases.Moment],
    every: Sequence[cases.Victim],
    asked: cases.Asked,
) -> list[cases.Case]:
    """Crashes while each victim of one, or the job that was stopped, is down, and beside each step that only
    its recovery, or such a stop, takes.
    """
    known = {moment.step for moment in quiet}
    crashes = [victim for victim in every if victim.kind == "crash_task"]
    found: list[cases.Case] = []
    for victim in [*crashes, *(victim for victim in every if victim == cases.JOB)]:
        of = [case for case, _ in singles if case.victims == (victim,)]
        if not of:
            continue
        first = next((case for case in of if case.strikes[0].side == "meanwhile"), of[0])
        world = struck(scenario, first)
        struck_at = first.faults[0].at or 0
        back = max((outage.ready_at for outage in world.outages), default=struck_at)
        end = min(back + asked.restart + S, scenario.run.duration)
        later = cases.moments(world, struck_at + 1, end)
        new = cases.chosen([moment for moment in later if moment.step not in known], 1)
        hit = [strike for moment in new for strike in cases.strikes(moment, later)]
        middle = (struck_at + back) // 2
        hit.append(cases.Strike(cases.Moment(middle, victim.name, "down"), "meanwhile", middle, None))
        found += cases.with_fault(first, hit, crashes, asked)
    return found
