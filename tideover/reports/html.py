"""One HTML page that holds everything: text, tables, figures as inline SVG. It loads nothing, and escapes
everything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from tideover.models.results.columns import Column
from tideover.reports.columns import TABLES
from tideover.reports.tables import Table

if TYPE_CHECKING:
    from jinja2 import Template

GLOSSARY = tuple(TABLES.items())


@dataclass(frozen=True)
class Picture:
    """A figure: ``svg`` comes from ``figures.svg.to_svg`` and is the only thing on a page that is not
    escaped, with what a ``Grid`` holds. It may be several panels, one after the other: as many stand beside
    each other as there is room.

    legend    label, shape (``figures.style.Shape``) and colour of each entry, if the page has to draw it
    """

    title: str
    caption: str
    svg: str
    legend: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class Grid:
    """A table that is too long to be written out: ``script`` shows ``data`` (JSON), a part of it at a time.

    Both are code of ours or made safe by ``sweeps.grid``; like a picture they are not escaped.
    ``allowed`` is the script's hash, so that the page runs no other.
    """

    title: str
    data: str
    script: str
    allowed: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """A heading and what belongs to it, in this order: sentences, tables, figures."""

    title: str
    sentences: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True)
class Page:
    """What a page says, section by section. All texts are plain texts.

    ``sections`` come after what was asked, each under its own title; what a page does not have is left out,
    heading and all.
    """

    title: str
    kind: str
    verdict: str
    asked: tuple[tuple[str, str], ...]
    tables: tuple[Table, ...]
    version: str
    grid: Grid | None = None
    sections: tuple[Section, ...] = ()
    asked_title: str = "What was asked"
    scenarios_title: str = "The whole scenario"
    details: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()
    published: tuple[Table, ...] = ()
    published_pictures: tuple[Picture, ...] = ()
    sources: tuple[str, ...] = ()
    explanation: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    scenarios: tuple[tuple[str, str], ...] = ()
    glossary: tuple[tuple[str, tuple[Column, ...]], ...] = field(default=GLOSSARY)


def render(page: Page) -> str:
    """The page as HTML. Equal pages give equal bytes: no date, no random id."""
    return _template().render(page=page)


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    source = files("tideover.reports").joinpath("templates", "report.html.j2").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True)
    return environment.from_string(source)
