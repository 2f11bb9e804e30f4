"""Designs: where in the unit cube the points of a sample lie."""

from __future__ import annotations

import importlib.util
from array import array
from collections.abc import Callable
from typing import Any

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


def _saltelli(factors: int, size: int, seed: int) -> np.ndarray:
    """For Sobol' indices (Saltelli 2002): ``size`` times (number of factors + 2) points."""
    import warnings

    from SALib.sample import sobol

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of sizes that are no power of two; see ``remark``
        return sobol.sample(problem(factors), size, calc_second_order=False, seed=seed)


def _morris(factors: int, size: int, seed: int) -> np.ndarray:
    """For elementary effects (Morris 1991): ``size`` trajectories of (number of factors + 1) points."""
    from SALib.sample import morris

    return morris.sample(problem(factors), size, num_levels=MORRIS_LEVELS, seed=seed)


DESIGNS: dict[str, Design] = {
    "latin_hypercube": _latin_hypercube,
    "sobol": _sobol,
    "saltelli": _saltelli,
    "morris": _morris,
}
"""By the name that a sweep file uses."""

FOR_INDICES = ("saltelli", "morris")
"""Designs whose points belong together: sensitivity indices are made of all of them. They need SALib."""

MORRIS_LEVELS = 4
"""Values of each factor in Morris's design, as is usual."""

MOST_FACTORS = 1_000
MOST_SIZE = 100_000


def remark(design: str, size: int) -> str | None:
    """What an expert would say of a size, if anything."""
    if design not in ("sobol", "saltelli") or size & (size - 1) == 0:
        return None
    below = 1 << (size.bit_length() - 1)
    return (
        f"sample.size is {size:,}: Sobol's points are evenly spread if there are a power of two of them, "
        f"as {below:,} or {2 * below:,}"
    )


def problem(factors: int) -> dict[str, Any]:
    """What SALib is told of the factors: as many numbers from 0 to 1."""
    names = [str(number) for number in range(factors)]
    return {"num_vars": factors, "names": names, "bounds": [[0.0, 1.0]] * factors}


def is_missing(design: str) -> bool:
    """Whether a design needs a package that is not installed."""
    return design in FOR_INDICES and importlib.util.find_spec("SALib") is None


def drawn(design: str, factors: int, size: int, seed: int) -> array[float]:
    """The points of a design, one number after the other; the same for the same seed."""
    return array("d", DESIGNS[design](factors, size, seed).ravel().tolist())
