"""What an engine's logs say of its recoveries, as a page and for the terminal.

`tideover.cli.calibrate` shows both; the input is the tables of ``columns.LOG_FINDINGS``, whatever reader made
them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from tideover.models.results import counted
from tideover.reports import figures
from tideover.reports.calibration.page import measured_page
from tideover.reports.calibration.tables import Frames, Row, frame, interval
from tideover.reports.columns import LOG_FINDINGS
from tideover.reports.figures.logs import LOG_STAGES, place
from tideover.reports.figures.style import picture
from tideover.reports.formatting import amount, fixed, number
from tideover.reports.html import Page, Picture, Section
from tideover.reports.tables import Table
from tideover.reports.terminal import rendered, warnings_view

if TYPE_CHECKING:
    import pandas as pd

SHOWN = ("sources", "failures", "stages", "quantities", "predicted", "settings")
MOST_DRAWN = 6
"""So many failures of all sources are drawn stage by stage."""
MOST_BARS = 40
"""So many failures of a source are drawn side by side."""


def logs_verdict(sources: pd.DataFrame, failures: pd.DataFrame) -> str:
    """One line a source: how many failures, and how long the last stage that is known of them took."""
    lines = []
    for source in sources.to_dict("records"):
        mine = failures[failures["source"] == source["source"]]
        begins, ends = source["begins"], source["ends"]
        span = f" between {begins[:19]} and {ends[:19]} UTC" if begins else ""
        told = [f"{source['source']}: {counted(len(mine), 'failure')}{span}"]
        ended = {"running_s": "all tasks ran again", "caught_up_s": "what waited was worked off"}
        for column, words in ended.items():
            known = mine[column].dropna().tolist()
            if len(known) == 1:
                told.append(f"{words} {number(known[0])} s after the first sign")
            elif known:
                low, middle, high = map(number, (min(known), median(known), max(known)))
                told.append(f"{words} {middle} s after the first sign in the median ({low} to {high} s)")
        lines.append("; ".join(told) + ".")
    return "\n".join(lines)


def _source(row: Row) -> str:
    return str(row["source"])


def _whose(row: Row) -> str:
    return f"{row['source']}, failure {amount(row['failure'])}"


def stages_table(stages: pd.DataFrame, *, brief: bool = False) -> Table:
    """Every stage, and the line that says so; ``brief``: without its text, too long for a terminal."""
    columns: dict[str, Callable[[Row], str]] = {
        "stage": lambda row: LOG_STAGES[row["stage"]][0],
        "line": place,
        "what it says": lambda row: str(row["text"]),
        "UTC": lambda row: str(row["at"])[11:],
        "after, s": lambda row: fixed(row["after_s"], 3),
    }
    if brief:
        del columns["what it says"]
    note = "after: from the first sign of the failure in the logs; the failure itself was before it."
    heading: Callable[[Row], str] = lambda row: f"{_whose(row)}, {str(row['at'])[:10]}"  # noqa: E731
    rows, texts = stages.to_dict("records"), len(columns) - 2
    return Table.of("Stages", rows, columns, (note,), texts, heading, _whose)


def failures_table(failures: pd.DataFrame) -> Table:
    def of(column: str) -> Callable[[Row], str]:
        return lambda row: fixed(row[column], 2)

    times = [name for name in map(str, failures) if name.endswith("_s") and failures[name].notna().any()]
    columns: dict[str, Callable[[Row], str]] = {
        "": lambda row: amount(row["failure"]),
        "first sign, UTC": lambda row: str(row["began"])[:19],
        "kind": lambda row: str(row["kind"]),
        "cause": lambda row: str(row["cause"]),
        "restarts": lambda row: amount(row["restarts"]),
        **{f"{LOG_STAGES[name.removesuffix('_s')][0]}, s": of(name) for name in times},
    }
    note = "Times are from the first sign in the logs."
    return Table.of("Failures", failures.to_dict("records"), columns, (note,), 4, _source)


def quantities_table(quantities: pd.DataFrame, *, brief: bool = False) -> Table:
    """What the logs identify; ``brief``: what that means is told once for each, below the table."""
    columns: dict[str, Callable[[Row], str]] = {
        "": lambda row: str(row["name"]),
        "meaning": lambda row: str(row["meaning"]),
        "unit": lambda row: str(row["unit"]),
        "n": lambda row: amount(row["n"]),
        "seen": lambda row: number(row["value"]),
        "the next one, 90 %": lambda row: interval(row["low"], row["high"]),
    }
    rows, meant = quantities[quantities["identified"]].to_dict("records"), dict[str, None]()
    if brief:
        del columns["meaning"]
        meant = dict.fromkeys(f"{row['name']}: {row['meaning']}" for row in rows)
    note = (
        "seen: the median. With one or two observations the interval is mostly an assumption on how much "
        "recoveries vary."
    )
    return Table.of("What the logs tell", rows, columns, (*meant, note), len(columns) - 3, _source)


def untold(quantities: pd.DataFrame, sources: pd.DataFrame) -> tuple[str, ...]:
    """What is not identified, and what would tell it."""
    told = []
    several = len(sources) > 1
    for row in quantities[~quantities["identified"]].to_dict("records"):
        of = f"{row['source']}: " if several else ""
        told.append(f"{of}{row['name']} is not identified: {row['meaning']}.")
    for row in sources.to_dict("records"):
        if row["most_help"]:
            of = f" for {row['source']}" if several else ""
            told.append(f"The one measurement that would help most{of}: {row['most_help']}.")
    return tuple(told)


_MEASURED = {
    "outage": "from the first sign of a failure until all tasks run",
    "backlog": "input that waits then: that of the outage, and since the last checkpoint",
    "catch_up": "from then until nothing waits; load: input rate over what the job can do then",
}


def predicted_table(predicted: pd.DataFrame) -> Table:
    columns: dict[str, Callable[[Row], str]] = {
        "": lambda row: str(row["what"]),
        "measure": lambda row: str(row["measure"]).replace("_", " "),
        "unit": lambda row: str(row["unit"]),
        "predicted": lambda row: number(row["estimate"]),
        "90 % interval": lambda row: interval(row["low"], row["high"]),
    }
    there = set(predicted["measure"])
    notes = [f"{name.replace('_', ' ')}: {told}" for name, told in _MEASURED.items() if name in there]
    return Table.of("Predicted", predicted.to_dict("records"), columns, notes, 3, _source)


def settings_table(settings: pd.DataFrame) -> Table:
    columns: dict[str, Callable[[Row], str]] = {
        "": lambda row: str(row["key"]),
        "value": lambda row: str(row["value"]),
        "line": place,
    }
    return Table.of("Settings", settings.to_dict("records"), columns, (), 3, _source)


def _pictures(failures: pd.DataFrame, stages: pd.DataFrame) -> tuple[Picture, ...]:
    found: list[Picture] = []
    for source, part in failures.groupby("source", sort=False):
        if len(part) > 1:
            also = ["many"] if len(part) > MOST_BARS else []
            words: Any = {"source": source, "most": MOST_BARS, "of": len(part), "number": len(found)}
            drawn = figures.log_recoveries(part.head(MOST_BARS))
            found.append(picture("log-recoveries", drawn, also=also, **words))
    for _, part in list(stages.groupby(["source", "failure"], sort=False))[:MOST_DRAWN]:
        whose = _whose(part.iloc[0].to_dict())
        found.append(picture("log-stages", figures.log_stages(part), whose=whose, number=len(found)))
    return tuple(found)


def logs_page(frames: Frames, provenance: Mapping[str, object], **more: Any) -> Page:
    """What logs say; ``frames``: ``columns.LOG_FINDINGS``, of which a table may be missing or empty."""
    sources, failures, stages, quantities, predicted, settings = (frame(frames, name) for name in SHOWN)
    sections = (
        Section("What happened", tables=(failures_table(failures),), pictures=_pictures(failures, stages)),
        Section("From which lines", tables=(stages_table(stages),), untitled=True),
        Section("What the logs tell", tables=(quantities_table(quantities),), untitled=True),
        Section("What they do not tell", sentences=untold(quantities, sources)),
        Section("What follows for other failures", tables=(predicted_table(predicted),), untitled=True),
        Section("Settings", tables=(settings_table(settings),), untitled=True),
    )
    kind, answer = "recoveries as an engine's logs tell them", logs_verdict(sources, failures)
    glossary = {name: columns for name, columns in LOG_FINDINGS.items() if name in frames}
    return measured_page(kind, answer, sections, glossary, provenance, setup_title="What was read", **more)


def logs_view(frames: Frames, warnings: Sequence[str] = ()) -> Group:
    sources, failures, stages, quantities, predicted, _ = (frame(frames, name) for name in SHOWN)
    few = stages[stages["failure"] <= MOST_DRAWN]
    shown = (stages_table(few, brief=True), quantities_table(quantities, brief=True))
    return Group(
        Text(logs_verdict(sources, failures), style="bold"),
        *rendered((*shown, predicted_table(predicted))),
        *map(Text, untold(quantities, sources)),
        warnings_view(warnings),
    )
