"""What a Flink job's logs say, as a profile for the scenario ``flink-recovery``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from tideover import __version__
from tideover.calibrate import profile
from tideover.calibrate.episodes import Floats
from tideover.calibrate.logs.durations import ENDS
from tideover.calibrate.logs.findings import Failure, Setting
from tideover.calibrate.logs.flink_quantities import draws, even, interval_of
from tideover.calibrate.profile import six_digits

DETECTION = "failures.crash_task.detection"
RESTART = "failures.crash_task.restart"
LOADING = "strategy.aligned_snapshots.restore_time"
UPLOAD = "strategy.aligned_snapshots.upload_time"
INTERVAL = "strategy.aligned_snapshots.checkpoint_interval"
_DRAWS = 120
_CALM_S = 15


def as_profile(
    source: str, failures: Sequence[Failure], checkpoints: pd.DataFrame, settings: Mapping[str, Setting]
) -> dict[str, Any] | None:
    """A profile as plain data; None if no recovery from the loss of a process was seen whole.

    The rate and the capacity are not in it: no log tells them, so the scenario's own count.
    """
    drawn = draws(failures, settings)
    if not {"detected", "delay", "replaced", "deployed", "loaded"} <= drawn.keys():
        return None
    slots = np.maximum(drawn["replaced"] - drawn["detected"], drawn["delay"])
    values: dict[str, Floats] = {
        DETECTION: drawn["detected"],
        RESTART: slots + drawn["deployed"],
        LOADING: drawn["loaded"],
    }
    durations = checkpoints["duration_s"].dropna().to_numpy(float)
    if len(durations):
        values[UPLOAD] = np.quantile(durations, even(len(slots)))
    every, _ = interval_of(checkpoints, settings)
    chosen = np.arange(_DRAWS) * len(slots) // _DRAWS
    flat = {key: six_digits(float(np.median(those))) for key, those in values.items()}
    fixed = {"run.calm": f"{_CALM_S} s"} | ({INTERVAL: six_digits(every)} if every else {})
    kills = sum(failure.kind == "kill" for failure in failures)
    provenance = {
        "source": source,
        "measurements": kills,
        "method": "stages of recoveries in a JobManager's log; the next ones by Student's distribution",
        "not_identified": "input rate, capacity, and the time from a kill to its first sign",
        "version": f"tideover {__version__}",
    }
    ends = {key: np.quantile(those, ENDS).tolist() for key, those in values.items()}
    return profile.data(
        name_of(source),
        provenance,
        dict(sorted((flat | fixed).items())),
        {key: (six_digits(low), six_digits(high), True) for key, (low, high) in ends.items()},
        (values, ((six_digits(float(those[i])) for those in values.values()) for i in chosen.tolist())),
        ranges={"interval": {"low": six_digits(every), "high": six_digits(every)}} if every else {},
        scatter={"outage_end_s": 0.0},
    )


def name_of(source: str) -> str:
    """A source's name as that of a file.

    >>> name_of("Count words (da371103)")
    'count-words-da371103'
    """
    return re.sub(r"[^a-z0-9]+", "-", source.lower()).strip("-")[:60] or "flink"
