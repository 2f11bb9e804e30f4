"""How long what waited after a silence takes, for rates that were not seen.

Rows that came in a silence of s seconds at a rate r are worked off by what is left of the capacity c: results
are on time again s c / (c - r) after the silence began.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tideover.calibrate.episodes import Floats
from tideover.calibrate.logs.durations import ENDS, next_one
from tideover.calibrate.logs.findings import Prediction, Quantity

DRAWS = 200
LOADS = (0.5, 0.8)
"""Utilisations for which a catch-up is told: input rate over what the job can do with a backlog."""
EVEN = (np.arange(DRAWS) + 0.5) / DRAWS
_OTHER = (np.arange(DRAWS) * 0.6180339887498949) % 1
"""Evenly spread as well, in another order: a long silence does not go with a small capacity."""


def predictions(
    what: str, measure: str, seen: Sequence[float], told: Mapping[str, Quantity]
) -> Iterator[Prediction]:
    """The next silence of this kind after those that were ``seen`` (s), and if ``catch_up_capacity`` is told,
    when it is caught up with: at the ``rate`` that was seen, and at ``LOADS``.
    """
    if not seen:
        return
    silence = next_one(seen, EVEN)
    yield prediction(what, measure, silence)
    capacity, rate = told.get("catch_up_capacity"), told.get("rate")
    if capacity is None or not capacity.identified:
        return
    able = spread_out(capacity)
    inputs = {f"{what}, load {100 * load:g} %": load * able for load in LOADS}
    if rate is not None and rate.identified:
        inputs = {f"{what}, {rate.value:.4g} {rate.unit}": np.full(DRAWS, rate.value), **inputs}
    for name, input_rate in inputs.items():
        left = 1 - input_rate / able
        never = left <= 0
        yield prediction(name, "caught_up", np.where(never, np.inf, silence / np.where(never, 1.0, left)))


def spread_out(quantity: Quantity) -> Floats:
    """Values that are equally likely, by the estimate and its interval; without one, the estimate."""
    low, high = (end if np.isfinite(end) else quantity.value for end in (quantity.low, quantity.high))
    ends = np.log([max(low, 1e-12), max(quantity.value, 1e-12), max(high, 1e-12)])
    return np.asarray(np.exp(np.interp(_OTHER, (ENDS[0], 0.5, ENDS[1]), ends)))


def prediction(what: str, measure: str, values: Floats) -> Prediction:
    low, middle, high = np.quantile(values, (ENDS[0], 0.5, ENDS[1]), method="inverted_cdf").tolist()
    return Prediction(what, measure, "s", middle, low, high)
