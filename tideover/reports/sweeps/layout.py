"""Which swept key is where in a figure: an axis, a line each, a panel each, or averaged over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tideover.reports.sweeps.points import Floats, Key, Points, spread

MOST_LINES, MOST_PANELS, MOST_BESIDE = 8, 6, 3
"""Most lines; most panels of one key; most values of each of two keys, as columns and rows of panels."""
MOST_ROWS = 24
"""Most names (or combinations of names) that are set one below the other."""


@dataclass(frozen=True)
class Layout:
    """``x`` and ``y`` are axes, the values of ``lines`` lines or, without ``x``, rows of a panel; ``columns``
    and ``rows`` are panels. Other keys that vary are ``averaged``. ``most``: of the values of ``lines``.
    """

    x: Key | None
    y: Key | None
    lines: Key | None
    columns: Key | None
    rows: Key | None
    averaged: tuple[Key, ...]
    most: int

    @property
    def used(self) -> tuple[Key, ...]:
        """The keys that are shown."""
        every = (self.x, self.y, self.lines, self.columns, self.rows)
        return tuple(key for key in every if key is not None)

    def limits(self) -> list[tuple[Key, int]]:
        """The keys of which not every value has a place, and how many have."""
        beside = MOST_PANELS if self.rows is None else MOST_BESIDE
        every = ((self.lines, self.most), (self.columns, beside), (self.rows, beside))
        return [(key, most) for key, most in every if key is not None and len(key.labels) > most]

    def chosen(self, points: Points) -> npt.NDArray[np.bool_]:
        """Which points are shown: numbers evenly spread over their range, and the first of names."""
        shown = np.ones(len(points), bool)
        for key, most in self.limits():
            places = spread(key, most) if key.numeric else list(range(most))
            shown &= np.isin(key.of_point, places)
        return shown

    def left_out(self) -> list[str]:
        """What is not drawn because it would be too much, in words."""
        first = {True: "", False: "the first "}
        return [
            f"of {key.short}, {first[key.numeric]}{most} of {len(key.labels):,} values are shown"
            for key, most in self.limits()
        ]


def layout(points: Points, of: Floats | None = None, *, plane: bool = True) -> Layout:
    """Where each swept key goes, the most influential first (on the headline, or on ``of``).

    ``plane``: up to four keys are shown, and two numeric ones span a plane; else only one is an axis, and
    another one is lines.
    """
    varying = sorted(points.varying, key=lambda key: -points.influence(key, of))
    numeric = [key for key in varying if key.numeric]
    names = [key for key in varying if not key.numeric]
    x, y = (*numeric[: 1 + plane], None, None)[:2]
    lines = None if y is not None or not names else names[0]
    rest = _without(varying, (x, y, lines))
    columns, rows = (*rest[: 2 * plane], None, None)[:2]
    most = MOST_ROWS if plane and x is None else MOST_LINES
    return Layout(x, y, lines, columns, rows, tuple(_without(rest, (columns, rows))), most)


def _without(keys: Sequence[Key], used: Sequence[Key | None]) -> list[Key]:
    return [key for key in keys if all(key is not one for one in used)]
