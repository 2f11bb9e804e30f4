"""Shades for how busy something is: one hue that gets darker, so that a grey print shows the same."""

from __future__ import annotations

_STEPS = ("#eef3f8", "#d3e1ee", "#a9c6df", "#74a5cc", "#3f7fb2", "#1d5788", "#0b2f52")
"""Lightness falls in even steps; the last is kept for what can hardly do more."""
FULL = 0.97
"""A resource this busy has no time left."""


def shade(busy: float) -> str:
    """Colour of a part of the time (ratio)."""
    if busy >= FULL:
        return _STEPS[-1]
    return _STEPS[min(int(max(busy, 0.0) / FULL * (len(_STEPS) - 1)), len(_STEPS) - 2)]


def text_on(busy: float) -> str:
    """A colour that can be read on that shade."""
    return "#14181d" if _STEPS.index(shade(busy)) < 4 else "#ffffff"


def legend() -> list[tuple[str, str]]:
    """Words and colour of each shade."""
    edges = [FULL * step / (len(_STEPS) - 1) for step in range(len(_STEPS) - 1)]
    names = [f"{low:.0%} to {high:.0%}" for low, high in zip(edges, [*edges[1:], FULL], strict=True)]
    return list(zip([*names, f"{FULL:.0%} and more"], _STEPS, strict=True))
