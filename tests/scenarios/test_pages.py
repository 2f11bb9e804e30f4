"""The reference of keys and the page of sinks are what the code makes."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.worlds import MS
from tideover.models.simulation import simulate
from tideover.models.strategies.base import STRATEGIES, Strategy
from tideover.scenarios import profiles
from tideover.scenarios.loader import load
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


def test_no_key_is_missing():
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
def added():
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


def test_a_part_has_a_section_with_a_row_for_each_key(added):
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


def test_every_link_leads_to_a_heading():
    """Links inside of the page, as GitHub makes anchors of headings."""
    printed = markdown()
    headings = re.findall(r"^#+ (.+)$", printed, re.MULTILINE)
    anchors = {heading.lower().replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\(#([^)]+)\)", printed)) <= anchors


ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "sinks.md").read_text()
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", PAGE, re.DOTALL)


def test_the_page_prints_what_it_says(capsys, monkeypatch):
    """The block of Python, and the lines below it."""
    monkeypatch.chdir(ROOT)
    at, code = next((i, text) for i, (kind, text) in enumerate(BLOCKS) if kind == "python")
    exec(compile(code, "docs/sinks.md", "exec"), {})
    assert capsys.readouterr().out == BLOCKS[at + 1][1]


def test_the_page_has_the_steps_of_the_example():
    """Its lines are those of the trace, but for the crash."""
    run = simulate(load(str(ROOT / "examples" / "transactions.yaml")), trace=True)
    assert run.trace is not None
    steps = {f"{step.at / (1000 * MS):.6f} s  {step.text}" for step in run.trace.steps}
    told = [line.strip() for line in BLOCKS[0][1].splitlines()]
    assert [line for line in told if line not in steps] == [told[3]]
