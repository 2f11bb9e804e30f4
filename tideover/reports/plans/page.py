"""The page of a plan."""

from __future__ import annotations

import json

from tideover.reports.html import Page, Section
from tideover.reports.plans import answer
from tideover.reports.plans.pictures import candidates_grid, pictures
from tideover.scenarios.planning.result import Plan
from tideover.scenarios.writer import to_data


def plan_page(plan: Plan) -> Page:
    """The answer, and the optimum's whole scenario."""
    best = plan.nearest
    spec = plan.spec
    setup = (
        ("Objectives", "; ".join(one.text for one in spec.wanted.objectives)),
        ("Candidates", f"{spec.space.total:,}"),
        ("Replications", f"{spec.effort.least} to {spec.effort.most} each"),
    )
    scenario = "" if best is None else json.dumps(to_data(best.scenario), indent=2, ensure_ascii=False)
    return Page(
        title=spec.name,
        kind="the cheapest configuration that meets the objectives",
        verdict=answer.verdict(plan),
        warnings=spec.remarks,
        setup=setup,
        sections=(
            Section("Figures", "figures", pictures=pictures(plan)),
            Section("Why, and how far it holds", "answer", sentences=tuple(answer.sentences(plan))),
            Section(
                "Candidates", "candidates", tables=tuple(answer.tables(plan)), grid=candidates_grid(plan)
            ),
        ),
        scenarios_title="The optimum as a scenario" if plan.best else "The nearest as a scenario",
        scenarios=() if best is None else ((spec.name, scenario),),
        glossary={},
    )
