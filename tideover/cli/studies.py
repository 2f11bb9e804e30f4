"""``tideover reproduce`` for studies whose cells are runs of one scenario, a published figure each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tideover.cli import output

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


STUDIES = {"estorm-overhead": Study("overhead", _overhead), "estorm-recovery": Study("recovery", _recovery)}
"""By the name under which each is reproduced."""


def reproduce(name: str, settings: Sequence[str], out: Path | None, as_json: bool) -> None:
    """Run a study, and show its rows."""
    from tideover.reports.published import group
    from tideover.reports.tables import Table
    from tideover.reports.terminal import reproduce_view

    study = STUDIES[name]
    output.prepare(out, "reproduce")
    table, rows = group("estorm", study.table), []
    for row in study.rows(settings):
        rows.append(row)
    if as_json:
        output.print_json(rows)
    else:
        shown = tuple(tuple(map(_text, row.items())) for row in rows)
        texts = len(rows[0]) - 3
        output.show(reproduce_view([Table(table.title, tuple(rows[0]), shown, (), texts)], (), table.source))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
        (out / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _text(entry: tuple[str, Any]) -> str:
    name, value = entry
    if name == "error":
        return f"{100 * value:+.1f} %"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
