"""Designs: where in the unit cube the points of a sample lie."""

from __future__ import annotations

from array import array
from collections.abc import Callable

import numpy as np

Design = Callable[[int, int, int], np.ndarray]
"""Points, a row each with a number from 0 to 1 a factor, of so many factors, of a size, by a seed."""


def _latin_hypercube(factors: int, size: int, seed: int) -> np.ndarray:
    """McKay, Beckman and Conover (1979): each factor's range in ``size`` equal parts, a point in each."""
    from scipy.stats import qmc  # takes half a second to import

    return qmc.LatinHypercube(factors, seed=np.random.default_rng(seed)).random(size)


def _sobol(factors: int, size: int, seed: int) -> np.ndarray:
    """Sobol' (1967), scrambled (Owen 1998): evenly spread also in any two factors."""
    from scipy.stats import qmc

    draws = qmc.Sobol(factors, seed=np.random.default_rng(seed)).random(1 << (size - 1).bit_length())
    return draws[:size]


DESIGNS: dict[str, Design] = {"latin_hypercube": _latin_hypercube, "sobol": _sobol}
"""By the name that a sweep file uses."""

MOST_FACTORS = 1_000
MOST_SIZE = 100_000


def remark(design: str, size: int) -> str | None:
    """What an expert would say of a size, if anything."""
    if design != "sobol" or size & (size - 1) == 0:
        return None
    below = 1 << (size.bit_length() - 1)
    return (
        f"sample.size is {size:,}: Sobol's points are evenly spread if there are a power of two of them, "
        f"as {below:,} or {2 * below:,}"
    )


def drawn(design: str, factors: int, size: int, seed: int) -> array[float]:
    """The points of a design, one number after the other; the same for the same seed."""
    return array("d", DESIGNS[design](factors, size, seed).ravel().tolist())
