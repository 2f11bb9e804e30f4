"""The sweep files in docs/sweeps.md are read, and have as many points as the text says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tideover.scenarios.sweeps.sweep_file import read

PAGE = (Path(__file__).parents[1] / "docs" / "sweeps.md").read_text("utf-8")
FILES = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
POINTS = [40, 6, 32, 256, 2, 20]


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


def test_the_indices_are_what_the_text_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    short = {"run.duration": "30 s", "run.warmup": "5 s", "failures.0.at": "10 s"}
    text = next(file for file in FILES if "saltelli" in file)
    more = ", ".join(f"{key}: {value}" for key, value in short.items())
    (tmp_path / "sweep.yaml").write_text(text.replace("set: {", f"set: {{{more}, "))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(program, names)
    found = names["indices"](names["sweep_file"].read("sweep.yaml"), names["outage"])
    assert found["first_order"].to_list() == pytest.approx([0.2, 0.8], abs=0.1)
    assert "failures.0.restart" in capsys.readouterr().out
