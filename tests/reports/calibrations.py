"""Tables of calibrations that never ran: pairs, rankings, counts and backlogs, row by row."""

import numpy as np
import pandas as pd

NAN = float("nan")


def pair(measured, predicted, low=NAN, high=NAN, **more):
    """One row of pairs: by default an output gap after a killed executor, held out."""
    row = {
        "session": "s1",
        "episode": 0,
        "purpose": "recovery",
        "held_out": True,
        "strategy": "micro_batch",
        "pipeline": "word_count",
        "master": "local-cluster[2,1,1024]",
        "fault": "kill_executor",
        "rate_per_s": 1000.0,
        "keys": NAN,
        "moment_s": 0.5,
        "measure": "output_gap_s",
        "measured": measured,
        "predicted": predicted,
        "low": low,
        "high": high,
        "error": predicted / measured - 1 if measured else NAN,
    }
    return row | more


def steady(measured, predicted, **more):
    quiet = {"purpose": "steady", "fault": "none", "measure": "batch_duration_s", "moment_s": NAN}
    return pair(measured, predicted, **(quiet | more))


def table(*rows):
    return pd.DataFrame(list(rows))


def ranks(measured, simulated):
    names = ["micro_batch", "source_replay", "active_replication"]
    gaps = {"measured_gap_s": 2.0, "simulated_gap_s": 2.0, "n": 3, "fault": "kill_driver"}
    return table(
        *(
            {"strategy": name, "measured_rank": m, "simulated_rank": s, **gaps}
            for name, m, s in zip(names, measured, simulated, strict=False)
        )
    )


def counts(**more):
    row = {
        "strategy": "micro_batch",
        "fault": "kill_driver",
        "kills": 6,
        "exact": 6,
        "missing": 0,
        "extra": 0,
        "simulated_lost": 0,
        "simulated_duplicated": 0,
        "promise": "exactly once",
    }
    return row | more


def episodes(count, strategy="micro_batch", fault="kill_executor"):
    """Backlogs of several episodes, real and simulated: a triangle of an episode's own height."""
    at = np.arange(-2.0, 6.0)
    return pd.concat(
        pd.DataFrame(
            {
                "session": "s1",
                "episode": number,
                "strategy": strategy,
                "fault": fault,
                "kind": kind,
                "at_s": at,
                "backlog": (number + 1) * 100.0 * np.clip(3 - np.abs(at - 2), 0, None),
            }
        )
        for number in range(count)
        for kind in ("measured", "simulated")
    )


def every_table():
    """Every table, with one failed prediction for each reason that there is."""
    rows = [
        steady(1.0, 1.1, episode=1, keys=100.0),
        steady(2.0, 1.8, episode=2, keys=1000.0, rate_per_s=4000.0),
        steady(2.0, 2.1, episode=3, keys=1000.0, held_out=False),
        pair(4.0, 4.4, 3.5, 5.5, episode=4),
        pair(4.0, 6.0, 3.0, 9.0, episode=5, rate_per_s=2000.0),
        pair(4.0, 4.8, 4.2, 5.4, episode=6, moment_s=0.2),
        pair(8.0, NAN, episode=7, strategy="source_replay", measure="catch_up_s"),
        pair(NAN, 5.0, 4.0, 6.0, episode=8, strategy="source_replay", measure="catch_up_s"),
    ]
    parameter = {
        "strategy": "micro_batch",
        "parameter": "output_time",
        "value": 0.12,
        "low": 0.10,
        "high": 0.15,
        "unit": "s",
        "identified": False,
        "meaning": "end of a batch until the sink has it",
    }
    timelines = pd.concat([episodes(6), episodes(2, "source_replay", "kill_driver")])
    return {
        "pairs": table(*rows),
        "parameters": table(parameter),
        "timelines": timelines,
        "ranking": ranks([1, 2, 3], [1, 3, 2]),
        "correctness": table(counts(), counts(strategy="source_replay", exact=5, extra=31)),
    }
