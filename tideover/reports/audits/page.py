"""The page of an audit."""

from __future__ import annotations

import json

from tideover.reports.audits import answer
from tideover.reports.audits.pictures import pictured
from tideover.reports.html import Page, Section
from tideover.scenarios.audit.audit import Audit
from tideover.scenarios.writer import to_data


def audit_page(audit: Audit) -> Page:
    """The answer, and the smallest examples."""
    scenario = json.dumps(to_data(audit.scenario), indent=2, ensure_ascii=False)
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
        kind="audit",
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
        scenarios=((audit.scenario.name, scenario),),
        glossary={},
    )
