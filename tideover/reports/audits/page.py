"""The page of an audit."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tideover.models.config import Scenario
from tideover.reports.audits import answer
from tideover.reports.audits.pictures import pictured
from tideover.reports.formatting import strategy_name
from tideover.reports.html import Page, Section
from tideover.scenarios.audit.audit import Audit
from tideover.scenarios.writer import to_data
from tideover.sim.registry import kind_of


def audits_page(audits: Sequence[Audit]) -> Page:
    """Several audits: what each came to, and the smallest example of each."""
    found = []
    for audit in audits:
        shown = next(answer.steps(audit), None)
        if shown is not None:
            example, text = shown
            pictures = (pictured(audit, example),) if example.case.faults else ()
            name = kind_of(audit.scenario.strategy)
            told = (answer.verdict(audit), text, audit.replay(example.case))
            found.append(Section(strategy_name(name), name, sentences=told, pictures=pictures))
    return Page(
        title="Audits",
        kind="what strategies guarantee, by failing at each step of their protocols",
        verdict=answer.verdicts(audits),
        setup=(("Faults", ", ".join(dict.fromkeys(kind for audit in audits for kind in audit.kinds))),),
        sections=(Section("Answer", "answer", tables=(answer.overview(audits),)), *found),
        scenarios=tuple((kind_of(a.scenario.strategy), _json(a.scenario)) for a in audits),
        glossary={},
    )


def audit_page(audit: Audit) -> Page:
    """The answer, and the smallest examples."""
    found = tuple(
        Section(
            f"Example {number}",
            f"example-{number}",
            sentences=(text, audit.replay(example.case)),
            pictures=(pictured(audit, example),) if example.case.faults else (),
        )
        for number, (example, text) in enumerate(answer.steps(audit), 1)
    )
    return Page(
        title=f"Audit: {audit.scenario.name}",
        kind="what a strategy guarantees, by failing at each step of its protocol",
        verdict=answer.verdict(audit),
        setup=(("Faults", ", ".join(audit.kinds)), ("Claimed", audit.claimed), ("Observed", audit.observed)),
        sections=(
            Section(
                "Answer",
                "answer",
                sentences=tuple(answer.sentences(audit)),
                tables=(answer.kinds_table(audit),),
            ),
            *found,
        ),
        scenarios=((audit.scenario.name, _json(audit.scenario)),),
        glossary={},
    )


def _json(scenario: Scenario) -> str:
    return json.dumps(to_data(scenario), indent=2, ensure_ascii=False)
