"""Shades for how busy something is, and for how much flows: one hue each that gets darker, so that a grey
print shows the same.
"""

from __future__ import annotations

from tideover.reports.formatting import size

_STEPS = ("#eef3f8", "#d3e1ee", "#a9c6df", "#74a5cc", "#3f7fb2", "#1d5788", "#0b2f52")
"""Lightness falls in even steps; the last is kept for what can hardly do more."""
_TRAFFIC = ("#f6ead2", "#ecd09a", "#dcae58", "#b57e1f", "#84540f", "#4f2f06")
"""The same in another hue: these are parts of the greatest rate, not of the time."""
FULL = 0.97
"""A resource this busy has no time left."""


def shade(busy: float) -> str:
    """Colour of a part of the time (ratio)."""
    if busy >= FULL:
        return _STEPS[-1]
    return _STEPS[min(int(max(busy, 0.0) / FULL * (len(_STEPS) - 1)), len(_STEPS) - 2)]


def text_on(busy: float) -> str:
    """A colour that can be read on that shade."""
    return _text_on(_STEPS.index(shade(busy)) < 4)


def traffic_shade(rate: float, most: float) -> str:
    """Colour of a rate, greater than 0, where the greatest is ``most``."""
    return _TRAFFIC[_traffic_step(rate, most)]


def text_on_traffic(rate: float, most: float) -> str:
    """A colour that can be read on that shade."""
    return _text_on(_traffic_step(rate, most) < 3)


def _traffic_step(rate: float, most: float) -> int:
    return min(int(rate / most * len(_TRAFFIC)), len(_TRAFFIC) - 1)


def _text_on(light: bool) -> str:
    return "#14181d" if light else "#ffffff"


def traffic_legend(most: float) -> list[tuple[str, str]]:
    """Words and colour of each shade of bytes per second, the greatest of which is ``most``."""
    ends = [size(most * step / len(_TRAFFIC)) for step in range(1, len(_TRAFFIC) + 1)]
    return [(f"to {end}/s", colour) for end, colour in zip(ends, _TRAFFIC, strict=True)]


def legend() -> list[tuple[str, str]]:
    """Words and colour of each shade."""
    edges = [FULL * step / (len(_STEPS) - 1) for step in range(len(_STEPS) - 1)]
    names = [f"{low:.0%} to {high:.0%}" for low, high in zip(edges, [*edges[1:], FULL], strict=True)]
    return list(zip([*names, f"{FULL:.0%} and more"], _STEPS, strict=True))
