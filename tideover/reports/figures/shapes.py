"""Shapes of an SVG that is written by hand: no ids, no scripts, no fonts of its own; all text is escaped.

Called by the space-time diagram, whose bytes are the same on every machine: what is changed here changes
every diagram. Points and lengths are pixels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

Point = tuple[float, float]


def element(tag: str, *inside: str, style: str = "", **attributes: float | str) -> str:
    """An element; an underscore in an attribute's name is a hyphen, numbers have at most two digits."""
    parts = [tag]
    for name, value in attributes.items():
        said = escape(value) if isinstance(value, str) else f"{round(value, 2) + 0:g}"
        parts.append(f'{name.strip("_").replace("_", "-")}="{said}"')
    if style:
        parts.append(f'style="{escape(style)}"')
    head = " ".join(parts)
    return f"<{head}>{''.join(inside)}</{tag}>" if inside else f"<{head}/>"


def group(title: Iterable[str], *inside: str) -> str:
    """Shapes with a text that is shown when a pointer rests on one of them, a line each."""
    return element("g", element("title", escape("\n".join(title), quote=False)), *inside)


def way(
    points: Sequence[Point], colour: str, width: float = 1.0, dashes: str = "", opacity: float = 1
) -> str:
    """A straight line between two points, or a curve from the first to the third that the second draws to its
    side; ``dashes`` as SVG has them.
    """
    style = f"stroke:{colour};stroke-width:{width:g};fill:none"
    style += f";stroke-dasharray:{dashes}" if dashes else ""
    style += f";stroke-opacity:{opacity:g}" if opacity != 1 else ""
    if len(points) == 2:
        (x, y), (u, v) = points
        return element("line", x1=x, y1=y, x2=u, y2=v, style=style)
    (x, y), (u, v), (w, z) = points
    return element("path", d=f"M{x:.2f} {y:.2f}Q{u:.2f} {v:.2f} {w:.2f} {z:.2f}", style=style)


def line(a: Point, b: Point, colour: str, width: float = 1.0, dashes: str = "", opacity: float = 1) -> str:
    """A straight line."""
    return way((a, b), colour, width, dashes, opacity)


def box(at: Point, width: float, height: float, fill: str, opacity: float = 1, edge: str = "") -> str:
    """A rectangle, from its upper left corner."""
    style = f"fill:{fill};fill-opacity:{opacity:g}" + (f";stroke:{edge};stroke-width:0.8" if edge else "")
    return element("rect", x=at[0], y=at[1], width=width, height=height, style=style)


def circle(at: Point, radius: float, fill: str, edge: str, width: float) -> str:
    """A disc with an edge."""
    style = f"fill:{fill};stroke:{edge};stroke-width:{width:g}"
    return element("circle", cx=at[0], cy=at[1], r=radius, style=style)


def polygon(points: Iterable[Point], fill: str, edge: str = "", opacity: float = 1) -> str:
    """An area between corners."""
    corners = " ".join(f"{x:.2f},{y:.2f}" for x, y in points)
    style = f"fill:{fill};fill-opacity:{opacity:g}"
    style += f";stroke:{edge};stroke-width:1.1;stroke-linejoin:round" if edge else ""
    return element("polygon", points=corners, style=style)


def text(
    at: Point, words: str, colour: str, size: float, anchor: str = "start", bold: bool = False, on: str = ""
) -> str:
    """Words on one line; ``at``: where their base line begins, or has its middle or end; ``on``: a colour
    around the letters, that keeps them legible on lines.
    """
    look = f"fill:{colour};font-size:{size:g}px" + (";font-weight:bold" if bold else "")
    look += f";stroke:{on};stroke-width:3;stroke-linejoin:round;paint-order:stroke" if on else ""
    return element("text", escape(words, quote=False), x=at[0], y=at[1], text_anchor=anchor, style=look)


def head(a: Point, b: Point, colour: str, size: float, hollow: str = "") -> str:
    """The head of an arrow from ``a`` to ``b``; ``hollow``: what fills it, if not its colour."""
    length = math.hypot(b[0] - a[0], b[1] - a[1]) or 1.0
    ux, uy = (b[0] - a[0]) / length, (b[1] - a[1]) / length
    back, half = (b[0] - ux * size, b[1] - uy * size), size * 0.42
    sides = (back[0] - uy * half, back[1] + ux * half), (back[0] + uy * half, back[1] - ux * half)
    return polygon([b, *sides], hollow or colour, colour if hollow else "")


def cross(at: Point, size: float, colour: str, width: float = 2) -> str:
    """A cross whose arms are so long."""
    (x, y), s = at, size
    falling = line((x - s, y - s), (x + s, y + s), colour, width)
    return falling + line((x - s, y + s), (x + s, y - s), colour, width)


def width_of(words: str, size: float) -> float:
    """About how wide words are."""
    return 0.58 * size * len(words)
