"""A calibration on real runs, as a page and for the terminal: sentences, pictures and tables.

`tideover.cli.calibrate` shows both; the input is the tables of ``columns.CALIBRATION``, however made.
A sentence here must say no more than the tables do: every failure is in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Group
from rich.text import Text

from tideover.models.results import counted
from tideover.reports import figures
from tideover.reports.calibration import tables
from tideover.reports.calibration.tables import Frames, measure_name, percent
from tideover.reports.columns import CALIBRATION, Tables
from tideover.reports.figures.style import picture
from tideover.reports.formatting import amount, capitalised, number, strategy_name
from tideover.reports.html import Page, Picture, Section
from tideover.reports.terminal import rendered, warnings_view
from tideover.scenarios.errors import listed

if TYPE_CHECKING:
    import pandas as pd

    from tideover.reports.tables import Table

MOST_NAMED = 6
"""So many of the largest residuals are told in words; the tables have all of them."""
_LEAST_BIAS = 0.10
_LEAST_TREND = 0.7
_LEAST_POINTS = 5
_OVER = {
    "rate_per_s": ("the input rate", "A slope means that the cost of a row is wrong."),
    "keys": ("the number of keys", "A slope means that the cost of state is wrong."),
    "moment_s": (
        "the time since the batch or the checkpoint began",
        "A slope means that the model takes the loss of what was under way too lightly or too seriously.",
    ),
}
"""What errors may hang on, and what a slope over it means."""


def verdict(pairs: pd.DataFrame, ranking: pd.DataFrame, correctness: pd.DataFrame) -> str:
    """One line each: held-out errors, coverage and which aims are missed, ranking, counts."""
    found = tables.summary(pairs)
    steady = found[(found["purpose"] == "steady") & (found["n"] > 0)]
    parts = ["No held-out episode without a fault was compared."]
    if len(steady):
        runs = counted(int(steady["n"].max()), "held-out episode")
        told = []
        for row in steady.to_dict("records"):
            middle, worst = percent(row["median_error"]), percent(row["worst_error"])
            told.append(f"{_measure(row, steady)} {middle} (worst {worst})")
        shown = listed(told)
        off = f"predictions are off in the median by: {shown}{_missed(steady)}"
        parts = [f"Without faults ({runs} a measure), {off}."]
    after = found[(found["purpose"] == "recovery") & (found["n"] > 0)]
    parts += [] if len(after) else ["No held-out fault was compared."]
    for strategy, part in after.groupby("strategy", sort=False):
        rows, count = part.to_dict("records"), int(part["intervals"].sum())
        errors = listed(f"{measure_name(row['measure'])} {percent(row['median_error'])}" for row in rows)
        held = sum(tables.held_intervals(row) for row in rows if row["intervals"])
        covers = f"; {held} of {count} figures lie in their 90 % interval" if count else ""
        faults = f"{strategy_name(strategy)} after {counted(int(part['n'].max()), 'held-out fault')}"
        parts.append(f"{capitalised(faults)}: off in the median by {errors}{covers}{_missed(part)}.")
    if total := int(found["n"].sum()):
        bad, of = int(found["failed"].sum()), counted(total, "held-out prediction")
        parts.append(f"{bad} of {of} failed; they are marked below." if bad else f"None of {of} failed.")
    same = {
        tables.fault_name(fault): tables.same_ranking(part)
        for fault, part in ranking.groupby("fault", sort=False)
    }
    way = "The ranking of the strategies by output gap is the same in the real runs and in the simulation."
    if other := listed(name for name, one in same.items() if one is False):
        way = f"The simulation ranks the strategies by output gap otherwise than the real runs do: {other}."
    parts += [] if all(one is None for one in same.values()) else [way]
    parts += _counts(correctness)
    return "\n".join(parts)


def _measure(row: Mapping[Any, Any], among: pd.DataFrame) -> str:
    name = measure_name(row["measure"])
    return f"{strategy_name(row['strategy'])}, {name}" if among["strategy"].nunique() > 1 else name


def _missed(part: pd.DataFrame) -> str:
    missed = [(row, tables.missed_aims(row)) for row in part.to_dict("records")]
    told = [f"{_measure(row, part)} ({', '.join(texts)})" for row, texts in missed if texts]
    return f"; aims missed: {listed(told)}" if told else "; aims met"


def _counts(correctness: pd.DataFrame) -> list[str]:
    promised = [row for row in correctness.to_dict("records") if tables.kept(row) is not None]
    exactly = [row for row in promised if row["promise"] == "exactly once"]
    broken = [
        f"{strategy_name(row['strategy'])}, {tables.fault_name(row['fault'])} "
        f"({amount(row['missing'])} missing, {amount(row['extra'])} extra)"
        for row in promised
        if not tables.kept(row)
    ]
    if broken:
        return [f"The real counts broke the promise: {listed(broken)}."]
    if exactly:
        kills, exact = (int(sum(row[key] for row in exactly)) for key in ("kills", "exact"))
        of = f"{exact} of {counted(kills, 'fault')}"
        return [f"The real counts were exact after {of} where the strategy promises exactly once."]
    return ["The real counts kept what was promised."] if promised else []


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
    found = tables.judged(pairs)
    known = found[found["error"].notna()]
    told = []
    for (strategy, measure, purpose), part in known.groupby(["strategy", "measure", "purpose"], sort=False):
        name = f"{capitalised(strategy_name(strategy))}, {measure_name(measure)}"
        name += ", without faults" if purpose == "steady" else ""
        told += [f"{name}: {text}" for text in _leanings(part)]
    failed = known[known["failed"] & known["predicted"].notna()]
    worst = failed.reindex(failed["error"].abs().sort_values(ascending=False, kind="stable").index)
    for row in worst.head(MOST_NAMED).to_dict("records"):
        outside = ""
        if row["covered"] is False:
            outside = f", outside its interval of {tables.interval(row['low'], row['high'])} s"
        seen = "held out" if row["held_out"] else "seen by the fit"
        told.append(
            f"{capitalised(strategy_name(row['strategy']))}, {tables.fault_name(row['fault'])} at "
            f"{amount(row['rate_per_s'])} rows/s ({tables.episode_name(row)}, {seen}): "
            f"{measure_name(row['measure'])} predicted {number(row['predicted'])} s, measured "
            f"{number(row['measured'])} s ({percent(row['error'], sign=True)}){outside}."
        )
    return tuple(told)


def _leanings(part: pd.DataFrame) -> list[str]:
    """Sentences on one measure: episodes without a prediction (their simulation does not end, or nothing was
    fitted); a bias, if four of five residuals have the sign of the median, and that is not small; and with
    which quantities the residuals rise or fall, by Spearman's rank correlation.
    """
    told = []
    silent = part[part["predicted"].isna()]
    if len(silent):
        named = [tables.episode_name(row) for row in silent.head(MOST_NAMED).to_dict("records")]
        named += [f"{len(silent) - MOST_NAMED} more"] if len(silent) > MOST_NAMED else []
        of = f"{len(silent)} of {counted(len(part), 'episode')}"
        told.append(f"nothing is predicted in {of}: {listed(named)}.")
    part = part[np.isfinite(part["error"])]
    errors = part["error"]
    if len(part) < _LEAST_POINTS:
        return told
    median = float(errors.median())
    same = int(((errors > 0) == (median > 0)).sum())
    if abs(median) >= _LEAST_BIAS and same >= 0.8 * len(part):
        way = "too long" if median > 0 else "too short"
        by = percent(abs(median))
        told.append(f"predicted {way} in {same} of {len(part)} episodes, by {by} in the median.")
    for column, (cause, _) in _OVER.items():
        known = part[part[column].notna()]
        if len(known) < _LEAST_POINTS or known[column].nunique() < 3 or known["error"].nunique() < 2:
            continue
        rho = float(known[column].rank().corr(known["error"].rank()))
        if abs(rho) >= _LEAST_TREND:
            way = "rises" if rho > 0 else "falls"
            with_ = f"(rank correlation {number(rho, 2)}, n = {len(known)})"
            told.append(f"the relative error {way} with {cause} {with_}.")
    return told


def scatter(pairs: pd.DataFrame) -> tuple[Picture, ...]:
    """Predicted over measured, of pairs that are ``judged``; no picture if nothing can be drawn."""
    drawable = (pairs["measured"] > 0) & (pairs["predicted"] > 0)
    if not drawable.any():
        return ()
    undrawn = int((~drawable & pairs["error"].notna()).sum())
    also = ["undrawn"] if undrawn else []
    return (picture("predictions", figures.predictions(pairs), also=also, undrawn=undrawn),)


def residuals(pairs: pd.DataFrame) -> tuple[Picture, ...]:
    """Errors over rate, keys and moment; only where there is something to compare."""
    found = []
    for over, (what, hint) in _OVER.items():
        known = pairs[np.isfinite(pairs["error"]) & pairs[over].notna()]
        if known[over].nunique() > 1:
            words: Any = {"over": over.replace("_", "-"), "what": what, "hint": hint}
            found.append(picture("residuals", figures.residuals(known, over), **words))
    return tuple(found)


def backlogs(timelines: pd.DataFrame, pairs: pd.DataFrame) -> tuple[Picture, ...]:
    """For each strategy and fault the episode with the median error; then those with the greatest errors."""
    typical, worst = chosen(timelines, pairs)
    if typical.empty:
        return ()
    parts = [("", "One episode of each", typical, "typical")]
    if not worst.empty:
        held_out = "Of the held-out episodes those with the median error"
        parts = [
            (": typical episodes", held_out, typical, "typical"),
            (": worst episodes", "The episodes with the greatest error", worst, "worst"),
        ]
    drawn = []
    for title, which, part, key in parts:
        rows = part.drop_duplicates(["session", "episode"]).to_dict("records")
        named = ", ".join(f"{strategy_name(row['strategy'])} {tables.episode_name(row)}" for row in rows)
        words: Any = {"part": title, "which": which, "named": named, "key": key}
        drawn.append(picture("backlog", figures.backlogs(part), **words))
    return tuple(drawn)


def chosen(timelines: pd.DataFrame, pairs: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The timelines of one typical episode for each strategy and fault, and those of the worst ones.

    An episode's error is the mean of its absolute errors; held-out episodes go first. A worst episode is
    left out if it is also the typical one.
    """
    keys = ["session", "episode"]
    errors = pairs.assign(_error=np.minimum(pairs["error"].abs(), 1e9)).groupby(keys)["_error"].mean()
    unseen = set(pairs[pairs["held_out"]][keys].itertuples(index=False, name=None))
    typical: set[Any] = set()
    worst: set[Any] = set()
    for _, part in timelines.groupby(["fault", "strategy"], sort=False):
        episodes = list(dict.fromkeys(part[keys].itertuples(index=False, name=None)))
        candidates = [one for one in episodes if one in unseen] or episodes
        ranked = sorted(candidates, key=lambda one: (np.nan_to_num(errors.get(one, np.nan), nan=1e9), one))
        middle = ranked[(len(ranked) - 1) // 2]
        typical.add(middle)
        worst |= {ranked[-1]} - {middle}
    named = list(timelines[keys].itertuples(index=False, name=None))
    first, last = (timelines[[row in found for row in named]] for found in (typical, worst))
    return first, last


def measured_page(
    kind: str,
    verdict: str,
    sections: tuple[Section, ...],
    glossary: Tables,
    provenance: Mapping[str, object],
    *,
    title: str = "calibration",
    setup_title: str = "What was measured, and where",
    profiles: Mapping[str, str] = {},
    warnings: Sequence[str] = (),
) -> Page:
    """A page on measurements. ``provenance``: where and when they were made, label by label; ``profiles``:
    texts of those that came of them, by name. What its callers take as ``more`` is for it.
    """
    return Page(
        title=title,
        kind=kind,
        verdict=verdict,
        setup=labelled(provenance),
        setup_title=setup_title,
        sections=sections,
        warnings=tuple(warnings),
        scenarios=tuple(profiles.items()),
        scenarios_title="The profiles",
        glossary=glossary,
    )


def calibration_page(frames: Frames, provenance: Mapping[str, object], **more: Any) -> Page:
    """Measured and predicted figures of runs that were really killed; what ``frames`` lacks is left out."""
    pairs, parameters, timelines, ranking, correctness = (tables.frame(frames, name) for name in CALIBRATION)
    pairs = tables.judged(pairs)
    placed = _placed(pairs)
    told = unexplained(pairs) or ("No prediction failed, and the residuals lean to no side.",)
    sections = (
        Section("Measured beside predicted", tables=_summaries(pairs), pictures=scatter(pairs)),
        Section(
            "What the model does not explain",
            sentences=told if len(pairs) else (),
            pictures=residuals(pairs),
        ),
        Section("Real and simulated runs on one axis", pictures=backlogs(timelines, pairs)),
        Section("Which strategy is ahead", tables=(tables.ranking_table(ranking),)),
        Section("Are the counts right?", tables=(tables.correctness_table(correctness),)),
        Section("What the simulator takes from it", tables=(_parameters(parameters),)),
        Section(
            "Every pair",
            tables=(
                tables.pairs_table(placed[placed["held_out"]], "Held out: the fit has not seen them"),
                tables.pairs_table(placed[~placed["held_out"]], "Seen by the fit"),
            ),
        ),
    )
    kind = "real runs, really killed, beside what the fitted simulator says of them"
    answer = verdict(pairs, ranking, correctness)
    return measured_page(kind, answer, sections, CALIBRATION, provenance, **more)


def calibration_view(frames: Frames, warnings: Sequence[str] = ()) -> Group:
    """What the terminal shows: errors, failed predictions, ranking, counts, parameters, verdict."""
    pairs, parameters, _, ranking, correctness = (tables.frame(frames, name) for name in CALIBRATION)
    pairs = tables.judged(pairs)
    failed = _placed(pairs[pairs["held_out"] & pairs["failed"]])
    shown = (
        *_summaries(pairs)[:1],
        tables.pairs_table(failed, "Held-out predictions that failed"),
        tables.ranking_table(ranking),
        tables.correctness_table(correctness),
        _parameters(parameters, brief=True),
    )
    sentence = Text(verdict(pairs, ranking, correctness), style="bold")
    return Group(*rendered(shown), sentence, warnings_view(warnings))


def _parameters(parameters: pd.DataFrame, *, brief: bool = False) -> Table:
    by = "strategy" if parameters["profile"].isna().any() else "profile"
    return tables.parameters_table(parameters, by, brief=brief)


def _summaries(pairs: pd.DataFrame) -> tuple[Table, ...]:
    """Of held-out episodes first, if there are any."""
    struck = tables.summary(pairs[pairs["purpose"] == "recovery"], by_fault=True)
    found = (
        tables.summary_table(tables.summary(pairs), "Held-out episodes: how far predictions are off"),
        tables.summary_table(struck, "Held-out faults, by what was done"),
        tables.summary_table(tables.summary(pairs, held_out=False), "Episodes that the fit has seen"),
    )
    return tuple(table for table in found if table.rows)


def _placed(pairs: pd.DataFrame) -> pd.DataFrame:
    order = ["strategy", "measure", "purpose", "fault", "rate_per_s", "keys"]
    return pairs.sort_values(order, kind="stable")
