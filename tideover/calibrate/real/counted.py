"""What became of the rows of each episode: were they counted right, and how late."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from tideover.calibrate.real import truth
from tideover.calibrate.real.plan import Episode
from tideover.calibrate.real.schedule import MICROSECONDS
from tideover.calibrate.real.session import NAN, Row, Session
from tideover.calibrate.real.sink import read_batches
from tideover.calibrate.real.truth import Ledger


def episodes(session: Session, batches: pd.DataFrame) -> list[Row]:
    """The rows of the table ``episodes``."""
    counted = _words_counted if session.plan.pipeline == "word_count" else _keys_counted
    copied = ("purpose", "held_out", "begin_s", "end_s", "rate_per_s")
    rows = []
    for number, (episode, counts) in enumerate(zip(session.plan.episodes, counted(session), strict=True)):
        fault = episode.fault
        p50, p95 = _latencies(session, batches, episode)
        rows.append(
            {
                "session": session.plan.name,
                "episode": number,
                **{name: getattr(episode, name) for name in copied},
                "fault": fault.kind if fault else "none",
                "planned_s": episode.begin_s + fault.at_s if fault else NAN,
                "stop_s": fault.stop_s if fault and fault.kind == "stop_executor" else NAN,
                **counts,
                "latency_p50_s": p50,
                "latency_p95_s": p95,
                "others_cores": _others(session, episode),
            }
        )
    return rows


def _words_counted(session: Session) -> list[Row]:
    """Of each episode, the windows that lie in it wholly."""
    plan = session.plan
    rows = []
    for episode in plan.episodes:
        windows = range(math.ceil(episode.begin_s / plan.window_s), math.floor(episode.end_s / plan.window_s))
        ledger, right, emitted = Ledger(), 0, 0
        for window in windows:
            true = truth.words_of_window(plan, session.schedule, window)
            emitted += true.total()
            ledger += truth.compare_words(true, session.windows.get(window, {}))
            right += true == session.windows.get(window)
        rows.append(_counted(emitted, ledger, len(windows), right))
    return rows


def _keys_counted(session: Session) -> list[Row]:
    """The counts of all keys at the first batch that holds all rows of an episode. A mistake that was there
    before the episode is not the episode's.
    """
    plan, schedule = session.plan, session.schedule
    got = np.zeros(plan.keys, np.int64)
    ends = [schedule.rows_before(round(episode.end_s * MICROSECONDS)) for episode in plan.episodes]
    rows: list[Row] = []
    begin, before = schedule.rows_before(round(plan.episodes[0].begin_s * MICROSECONDS)), Ledger()
    for end, table in read_batches(session.directory / "sink" / "batches" / "0"):
        got[table.column("key").to_numpy()] = table.column("count").to_numpy()
        while len(rows) < len(ends) and end >= ends[len(rows)]:
            now = truth.compare_keys(truth.keys_until(plan, end), got)
            missing, extra = max(0, now.missing - before.missing), max(0, now.extra - before.extra)
            rows.append(_counted(end - begin, Ledger(end - begin - missing, missing, extra)))
            begin, before = end, now
    return rows + [_counted(0, Ledger())] * (len(ends) - len(rows))


def _counted(emitted: int, ledger: Ledger, windows: int = 0, right: int = 0) -> Row:
    return {
        "emitted": emitted,
        "counted_right": ledger.right,
        "missing": ledger.missing,
        "extra": ledger.extra,
        "windows": windows,
        "windows_right": right,
    }


def _others(session: Session, episode: Episode) -> float:
    """Cores that other programs kept busy, in the mean; NaN: nobody looked."""
    seen = [
        event["cores"]
        for event in session.supervisor
        if event["event"] == "others" and episode.begin_s <= session.since(event["at"]) < episode.end_s
    ]
    return float(np.mean(seen)) if seen else NAN


def _latencies(session: Session, batches: pd.DataFrame, episode: Episode) -> tuple[float, float]:
    """Median and 95th percentile, over the rows of an episode, of the time until the sink first has them."""
    ends = (episode.begin_s, episode.end_s)
    first, last = (session.schedule.rows_before(round(s * MICROSECONDS)) for s in ends)
    seen = np.full(last - first, np.inf)
    known = batches.dropna(subset=["sink_s"])
    spans = known[["first_row", "last_row"]].to_numpy(np.int64)
    for (a, b), sink_s in zip(np.clip(spans, first, last) - first, known["sink_s"], strict=True):
        np.minimum(seen[a:b], sink_s, out=seen[a:b])
    latency = seen - session.schedule.stamps(np.arange(first, last)) / MICROSECONDS
    latency = latency[np.isfinite(latency)]
    if not len(latency):
        return NAN, NAN
    p50, p95 = np.percentile(latency, [50, 95])
    return float(p50), float(p95)
