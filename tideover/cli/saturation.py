"""``tideover run --saturate`` and ``tideover compare --saturate``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tideover.cli import output
from tideover.cli.progress import Bar

if TYPE_CHECKING:
    from tideover.models import config

LONG_S = 10.0
"""Searches that take longer are announced."""


def run(scenario: str, settings: list[str] | None, as_json: bool, out: Path | None) -> None:
    """One scenario, under its strategy."""
    from tideover import api
    from tideover.scenarios.loader import unused
    from tideover.scenarios.settings import read_settings
    from tideover.sim.registry import kind_of

    given = read_settings(settings or ())
    found = api.loaded(scenario, given)
    output.note(unused(scenario, kind_of(found.strategy), given))
    _find([found], as_json, out, "run")


def compare(asked: Sequence[config.Scenario], as_json: bool, out: Path | None) -> None:
    """The same scenario under several strategies."""
    _find(asked, as_json, out, "compare")


def announce(asked: Sequence[config.Scenario]) -> None:
    """Say on standard error how many rates will be tried, and how long that takes, if it takes long."""
    from tideover.scenarios.saturation import expected

    each = [expected(one) for one in asked]
    lasts = sum(seconds for _, seconds in each)
    if lasts >= LONG_S:
        tries = f"about {each[0][0]} rates are tried{' under each strategy' if len(each) > 1 else ''}"
        output.note([f"{tries}; that takes about {output.in_words(lasts)}, give or take a factor of three"])


def _find(asked: Sequence[config.Scenario], as_json: bool, out: Path | None, command: str) -> None:
    from tideover.scenarios.saturation import check, saturate

    for one in asked:
        check(one)  # before anything is written or run
    output.prepare(out, command)
    announce(asked)
    with Bar() as bar:
        found = [
            saturate(one, lambda done, rate: bar(f"trying {rate:,.0f} tuples/s", done, 0)) for one in asked
        ]
    records = [each.to_dict() for each in found]
    record = records if command == "compare" else records[0]
    if as_json:
        output.print_json(record)
    else:
        from tideover.reports.terminal import saturation_view

        output.show(saturation_view(found))
    if out is not None:
        from tideover.reports.saturation import page

        output.write(out, {}, lambda: page(found), record, errors=as_json)
