"""Durations that logs show a few times: how long the next one may take, and what waits after it.

Logarithms of a duration are taken as normal. With few observations their spread is known badly, with one not
at all: a prior stands for so many observations (``PRIOR``) of durations that differ by ``USUAL``, as restarts
of one job do from run to run. What comes next then has Student's distribution (A. Gelman et al., *Bayesian
Data Analysis*, 3rd edition, section 3.3, with a scaled inverse chi-square prior of the variance).

Rows that came in a silence of s seconds at a rate r are worked off by what is left of the capacity c: results
are on time again s c / (c - r) after the silence began.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import t as student

from tideover import __version__
from tideover.calibrate import profile
from tideover.calibrate.episodes import Floats
from tideover.calibrate.logs.findings import Prediction, Quantity, unknown
from tideover.sim.units import S, format_duration

USUAL = 0.3
"""Standard deviation of the logarithm of durations of one kind, before any is seen: it was 0.25 to 0.45
for the parts of 28 recoveries of a Flink whose TaskManagers were killed, in six sessions.
"""
PRIOR = 4.0
"""So many observations is that worth."""
_LEAST_S = 1e-3
"""Logs have milliseconds; a shorter duration counts as one."""
ENDS = (0.05, 0.95)
FEWEST = 5
DRAWS, PROFILE_DRAWS = 200, 120
LOADS = (0.5, 0.8)
"""Utilisations for which a catch-up is told: input rate over what the job can do with a backlog."""


def even(n: int) -> Floats:
    return (np.arange(n) + 0.5) / n


_OTHER = (np.arange(DRAWS) * 0.6180339887498949) % 1
"""Evenly spread as well, in another order: a long silence does not go with a small capacity."""


def next_one(values: Sequence[float], quantiles: Floats | Sequence[float]) -> Floats:
    """Quantiles of the next duration, s, after those that were seen; at least one."""
    logs = np.log(np.maximum(np.asarray(values, float), _LEAST_S))
    n = len(logs)
    squares = PRIOR * USUAL**2 + float(((logs - logs.mean()) ** 2).sum())
    freedom = PRIOR + n - 1
    scale = np.sqrt(squares / freedom * (1 + 1 / n))
    return np.asarray(np.exp(logs.mean() + scale * student.ppf(quantiles, freedom)), float)


def observed(name: str, values: Sequence[float], meaning: str) -> Quantity:
    """A duration that was seen: its median, and the interval at 90 % of the next one."""
    if not len(values):
        return unknown(name, "s", meaning)
    low, high = next_one(values, ENDS).tolist()
    return Quantity(name, "s", float(np.median(values)), low, high, len(values), True, meaning)


def spread(name: str, unit: str, values: Sequence[float], meaning: str) -> Quantity:
    """What was seen often: its median, and the interval that 90 % of it lie in, if that is enough to tell."""
    if not len(values):
        return unknown(name, unit, meaning)
    low, middle, high = np.quantile(np.asarray(values, float), (ENDS[0], 0.5, ENDS[1])).tolist()
    if len(values) < FEWEST:
        low = high = float("nan")
    return Quantity(name, unit, middle, low, high, len(values), True, meaning)


def spread_out(quantity: Quantity) -> Floats:
    """Values that are equally likely, by the estimate and its interval; without one, the estimate."""
    low, high = (end if np.isfinite(end) else quantity.value for end in (quantity.low, quantity.high))
    ends = np.log(np.maximum([low, quantity.value, high], 1e-12))
    return np.asarray(np.exp(np.interp(_OTHER, (ENDS[0], 0.5, ENDS[1]), ends)))


def prediction(what: str, measure: str, values: Floats) -> Prediction:
    low, middle, high = np.quantile(values, (ENDS[0], 0.5, ENDS[1]), method="inverted_cdf").tolist()
    return Prediction(what, measure, "s", middle, low, high)


def predictions(
    what: str, measure: str, seen: Sequence[float], told: Mapping[str, Quantity]
) -> Iterator[Prediction]:
    """The next silence of this kind after those that were ``seen`` (s), and if ``catch_up_capacity`` is told,
    when it is caught up with: at the ``rate`` that was seen, and at ``LOADS``.
    """
    if not seen:
        return
    silence = next_one(seen, even(DRAWS))
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


def as_profile(
    source: str,
    values: Mapping[str, float],
    drawn: Mapping[str, Floats],
    fixed: Mapping[str, str],
    written: Callable[[float], str],
    told: Mapping[str, Any],
    **more: Any,
) -> dict[str, Any]:
    """A profile as plain data. ``values``: durations (s) by key; ``drawn``: those that are as likely;
    ``fixed``: texts of others; ``told``: its provenance.
    """
    rows = np.transpose([*drawn.values()])
    chosen = rows[np.arange(PROFILE_DRAWS) * len(rows) // PROFILE_DRAWS].tolist()
    ends = {key: [written(end) for end in np.quantile(those, ENDS).tolist()] for key, those in drawn.items()}
    return profile.data(
        name_of(source),
        {"source": source, **told, "version": f"tideover {__version__}"},
        dict(sorted({**{key: written(value) for key, value in values.items()}, **fixed}.items())),
        {key: (low, high, True) for key, (low, high) in ends.items()},
        (drawn, (map(written, row) for row in chosen)),
        **more,
    )


def nanoseconds(seconds: float) -> str:
    """A duration as text, of one nanosecond at least."""
    return format_duration(max(1, round(seconds * S)))


def name_of(source: str) -> str:
    """A source's name as that of a file.

    >>> name_of("Count words (da371103)")
    'count-words-da371103'
    """
    return re.sub(r"[^a-z0-9]+", "-", source.lower()).strip("-")[:60] or "flink"
