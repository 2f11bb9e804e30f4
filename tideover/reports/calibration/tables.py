"""Pairs of a measured and a predicted figure: how far apart they are, and the tables of a calibration.

Every pair is in the tables, and what failed is marked NO. `page` shows them, in a report and on the terminal;
`tideover.reports.figures.calibration` has names and limits from here. A figure that is added to ``summary``
needs its column in ``summary_table``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tideover.reports.columns import DOCUMENTED, conform
from tideover.reports.formatting import UNDEFINED, amount, fixed, is_undefined, number, strategy_name
from tideover.reports.tables import Table

if TYPE_CHECKING:
    import pandas as pd


Row = Mapping[Any, Any]
Frames = Mapping[str, "pd.DataFrame"]
"""Tables of results by name."""
FAILED_BEYOND = 0.30
"""A prediction that is further off than this has failed, whatever its interval says."""

MEASURES = {
    "batch_duration_s": "batch duration",
    "latency_p50_s": "median latency",
    "latency_p95_s": "p95 latency",
    "output_gap_s": "output gap",
    "catch_up_s": "catch-up",
}

FAULTS = {
    "none": "nothing failed",
    "kill_executor": "executor killed",
    "kill_driver": "driver killed",
    "stop_executor": "executor stopped",
    "kill_taskmanager": "TaskManager killed",
}

PURPOSES = {"steady": "Steady", "recovery": "After a fault"}


def measure_name(measure: Any) -> str:
    """How a measure is called in a sentence.

    >>> measure_name("output_gap_s"), measure_name("my_own_s")
    ('output gap', 'my own')
    """
    return MEASURES.get(measure, str(measure).removesuffix("_s").replace("_", " "))


def fault_name(fault: Any) -> str:
    """How a fault is called in a sentence.

    >>> fault_name("kill_driver"), fault_name("pull_plug")
    ('driver killed', 'pull plug')
    """
    return FAULTS.get(fault, str(fault).replace("_", " "))


def frame(frames: Frames, name: str) -> pd.DataFrame:
    """The frame of this name, without rows if it is missing; of optional columns those that it has."""
    import pandas as pd

    found = conform(name, frames.get(name, pd.DataFrame()))
    known = [column for column in DOCUMENTED[name] if column.name in found]
    truths = [column.name for column in known if column.dtype == "bool"]
    numbers = [column.name for column in known if column.dtype in ("int64", "float64")]
    found[numbers] = found[numbers].astype(float)
    found[truths] = found[truths].eq(True)  # what is missing is not true
    return found


def judged(pairs: pd.DataFrame) -> pd.DataFrame:
    """The pairs with ``error``, ``covered`` and ``failed``. An error that the
    calibration gives is kept: there, times too short to be told apart count as equal.

    What was not over by the end of a real episode cannot be judged: its error is NaN. What is not predicted
    (the simulation never ends it), or predicted although 0 was measured, is off by infinitely much.
    ``covered``: the measured figure lies in the interval of prediction, whose upper end may be infinite; None
    without an interval, but False for a held-out episode of which nothing is predicted. ``failed``: outside
    of it, or off by more than ``FAILED_BEYOND``.
    """
    import numpy as np
    import pandas as pd

    found = frame({"pairs": pairs}, "pairs")
    found["keys"] = found["keys"].where(found["keys"] > 0)
    for name in ("measured", "predicted"):
        found[name] = found[name].where(np.isfinite(found[name]))
    figures = ("measured", "predicted", "low", "high", "error")
    measured, predicted, low, high, given = (found[name].to_numpy(dtype=float) for name in figures)
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = predicted / measured - 1
    errors[(measured == 0) & (predicted == 0)] = 0.0
    errors[np.isfinite(measured) & ~np.isfinite(predicted)] = np.inf
    errors[np.isnan(measured)] = np.nan
    errors = np.where(np.isfinite(given + measured + predicted), given, errors)
    bounded = ~np.isnan(low) & ~np.isnan(high) & np.isfinite(measured)
    inside = (low <= measured) & (measured <= high)
    silent = np.isfinite(measured) & np.isnan(predicted) & found["held_out"].to_numpy(dtype=bool)
    covered = [bool(i and b) if b or s else None for i, b, s in zip(inside, bounded, silent, strict=True)]
    failed = ~np.isnan(errors) & ((bounded & ~inside) | (np.abs(errors) > FAILED_BEYOND))
    objects = pd.Series(covered, index=found.index, dtype=object)  # None stays None
    return found.assign(error=errors, failed=failed, covered=objects)


def summary(pairs: pd.DataFrame, *, held_out: bool = True, by_fault: bool = False) -> pd.DataFrame:
    """One row for each purpose, strategy and measure (and fault): how far the predictions are off.

    Of the held-out episodes, or of those that the fit has seen. ``median_error`` and ``worst_error`` are of
    the absolute error; ``coverage``: the part of the ``intervals`` (predictions that have one, or should)
    that hold the measured figure, NaN if there are none; ``failed``: how many failed (see ``judged``);
    ``unmeasured``: pairs that cannot be judged, and are not in ``n``. ``fluid_error``: the median error of
    the plain fluid law, if it was asked.
    """
    every = judged(pairs)
    known = every["error"].notna()
    every = every.assign(_size=every["error"].abs(), _covered=every["covered"].where(known).astype(float))
    keys = ["purpose", "strategy", *(["fault"] if by_fault else []), "measure"]
    more: dict[str, Any] = {}
    if "fluid_error" in every:
        every["_fluid"] = every["fluid_error"].abs()
        more = {"fluid_error": ("_fluid", "median")}
    found = (
        every[every["held_out"] == held_out]
        .groupby(keys, sort=False, as_index=False)
        .agg(
            n=("error", "count"),
            median_error=("_size", "median"),
            worst_error=("_size", "max"),
            coverage=("_covered", "mean"),
            intervals=("_covered", "count"),
            failed=("failed", "sum"),
            unmeasured=("error", lambda errors: int(errors.isna().sum())),
            **more,
        )
    )
    order = {name: place for place, name in enumerate(PURPOSES)}
    return found.sort_values(
        "purpose", key=lambda names: names.map(order).fillna(len(order)), kind="stable", ignore_index=True
    )


AIMS = {"steady": (0.15, 0.30), "recovery": (0.20, None)}
"""The aims on held-out episodes, by purpose: the median error, and the worst one (None: no aim)."""

LEAST_COVERAGE = 0.75
"""The part of the 90 % intervals that has to hold the measured figure, if they are worth their name."""


def percent(value: Any, sign: bool = False) -> str:
    """A ratio in percent.

    >>> percent(0.123), percent(-0.05, sign=True), percent(0.05, sign=True), percent(float("inf"))
    ('12 %', '−5 %', '+5 %', '∞')
    """
    if is_undefined(value):
        return UNDEFINED
    if value in (float("inf"), -float("inf")):
        return "∞"
    text = fixed(100 * value, 0)
    return f"{'+' if sign and value > 0 and text != '0' else ''}{text} %"


def missed_aims(row: Row) -> list[str]:
    """Which aims a row of ``summary`` does not meet, in words; none for a purpose without aims."""
    if row["purpose"] not in AIMS or not row["n"]:
        return []
    median, worst = AIMS[row["purpose"]]
    found = []
    if row["median_error"] > median:
        found.append(f"median above {percent(median)}")
    if worst is not None and row["worst_error"] > worst:
        found.append(f"worst above {percent(worst)}")
    coverage = 1.0 if is_undefined(row["coverage"]) else row["coverage"]
    if row["purpose"] == "recovery" and coverage < LEAST_COVERAGE:
        found.append(f"coverage below {percent(LEAST_COVERAGE)}")
    return found


def summary_table(found: pd.DataFrame, title: str) -> Table:
    """How far the predictions are off (from ``summary``), by purpose, or by fault if rows are."""

    def heading(row: Row) -> str:
        return fault_name(row["fault"]) if by_fault else PURPOSES.get(row["purpose"], str(row["purpose"]))

    def met(row: Row) -> str:
        if missed := missed_aims(row):
            return f"NO ({', '.join(text.split()[0] for text in missed)})"
        return "yes" if row["n"] else UNDEFINED

    by_fault = "fault" in found.columns
    ordered = found.sort_values("fault", kind="stable") if by_fault else found
    notes = [
        f"Aims: steady {percent(AIMS['steady'][0])} in the median and {percent(AIMS['steady'][1])} at worst; "
        f"after a fault {percent(AIMS['recovery'][0])} in the median, and {percent(LEAST_COVERAGE)} of the "
        "90 % intervals of prediction hold the measured figure.",
        f"failed: outside of its interval, or off by more than {percent(FAILED_BEYOND)}.",
    ]
    if len(found) and found["unmeasured"].any():
        notes.append("cut off: the real run ended before it was over, so nothing can be compared.")
    columns: dict[str, Callable[[Row], str]] = {
        "": lambda row: strategy_name(row["strategy"]),
        "measure": lambda row: measure_name(row["measure"]),
        "n": lambda row: f"{row['n']}" + (f" (+{row['unmeasured']} cut off)" if row["unmeasured"] else ""),
        "median error": lambda row: percent(row["median_error"]),
        "worst": lambda row: percent(row["worst_error"]),
        "in interval": lambda row: (
            f"{held_intervals(row)} of {row['intervals']}" if row["intervals"] else UNDEFINED
        ),
        "failed": lambda row: str(row["failed"]),
        "aims met": met,
    }
    if "fluid_error" in found.columns:
        columns["fluid law"] = lambda row: percent(row["fluid_error"])
        notes.append(
            "fluid law: median error of the simplest law that could do it. The sink is silent for D, and the "
            "backlog is gone after D + r (a + D) / (C − r): r is the rate, a the age of what is gone back "
            "to. D, C are fitted to the same faults."
        )
    return Table.of(title, ordered.to_dict("records"), columns, notes, 2, heading)


def held_intervals(row: Row) -> int:
    """How many intervals of a row of ``summary`` hold the measured figure."""
    return round(row["coverage"] * row["intervals"])


def pairs_table(pairs: pd.DataFrame, title: str) -> Table:
    """Measured and predicted figures, one row a pair (from ``judged``); failures are marked."""

    def holds(row: Row) -> str:
        if is_undefined(row["error"]):
            return UNDEFINED
        if not row["failed"]:
            return "yes"
        if is_undefined(row["predicted"]):
            return "NO (nothing)"
        return "NO (outside)" if row["covered"] is False else "NO (error)"

    notes = (
        "in interval: the measured figure lies in the 90 % interval of prediction. NO: it does not, or the "
        f"prediction is off by more than {percent(FAILED_BEYOND)}.",
        f"{UNDEFINED}: it was not over by the end of the episode, or there is no interval. ∞: not predicted "
        "(the simulation does not end it), or predicted where nothing was measurable.",
    )
    columns: dict[str, Callable[[Row], str]] = {
        "": lambda row: f"{fault_name(row['fault'])} ({episode_name(row)})",
        "pipeline": lambda row: str(row["pipeline"]).replace("_", " "),
        "rows/s": lambda row: amount(row["rate_per_s"]),
        "keys": lambda row: amount(row["keys"]),
        "measured, s": lambda row: number(row["measured"]),
        "predicted, s": lambda row: number(row["predicted"]),
        "90 % interval": lambda row: interval(row["low"], row["high"]),
        "error": lambda row: percent(row["error"], sign=True),
        "holds": holds,
    }
    return Table.of(
        title,
        pairs.to_dict("records"),
        columns,
        notes,
        2,
        lambda row: f"{strategy_name(row['strategy'])}: {measure_name(row['measure'])}",
        lambda row: (row["strategy"], row["measure"], row["purpose"]),
    )


def episode_name(row: Row) -> str:
    """Session and episode, as a row names them: ``s1 #4``."""
    return f"{row['session']} #{amount(row['episode'])}"


def interval(low: Any, high: Any) -> str:
    """Both ends, or undefined.

    >>> interval(1.0, 2.5), interval(None, 3.0)
    ('1.00 to 2.50', '–')
    """
    return UNDEFINED if is_undefined(low) or is_undefined(high) else f"{number(low)} to {number(high)}"


def parameters_table(parameters: pd.DataFrame, by: str = "strategy", *, brief: bool = False) -> Table:
    """Fitted parameters with their intervals, grouped by ``by``; what the data do not identify is marked.

    ``brief``: what they mean is told once for each, below the table.
    """

    def meaning(row: Row) -> str:
        return "" if is_undefined(row["meaning"]) else str(row["meaning"])

    records = parameters.to_dict("records")
    columns: dict[str, Callable[[Row], str]] = {
        "": lambda row: str(row["parameter"]),
        "meaning": meaning,
        "unit": lambda row: _scaled(row)[0],
        "value": lambda row: number(_scaled(row)[1]),
        "90 % interval": lambda row: interval(*_scaled(row)[2:]),
        "identified": lambda row: "yes" if row["identified"] else "NO",
    }
    if brief:
        del columns["meaning"]
    meanings: dict[str, str] = {}
    for row in records:
        meanings.setdefault(str(row["parameter"]).rsplit(".", 1)[-1], meaning(row))
    notes = [f"{name}: {told}" for name, told in meanings.items() if brief and told]
    notes.append(
        "identified NO: the measurements do not determine it; its value is an assumption, or moves against "
        "another parameter."
    )
    return Table.of(
        "Fitted parameters",
        records,
        columns,
        notes,
        len(columns) - 3,
        lambda row: strategy_name(row[by]) if by == "strategy" else str(row[by]),
    )


def _scaled(row: Row) -> tuple[str, float, float, float]:
    """The unit to write a parameter in, its value and interval in it: short durations in ms to ns."""
    figures = [row[key] for key in ("value", "low", "high")]
    unit, scale = "" if is_undefined(row["unit"]) else str(row["unit"]), 1.0
    largest = max((v for v in (row["value"], row["high"]) if not is_undefined(v)), default=0.0)
    if unit == "s" and largest > 0:
        units = (("s", 1.0), ("ms", 1e3), ("us", 1e6), ("ns", 1e9))
        unit, scale = next((found for found in units if largest * found[1] >= 1), units[-1])
    value, low, high = (round(figure * scale, 4) for figure in figures)
    return unit, value, low, high


def ranking_table(ranking: pd.DataFrame) -> Table:
    rows: list[tuple[str, ...]] = []
    for fault, part in ranking.groupby("fault", sort=False):
        rows.append((fault_name(fault),))
        same = same_ranking(part)
        for row in part.sort_values("measured_rank", kind="stable").to_dict("records"):
            ranks = [amount(row["measured_rank"]), amount(row["simulated_rank"])]
            verdict = UNDEFINED if same is None else "yes" if ranks[0] == ranks[1] else "NO"
            gaps = (number(row["measured_gap_s"]), number(row["simulated_gap_s"]))
            rows.append((strategy_name(row["strategy"]), *gaps, *ranks, amount(row["n"]), verdict))
    columns = ("", "measured gap, s", "simulated gap, s", "rank measured", "rank simulated", "faults", "same")
    notes = ("Gaps are medians over the faults of this kind; rank 1 is the shortest gap.",)
    return Table("Ranking by output gap", columns, tuple(rows), notes)


def same_ranking(part: pd.DataFrame) -> bool | None:
    """Whether measured and simulated ranks of one fault are the same; None for fewer than two strategies."""
    known = part[part["measured_rank"].notna() & part["simulated_rank"].notna()]
    if len(known) < 2:
        return None
    return bool((known["measured_rank"] == known["simulated_rank"]).all())


def correctness_table(correctness: pd.DataFrame) -> Table:
    """Whether the real counts were exact after each fault, and what the simulated ledger says."""
    notes = (
        "missing, extra: rows of the real counts against the truth. lost, twice: roots of the simulated "
        "ledger. kept: exactly once allows neither, at least once no missing, at most once no extra rows.",
    )
    columns: dict[str, Callable[[Row], str]] = {
        "": lambda row: strategy_name(row["strategy"]),
        "fault": lambda row: fault_name(row["fault"]),
        "promise": lambda row: "" if is_undefined(row["promise"]) else str(row["promise"]),
        "exact after": lambda row: f"{amount(row['exact'])} of {amount(row['kills'])}",
        "missing": lambda row: amount(row["missing"]),
        "extra": lambda row: amount(row["extra"]),
        "lost, sim.": lambda row: amount(row["simulated_lost"]),
        "twice, sim.": lambda row: amount(row["simulated_duplicated"]),
        "kept": lambda row: {True: "yes", False: "NO", None: UNDEFINED}[kept(row)],
    }
    return Table.of("Counts against the truth", correctness.to_dict("records"), columns, notes, 3)


def kept(row: Row) -> bool | None:
    """Whether the real counts kept the strategy's promise; None for an unknown promise or no fault."""
    if not row["kills"] or is_undefined(row["kills"]):
        return None
    lost, twice = row["missing"] > 0, row["extra"] > 0
    exact = row["exact"] == row["kills"] and not lost and not twice
    return {"exactly once": exact, "at least once": not lost, "at most once": not twice}.get(row["promise"])
