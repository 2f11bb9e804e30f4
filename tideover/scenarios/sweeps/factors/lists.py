"""Factors as files list them: ``grid``, a product, and ``zip``, groups of factors that go in step."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from tideover.scenarios import swept
from tideover.scenarios.errors import Problem
from tideover.scenarios.nodes import Node
from tideover.scenarios.sweeps.factors import ranges
from tideover.scenarios.sweeps.factors.axes import Factor, Listed


def grid(given: Sequence[tuple[Factor, Node]], problems: list[Problem]) -> Iterator[Listed]:
    """An axis for each factor."""
    for factor, node in given:
        values = listed(factor, node, problems)
        problems += again(factor.shown, [(value,) for value in values])
        yield Listed((factor,), tuple((value,) for value in values))


def in_step(given: Sequence[tuple[Factor, Node]], problems: list[Problem]) -> Listed:
    """One axis for all these factors: the first values of all, the second ones, and so on.

    Of a factor that ``--set`` gives one value, all are the same.
    """
    columns = [listed(factor, node, problems) for factor, node in given]
    longest = max(map(len, columns), default=0)
    for i, (factor, node) in enumerate(given):
        if node.is_set and len(columns[i]) == 1:
            columns[i] *= longest
        elif 0 < len(columns[i]) < longest:
            other = next(factor for j, (factor, _) in enumerate(given) if len(columns[j]) == longest)
            message = f"has {len(columns[i])} values, and {other.key} has {longest}; give each as many"
            problems.append(node.problem(factor.shown, message))
    rows = list(zip(*columns, strict=False))
    problems += again(given[0][0].shown if given else "", rows)
    return Listed(tuple(factor for factor, _ in given), tuple(rows))


def listed(factor: Factor, node: Node, problems: list[Problem]) -> list[Node]:
    """The values of a list or a range, each once in a list; a value that ``--set`` gives is a list of one."""
    if node.is_mapping and ranges.is_range(node):
        return ranges.values(node, factor.shown, problems)
    if node.is_set and not isinstance(node.value, list):
        return [node]
    if not isinstance(node.value, list) or not node.value:
        what = "an empty list" if node.value == [] else node.shown()
        message = f"must be a list of values, as in [10/s, 20/s], or a range, {_RANGE}, not {what}"
        problems.append(node.problem(factor.shown, message))
        return []
    return list(node.value)


def again(key: str, rows: Sequence[Sequence[Node]]) -> Iterator[Problem]:
    """A problem for each row that was there before."""
    seen = set()
    for row in rows:
        shown = ", ".join(swept.text(node.plain()) for node in row)
        text = json.dumps([node.plain() for node in row])
        if text in seen:
            yield row[0].problem(key, f"lists {shown} twice; give each value once")
        seen.add(text)


_RANGE = "as in {from: 10/s, to: 100/s, steps: 10}"
