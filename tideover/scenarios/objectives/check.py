"""A scenario run and held against its objectives.

`tideover check` and `tideover.check` call it; what a check prints as JSON, and its frame, is changed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tideover.models.config import Scenario
from tideover.models.schema import counted
from tideover.scenarios import runs
from tideover.scenarios.errors import Problem, ScenarioError
from tideover.scenarios.objectives.objective import KEY, Judgement, Objective
from tideover.scenarios.yaml_source import Node, Origin
from tideover.sim.units import S

if TYPE_CHECKING:
    import pandas as pd

    from tideover.models.results import Result

LAYOUT = 1


@dataclass(frozen=True)
class Check:
    """What ``check`` found, by objective; ``strict``: whether what is unsure counts as broken."""

    result: Result
    judgements: tuple[Judgement, ...]
    strict: bool = False

    @property
    def ok(self) -> bool:
        return not self.broken

    @property
    def broken(self) -> tuple[Judgement, ...]:
        """Those whose value breaks the limit; if ``strict``, also those that are unsure."""
        return tuple(one for one in self.judgements if not self.passes(one))

    def passes(self, one: Judgement) -> bool:
        return one.verdict == "met" if self.strict else one.holds

    @property
    def remarks(self) -> list[str]:
        """What an expert would say of the objectives themselves."""
        run = self.result.scenario.run
        return [remark for one in self.judgements for remark in one.objective.remarks(run)]

    def to_dict(self) -> dict[str, Any]:
        """What ``check --json`` prints. A value that is infinite, since something was not reached by the end
        of a run, is None there, as is one that there is not; ``notes`` say which.
        """
        return {
            "schema": LAYOUT,
            "scenario": self.result.scenario.name,
            "strategy": self.result.strategy,
            "seed": self.result.scenario.run.seed,
            "replications": len(self.result.replications),
            "strict": self.strict,
            "ok": self.ok,
            "objectives": [_row(one) | {"notes": list(one.notes)} for one in self.judgements],
            "remarks": self.remarks,
            "version": self.result.version,
        }

    def to_frame(self) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame([_row(one) | {"notes": "; ".join(one.notes)} for one in self.judgements])

    def __repr__(self) -> str:
        said = [f"{one.objective.text}: {one.verdict}" for one in self.judgements]
        found = "met" if self.ok else "broken"
        return "\n  ".join([f"<Check {self.result.scenario.name!r}: {found}", *said]) + ">"

    def _repr_html_(self) -> str:
        from tideover.models.results import html

        return html(_row(one) for one in self.judgements)


def _row(one: Judgement) -> dict[str, Any]:
    unit = "ratio" if one.objective.is_of_parts else one.objective.metric.column.unit
    found = {name: getattr(one, name) for name in ("value", "low", "high")}
    found |= {"level": one.objective.level, "limit": one.limit, "unit": unit}
    found |= {name: getattr(one, name) for name in ("n", "breaking", "bound", "verdict", "holds")}
    return {"objective": one.objective.text, **found, "ended": counted(one.endings)}


def asked(scenario: Scenario, texts: Iterable[str] | None, source: str, file: str) -> list[Objective]:
    """The objectives to be checked: those of ``texts``, or the scenario's own for None.

    ``source``, ``file``: who gives these texts, and the scenario, as messages name it. Raises
    ScenarioError for a text that is none, for none at all, and for recoveries where nothing fails.
    """
    found: list[Objective] = []
    places: list[tuple[str, str]] = []
    problems: list[Problem] = []
    if texts is None:
        found = [Objective.parse(one.objective, one.level) for one in scenario.slo]
        places = [(file, f"{KEY}.{number}") for number in range(len(found))]
    for text in texts or ():
        try:
            found.append(Objective.parse(text, at=Node(text, Origin(source)), key=text or repr(text)))
            places.append((source, text))
        except ScenarioError as error:
            problems += error.problems
    if not (found or problems):
        said = "has no objectives; give some there, slo: [recovery_p95 <= 20 s, lost = 0], or by --objective"
        problems.append(Problem(file, None, KEY, said))
    if not problems and not scenario.failures and scenario.detector is None:
        problems = [
            Problem(place, None, key, "nothing fails in this scenario, so nothing recovers; give it failures")
            for one, (place, key) in zip(found, places, strict=True)
            if one.metric.table == "recoveries"
        ]
    if problems:
        raise ScenarioError(problems)
    return found


def check(
    scenario: Scenario,
    objectives: Iterable[Objective],
    *,
    strict: bool = False,
    report: Callable[[int, int], None] | None = None,
) -> Check:
    """Run a scenario and judge it; ``report`` as for ``runs.run``. Raises RunFailed."""
    result = runs.run(scenario, report=report)
    found = [
        one.judge(
            result.runs,
            result.recoveries,
            result.timeline if one.metric.table == "timeline" else None,
            result.tasks if one.metric.table == "tasks" else None,
            warmup_s=result.scenario.run.warmup / S,
        )
        for one in objectives
    ]
    return Check(result, tuple(found), strict)
