"""Types that the whole room shares."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

Progress = Callable[[float, str], None]
"""Called with the fraction that is done, 0 to 1, and with what is being done."""
