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

from tideover.calibrate.logs.catch_up import EVEN, prediction, spread_out
from tideover.calibrate.logs.durations import ENDS, observed
from tideover.calibrate.logs.findings import Failure, Findings, Prediction, Quantity, Stage
from tideover.calibrate.recoveries.profile import SERVICE
from tideover.sim.units import S, format_duration

NEAR_S = 60.0
"""A series, with points a minute apart, may differ so long before the log's first sign, or after it."""
_TOLD = ("rate", "capacity", "catch_up")
"""What a series tells in the place of a log."""
MORE_HELP = (
    "more failures, at other rates: they tell how much recoveries vary, and whether the capacity holds"
)


def together(found: Sequence[Findings]) -> list[Findings]:
    """The same findings; those of an engine with what the series of their failures say, if only one job of
    the engines fails then.
    """
    engines = [one for one in found if one.engine != "series"]
    made: dict[int, Findings] = {}
    for series in found:
        pairs = [(one, _pairs(one, series)) for one in engines] if series.engine == "series" else []
        known = [(one, those) for one, those in pairs if those]
        if len(known) == 1:
            engine, those = known[0]
            made[id(engine)] = _joined(made.get(id(engine), engine), series, those)
    return [made.get(id(one), one) for one in found]


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
    by_series = {quantity.name: quantity for quantity in series.quantities}
    told = {
        name: _from(by_series.get(of), series)
        for name, of in zip(_TOLD, ("rate", "catch_up_capacity"), strict=False)
    }
    spans = [
        end - running
        for failure in failures
        if (end := failure.at("caught_up")) is not None and (running := failure.at("running")) is not None
    ]
    if spans:
        told["catch_up"] = observed(
            "catch_up", spans, f"from all tasks running until nothing waits, by {series.source}"
        )
    quantities = tuple(told.get(one.name) or one for one in engine.quantities)
    rate, capacity = told["rate"], told["capacity"]
    if rate is None or capacity is None:
        return replace(engine, failures=failures, quantities=quantities)
    return replace(
        engine,
        failures=failures,
        quantities=quantities,
        predictions=(*engine.predictions, *_catch_ups(engine.predictions, rate, capacity)),
        profile=None if engine.profile is None else _profile(engine.profile, rate, capacity, series.source),
        most_help=MORE_HELP,
    )


def _caught_up(failure: Failure, other: Failure) -> Failure:
    stages = [stage for stage in other.stages if stage.name == "caught_up"]
    if failure.at("caught_up") is not None or not stages:
        return failure
    ordered: list[Stage] = sorted([*failure.stages, *stages], key=lambda stage: stage.at)
    return replace(failure, stages=tuple(ordered))


def _from(quantity: Quantity | None, series: Findings) -> Quantity | None:
    """What a series tells, with its name; None if it does not."""
    if quantity is None or not quantity.identified:
        return None
    name = "capacity" if quantity.name == "catch_up_capacity" else quantity.name
    return quantity._replace(name=name, meaning=f"{quantity.meaning} (by {series.source})")


def _catch_ups(known: Sequence[Prediction], rate: Quantity, capacity: Quantity) -> Iterator[Prediction]:
    """Catch-ups at the rate that was seen, for each backlog that is predicted."""
    load = rate.value / spread_out(capacity)
    for one in known:
        if one.measure == "backlog":
            # In another order than the capacities, so that they do not go together.
            ends = np.log([one.low, one.estimate, one.high])
            waits = np.exp(np.interp(EVEN, (ENDS[0], 0.5, ENDS[1]), ends))
            after = np.where(load < 1, waits * load / np.where(load < 1, 1 - load, 1), np.inf)
            yield prediction(f"{one.what}, {rate.value:.4g} {rate.unit}", "catch_up", after)


def _profile(data: Mapping[str, Any], rate: Quantity, capacity: Quantity, source: str) -> dict[str, Any]:
    """With the time that a tuple takes, and the rate that it was measured at."""

    def text(per_second: float) -> str:
        return format_duration(max(1, round(S / per_second)))

    keys, rows = data["draws"]["keys"], data["draws"]["rows"]
    able = spread_out(capacity)[: len(rows)].tolist()
    _, kind, key = SERVICE.split(".")
    high, low = (end if np.isfinite(end) else capacity.value for end in (capacity.low, capacity.high))
    rates = [f"{end if np.isfinite(end) else rate.value:.6g}/s" for end in (rate.low, rate.high)]
    return {
        **data,
        "provenance": {
            **data["provenance"],
            "series": source,
            "not_identified": "the time from a kill to its first sign",
        },
        "values": {**data["values"], "bolts": {kind: {key: text(capacity.value)}}},
        "intervals": {
            **data["intervals"],
            SERVICE: {"low": text(low), "high": text(high), "identified": True},
        },
        "draws": {
            "keys": [*keys, SERVICE],
            "rows": [[*row, text(one)] for row, one in zip(rows, able, strict=True)],
        },
        "ranges": {**data["ranges"], "rate": {"low": rates[0], "high": rates[1]}},
        "scatter": {**data["scatter"], "catch_up_s": 0.0},
    }
