"""What an audit has found, in sentences and tables, for the terminal and for the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tideover.reports.formatting import listed, strategy_name
from tideover.reports.tables import Table
from tideover.scenarios.audit.audit import Audit
from tideover.scenarios.audit.examples import MOST_EXAMPLES, Example, told
from tideover.scenarios.audit.verdict import Verdict, guarantee, holds
from tideover.sim.registry import kind_of


def verdict(audit: Audit) -> str:
    """Observed and claimed, in a sentence."""
    name = strategy_name(kind_of(audit.scenario.strategy))
    if not audit.claims:
        return f"{name}: {audit.observed} without failures. It claims {audit.claimed}, after none of these."
    after = f"after one {listed(audit.survives)}"
    if audit.holds:
        better = f", and claims {audit.claimed}" if audit.observed != audit.claimed else ", as it claims"
        return f"{name}: {audit.observed}{better}, {after}."
    return f"{name} does not keep its word: it claims {audit.claimed} {after}; observed is {audit.observed}."


def verdicts(audits: Sequence[Audit]) -> str:
    """How many of several keep their word."""
    return f"{sum(audit.holds for audit in audits)} of {len(audits)} keep their word."


def sentences(audit: Audit) -> Iterator[str]:
    """What was tried, and what breaks without a failure, or with two."""
    tried = f"{len(audit.singles):,} runs with one fault"
    if audit.doubles:
        tried += f", {len(audit.doubles):,} with a second one during the recovery"
    yield f"{tried}, before, at, after and between the steps of {audit.scenario.name}."
    if audit.quiet.harm:
        yield f"Without any failure: {_harm(audit.quiet)}."
    if audit.doubles:
        yield f"With a second fault: {audit.after_two}."
    if audit.failed:
        case, found = audit.failed[0]
        yield f"{len(audit.failed)} runs could not be made; the first: {told(case)}: {found.error}."


def _harm(found: Verdict) -> str:
    parts = (
        (found.lost, "lost"),
        (found.duplicated, "counted twice"),
        (found.wrong, "windows wrong"),
        (found.missing, "windows missing"),
    )
    return ", ".join(f"{n} {what}" for n, what in parts if n)


def kinds_table(audit: Audit) -> Table:
    """What each kind of fault leaves."""
    rows = []
    for kind in audit.kinds:
        found = audit.by_kind(kind)
        spoilt = Counter(word for one in found for word in one.harm.split(", ") if word)
        rows.append(
            (
                kind,
                guarantee(found),
                audit.claimed if kind in audit.survives else "–",
                str(len(found)),
                str(spoilt["lost"]),
                str(spoilt["duplicated"]),
                str(sum(bool(one.wrong or one.missing) for one in found)),
            )
        )
    columns = ("One fault", "observed", "claimed", "runs", "lose", "duplicate", "wrong windows")
    notes: tuple[str, ...] = ()
    if set(audit.kinds) != set(audit.survives):
        notes = ("– : the strategy claims nothing of these.",)
    if not audit.scenario.strategy.stateless_too:
        notes += ("What it claims does not hold of tasks without state, by its own account.",)
    return Table("Guarantees", columns, tuple(rows), notes, text_columns=3)


def overview(audits: Sequence[Audit]) -> Table:
    """Several audits, a row for each."""
    rows = []
    for audit in audits:
        survived = [kind for kind in audit.kinds if holds(audit.claimed, guarantee(audit.by_kind(kind)))]
        first = next(iter(audit.examples), None)
        rows.append(
            (
                strategy_name(kind_of(audit.scenario.strategy)),
                audit.claimed,
                audit.observed,
                audit.after_two or "–",
                "all" if survived == audit.kinds else listed(survived) if survived else "none",
                str(len(audit.singles) + len(audit.doubles)),
                "–" if first is None else f"{first.harm}: {first.case.kinds or 'no failure'}",
            )
        )
    columns = ("Strategy", "claimed", "observed", "after two", "faults survived", "runs", "smallest example")
    kinds = listed(dict.fromkeys(kind for audit in audits for kind in audit.kinds))
    note = (
        f"Faults: {kinds}; survived: after one of them the strategy keeps what it claims of any. After two: "
        "one task crashes, and another during its recovery, of which nothing is claimed (–: not tried)."
    )
    return Table("Audits", columns, tuple(rows), (note,), text_columns=7)


def steps(audit: Audit) -> Iterator[tuple[Example, str]]:
    """The smallest examples: what is wrong, when, which tuples, in lines."""
    for example in audit.examples[:MOST_EXAMPLES]:
        lines = [f"{example.harm}: {example.text}"]
        lines += [f"  {each}" for each in example.tuples]
        if example.of:
            lines.append(f"  so it is {example.step}")
        elif example.alike:
            lines.append(f"  {example.alike} more runs break there in this way")
        yield example, "\n".join(lines)
