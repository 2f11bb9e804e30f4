"""What docs/validation.md states is what the studies give: each is made again, and held against it."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from tideover.cli.validation import STUDIES, judged, study
from tideover.reports.published import published
from tideover.reports.validation import Figure, LeftOut, Study, answer, markdown, section, summary

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "validation.md").read_text(encoding="utf-8")
FILES = ROOT.parent / "shared" / "published"
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def same(stated: str, found: str) -> bool:
    """Whether two texts differ at most in last digits of numbers: other machines round otherwise."""
    if _NUMBER.sub("#", stated) != _NUMBER.sub("#", found):
        return False
    pairs = zip(_NUMBER.findall(stated), _NUMBER.findall(found), strict=True)
    return all(abs(_value(a) - _value(b)) <= 1.01 * 10.0 ** -len(a.partition(".")[2]) for a, b in pairs)


def _value(text: str) -> float:
    return float(text.replace(",", ""))


@pytest.mark.parametrize("name", STUDIES)
def test_the_page_states_what_a_study_gives(name: str) -> None:
    file = FILES / STUDIES[name].file if STUDIES[name].file else None
    if file is not None and not file.exists():
        pytest.skip("the published measurements are not here")
    made = section(study(name, file))
    (stated,) = (part for part in re.split(r"\n(?=## )", PAGE) if part.split("\n")[0] == made.split("\n")[0])
    wrong = [
        f"{old}\n{new}"
        for old, new in zip(stated.strip().splitlines(), made.splitlines(), strict=True)
        if not same(old, new)
    ]
    assert not wrong, "\n".join(wrong)


def test_texts_are_the_same_but_for_last_digits() -> None:
    assert same("84.0 s of 1,000", "84.1 s of 1,001")
    assert not same("84.0 s", "84.2 s")
    assert not same("84 s", "84 ms")
    assert not same("6,673|failed", "6,673|predicted")


def test_every_published_table_has_a_study() -> None:
    assert {f"{one.study}.{one.name}" for one in published()} == {
        s.table for s in STUDIES.values() if s.table
    }


MADE = Study(
    "Made up",
    "nobody",
    ("what",),
    (
        Figure(("a",), "s", 10.0, 11.0, "predicted", "ten", 10.0),  # the law is nearer
        Figure(("b",), "s", 10.0, 10.1, "fitted", "ten and a bit", 10.2),  # within 2 %: alike
        Figure(("c",), "s", 0.0, 0.5, "failed", "one", 1.0),  # off by 0.5 s, the law by 1 s
        Figure(("d",), "s", 10.0, 10.0, "predicted"),  # without a law
    ),
)


def test_verdicts_and_laws_are_counted() -> None:
    left_out = LeftOut(("w",), 8, 0.1, 1.0, 0.2, 7.0, 0.5, "12 %", "predicted", "a law", 0.3)
    other = Study("Left out", "nobody", ("what",), (left_out,))
    lacking = Study("Not here", "nobody", ("what",), (), lacks="give it")
    assert summary([MADE, other, lacking]).rows == (
        ("Made up", "2", "1", "1", "1", "1", "2"),
        ("Left out", "1", "0", "0", "1", "0", "0"),
    )
    assert answer([MADE, other, lacking]) == "Of 5 published figures: 3 predicted, 1 fitted, 1 failed."
    assert "give it" in markdown([MADE, other, lacking])


def test_errors_are_relative_but_where_nothing_was_published() -> None:
    assert [row[3] for row in MADE.table.rows] == ["+10 %", "+1 %", "0.500 s", "0 %"]
    assert [row[7] for row in MADE.table.rows] == ["0 %", "+2 %", "1.00 s", "–"]


def test_a_figure_fails_beyond_the_tolerance() -> None:
    verdicts = [judged((), "s", 100.0, value).verdict for value in (84.9, 85.1, 114.9, 115.1, math.nan)]
    assert verdicts == ["failed", "predicted", "predicted", "failed", "failed"]
    assert judged((), "s", 100.0, 90.0, chosen=True).verdict == "fitted"
