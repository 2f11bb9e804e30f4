"""The reference of keys is what the code makes, and leaves out no key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tideover.models.strategies.base import STRATEGIES, Strategy
from tideover.scenarios import profiles
from tideover.scenarios.reference import json_schema, markdown
from tideover.scenarios.sweeps import sweep_file


def keys_in(schema: Any) -> Iterator[str]:
    """Every key that a JSON Schema names, at any depth."""
    if isinstance(schema, dict):
        for name, inner in schema.items():
            if name == "properties":
                yield from inner
            yield from keys_in(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from keys_in(inner)


def test_no_key_is_missing() -> None:
    """Whatever the schema of scenarios has is there, and the keys of sweep files and profiles; the keys that
    name a kind head a section each, and what an applied profile consists of is not for files. Fields of
    results, which come last, do not count as keys.
    """
    text, heading, _ = markdown().partition("\n## Results\n")
    assert heading
    rows = {key.rpartition(".")[2] for key in re.findall(r"^\| `([\w.]+)` \|", text, re.MULTILINE)}
    schema = json_schema()
    schema["properties"]["profile"] = {}
    headed = {"kind", "bolt", *STRATEGIES}  # a spout is a key of a strategy, too
    assert {*keys_in(schema), *sweep_file.TOP, *profiles.TOP, *profiles.PARTS} - rows == headed


@pytest.fixture
def added() -> Iterator[None]:
    """A strategy of another package, with a quantity, a limit and a vertical bar."""
    from typing import Annotated

    from pydantic import Field

    from tideover.sim.units import Duration

    class Added(Strategy):
        """What it does, in ``words``."""

        interval: Annotated[Duration, Field(gt=0, description="a | b")] = 1_500_000_000
        least: Annotated[int, Field(ge=1, le=2000, description="how many")]

    STRATEGIES.register("added")(Added)
    yield
    STRATEGIES.discard("added")


def test_a_part_has_a_section_with_a_row_for_each_key(added: None) -> None:
    """Name, meaning, promise; by key: kind of value with its limits, default with its unit, meaning."""
    section = markdown().partition("### `added`\n")[2].partition("\n## ")[0]
    assert section.splitlines() == [
        "",
        "What it does, in `words`. Promise: at most once. Survives: nothing for sure.",
        "",
        "| key | takes | default | meaning |",
        "|---|---|---|---|",
        "| `interval` | duration, more than 0 s | 1.5 s | a \\| b |",
        "| `least` | whole number, at least 1, at most 2,000 | **required** | how many |",
    ]


def test_every_link_leads_to_a_heading() -> None:
    """Links inside of the page, as GitHub makes anchors of headings."""
    printed = markdown()
    headings = re.findall(r"^#+ (.+)$", printed, re.MULTILINE)
    anchors = {heading.lower().replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\(#([^)]+)\)", printed)) <= anchors
