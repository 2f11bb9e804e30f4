"""Student's t: the interval of a mean whose variance is estimated, too."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Interval = tuple[float, float]


AT_95 = (
    12.706204736174694,
    4.302652729749462,
    3.1824463052837078,
    2.7764451051977934,
    2.5705818356363146,
    2.4469118511449786,
    2.364624251592784,
    2.306004135204166,
    2.262157162798205,
    2.228138851986274,
    2.200985160091639,
    2.1788128296672284,
    2.1603686564627913,
    2.144786687917804,
    2.131449545559776,
    2.1199052992212546,
    2.1098155778333156,
    2.1009220402410382,
    2.0930240544083087,
    2.085963447265864,
    2.0796138447276795,
    2.0738730679040254,
    2.0686576104190486,
    2.0638985616280245,
    2.0595385527532972,
    2.0555294386428735,
    2.0518305164802846,
    2.0484071417952454,
    2.045229642132703,
    2.0422724563012378,
)
"""``t_quantile`` at 95 % for 1, 2, … degrees of freedom: scipy takes longer to import than a run takes."""


def t_quantile(freedom: Any, level: float) -> Any:
    """How many standard errors an interval of this ``level`` reaches to either side; ``freedom``: degrees of
    freedom, a number or an array of them, as is what is returned.
    """
    if level == 0.95 and isinstance(freedom, int) and 0 < freedom <= len(AT_95):
        return AT_95[freedom - 1]
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
