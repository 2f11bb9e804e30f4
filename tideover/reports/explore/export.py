"""A page with its runs inside: it works without Tideover, from any place, as from a disk."""

from __future__ import annotations

import base64
import gzip
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tideover.reports.explore.answer import World, answer, pictured
from tideover.reports.explore.controls import Control, Value
from tideover.reports.explore.requests import shown
from tideover.reports.explore.server import asset, module
from tideover.scenarios.errors import ScenarioError

MOST_BYTES = 5_000_000
"""Of a page."""
MARK = b'content="Tideover explore"'
"""What such a page has near its begin."""
POSITIONS = 5
"""Of each control in a grid that nobody has chosen."""
CHOSEN = ("moment", "message_timeout", "checkpoint_interval", "trigger_interval", "k")
"""Controls of such a grid, as far as there are any."""

Grid = Mapping[str, Sequence[Value]]


class TooLarge(Exception):
    """The page would have more than ``MOST_BYTES``; the message says what to drop."""


def usual_grid(world: World, kinds: Sequence[str]) -> dict[str, list[Value]]:
    """A few positions of the controls that tell most: the moment, and what each strategy waits for."""
    found: dict[str, list[Value]] = {}
    for name in CHOSEN:
        control = world.controls.get(name)
        if control is not None and (not control.of_strategies or set(control.of_strategies) & {*kinds}):
            found[name] = _spread(control, kinds)
    return found


def _spread(control: Control, kinds: Sequence[str]) -> list[Value]:
    """Neighbours of the position at first, some to each side."""
    start = next((control.at[kind] for kind in (*kinds, "") if kind in control.at), None)
    known = list(control.values)
    middle = known.index(start) if start in known else 0
    step = max(1, len(known) // 12)
    low = max(0, middle - POSITIONS // 2 * step)
    return known[low : low + POSITIONS * step : step]


def page(
    world: World, kinds: Sequence[str], grid: Grid, report: Callable[[int, int], None] = lambda *_: None
) -> bytes:
    """The page, with a run for each strategy and each combination of positions of its controls.

    Raises TooLarge, and ValueError for a control, a position or a strategy that there is not.
    """
    held = {name: _held(world, name, values) for name, values in grid.items()}
    asked = [
        (kind, dict(zip(mine, values, strict=True)))
        for kind in kinds
        for mine in [[name for name, control in held.items() if control.concerns(kind)]]
        for values in itertools.product(*(held[name].values for name in mine))
    ]
    found = {}
    for done, (kind, moved) in enumerate(asked):
        report(done, len(asked))
        found[f"{kind} {_key(moved)}"] = _run(world, kind, moved)
    about = world.described()
    names = [one for one in about["strategies"] if one["kind"] in kinds]
    about |= {"strategies": names, "first": kinds[0], "second": kinds[-1], "scenarios": [shown(world.source)]}
    about["scenario"] = shown(world.source)  # of a path the name alone
    about["controls"] = [control.described() for control in held.values()]
    usual = {
        kind: {
            name: control.at.get(kind, control.at.get(""))
            for name, control in held.items()
            if control.concerns(kind)
        }
        for kind in kinds
    }
    runs = json.dumps({"describe": about, "usual": usual, "runs": found}, separators=(",", ":"))
    made = _html(base64.b64encode(gzip.compress(runs.encode(), 9, mtime=0)))
    if len(made) > MOST_BYTES:
        said = (
            f"{len(asked)} runs make {len(made) / 1e6:.1f} MB, and a page has at most {MOST_BYTES / 1e6:g}: "
        )
        raise TooLarge(said + "give fewer positions, or fewer controls")
    return made


def _held(world: World, name: str, values: Sequence[Value]) -> Control:
    """A control with these positions only, and always the one at first."""
    if name not in world.controls:
        raise ValueError(f"{name}: there is no such control; there are {', '.join(world.controls)}")
    control = world.controls[name]
    for value in values:
        control.settings(next(iter(control.keys), ""), value)
    kept = {*values, *(at for at in control.at.values() if at in control.values)}
    return replace(control, values=tuple(value for value in control.values if value in kept))


def _run(world: World, kind: str, moved: Mapping[str, Value]) -> dict[str, Any]:
    try:
        return {"answer": answer(world, kind, moved), "picture": pictured(world, kind, moved, None)}
    except ScenarioError as error:
        raise ValueError(f"{kind} with {dict(moved)}: {error}") from None


def _key(moved: Mapping[str, Value]) -> str:
    """As the page writes it."""
    return json.dumps(sorted([name, _js(value)] for name, value in moved.items()), separators=(",", ":"))


def _js(value: Value) -> Value:
    """JavaScript has no 5.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _html(runs: bytes) -> bytes:
    start = b'\nmount(document.getElementById("explore"), await inside(document.getElementById("runs")));\n'
    parts = {
        b'<link rel="stylesheet" href="explore.css">': b"<style>" + asset("explore.css") + b"</style>",
        b'<script type="module" src="explore.js" data-mount="explore"></script>': (
            b'<script type="application/octet-stream" id="runs">' + runs + b"</script>\n"
            b'<script type="module">' + module().encode() + start + b"</script>"
        ),
    }
    made = asset("explore.html")
    for mark, inside in parts.items():
        made = made.replace(mark, inside)
    return made
