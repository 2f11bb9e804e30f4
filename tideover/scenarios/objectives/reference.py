"""What the reference says of objectives: their form, and the names that they know."""

from __future__ import annotations

from collections.abc import Iterator

from tideover.scenarios.objectives.metrics import EVERYDAY, EVERYDAY_IN_TIME, names

INTRODUCTION = (
    "The key `slo` is a list: `[recovery_p95 <= 20 s, {objective: lost = 0, level: 0.99}]`; "
    "[checks.md](checks.md) has what such a text may say, and how it is judged."
)


def everyday_names() -> Iterator[str]:
    """A table of them, in lines of Markdown."""
    yield "| name | column | of the table | means |"
    yield "|---|---|---|---|"
    for in_time, block in ((False, EVERYDAY), (True, EVERYDAY_IN_TIME)):
        for name, (table, _) in block.items():
            column = names(in_time)[name].column
            yield f"| `{name}` | `{column.name}` | `{table}` | {column.meaning} |"
