"""The worked example of CONTRIBUTING.md: a strategy from outside the package, in one file."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from tideover.models import conformance
from tideover.models.simulation import simulate
from tideover.models.strategies.base import STRATEGIES
from tideover.scenarios.loader import load

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="module")
def example() -> Iterator[Any]:
    """The module, imported as a user's; what it registers is taken out again."""
    spec = spec_from_file_location("approximate_backup", EXAMPLES / "approximate_backup.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # its annotations are resolved there
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]
    STRATEGIES.discard("approximate_backup")


def test_what_the_guide_shows_runs_as_it_stands() -> None:
    """The one Python block of CONTRIBUTING.md, in a process of its own: a scenario, and the conformance
    suite.
    """
    (block,) = re.findall(
        r"^ *```python\n(.*?)^ *```$", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL | re.MULTILINE
    )
    code = "\n".join(line.removeprefix("   ") for line in block.splitlines())
    path = os.pathsep.join([str(EXAMPLES), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"effects restored: \d+ missing: \d+\nkeeps its word\n", done.stdout)


def test_the_guide_quotes_the_example() -> None:
    """Every line of code that the guide shows of the class stands in the file."""
    guide = (ROOT / "CONTRIBUTING.md").read_text()
    quoted = re.search(r'@STRATEGIES.register\("approximate_backup"\).*?```', guide, re.DOTALL)
    assert quoted is not None
    source = " ".join((EXAMPLES / "approximate_backup.py").read_text().split())
    lines = [line.strip() for line in quoted.group().splitlines()[:-1] if line.strip()]
    assert all(line in source for line in lines if not line.startswith('"""'))


def test_it_is_one_short_file() -> None:
    assert len((EXAMPLES / "approximate_backup.py").read_text().splitlines()) <= 100


def test_it_saves_what_amnesia_loses(example: Any) -> None:
    """Both lose what count had at its crash at 75 s, 15 s into a window, and what arrives in the 2 s of the
    restart.

    The backup brings back all but what came since it was due: at most 100 tuples, and those of a second (44)
    until the next look.
    """
    scenario = load(EXAMPLES / "approximate-word-count.yaml")
    saved = simulate(scenario).recoveries[0]
    lost = simulate(scenario.with_strategy(STRATEGIES["none"].model_validate({}))).recoveries[0]
    assert lost["restored"] == 0
    assert saved["restored"] + saved["missing"] == lost["missing"]
    assert 0 <= saved["missing"] <= 100 + 60  # a second of up to 60 words


@pytest.mark.parametrize("interval_ms", [1000, 7000])
def test_a_backup_that_outlives_its_window_is_found(example: Any, interval_ms: int) -> None:
    """Backups that a window does not void: what it has put out is restored after it, and put out again.

    This can be seen from the window's end until the next backup. With an interval of 1 s all that strikes at
    whole seconds finds a backup of the same instant.
    """

    class Outliving(example.Backups):
        def look(self, task: Any, i: int) -> None:
            if task.available:
                self.backups.take(task)

        def window_ended(self, task: Any, parts: Any, now: int) -> int:
            return 0

    @STRATEGIES.register("outliving")
    class Forgetful(example.ApproximateBackup):
        """Backs up, and forgets to forget (as Huang and Lee, 2016, do not)."""

        def protocol(self, job: Any) -> Any:
            return Outliving(job, self)

    try:
        with pytest.raises(AssertionError, match="duplicates"):
            conformance.keeps_its_promise(Forgetful(interval=interval_ms * 1_000_000))
    finally:
        STRATEGIES.discard("outliving")


def test_a_wrong_parameter_is_explained_like_any_other(example: Any) -> None:
    """Parameters of a strategy from outside are validated where the scenario says them."""
    from tideover.scenarios.errors import ScenarioError

    with pytest.raises(ScenarioError, match="updates"):
        load(EXAMPLES / "approximate-word-count.yaml", ["strategy.updates=0"])
    with pytest.raises(ScenarioError, match="interval"):
        load(EXAMPLES / "approximate-word-count.yaml", ["strategy.intervall=2 s"])
