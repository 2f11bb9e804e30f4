"""What the documentation of the library shows: docs/library.md, and the docstrings."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
from importlib import import_module
from pathlib import Path

import pytest

import tideover

ROOT = Path(__file__).parents[1]

DOCTESTS = [
    "tideover",
    "tideover.api",
    "tideover.parts",
    "tideover.scenarios.quantities",
    "tideover.scenarios.scenario",
    "tideover.scenarios.part_builder",
    "tideover.sim.units",
]


def blocks(text: str) -> list[tuple[str, str | None]]:
    """The Python blocks of a page, each with the block that shows what it prints, if there is one."""
    found = re.findall(r"^```python\n(.*?)^```\n(?:\n```\n(.*?)^```$)?", text, re.DOTALL | re.MULTILINE)
    return [(code, shown or None) for code, shown in found]


def as_shown(printed: str) -> list[str]:
    """Lines without spaces at their ends, which pages do not keep."""
    return [line.rstrip() for line in printed.splitlines()]


def check(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the blocks one after the other, as one program; each prints what the page says."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for code, shown in blocks(text):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        assert as_shown(printed.getvalue()) == as_shown(shown or "")


def test_the_pages_examples_print_what_they_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check((ROOT / "docs" / "library.md").read_text("utf-8"), tmp_path, monkeypatch)
    assert (tmp_path / "timeline.png").exists()


def test_a_sweeps_dataset_is_read_as_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = {
        "scenario": "wordcount",
        "set": {"run.duration": "40 s", "run.warmup": "10 s", "failures": []},
        "grid": {"run.seed": [1, 2, 3, 4]},
        "replications": 1,
    }
    tideover.sweep(spec, master=None, out=tmp_path / "sweep")
    check((ROOT / "docs" / "dataset.md").read_text("utf-8"), tmp_path, monkeypatch)


@pytest.mark.parametrize("name", DOCTESTS)
def test_docstrings_examples_hold(name: str) -> None:
    """At least one example in each module, and none that fails."""
    found = doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS)
    assert found.failed == 0
    assert found.attempted > 0
