"""One HTML page that holds everything: text, tables, figures as inline SVG. It loads nothing, and escapes
everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from tideover import __version__
from tideover.models.schema.columns import Column
from tideover.models.schema.fields import TABLES
from tideover.reports.tables import Table

if TYPE_CHECKING:
    from jinja2 import Template


@dataclass(frozen=True)
class Picture:
    """A figure. ``svg`` comes from ``figures.svg.to_svg``; it and what a ``Grid`` holds are all that is not
    escaped on a page. It may be several panels, of which the page puts as many in a row as fit.

    legend    label, shape (``figures.style.Shape``) and colour of each entry, if the page has to draw it
    """

    title: str
    caption: str
    svg: str
    legend: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class Grid:
    """A table that is too long to be written out: ``script`` shows ``data`` (JSON), a part of it at a time,
    sorted and filtered; ``plain`` is its beginning, for readers without scripts.

    Script and data are code of ours or made safe by ``reports.grid``; like a picture they are not escaped.
    ``allowed`` is the script's hash, so that the page runs no other.
    """

    title: str
    plain: Table
    data: str
    script: str
    allowed: str
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
    scenarios: tuple[tuple[str, str], ...] = ()
    glossary: Mapping[str, tuple[Column, ...]] = field(default_factory=lambda: TABLES)
    tables_said: str = (
        "The Parquet files beside this page hold these columns, each with its unit and meaning."
    )

    @property
    def allowed(self) -> str:
        """Hash of the script that the page may run; empty for none."""
        return next((section.grid.allowed for section in self.sections if section.grid), "")


def render(page: Page) -> str:
    """The page as HTML. Equal pages give equal bytes: no date, no random id."""
    return _template().render(page=page, version=__version__)


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    source = files("tideover.reports").joinpath("templates", "report.html.j2").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True)
    return environment.from_string(source)
