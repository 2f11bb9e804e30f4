"""What ``tideover hours`` shows: a failure hour by hour, and over the day.

`tideover.cli.questions` calls ``view``, ``page`` and ``tables``; what is measured is ``MEASURES`` of
`tideover.scenarios.hours`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from tideover.models.schema import HEADLINE, TIMES
from tideover.reports import figures
from tideover.reports.figures.style import picture
from tideover.reports.figures.sweeps import KEYS
from tideover.reports.formatting import capitalised, number, strategy_name, with_ending
from tideover.reports.html import Page, Picture, Section, page_of_scenarios
from tideover.reports.tables import Notes, Table
from tideover.reports.terminal import render, warnings_view
from tideover.scenarios.hours import MEASURES, Hours
from tideover.scenarios.statistics.intervals import Estimate
from tideover.sim.registry import kind_of

if TYPE_CHECKING:
    import pandas as pd

KEY = "run.fails_at"
PARAMETERS = {KEY: "h"}
"""What only these tables have, and its unit."""


def answer(found: Hours) -> str:
    """The longest and the shortest, and the mean, in a sentence."""
    mean, of = found.mean(HEADLINE).mean, "over the day" if found.of_the_day else "in these hours"
    time = with_ending(f"{number(mean)} s", found.every_ending)
    said = "" if mean is None or len(found.every) == 1 else f"; {of} {time} on average"
    told = []
    for each, verb in ((found.worst, "takes "), (found.best, "")):
        place = found.every.index(each)
        one = found.estimates(HEADLINE)[place]
        takes = f"{verb}{with_ending(number(one.mean) + ' s', found.endings[place])}"
        if one.undefined:
            takes = f"is not over at the end of {one.undefined} of {one.n + one.undefined} runs"
        told.append(f"at {each.time} {takes}")
    return f"A failure {', one '.join(told if found.best != found.worst else told[:1])}{said}."


def hours_table(found: Hours) -> Table:
    notes = Notes()

    def cells(estimates: list[Estimate], endings: list[str]) -> tuple[str, ...]:
        pairs = zip(estimates, MEASURES, strict=True)
        return tuple(
            notes.mean(one, column.label, column, endings if column.name in TIMES else ())
            for one, column in pairs
        )

    by_name = [found.estimates(column.name) for column in MEASURES]
    rows = [
        (each.time, number(each.rate), *cells([column[place] for column in by_name], found.endings[place]))
        for place, each in enumerate(found.every)
    ]
    of = "day's mean" if found.of_the_day else "mean of these hours"
    mean = (of, "", *cells([found.mean(column.name) for column in MEASURES], found.every_ending))
    columns = ("failure at", "load, tuples/s", *(column.label_with_unit for column in MEASURES))
    return Table("By hour of the day", columns, (*rows, *([mean] if len(rows) > 1 else [])), notes.lines())


def view(found: Hours) -> Group:
    name = found.scenario.name
    return Group(
        Text(f"{name}: {strategy_name(kind_of(found.scenario.strategy))}, by hour of the day", style="bold"),
        Text(answer(found), style="bold"),
        Text(""),
        render(hours_table(found)),
        warnings_view(found.warnings),
    )


def pictures(found: Hours) -> tuple[Picture, ...]:
    drawn, frame = [], found.frame
    for column in (one for one in MEASURES if one.name in (HEADLINE, "peak_backlog")):
        points = frame[frame["measure"] == column.name]
        ax = figures.by_hour(points, found.load, f"{column.label} ({column.unit})", legend=False)
        words = {"label": capitalised(column.label), "column": column.name}
        drawn.append(picture("by-hour", ax, KEYS, [column.name], **words))
    return tuple(drawn)


def page(found: Hours) -> Page:
    scenario = found.scenario
    setup = {
        "Strategy": strategy_name(kind_of(scenario.strategy)),
        "Hours": ", ".join(each.time for each in found.every),
        "Replications": f"{scenario.run.replications} for each hour",
        "Seed": str(scenario.run.seed),
    }
    return page_of_scenarios(
        [scenario],
        setup,
        (
            Section("By hour of the day", "hours", pictures=pictures(found)),
            Section("Results", "results", tables=(hours_table(found),)),
        ),
        kind="a failure by hour of the day",
        verdict=answer(found),
        warnings=tuple(found.warnings),
    )


def tables(found: Hours) -> dict[str, pd.DataFrame]:
    """The tables of all hours: ``point``, ``run.fails_at`` (h), then the columns of ``run``."""
    import pandas as pd

    joined = {}
    for name in ("recoveries", "runs"):
        parts = []
        for place, each in enumerate(found.every):
            part = getattr(each.result, name)
            swept = pd.DataFrame({"point": place, KEY: each.hour}, index=part.index)
            parts.append(pd.concat([swept, part], axis=1))
        joined[name] = pd.concat(parts, ignore_index=True)
    return joined
