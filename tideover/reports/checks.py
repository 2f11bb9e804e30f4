"""What ``check`` found: a table, a sentence, and JUnit's XML for continuous integration.

Called by `tideover check` and, for how values are written, by plans and by what availability shows.
"""

from __future__ import annotations

import math
import re
from typing import Any
from xml.etree import ElementTree

from tideover.reports import formatting, wording
from tideover.reports.formatting import UNDEFINED, amount, is_undefined, number, places_for, size, with_ending
from tideover.reports.tables import Table
from tideover.scenarios.errors import listed
from tideover.scenarios.objectives.check import Check
from tideover.scenarios.objectives.objective import COUNTED, Judgement

_PARTS = {"runs": "runs", "time": "the time"}
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def table(check: Check) -> Table:
    rows = tuple(
        (name(one), value(one), interval(one), limit(one), verdict(one, check.strict))
        for one in check.judgements
    )
    notes = [f"{one.objective.text}: {note}" for one in check.judgements for note in one.notes]
    if any(one.low is not None or one.bound is not None for one in check.judgements):
        levels = sorted({one.objective.level for one in check.judgements})
        notes.insert(0, f"Intervals at {listed([part(level) for level in levels])}, over replications.")
    return Table("Objectives", ("", "value", "interval", "limit", "verdict"), rows, tuple(notes))


def sentence(check: Check) -> str:
    """How many objectives are met; those that are not, by name."""
    return wording.text("check_sentence", check)


def name(one: Judgement) -> str:
    """The objective without what ``limit`` says of it: ``recovery_p95``, or ``recovery <= 20 s``, of which a
    part of the runs is asked.
    """
    asked = one.objective
    return asked.text.partition(f" {asked.sign} " if asked.rule not in _PARTS else " in ")[0]


def value(one: Judgement) -> str:
    """What the runs gave, and how it was made of them: ``12.3 s (mean)``."""
    if not one.n:
        return UNDEFINED
    rule, share = one.objective.rule, one.objective.share
    how = {"mean": "mean", "time": "mean", "every": "worst", "quantile": f"p{100 * share:g}"}
    told = with_ending(shown(one.value, one), one.endings)
    return f"{told} ({how.get(rule, f'{one.n - (one.breaking or 0)} of {one.n}')})"


def interval(one: Judgement) -> str:
    """``9.1 to 15.5 s``; of what every run has to meet, how many runs may break it."""
    if one.breaking and one.bound is not None:
        return f"{one.breaking} of {one.n} break it"
    if one.bound is not None:
        return f"≤ {part(math.ceil(1000 * one.bound) / 1000)} break it"
    if one.low is None or one.high is None:
        return UNDEFINED
    if _is_part(one) and one.low < one.high:
        places = places_for(100 * (one.high - one.low)) + 1
        return "{} to {} %".format(*(formatting.fixed(100 * end, places) for end in (one.low, one.high)))
    low, high = shown(one.low, one), shown(one.high, one)
    unit = re.search(r"( (?:s|ms|%)|/s|/h)$", high)
    return f"{low.removesuffix(unit[0]) if unit else low} to {high}"


def limit(one: Judgement) -> str:
    """``<= 20 s``, or ``95 % of runs``."""
    asked = one.objective
    if asked.rule in _PARTS:
        return f"{part(one.limit)} of {_PARTS[asked.rule]}"
    return asked.sign + asked.text.partition(f" {asked.sign}")[2]


def verdict(one: Judgement, strict: bool) -> str:
    """``met`` or ``broken``, with ``unsure`` if the interval has the limit in it; ``unknown``: no value."""
    if one.value is None:
        return "unknown"
    counts = "met" if one.holds and not (strict and one.verdict == "unsure") else "broken"
    return f"{counts}, unsure" if one.verdict == "unsure" else counts


def part(of_one: float | None) -> str:
    """A part as a percentage, with as many digits as it takes to see that it is not the whole.

    >>> part(0.95), part(0.99987), part(0.1234)
    ('95 %', '99.987 %', '12.3 %')
    """
    if is_undefined(of_one) or of_one is None:
        return UNDEFINED
    missing = 100 * (1 - of_one)
    digits = 1 if missing >= 10 or missing <= 0 else 2 - math.floor(math.log10(missing))
    return f"{round(100 * of_one, min(digits, 8)):.12g} %"


def _is_part(one: Judgement) -> bool:
    return one.objective.rule in _PARTS or one.objective.metric.column.unit == "ratio"


def shown(found: float | None, one: Judgement) -> str:
    """A value in the unit of its objective: ``12.3 s``, ``99.987 %``."""
    unit = one.objective.metric.column.unit
    if found is None:
        return UNDEFINED
    if math.isinf(found):
        return "never" if unit in ("s", "ms") and one.value == found else number(found)
    if _is_part(one):
        return part(found)
    if unit == "B":
        return size(found)
    if unit in COUNTED:
        return amount(found)
    return number(found) + {"tuples/s": "/s", "1/h": "/h"}.get(unit, f" {unit}")


def junit(check: Check) -> str:
    """The XML of JUnit as Jenkins, GitLab and others read it: a test case for each objective, with a failure
    if it is broken. Without times and time stamps, which nobody needs: the same check is the same text.
    """
    result = check.result

    def add(parent: Any, tag: str, text: str = "", **attributes: Any) -> Any:
        """Without characters that XML cannot have."""
        known = {key: _NO_XML.sub("?", str(value)) for key, value in attributes.items()}
        made = ElementTree.SubElement(parent, tag, known)
        made.text = _NO_XML.sub("?", text) or None
        return made

    suites = ElementTree.Element("testsuites")
    counts = {"tests": len(check.judgements), "failures": len(check.broken), "errors": 0, "skipped": 0}
    suite = add(suites, "testsuite", "", name=f"tideover check: {result.scenario.name}", **counts)
    properties = add(suite, "properties")
    known = {
        "scenario": result.scenario.name,
        "strategy": result.strategy,
        "seed": result.scenario.run.seed,
        "replications": len(result.replications),
        "strict": str(check.strict).lower(),
        "version": result.version,
    }
    for key, given in known.items():
        add(properties, "property", name=key, value=given)
    for one in check.judgements:
        case = add(suite, "testcase", classname=f"tideover.{result.scenario.name}", name=one.objective.text)
        if not check.passes(one):
            message = f"{one.objective.text} is {verdict(one, check.strict)}: {value(one)}"
            add(case, "failure", "\n".join([message, *one.notes]), message=message, type=one.verdict)
        said = [f"value: {value(one)}", f"interval: {interval(one)}", f"limit: {limit(one)}", *one.notes]
        add(case, "system-out", "\n".join(said))
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, "utf-8", xml_declaration=True).decode() + "\n"
