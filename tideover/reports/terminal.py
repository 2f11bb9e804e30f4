"""What the terminal shows, in 100 columns: each function returns something that a rich console prints.

Called by the command line, and by reports that have a view of their own. How a table is laid out in the room
that there is, ``Fitted`` decides.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, JustifyMethod, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from tideover.reports import checks, rates, tables
from tideover.reports.conclusions import Verdict, of_record, run_sentence
from tideover.reports.formatting import filled
from tideover.reports.html import Section
from tideover.reports.tables import Record, Table, collected_warnings, headline
from tideover.scenarios.objectives.check import Check
from tideover.scenarios.saturation import Saturation
from tideover.scenarios.statistics.availability import Dependability

MOST_SIDE_BY_SIDE = 5
"""So many strategies fit into one table; more are shown in several tables, one below the other."""


def run_view(result: Record, details: bool = False) -> Group:
    """One scenario under one strategy: the verdict, and a screen of figures; with ``details`` all."""
    short = [table for table in (tables.table([result]), tables.recovery_table(result)) if table.rows]
    bottleneck = result.get("bottleneck")
    more = "" if details else "All figures: --details; "
    return _answered(
        headline(result),
        run_sentence(of_record(result)),
        [tables.overview([result], brief=True)] if details else short,
        *([Text(f"Bottleneck: {bottleneck}.", style="bold"), Text("")] if bottleneck else []),
        Text(f"{more}drawn: --out DIR or --diagram FILE.svg; other strategies: tideover compare."),
        warnings=collected_warnings([result]),
    )


def saturation_view(found: Sequence[Saturation]) -> Group:
    """How much a scenario carries, under each strategy."""
    shown = [rates.carried_table(found), *map(rates.resources_table, found)]
    return _answered(f"{found[0].scenario.name}: how much it carries", rates.saturation_answer(found), shown)


def availability_view(found: Dependability) -> Group:
    """Availability with rare failures, what it is made of, and the answer in a sentence."""
    run, shown = found.scenario.run, [rates.availability_table(found), rates.causes_table(found)]
    asked = f"{found.scenario.name}: seed {run.seed}, {run.replications} replications of each failure"
    return _answered(asked, rates.availability_answer(found), shown, warnings=found.warnings)


def compare_view(results: Sequence[Record], verdict: Verdict, details: bool = False) -> Group:
    """The verdict, and strategies at a glance; with ``details`` all their figures, side by side, and their
    paired differences.
    """
    step, shown = MOST_SIDE_BY_SIDE, [tables.table(results)]
    if details:
        shown += [tables.overview(results[i : i + step], brief=True) for i in range(0, len(results), step)]
        shown.append(tables.pairs_table(verdict.pairs, verdict.lossy))
    more = Text("All figures, and differences pair by pair: --details; drawn: --out DIR.")
    warnings = collected_warnings(results)
    lines, shown = () if details else (more,), [table for table in shown if table.rows]
    return _answered(headline(results[0]), verdict.text, shown, *lines, warnings=warnings)


def check_view(check: Check) -> Group:
    asked, warnings = headline(check.result.to_dict()), [*check.remarks, *check.result.warnings]
    return _answered(asked, checks.sentence(check), [checks.table(check)], warnings=warnings)


_NOTHING = Section("")


def reproduce_view(
    answer: str, shown: Iterable[Table], source: str, *, why: Section = _NOTHING, warnings: Sequence[str] = ()
) -> Group:
    """The answer, published and simulated tables, and ``why`` they come to that, step by step."""
    steps: list[RenderableType] = [
        Padding(Text(f"{i}. {s}"), (0, 0, 0, 1)) for i, s in enumerate(why.steps, 1)
    ]
    return Group(
        Text(answer, style="bold"),
        Text(""),
        *(render(table) for table in shown),
        Text(f"Published: {source}", style="dim"),
        Text(""),
        *((Text(why.title, style="bold"), *steps) if steps else ()),
        warnings_view(warnings),
    )


def rendered(shown: Iterable[Table]) -> list[Group]:
    return [render(table) for table in shown if table.rows]


def render(table: Table) -> Group:
    """A table with its footnotes. Texts are shown as they are: nothing in them is taken for markup."""
    notes = [Padding(Text(note, style="dim"), (0, 0, 0, 1)) for note in table.notes]
    return Group(Fitted(table), *notes, Text(""))


class Fitted:
    """A table as wide as there is room: columns that do not fit come in blocks below.

    Every block repeats the text columns. No word and no figure is broken, unless it alone is too wide.
    """

    def __init__(self, table: Table) -> None:
        self.table = table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table, room = self.table, options.max_width
        every, texts = range(len(table.columns)), range(table.text_columns)
        wide, least = ([_width(table, i, broken) for i in every] for broken in (False, True))
        headings = max((cell_len(row[0]) for row in table.rows if len(row) == 1), default=0)
        if sum(wide) + max(0, headings - wide[0]) + _GAP * (len(wide) - 1) <= room:
            yield _block(table, every, None, table.title)
            return
        for i in reversed(texts):  # texts are wrapped only if no figure would fit next to them
            if sum(wide[j] + _GAP for j in texts) + max(least[len(texts) :], default=0) > room:
                wide[i] = least[i]
        widths = {i: wide[i] for i in texts}
        room -= sum(widths.values()) + _GAP * len(texts)
        title: str | None = table.title
        for group in _groups(least, len(texts), room):
            free = room - sum(least[i] for i in group) - _GAP * (len(group) - 1)
            for i in group:
                widths[i] = min(wide[i], least[i] + max(0, free))
                free -= widths[i] - least[i]
            if title is None:
                yield Text("")
            yield _block(table, [*texts, *group], widths if free >= 0 else {}, title)
            title = None


_GAP = 2
_BREAKS = re.compile(r" (?=to |\()|(?<= to) ")
"""Where a figure may be broken: ``49.9 to 62.5``, ``57.8 ± 0.6 (4 of 5)``."""


def _parts(text: str, words: bool) -> list[str]:
    return text.split(" ") if words else _BREAKS.split(text)


def _width(table: Table, index: int, broken: bool) -> int:
    """How wide a column is, whether its cells are broken where they may be or not; its header always is."""
    words = index < table.text_columns
    cells = [row[index] for row in table.rows if len(row) > 1]
    moved = 2 * (index == 0 and any(len(row) == 1 for row in table.rows))
    parts = [part for cell in cells for part in (_parts(cell, words) if broken else [cell])]
    whole = table.columns[index].split()
    if broken and index == 0:
        whole += [word for row in table.rows if len(row) == 1 for word in row[0].split()]
    return max([*(cell_len(part) + moved for part in parts), *map(cell_len, whole), 1])


def _groups(least: Sequence[int], first: int, room: int) -> list[list[int]]:
    """The columns from ``first`` on, as many together as there is room for, at least one."""
    groups: list[list[int]] = []
    left = 0
    for index in range(first, len(least)):
        if not groups or left < least[index]:
            groups.append([])
            left = room
        groups[-1].append(index)
        left -= least[index] + _GAP
    return groups or [[]]


def _block(
    table: Table, indices: Iterable[int], widths: Mapping[int, int] | None, title: str | None
) -> RichTable:
    """Some columns of a table, each in its width; as wide as they are for None, folded for no widths."""
    shown = RichTable(
        title=Text(title, style="bold") if title else None,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
    )
    columns = list(indices)
    for index in columns:
        justify: JustifyMethod = "left" if index < table.text_columns else "right"
        # in lines as narrow as its column, so that headers are broken rather than cells
        header, texts = table.columns[index], [row[index] for row in table.rows if len(row) > 1]
        widest = max(map(len, [*texts, *header.split()]), default=1)
        header = "\n".join(textwrap.wrap(header, widest)) if header else ""
        whole = index == 0 and widths is None
        width = (widths or {}).get(index)
        shown.add_column(Text(header), justify=justify, overflow="fold", no_wrap=whole, width=width)
    grouped = any(len(row) == 1 for row in table.rows)
    for row in table.rows:
        if len(row) == 1:
            shown.add_row(Text(row[0], style="bold cyan"))
            continue
        cells = []
        for index in columns:
            moved = 2 * (grouped and index == 0)
            text = row[index]
            if widths and index in widths:
                parts = _parts(text, words=index < table.text_columns)
                text = filled(parts, widths[index] - moved, length=cell_len)
            text = textwrap.indent(text, " " * moved)
            cells.append(Text(text, style="bold red" if text.startswith("NO ") else ""))
        shown.add_row(*cells)
    return shown


def warnings_view(warnings: Iterable[str]) -> Group:
    return Group(*(Text(f"Warning: {text}", style="yellow") for text in warnings))


def _answered(
    asked: str, answer: str, shown: Iterable[Table], *lines: RenderableType, warnings: Iterable[str] = ()
) -> Group:
    """What was asked, and the answer, before any table."""
    said = (Text(asked, style="bold"), Text(answer, style="bold"), Text(""))
    return Group(*said, *map(render, shown), *lines, warnings_view(warnings))
