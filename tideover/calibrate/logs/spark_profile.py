"""What Spark's logs say of failures that were not seen, and as a profile for the scenario ``micro-batch``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tideover import __version__
from tideover.calibrate import profile
from tideover.calibrate.comparison import Fits
from tideover.calibrate.counterpart import Faults
from tideover.calibrate.episodes import Condition, Kind
from tideover.calibrate.fits import DRAWS, CostFit, FaultFit, spread_of
from tideover.calibrate.logs import catch_up
from tideover.calibrate.logs.durations import USUAL, next_one
from tideover.calibrate.logs.findings import Failure, Prediction, Quantity, Setting
from tideover.calibrate.logs.flink_profile import name_of
from tideover.calibrate.logs.flink_quantities import seconds
from tideover.calibrate.logs.spark_batches import (
    KINDS,
    SIZES,
    executors_back,
    of_kind,
    queries_back,
    tells_rows,
)

_EVEN = (np.arange(DRAWS) + 0.5) / DRAWS


def predictions(failures: Sequence[Failure], told: Mapping[str, Quantity]) -> Iterator[Prediction]:
    """When results come again after the next failure of each kind, and when it is caught up with."""
    for kind, anew in KINDS.items():
        yield from catch_up.predictions(
            f"the {kind} is lost", "restored", of_kind(failures, anew, "restored"), told
        )


def most_help(told: Mapping[str, Quantity]) -> str:
    """The one measurement that would tell most of what is missing."""
    if not told["catch_up_capacity"].identified:
        return f"{SIZES}, as after an outage of a minute: they tell what a row costs, and so the catch-up"
    if "restored" in told:
        return "an executor killed on purpose under the usual load, with the event log of that hour"
    return "the moment at which a process was killed, to the tenth of a second: it tells the detection"


def as_profile(
    source: str,
    failures: Sequence[Failure],
    costs: CostFit | None,
    told: Mapping[str, Quantity],
    settings: Mapping[str, Setting],
) -> dict[str, Any] | None:
    """A profile as plain data; None if batches do not tell what they cost.

    It has what a whole batch costs, for the two tasks of that scenario, however many there were. Detection is
    half of its bound; cold starts are not told from the rest of a recovery, and are none.
    """
    if costs is None or not tells_rows(costs):
        return None
    master = settings["spark.master"].value if "spark.master" in settings else "unknown"
    condition = Condition("micro_batch", "word_count", master)
    faults = {}
    bound = told["detection"].high
    for kind, back, detection in (
        ("kill_executor", executors_back(failures), bound / 2 if np.isfinite(bound) else 0.0),
        ("kill_driver", queries_back(failures), 0.0),
    ):
        if back:
            base = Faults(detection_s=detection, restart_s=float(np.median(back)))
            draws = tuple(replace(base, restart_s=s) for s in next_one(back, _EVEN).tolist())
            spread = {"catch_up_s": spread_of(np.zeros(0), 1, USUAL)}
            faults[Kind("micro_batch", kind)] = FaultFit(base, draws, False, spread)
    provenance = {
        "source": source,
        "measurements": len(failures),
        "method": "batches and failures in Spark's logs; the next ones by Student's distribution",
        "not_identified": "detection, and cold starts apart from the rest of a recovery",
        "java": settings["java.version"].value if "java.version" in settings else "unknown",
        "spark": settings["spark.version"].value if "spark.version" in settings else "unknown",
        "version": f"tideover {__version__}",
    }
    wait = _seconds(settings["spark.locality.wait"].value) if "spark.locality.wait" in settings else 3.0
    data = profile.profile(
        name_of(source), condition, Fits({condition: costs}, faults, {}, {}, 1), provenance, wait
    )
    rate, interval = told["rate"], told["trigger_interval"]
    if rate.identified:
        data["ranges"] = {"rate": {"low": f"{rate.value:.6g}/s", "high": f"{rate.value:.6g}/s"}}
        if interval.identified:
            data["ranges"]["interval"] = {"low": f"{interval.value:g} s", "high": f"{interval.value:g} s"}
    return data


def _seconds(text: str) -> float:
    """A time of Spark's configuration (`JavaUtils.timeStringAs`): without a unit, in milliseconds.

    >>> _seconds("500ms"), _seconds("3s"), _seconds("1000")
    (0.5, 3.0, 1.0)
    """
    found = seconds(text)
    return 3.0 if found is None else found
