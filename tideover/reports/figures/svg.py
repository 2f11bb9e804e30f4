"""A figure as SVG for the inside of an HTML page: no external reference, the same bytes each time."""

from __future__ import annotations

import io
import re
from html import escape
from typing import TYPE_CHECKING, cast

from tideover.reports.figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

_VARIABLES = {
    style.INK: "ink",
    style.MUTED: "muted",
    style.GRID: "grid",
    style.PAPER: "paper",
    style.BLUE: "blue",
    style.FAILURE: "failure",
}
"""Colours that the page may replace, and the CSS variables that do so."""

_DROPPED = re.compile(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<!--.*?-->|<metadata>.*?</metadata>", re.DOTALL)
_NAMESPACES = re.compile(r"""\s+xmlns(?::\w+)?=(?:"[^"]*"|'[^']*')""")
_COLOUR = re.compile("|".join(map(re.escape, _VARIABLES)), re.IGNORECASE)
_STYLE = re.compile(r'style="[^"]*"')


WIDE_PT = 360
"""Beyond this width (pt) letters would be too small on a telephone, and the page scrolls instead."""


def to_svg(figure: Figure | SubFigure, *, prefix: str, alt: str) -> str:
    """Inline SVG of the figure, which a screen reader reads as ``alt``.

    Letters are outlines, so it looks the same without the font, and no text of the figure can act as markup.
    ``prefix`` begins every id, so that two figures of one page never share an id.
    """
    target = io.StringIO()
    whole = cast("Figure", figure)
    with style.applied():
        whole.savefig(target, format="svg", metadata={"Date": None})
    text = _NAMESPACES.sub("", _DROPPED.sub("", target.getvalue())).strip()
    text = re.sub(r'\bid="', f'id="{prefix}-', text)
    text = text.replace("url(#", f"url(#{prefix}-").replace('xlink:href="#', f'href="#{prefix}-')
    text = themed(text)
    head = f'<svg role="img" aria-label="{escape(alt)}"'
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text)
    text = (
        re.sub(r'\s(?:width|height|version)="[^"]*"', "", text[: text.index(">")], count=3)
        + text[text.index(">") :]
    )
    width = ' class="wide"' if size is not None and float(size[1]) > WIDE_PT else ""
    return "\n".join(line.rstrip() for line in text.replace("<svg", head + width, 1).splitlines())


def themed(svg: str) -> str:
    """The same picture, whose page may replace colours by its own."""
    return _STYLE.sub(lambda match: _COLOUR.sub(_variable, match[0]), svg)


def _variable(match: re.Match[str]) -> str:
    return css(match[0].lower())


def css(colour: str) -> str:
    """A colour as the page writes it: by its variable, if it may replace it."""
    return f"var(--{_VARIABLES[colour]}, {colour})" if colour in _VARIABLES else colour
