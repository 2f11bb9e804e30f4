"""What ``tideover interval`` and ``tideover detector`` show: time that is lost at each value of a setting.

`tideover.cli.questions` calls ``view`` and ``page``. The two differ in their answers and tables
(``_of_interval``, ``_of_timeout``); all else is said once for both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import pandas as pd
from rich.console import Group
from rich.text import Text

from tideover.models.schema import LOSSY, remark
from tideover.reports import figures
from tideover.reports.figures.style import picture
from tideover.reports.figures.sweeps import keys
from tideover.reports.formatting import UNDEFINED, number, strategy_name
from tideover.reports.html import Page, Section, page_of_scenarios
from tideover.reports.plans import FORMULAS, formula_rows
from tideover.reports.tables import Table
from tideover.reports.terminal import render, warnings_view
from tideover.scenarios.errors import listed
from tideover.scenarios.lost_time.curve import FLAT, Part, Point, as_good, best_of
from tideover.scenarios.lost_time.detector import FALSE, AtTimeout, BestTimeout
from tideover.scenarios.lost_time.interval import BestInterval
from tideover.scenarios.statistics.availability import CROWDED
from tideover.sim.registry import kind_of
from tideover.sim.units import DAY, S, format_duration

Found = BestInterval | BestTimeout
_DAY_S = DAY / S
_SAME = 1.03
"""Optima that differ by no more than so many times have one line."""
_LOST = (
    "Time lost: in which the output is behind, or not what it would have been without checkpoints and "
    "failures; ±: 95 % interval over replications, which have their luck in common."
)


class _Shown(NamedTuple):
    """What a command shows; ``setting``: what is tried, in words; ``parts``, ``marks``: see
    `figures.lost_time`.
    """

    setting: str
    answer: str
    tables: tuple[Table, ...]
    parts: Mapping[str, str]
    marks: Mapping[str, float]
    points: pd.DataFrame
    next: str


def view(found: Found, source: str) -> Group:
    """For the terminal; ``source``: of the scenario, as it was named."""
    shown = _shown(found, source)
    name, n = found.scenario.name, found.replications
    title = f"{name}: {shown.setting}, seed {found.scenario.run.seed}, {n} replications of each"
    return Group(
        Text(title, style="bold"),
        Text(""),
        *(render(table) for table in shown.tables),
        Text(shown.answer + _lossy(found), style="bold"),
        Text(f"Look next: {shown.next}"),
        warnings_view(found.warnings),
    )


def page(found: Found, source: str) -> Page:
    shown, scenario = _shown(found, source), found.scenario
    setup = {
        "Strategy": strategy_name(kind_of(scenario.strategy)),
        "Failures": listed(
            f"{part.name}: {number(part.rate_per_s * _DAY_S)} a day"
            for part in found.points[0].parts
            if part.name != FALSE
        ),
        "Processes": _pauses(found),
        "Replications": f"{found.replications} for each value and cause",
        "Seed": str(scenario.run.seed),
    }
    ax = figures.lost_time(shown.points, shown.parts, shown.marks, f"{shown.setting} (s)", legend=False)
    drawn = picture("lost", ax, keys(shown.parts, shown.marks), setting=shown.setting, meant=_LOST)
    return page_of_scenarios(
        [scenario],
        setup,
        (
            Section("Time lost", "lost", pictures=(drawn,)),
            Section("Results", "results", tables=shown.tables),
            Section("Look next", "next", sentences=(shown.next,)),
        ),
        kind=f"the best {shown.setting}",
        verdict=shown.answer + _lossy(found),
        warnings=tuple(found.warnings),
        glossary={},
    )


def _shown(found: Found, source: str) -> _Shown:
    return _of_interval(found, source) if isinstance(found, BestInterval) else _of_timeout(found, source)


# Checkpoint intervals.


def _of_interval(found: BestInterval, source: str) -> _Shown:
    best, parts = found.least, {"checkpoints": "checkpoints", "failures": "failures"}
    rows = [
        _row(point) | {"checkpoints": point.always * _DAY_S, "failures": _lost(point.parts)}
        for point in found.points
    ]
    marks: dict[str, float] = {}
    for key, seconds in found.formulas.items():
        same = next((name for name, other in marks.items() if 1 / _SAME < other / seconds < _SAME), None)
        name = FORMULAS[key][0]
        marks[f"{same}, {name}" if same else name] = marks.pop(same) if same else seconds
    tried = best_of(found.points) or found.near
    then = format_duration(tried.value if best is None else round(float(f"{best.seconds:.3g}") * S))
    return _Shown(
        "checkpoint interval",
        _best_interval(found),
        (_intervals(found), _formulas(found)),
        parts,
        marks,
        pd.DataFrame(rows),
        f"tideover run {source} --set {found.key}={then.replace(' ', '')}",
    )


def _best_interval(found: BestInterval) -> str:
    best = found.least
    if best is None:
        tried = best_of(found.points)
        if tried is None:
            return "The best interval is unknown: runs had not recovered at their end, or none can be used."
        lost = number(float(tried.lost.mean()) * _DAY_S)
        said = f"Of the intervals that were tried {format_duration(tried.value)} is the best"
        return f"{said}: {lost} s lost a day; name at least three to see where the least is."
    low, high = (number(end) for end in (best.low, best.high))
    lost, least, most = (number(end * _DAY_S) for end in (best.lost, best.lost_low, best.lost_high))
    what = f"{100 * best.lost:.2g} % of the time is lost, {lost} s a day (95 % interval {least} to {most})"
    first, last = (number(end) for end in best.flat)
    flat = f"from {first} to {last} s it is at most {100 * (FLAT - 1):.0f} % more"
    if len(alike := as_good(found.points)) > 1:
        flat = f"{listed(format_duration(point.value) for point in alike)} cannot be told apart"
    now = ""
    for own in found.points:
        if own.value == found.own:
            mean = own.estimate.mean
            told = "cannot be told" if mean is None else f"is {number(mean * _DAY_S)} s a day"
            now = f" With {format_duration(found.own)}, as the scenario has it, it {told}."
    said = f"The best checkpoint interval is {number(best.seconds)} s (95 % interval {low} to {high} s)"
    if best.edge is not None:
        more = "shorter" if best.edge == "shortest" else "longer"
        said = f"The {best.edge} interval that was tried, {number(best.seconds)} s, is the best"
        said += f", and a {more} one may be better"
    return f"{said}: {what}; {flat}.{now}"


def _intervals(found: BestInterval) -> Table:
    rows = []
    notes: dict[str, None] = {}
    for point in found.points:
        name, kept = _name(found, point), point.kept
        if kept.gives_up or point.always == float("inf"):
            why = f"{kept.name} has nothing to do but checkpoints"
            if kept.gives_up:
                why = "tuples are given up while they wait for a checkpoint, though nothing fails"
            notes[f"Every {format_duration(point.value)}: {why}."] = None
            rows.append((name, *[UNDEFINED] * 4))
            continue
        checkpoints, failures = number(point.always * _DAY_S), number(_lost(point.parts))
        rows.append((name, _total(point), checkpoints, failures, _mean(point.parts)))
    near = found.near
    busy = (
        f"A checkpoint keeps {near.kept.name} for {near.takes:.3g} s, which is busy for "
        f"{100 * near.kept.busy:.1f} % of the time without: what comes meanwhile is caught up with in the "
        "rest."
    )
    notes |= dict.fromkeys((*_crowded(found), busy, _LOST))
    columns = ("every", "lost, s a day", "to checkpoints", "to failures", "a failure, s")
    return Table("By checkpoint interval", columns, tuple(rows), tuple(notes))


def _formulas(found: BestInterval) -> Table:
    near, best = found.near, found.least
    mine = [] if best is None else [("this scenario", number(best.seconds), "what is simulated")]
    note = (
        f"For a checkpoint of {near.takes:.3g} s, {number(found.mtbf)} s between failures, a load of "
        f"{near.kept.busy:.3g}, and {number(near.down)} s down."
    )
    return Table("Beside formulas", ("", "s", "optimum of"), (*mine, *formula_rows(found.formulas)), (note,))


# Timeouts.


def _of_timeout(found: BestTimeout, source: str) -> _Shown:
    rows = [
        _row(point) | {"failures": _lost(point.parts[:-1]), "false": _lost(point.parts[-1:])}
        for point in found.points
    ]
    best = found.own if found.best is None else found.best.value
    return _Shown(
        "timeout",
        _best_timeout(found),
        (_timeouts(found),),
        {"failures": "failures", "false": "false restarts"},
        {"now": found.own / S},
        pd.DataFrame(rows),
        f"tideover run {source} --set detector.timeout={format_duration(best).replace(' ', '')}",
    )


def _best_timeout(found: BestTimeout) -> str:
    best = found.best
    if best is None:
        return "The best timeout is unknown: runs had not recovered at their end; a longer one may."
    said = f"Of the timeouts that were tried {format_duration(best.value)} is the best: {_daily(best)}."
    if found.as_good:
        names = listed(format_duration(point.value) for point in found.as_good)
        said += f" {names} cannot be told from it."
    own = next((point for point in found.points if point.value == found.own), None)
    if own is not None and own is not best:
        said += f" With {format_duration(found.own)}, as the scenario has it: {_daily(own)}."
    enough = format_duration(found.enough)
    return f"{said} From {enough} on there is less than one false restart a year."


def _daily(point: AtTimeout) -> str:
    mean = point.estimate.mean
    lost = UNDEFINED if mean is None else number(mean * _DAY_S)
    return f"{number(point.false_per_day)} false restarts and {lost} s lost a day"


def _timeouts(found: BestTimeout) -> Table:
    notes = (
        f"Processes: {_pauses(found)}. A false restart: what it takes besides the pause itself; below 0: it "
        "ends a pause that would have taken longer.",
        *_crowded(found),
        _LOST,
    )
    columns: dict[str, Callable[[AtTimeout], str]] = {
        "timeout": lambda point: _name(found, point),
        "false restarts a day": lambda point: number(point.false_per_day),
        "lost, s a day": _total,
        "to false restarts": lambda point: number(_lost(point.parts[-1:])),
        "to failures": lambda point: number(_lost(point.parts[:-1])),
        "a false restart, s": lambda point: _mean(point.parts[-1:]),
        "a failure, s": lambda point: _mean(point.parts[:-1]),
        "noticed after, s": lambda point: number(point.noticed),
    }
    return Table.of("By timeout", found.points, columns, notes)


# Both.


def _name(found: Found, point: Point) -> str:
    return format_duration(point.value) + (" (now)" if point.value == found.own else "")


def _pauses(found: Found) -> str:
    if isinstance(found, BestInterval):
        return ""
    lasts, each = number(found.pauses.mean_ns / S), number(_DAY_S / found.every)
    return f"{found.processes} that pause, each {each} times a day, for {lasts} s on average"


def _lossy(found: Found) -> str:
    """That times do not say it all, where something is lost for good."""
    every = [each for point in found.points for part in point.parts for each in part.ended]
    lossy = every.count(LOSSY)
    return f" In {lossy} of {len(every)} runs roots are lost for good, which no time says." if lossy else ""


def _crowded(found: Found) -> list[str]:
    remark = (
        f"Where failures take more than {CROWDED * _DAY_S:,.0f} s a day, some strike during a recovery from "
        "another: what they do to one another is not simulated."
    )
    return [remark] if any((_lost(point.parts) or 0.0) > CROWDED * _DAY_S for point in found.points) else []


def _lost(parts: tuple[Part, ...]) -> float | None:
    """Seconds a day that are lost to events; None: it is not known."""
    means = [float(part.lost.mean()) for part in parts]
    return None if any(mean != mean for mean in means) else sum(means) * _DAY_S


def _mean(parts: tuple[Part, ...]) -> str:
    """How long one event is felt, of all sorts together."""
    rate, lost = sum(part.rate_per_s for part in parts), _lost(parts)
    said = remark([each for part in parts for each in part.ended])
    told = UNDEFINED if lost is None or not rate else number(lost / rate / _DAY_S)
    return f"{told} ({said})" if said else told


def _total(point: Point) -> str:
    one = point.estimate
    if one.mean is None or one.half_width is None:
        return UNDEFINED
    ends = number(one.mean * _DAY_S), number(one.half_width * _DAY_S, 2)
    return "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}".join(ends)


def _row(point: Point) -> dict[str, float | None]:
    one = point.estimate
    low, high = one.t or (None, None)
    ends = {"lost": one.mean, "low": low, "high": high}
    daily = {key: None if end is None else end * _DAY_S for key, end in ends.items()}
    return {"value_s": point.value / S} | daily
