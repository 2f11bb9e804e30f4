"""What ``tideover availability`` shows: the part of the time that all is well, and the budget that is
burnt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tideover.models.schema.endings import LOSSY
from tideover.reports.formatting import UNDEFINED, number, strategy_name, with_ending
from tideover.reports.tables import WITH_LOSS, Table
from tideover.scenarios.statistics.availability import YEAR_S, Availability
from tideover.sim.units import S, format_duration

if TYPE_CHECKING:
    from tideover.scenarios.statistics.conditioning import Dependability


def availability_table(found: Dependability) -> Table:
    """The answer, with intervals; times in minutes."""
    one = found.availability
    rows: list[tuple[str, ...]] = [
        ("Availability", _percent(one.value), _span(_percent(one.low), _percent(one.high))),
        (
            f"Down {_in_period(one)}, min",
            _minutes(one.down_s),
            _span(_minutes(one.down_low_s), _minutes(one.down_high_s)),
        ),
        ("  median", _minutes(one.down_median_s), ""),
        ("  in 95 % of all such periods at most", _minutes(one.down_p95_s), ""),
    ]
    if one.objective is not None:
        rows += [
            (f"Error budget of {_percent(one.objective)}, min", _minutes(one.budget_s), ""),
            ("  burnt on average", UNDEFINED if one.burnt is None else f"{one.burnt:.1%}", ""),
            ("  probability that it is exceeded", _chance(one.exceeded), ""),
        ]
    columns = ("Rare failures", strategy_name(found.strategy), "95 % interval")
    notes = (
        "Available: output, state and backlog are as they would have been without failures. The interval is "
        "that of the mean recovery times over replications.",
    )
    return Table("Availability by conditioning", columns, tuple(rows), notes)


def causes_table(found: Dependability) -> Table:
    """What fails, how often, how long that takes, and which part of the time down it is."""
    one = found.availability
    load = sum(one.rate_per_s[name] * (each.mean or 0.0) for name, each in one.recovery_s.items())
    rows = []
    for name, each in one.recovery_s.items():
        rate, mean = one.rate_per_s[name], each.mean
        share = UNDEFINED if mean is None or not load or each.undefined else f"{rate * mean / load:.1%}"
        span = UNDEFINED if each.t is None else f"{number(max(0.0, each.t[0]))} to {number(each.t[1])}"
        of = f" ({each.n} of {each.n + each.undefined})" if each.undefined else ""
        time = with_ending(number(mean) + of, found.endings[name])
        rows.append((name, number(rate * YEAR_S), time, span, share, found.moments[name]))
    columns = ("cause", "failures a year", "recovery, s", "95 % interval", "share", "strikes at")
    notes = (
        "Recovery: mean over replications, one failure each; strikes at: drawn from this part of a run.",
    )
    lossy = any(LOSSY in each for each in found.endings.values())
    return Table("Causes", columns, tuple(rows), (*notes, WITH_LOSS) if lossy else notes)


def answer(found: Dependability) -> str:
    """The answer in a sentence."""
    one = found.availability
    who = strategy_name(found.strategy)
    who = who[:1].upper() + who[1:]
    if one.value is None:
        return f"{who}: availability is unknown, as {one.undefined} runs had not recovered at their end."
    said = f"{who} is available {_percent(one.value)} of the time: {_minutes(one.down_s)} min down "
    said += _in_period(one)
    if one.objective is None or one.burnt is None:
        return f"{said}."
    budget = f"{one.burnt:.0%} of the error budget of {_percent(one.objective)}"
    if one.low is None or one.high is None:
        verdict = "one replication does not tell whether it is met"
    elif one.low >= one.objective:
        verdict = "the objective is met on average"
    elif one.high < one.objective:
        verdict = "the objective is broken on average"
    else:
        verdict = "whether the objective is met cannot be told from so few replications"
    return f"{said}, {budget}; {verdict}, and its budget exceeded in {_chance(one.exceeded)} of such periods."


def _in_period(one: Availability) -> str:
    return "a year" if one.over_s == YEAR_S else f"in {format_duration(round(one.over_s * S))}"


def _percent(value: float | None) -> str:
    """As many nines as there are, and two digits more."""
    if value is None:
        return UNDEFINED
    return f"{100 * value:.6f}".rstrip("0").rstrip(".") + " %"


def _minutes(seconds: float | None) -> str:
    return UNDEFINED if seconds is None else number(float(seconds) / 60)


def _chance(value: float | None) -> str:
    if value is None:
        return UNDEFINED
    if value < 1e-3:
        return "less than 0.1 %"
    return "more than 99.9 %" if value > 1 - 1e-3 else f"{value:.1%}"


def _span(low: str, high: str) -> str:
    return UNDEFINED if UNDEFINED in (low, high) else f"{low} to {high}"
