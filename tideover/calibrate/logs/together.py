"""An engine's log and a series of the same time say more together than each by itself.

The log tells the parts of an outage, but neither rates nor when what had waited was worked off; a series of
lag or throughput tells these, but not the parts. A failure of a series is that of the log which is under way
when the series begins to differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tideover.calibrate.logs import durations
from tideover.calibrate.logs.durations import ENDS, nanoseconds, observed, prediction, spread_out
from tideover.calibrate.logs.findings import Failure, Findings, Prediction, Quantity
from tideover.calibrate.profile import nested
from tideover.calibrate.recoveries.profile import SERVICE

NEAR_S = 60.0
"""A series, with points a minute apart, may differ so long before the log's first sign, or after it."""
MORE_HELP = "more failures, at other rates: they tell how recoveries vary, and whether the capacity holds"


def together(found: Sequence[Findings]) -> list[Findings]:
    """The findings, with what a series tells of an engine's failures, if only one job fails then."""
    made = {id(one): one for one in found}
    for series in found:
        others = [one for one in found if one.engine != "series"] if series.engine == "series" else []
        known = [(one, pairs) for one in others if (pairs := _pairs(one, series))]
        if len(known) == 1:
            engine, pairs = known[0]
            made[id(engine)] = _joined(made[id(engine)], series, pairs)
    return list(made.values())


def _pairs(engine: Findings, series: Findings) -> dict[int, Failure]:
    """The failures of a series by the place of the engine's that they are."""
    found: dict[int, Failure] = {}
    for place, failure in enumerate(engine.failures):
        until = max(failure.at("running") or 0.0, failure.began + NEAR_S)
        for other in series.failures:
            if failure.began - NEAR_S <= other.began <= until:
                found.setdefault(place, other)
    return found


def _joined(engine: Findings, series: Findings, pairs: Mapping[int, Failure]) -> Findings:
    failures = tuple(
        _caught_up(failure, pairs[place]) if place in pairs else failure
        for place, failure in enumerate(engine.failures)
    )
    by_series = {quantity.name: quantity for quantity in series.quantities if quantity.identified}
    told = {
        name: by_series[of]._replace(name=name, meaning=f"{by_series[of].meaning} (by {series.source})")
        for name, of in {"rate": "rate", "capacity": "catch_up_capacity"}.items()
        if of in by_series
    }
    ends = [(failure.at("running"), failure.at("caught_up")) for failure in failures]
    if spans := [end - running for running, end in ends if running is not None and end is not None]:
        meaning = f"from all tasks running until nothing waits, by {series.source}"
        told["catch_up"] = observed("catch_up", spans, meaning)
    quantities = tuple(told.get(one.name, one) for one in engine.quantities)
    engine = replace(engine, failures=failures, quantities=quantities)
    rate, capacity = told.get("rate"), told.get("capacity")
    if rate is None or capacity is None:
        return engine
    return replace(
        engine,
        predictions=(*engine.predictions, *_catch_ups(engine.predictions, rate, capacity)),
        profile=engine.profile and _profile(engine.profile, rate, capacity, series.source),
        most_help=MORE_HELP,
    )


def _caught_up(failure: Failure, other: Failure) -> Failure:
    stages = [stage for stage in other.stages if stage.name == "caught_up"]
    if failure.at("caught_up") is not None or not stages:
        return failure
    return replace(failure, stages=tuple(sorted([*failure.stages, *stages], key=lambda stage: stage.at)))


def _catch_ups(known: Sequence[Prediction], rate: Quantity, capacity: Quantity) -> Iterator[Prediction]:
    """Catch-ups at the rate that was seen, for each backlog that is predicted."""
    load = rate.value / spread_out(capacity)
    for one in known:
        if one.measure == "backlog":
            # In another order than the capacities, so that they do not go together.
            ends = np.log([one.low, one.estimate, one.high])
            waits = np.exp(np.interp(durations.even(durations.DRAWS), (ENDS[0], 0.5, ENDS[1]), ends))
            after = np.where(load < 1, waits * load / np.where(load < 1, 1 - load, 1), np.inf)
            yield prediction(f"{one.what}, {rate.value:.4g} {rate.unit}", "catch_up", after)


def _profile(data: Mapping[str, Any], rate: Quantity, capacity: Quantity, source: str) -> dict[str, Any]:
    """With the time that a tuple takes, and the rate that it was measured at."""
    keys, rows = data["draws"]["keys"], data["draws"]["rows"]
    able = spread_out(capacity)[: len(rows)].tolist()
    high, low = (end if np.isfinite(end) else capacity.value for end in (capacity.low, capacity.high))
    rates = [f"{end if np.isfinite(end) else rate.value:.6g}/s" for end in (rate.low, rate.high)]
    told = {"series": source, "not_identified": "the time from a kill to its first sign"}
    ends = {"low": nanoseconds(1 / low), "high": nanoseconds(1 / high), "identified": True}
    drawn = [[*row, nanoseconds(1 / one)] for row, one in zip(rows, able, strict=True)]
    return {
        **data,
        "provenance": {**data["provenance"], **told},
        "values": {**data["values"], **nested({SERVICE: nanoseconds(1 / capacity.value)})},
        "intervals": {**data["intervals"], SERVICE: ends},
        "draws": {"keys": [*keys, SERVICE], "rows": drawn},
        "ranges": {**data["ranges"], "rate": {"low": rates[0], "high": rates[1]}},
        "scatter": {**data["scatter"], "catch_up_s": 0.0},
    }
