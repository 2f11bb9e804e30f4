"""Student's t: the interval of a mean whose variance is estimated, too."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Interval = tuple[float, float]


def t_quantile(freedom: Any, level: float) -> Any:
    """How many standard errors an interval of this ``level`` reaches to either side; ``freedom``: degrees of
    freedom, a number or an array of them, as is what is returned.
    """
    from scipy.special import stdtrit  # a fraction of the time that scipy.stats takes to import

    return stdtrit(freedom, 0.5 + level / 2)


def half_width(n: int, std: float, level: float) -> float:
    """Half the width of the interval of the mean of ``n`` > 1 values."""
    return float(t_quantile(n - 1, level)) * std / math.sqrt(n)


def of_mean(values: npt.NDArray[np.float64], level: float) -> Interval | None:
    """The interval of the mean of some values; None for fewer than two."""
    if values.size < 2:
        return None
    mean, half = float(values.mean()), half_width(values.size, float(values.std(ddof=1)), level)
    return mean - half, mean + half
