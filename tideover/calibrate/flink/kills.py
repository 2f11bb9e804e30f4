"""Measured kills, and what is fitted to those that are not held out.

`analysis` reads them from a campaign's tables. What happened is defined as for PySpark
(`tideover.calibrate.episodes`): the sink's longest silence, and when the backlog is normal again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from tideover.calibrate.episodes import (
    DISTURBED,
    NAN,
    PRE,
    SETTLE,
    BacklogCurve,
    Figures,
    Floats,
    emitted,
    new_outputs,
    normal,
    recovery,
)
from tideover.calibrate.fits import Law, fluid_law

SILENT_S = 0.5
"""The sink is never silent for so long while the job runs."""
IN_FLIGHT_S = 0.15
"""Longer than what is on its way between two tasks: Flink's buffers wait for 0.1 s at most."""
SETTLED_S = 2.0
"""A job that has more than the rows of so many seconds before it has not caught up."""
LEAST_S = 1e-3
"""A stage that is shorter takes no time, as the log has ms."""
REFUSED_S = 0.05
"""Of a restart on a lost TaskManager until it fails, where none was seen: the simulator's default."""
LAG_S = 1.0
"""By so much, at most, the sink's last note before a kill is older than the kill, while the job runs."""


@dataclass(frozen=True)
class Kill:
    """One kill of a TaskManager; times in s since the session's t0, stages as in `tables`.

    disturbed   by other programs, while others were not
    snapshot_s  how long checkpoints of the session took, in the median
    curve       of the whole session
    """

    session: str
    episode: int
    held_out: bool
    interval_s: float
    heartbeat_s: float
    timeout_s: float
    restart_delay_s: float
    rate_per_s: float
    begin_s: float
    end_s: float
    at_s: float
    triggered_s: float
    detected_s: float
    restarts: int
    refused_s: float
    given_up_s: float
    slots_s: float
    running_s: float
    output_s: float
    few: int
    many: int
    others_cores: float
    snapshot_s: float
    curve: BacklogCurve
    disturbed: bool = False

    @property
    def fitted(self) -> bool:
        return not self.held_out and not self.disturbed

    @property
    def since_s(self) -> float:
        """From when on what is seen before the kill is normal."""
        return max(self.begin_s + SETTLE, self.at_s - max(PRE, self.interval_s + 1))

    @property
    def settled(self) -> bool:
        """Whether the job had caught up before the kill with what had been before that."""
        return normal(self.curve, self.since_s, self.at_s) <= SETTLED_S * self.rate_per_s

    @property
    def age_s(self) -> float:
        """From the begin of the checkpoint that the job goes back to until the kill."""
        return self.at_s - self.triggered_s

    @property
    def outage_s(self) -> float:
        """From the kill until rows are put out again, be it for the second time."""
        return self.output_s - self.at_s

    def figures(self) -> Figures:
        """What was measured; what was not over by the end of the episode is missing."""
        found = recovery(self.curve, self.since_s, self.at_s, self.end_s)
        if not found.get("output_gap_s", NAN) > self.outage_s - IN_FLIGHT_S - LAG_S:
            return {}  # the sink was still silent
        return found

    def work(self) -> tuple[float, float]:
        """Rows that the job has done, from the checkpoint on, until it has caught up, or the episode is over;
        and how long it took (s). NaN: it was silent to the end, or there was nothing to catch up with.
        """
        figures = self.figures()
        back = figures.get("catch_up_s", self.end_s - self.at_s)
        if not figures or back <= self.outage_s:
            return NAN, NAN
        first, last = np.interp([self.triggered_s, self.at_s + back], *self.curve.emitted)
        left = self.curve.backlog(np.array([self.at_s + back]))[0]
        return float(last - left - first), back - self.outage_s


_SETTINGS = ("interval_s", "heartbeat_s", "timeout_s", "restart_delay_s")


def kills(tables: Mapping[str, pd.DataFrame]) -> list[Kill]:
    """All kills of a campaign that struck a job which had ``settled``, and had a checkpoint to go back to, in
    sessions that did not fail; ``tables`` as the campaign returns them.
    """
    found = []
    for session in tables["sessions"].to_dict("records"):
        if session["error"]:
            continue
        mine = {name: table[table["session"] == session["session"]] for name, table in tables.items()}
        done = mine["checkpoints"]["status"] == "COMPLETED"
        shared = {
            **{name: float(session[name]) for name in _SETTINGS},
            "snapshot_s": float(mine["checkpoints"]["duration_s"][done].median()),
            "curve": _curve(mine["outputs"], str(session["pieces"]), float(session["end_s"])),
        }
        for row in mine["kills"].sort_values("episode").to_dict("records"):
            taken = {str(key): value for key, value in row.items() if key not in ("victim",)}
            found.append(Kill(**{**taken, **shared}))
    found = [kill for kill in found if np.isfinite(kill.age_s) and kill.settled]
    quiet = any(not k.held_out and not k.others_cores > DISTURBED for k in found)
    return [replace(k, disturbed=quiet and k.others_cores > DISTURBED) for k in found]


def _curve(outputs: pd.DataFrame, pieces: str, end: float) -> BacklogCurve:
    told = json.loads(pieces)
    least = IN_FLIGHT_S * max(rate for _, rate in told)
    moments, rows = new_outputs(*(outputs[name].to_numpy(float) for name in ("at_s", "rows")))
    return BacklogCurve(*without_trickle(moments, rows, least), emitted(told, end))


def without_trickle(moments: Floats, rows: Floats, least: float) -> tuple[Floats, Floats]:
    """Outputs (s, and rows done) without those that do not end a silence of ``SILENT_S``, as they bring less
    than ``least`` rows more.

    When a process dies its channels have got on differently far, by what waits in network buffers for
    ``execution.buffer-timeout``. The first task that is back may fill up what the others had, and be silent
    again until they are.
    """
    kept: list[int] = []
    for i in range(len(moments)):
        if kept and moments[i] - moments[kept[-1]] > SILENT_S and rows[i] - rows[kept[-1]] < least:
            continue
        kept.append(i)
    return moments[kept], rows[kept]


@dataclass(frozen=True)
class Costs:
    """What a kill costs, s, as fitted; ``capacity``: rows per second, all tasks together.

    connection    from the kill until the first task fails, as its connection is lost
    refused       from a restart on the lost TaskManager until it fails
    given_up      from the kill until the lost TaskManager is no longer reachable
    replacement   from the kill until there are slots for all tasks
    prepare       from then until the first row is put out
    snapshot      from the begin of a checkpoint until it is complete
    """

    connection: float
    refused: float
    given_up: float
    replacement: float
    prepare: float
    snapshot: float
    capacity: float

    @property
    def outage(self) -> float:
        return self.replacement + self.prepare


def fit(found: Sequence[Kill], weights: Floats | None = None) -> Costs:
    """Weighted geometric means over the kills of what the log says of each, as times on a busy machine differ
    by factors; the capacity is that of all their work together.
    """
    w = np.ones(len(found)) if weights is None else weights

    def total(values: Sequence[float]) -> float:
        return float(np.nansum(w * np.array(values, float)))

    def mean(values: Sequence[float]) -> float:
        known = np.isfinite(values) & (w > 0)
        logs = np.log(np.maximum(np.array(values, float)[known], LEAST_S))
        return float(np.exp(np.average(logs, weights=w[known]))) if known.any() else NAN

    rows, lasted = (total(column) for column in zip(*(kill.work() for kill in found), strict=True))
    return Costs(
        connection=mean([k.detected_s - k.at_s for k in found]),
        refused=float(np.nan_to_num(mean([k.refused_s for k in found]), nan=REFUSED_S)),
        given_up=mean([k.given_up_s - k.at_s for k in found]),
        replacement=mean([k.slots_s - k.at_s for k in found]),
        prepare=mean([k.output_s - k.slots_s for k in found]),
        snapshot=mean([k.snapshot_s for k in found]),
        capacity=rows / lasted,
    )


def fluid(found: Sequence[Kill]) -> Law:
    """The fluid law of kills; what is gone back to is a checkpoint."""
    seen = [(kill.rate_per_s, kill.age_s, kill.figures()) for kill in found]
    return fluid_law([one for one in seen if one[2]])
