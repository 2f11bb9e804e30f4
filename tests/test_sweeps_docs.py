"""The sweep files in docs/sweeps.md are read, and have as many points as the text says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tideover.scenarios.sweeps.sweep_file import read

PAGE = (Path(__file__).parents[1] / "docs" / "sweeps.md").read_text("utf-8")
FILES = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
POINTS = [40, 6, 32, 2, 20]


def test_every_example_is_here() -> None:
    assert len(FILES) == len(POINTS)


@pytest.mark.parametrize(("text", "points"), [*zip(FILES, POINTS, strict=True)])
def test_an_example_has_the_points_that_the_text_says(text: str, points: int, tmp_path: Path) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text(text)
    recipe = read(path)
    assert recipe.total == points
    for number in range(0, points, 5):
        assert recipe.point(number).number == number
    assert recipe.point(points - 1).values == recipe.values(points - 1)
