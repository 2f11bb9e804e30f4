"""One HTML page that holds everything: text, tables, figures as inline SVG, and a long table that sorts.

It loads nothing, and escapes everything. The pages of `tideover.reports` are made of its parts; how they look
is in ``templates/report.html.j2``, how the long table works in ``templates/grid.js``.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from tideover import __version__
from tideover.models.config import Scenario
from tideover.models.schema import TABLES, Column
from tideover.reports import wording
from tideover.reports.formatting import UNDEFINED, number, size, strategy_name
from tideover.reports.tables import Table
from tideover.scenarios.part_builder import to_data
from tideover.sim.registry import kind_of


@dataclass(frozen=True)
class Picture:
    """A figure. ``svg`` comes from ``figures.style.to_svg`` or ``figures.space_time``; it and what a ``Grid``
    holds are all that is not escaped on a page. It may be several panels, of which the page puts as many in a
    row as fit.

    legend    label, shape (``figures.style.Shape``) and colour of each entry, if the page has to draw it
    """

    title: str
    caption: str
    svg: str
    legend: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class Grid:
    """A table that is too long to be written out: a script shows ``data`` (JSON, made safe by ``grid``), a
    part of it at a time, sorted and filtered; ``plain`` is its beginning, for readers without scripts.
    """

    title: str
    plain: Table
    data: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """A heading and what belongs to it: sentences, pictures, tables, steps, sources, grid; a page leaves
    out a section that has nothing.

    steps      sentences that are numbered
    sources    where published figures come from
    untitled   the tables go without their titles
    """

    title: str
    anchor: str = ""
    sentences: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()
    sources: tuple[str, ...] = ()
    grid: Grid | None = None
    untitled: bool = False

    def __bool__(self) -> bool:
        filled = any(table.rows for table in self.tables)
        return bool(self.sentences or self.steps or filled or self.pictures or self.grid)


@dataclass(frozen=True)
class Page:
    """What a page says: the verdict, the setup, section by section what was found, the scenarios, and what
    the columns of its Parquet files mean. All texts are plain texts.
    """

    title: str
    kind: str
    verdict: str
    setup: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    setup_title: str = "What was asked"
    scenarios_title: str = "The whole scenario"
    warnings: tuple[str, ...] = ()
    scenarios: tuple[tuple[str, Any], ...] = ()
    glossary: Mapping[str, tuple[Column, ...]] = field(default_factory=lambda: TABLES)
    tables_said: str = (
        "The Parquet files beside this page hold these columns, each with its unit and meaning."
    )


def page_of_scenarios(
    scenarios: Sequence[Scenario], setup: Mapping[str, str], sections: tuple[Section, ...], **given: Any
) -> Page:
    """The page of a scenario under one or several strategies. ``setup``: what was asked besides its name and
    description, label by label; empty texts are left out.
    """
    first = scenarios[0]
    labels = {"Scenario": first.name, "Description": first.description, **setup}
    return Page(
        title=first.name,
        setup=tuple((label, text) for label, text in labels.items() if text),
        sections=sections,
        scenarios=tuple((strategy_name(kind_of(one.strategy)), to_data(one)) for one in scenarios),
        **given,
    )


def render(page: Page) -> str:
    """The page as HTML. Equal pages give equal bytes: no date, no random id. It may run the script of its
    long table, if it has one, and no other.
    """
    script = wording.read("grid.js") if any(section.grid for section in page.sections) else ""
    hashed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = f"sha256-{hashed}" if script else ""
    return _template().render(page=page, version=__version__, script=script, allowed=allowed)


@cache
def _template() -> Any:
    filters = {"as_json": partial(json.dumps, indent=2, ensure_ascii=False)}
    return wording.template("report.html.j2", filters, autoescape=True, keep_trailing_newline=True)


MOST_PLAIN = 200
"""Rows that readers without scripts see."""
_FILTERS = (
    "A click on a heading sorts. What is typed below it filters: a part of the text, or > 30, <= 2 kB, != 0, "
    "10..20; of several in one box, as > 10 < 20, each must hold."
)


@dataclass(frozen=True)
class GridColumn:
    """A column: a number in each cell (None: undefined); with ``values``, the place of its text in these.

    numbers    of the ``values``, if they are numbers with units, by which they are sorted and filtered
    is_size    the numbers are bytes
    """

    name: str
    cells: Sequence[Any]
    values: Sequence[str] = ()
    numbers: Sequence[float] = ()
    is_size: bool = False

    def text(self, row: int) -> str:
        """What a reader sees in a cell; the script writes the same."""
        cell = self.cells[row]
        if cell is None:
            return UNDEFINED
        if self.values:
            return self.values[cell]
        return size(cell) if self.is_size else number(cell)


def grid(columns: Sequence[GridColumn], what: str, notes: Sequence[str] = ()) -> Grid:
    """The table of these columns; ``what``: its rows in a word, as ``points``. The first names a row."""
    rows = list(zip(*(column.cells for column in columns), strict=True))
    heads = []
    for column in columns:
        known = {"values": list(column.values), "numbers": list(column.numbers), "bytes": column.is_size}
        heads.append({"name": column.name} | {key: value for key, value in known.items() if value})
    content = {"columns": heads, "rows": rows, "what": what}
    data = json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    first = range(min(MOST_PLAIN, len(rows)))
    plain = Table(
        f"All {what}",
        tuple(column.name for column in columns),
        tuple(tuple(column.text(row) for column in columns) for row in first),
        () if len(rows) <= MOST_PLAIN else (f"The first {MOST_PLAIN} of {len(rows):,}; a script shows all.",),
        1 + max((place for place, column in enumerate(columns) if column.values), default=0),
    )
    # In a script element nothing is an entity, and only "</script" and "<!--" end or change what follows.
    return Grid(f"All {len(rows):,} {what}", plain, data.replace("<", "\\u003c"), (_FILTERS, *notes))
