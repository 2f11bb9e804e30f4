"""``tideover reproduce`` for studies whose cells are runs of one scenario, a published figure each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tideover.cli import output
from tideover.cli.progress import Bar

Row = dict[str, Any]


class Study(NamedTuple):
    """``table``: name of the published table of E-Storm; ``rows``: yields its rows with simulated figures."""

    table: str
    rows: Callable[[Sequence[str]], Iterator[Row]]


def _overhead(settings: Sequence[str]) -> Iterator[Row]:
    from tideover.reports.estorm import overhead

    return overhead(settings)


def _recovery(settings: Sequence[str]) -> Iterator[Row]:
    from tideover.reports.estorm import recovery

    return recovery(settings)


NEAR = 0.1
"""A figure this near to the published one, as a part of it, is met."""
STUDIES = {"estorm-overhead": Study("overhead", _overhead), "estorm-recovery": Study("recovery", _recovery)}
"""By the name under which each is reproduced."""


def reproduce(name: str, settings: Sequence[str], out: Path | None, as_json: bool) -> None:
    """Run a study, and show its rows."""
    from tideover.reports.html import Page, Section
    from tideover.reports.published import group
    from tideover.reports.tables import Table
    from tideover.reports.terminal import reproduce_view

    study = STUDIES[name]
    output.prepare(out, "reproduce")
    table, rows = group("estorm", study.table), []
    with Bar() as bar:
        for row in study.rows(settings):
            rows.append(row)
            bar("simulating", len(rows), 0)
    shown = tuple(tuple(map(_text, row.items())) for row in rows)
    beside = Table(table.title, tuple(rows[0]), shown, (), len(rows[0]) - 3)
    if as_json:
        output.print_json(rows)
    else:
        output.show(reproduce_view(_near(rows), [beside], table.source))
    if out is not None:
        page = Page(
            title=table.title,
            kind="a published table beside the simulated one",
            verdict=_near(rows),
            setup=(("Settings", ", ".join(settings) or "those of the study"),),
            sections=(Section("Published beside simulated", tables=(beside,), sources=(table.source,)),),
            glossary={},
        )
        output.write(out, {}, lambda: page, rows, errors=as_json)


def _near(rows: Sequence[Row]) -> str:
    """How many figures are met."""
    near = sum(abs(row["error"]) <= NEAR for row in rows)
    return f"{near} of {len(rows)} published figures are met within {NEAR:.0%}."


def _text(entry: tuple[str, Any]) -> str:
    name, value = entry
    if name == "error":
        return f"{100 * value:+.1f} %"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
