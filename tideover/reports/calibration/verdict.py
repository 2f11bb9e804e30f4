"""A calibration in sentences: the verdict, and what the model does not explain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tideover.models.results.headline import counted
from tideover.reports.calibration.predictions import fault_name, judged, measure_name, summary
from tideover.reports.calibration.tables import (
    episode_name,
    held_intervals,
    interval,
    kept,
    missed_aims,
    percent,
    same_ranking,
)
from tideover.reports.formatting import amount, capitalised, listed, number, strategy_name

if TYPE_CHECKING:
    import pandas as pd

MOST_NAMED = 6
"""So many of the largest residuals are told in words; the tables have all of them."""

_CAUSES = {
    "rate_per_s": "the input rate",
    "keys": "the number of keys",
    "moment_s": "the time into the batch",
}
_LEAST_BIAS = 0.10
_LEAST_TREND = 0.7
_LEAST_POINTS = 5


def verdict(pairs: pd.DataFrame, ranking: pd.DataFrame, correctness: pd.DataFrame) -> str:
    """One line each: held-out errors, coverage and which aims are missed, ranking, counts."""
    found = summary(pairs)
    parts = [_steady(found), *_recoveries(found), _failures(found), _ranking(ranking), _counts(correctness)]
    return "\n".join(part for part in parts if part)


def _steady(found: pd.DataFrame) -> str:
    steady = found[(found["purpose"] == "steady") & (found["n"] > 0)]
    if steady.empty:
        return "No held-out episode without a fault was compared."
    runs = counted(int(steady["n"].max()), "held-out episode")
    shown = listed(
        f"{_measure(row, steady)} {percent(row['median_error'])} (worst {percent(row['worst_error'])})"
        for row in steady.to_dict("records")
    )
    off = f"predictions are off in the median by: {shown}{_missed(steady)}"
    return f"Without faults ({runs} a measure), {off}."


def _measure(row: Mapping[Any, Any], among: pd.DataFrame) -> str:
    name = measure_name(row["measure"])
    return f"{strategy_name(row['strategy'])}, {name}" if among["strategy"].nunique() > 1 else name


def _recoveries(found: pd.DataFrame) -> list[str]:
    after = found[(found["purpose"] == "recovery") & (found["n"] > 0)]
    if after.empty:
        return ["No held-out fault was compared."]
    return [_recovery(strategy_name(name), part) for name, part in after.groupby("strategy", sort=False)]


def _recovery(strategy: str, part: pd.DataFrame) -> str:
    rows, count = part.to_dict("records"), int(part["intervals"].sum())
    errors = listed(f"{measure_name(row['measure'])} {percent(row['median_error'])}" for row in rows)
    held = sum(held_intervals(row) for row in rows if row["intervals"])
    covers = f"; {held} of {count} figures lie in their 90 % interval" if count else ""
    faults = counted(int(part["n"].max()), "held-out fault")
    off = f"off in the median by {errors}{covers}{_missed(part)}"
    return f"{capitalised(strategy)} after {faults}: {off}."


def _missed(part: pd.DataFrame) -> str:
    """A clause that names the aims that are missed, or says that all are met."""
    missed = [(row, missed_aims(row)) for row in part.to_dict("records")]
    told = [f"{_measure(row, part)} ({', '.join(texts)})" for row, texts in missed if texts]
    return f"; aims missed: {listed(told)}" if told else "; aims met"


def _failures(found: pd.DataFrame) -> str:
    total, failed = int(found["n"].sum()), int(found["failed"].sum())
    if not total:
        return ""
    if not failed:
        return f"None of {counted(total, 'held-out prediction')} failed."
    return f"{failed} of {counted(total, 'held-out prediction')} failed; they are marked below."


def _ranking(ranking: pd.DataFrame) -> str:
    same = {fault_name(fault): same_ranking(part) for fault, part in ranking.groupby("fault", sort=False)}
    if all(one is None for one in same.values()):
        return ""
    other = listed(name for name, one in same.items() if one is False)
    if other:
        return f"The simulation ranks the strategies by output gap otherwise than the real runs do: {other}."
    return "The ranking of the strategies by output gap is the same in the real runs and in the simulation."


def _counts(correctness: pd.DataFrame) -> str:
    promised = [row for row in correctness.to_dict("records") if kept(row) is not None]
    exactly = [row for row in promised if row["promise"] == "exactly once"]
    if not promised:
        return ""
    broken = [
        f"{strategy_name(row['strategy'])}, {fault_name(row['fault'])} "
        f"({amount(row['missing'])} missing, {amount(row['extra'])} extra)"
        for row in promised
        if not kept(row)
    ]
    if broken:
        return f"The real counts broke the promise: {listed(broken)}."
    kills, exact = (int(sum(row[key] for row in exactly)) for key in ("kills", "exact"))
    told = f"after {exact} of {counted(kills, 'fault')} where the strategy promises exactly once"
    return f"The real counts were exact {told}." if exactly else "The real counts kept what was promised."


def labelled(provenance: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Where it was measured, as labels and texts; a name of a field becomes a label.

    >>> labelled({"measured_on": "2 cores", "os": "Linux", "My label": 1})
    (('Measured on', '2 cores'), ('Operating system', 'Linux'), ('My label', '1'))
    """
    known = {"os": "Operating system"}
    return tuple((known.get(k, capitalised(k.replace("_", " "))), str(v)) for k, v in provenance.items())


def unexplained(pairs: pd.DataFrame) -> tuple[str, ...]:
    """What the model does not explain: silence, leanings and trends of the residuals, then the largest ones.

    All pairs count, those of the fit too: a model that misses what it was fitted on has no excuse.
    """
    found = judged(pairs)
    known = found[found["error"].notna()]
    leanings = []
    for (strategy, measure, purpose), part in known.groupby(["strategy", "measure", "purpose"], sort=False):
        name = f"{capitalised(strategy_name(strategy))}, {measure_name(measure)}"
        name += ", without faults" if purpose == "steady" else ""
        leanings += [f"{name}: {text}" for text in (_silence(part), _bias(part), *_trends(part)) if text]
    failed = known[known["failed"] & known["predicted"].notna()]
    worst = failed.reindex(failed["error"].abs().sort_values(ascending=False, kind="stable").index)
    return (*leanings, *(_residual(row) for row in worst.head(MOST_NAMED).to_dict("records")))


def _silence(part: pd.DataFrame) -> str:
    """A sentence if episodes have no prediction: their simulation does not end, or nothing was fitted."""
    silent = part[part["predicted"].isna()]
    if silent.empty:
        return ""
    named = [episode_name(row) for row in silent.head(MOST_NAMED).to_dict("records")]
    named += [f"{len(silent) - MOST_NAMED} more"] if len(silent) > MOST_NAMED else []
    return f"nothing is predicted in {len(silent)} of {counted(len(part), 'episode')}: {listed(named)}."


def _bias(part: pd.DataFrame) -> str:
    """A sentence if at least four of five residuals have the sign of the median, and that is not small."""
    import numpy as np

    part = part[np.isfinite(part["error"])]
    errors = part["error"]
    median = float(errors.median())
    same = int(((errors > 0) == (median > 0)).sum())
    if len(part) < _LEAST_POINTS or abs(median) < _LEAST_BIAS or same < 0.8 * len(part):
        return ""
    way = "too long" if median > 0 else "too short"
    return f"predicted {way} in {same} of {len(part)} episodes, by {percent(abs(median))} in the median."


def _trends(part: pd.DataFrame) -> list[str]:
    """With which quantities the residuals rise or fall, by Spearman's rank correlation."""
    import numpy as np

    found = []
    for column, cause in _CAUSES.items():
        known = part[part[column].notna() & np.isfinite(part["error"])]
        if len(known) < _LEAST_POINTS or known[column].nunique() < 3 or known["error"].nunique() < 2:
            continue
        rho = float(known[column].rank().corr(known["error"].rank()))
        if abs(rho) >= _LEAST_TREND:
            way = "rises" if rho > 0 else "falls"
            found.append(
                f"the relative error {way} with {cause} (rank correlation {number(rho, 2)}, "
                f"n = {len(known)})."
            )
    return found


def _residual(row: Mapping[Any, Any]) -> str:
    outside = ""
    if row["covered"] is False:
        outside = f", outside its interval of {interval(row['low'], row['high'])} s"
    seen = "held out" if row["held_out"] else "seen by the fit"
    return (
        f"{capitalised(strategy_name(row['strategy']))}, {fault_name(row['fault'])} at "
        f"{amount(row['rate_per_s'])} rows/s ({episode_name(row)}, {seen}): {measure_name(row['measure'])} "
        f"predicted {number(row['predicted'])} s, measured {number(row['measured'])} s "
        f"({percent(row['error'], sign=True)}){outside}."
    )
