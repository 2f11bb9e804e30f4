"""The worked examples of a strategy from outside the package: that of CONTRIBUTING.md, and that of
docs/strategies.md, a standby that takes over at detection, and its bytes on the network:

    s ──▶ count (1 ms)    a one every 10 ms from 10 ms on, counted 1 ms later; the standby gets the state at
                          10, 20, 30 … ms. The count crashes at 35 ms; detected at 55, restarted at 155 ms.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models import conformance
from tideover.models.simulation import Replication, simulate
from tideover.models.strategies.base import STRATEGIES
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


GUIDE, STANDBYS = ROOT / "CONTRIBUTING.md", ROOT / "docs/strategies.md"
CRASH = fault("crash_task", 35, component="count", detection=20, restart=100)


@contextmanager
def imported(name: str, *registered: tuple[Any, str]) -> Iterator[Any]:
    """An example's module, imported as a user's; what it registers is taken out again."""
    spec = spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = sys.modules[name] = module_from_spec(spec)  # its annotations are resolved there
    spec.loader.exec_module(module)
    yield module
    del sys.modules[name]
    for registry, kind in registered:
        registry.discard(kind)


@pytest.fixture(scope="module")
def backups() -> Iterator[Any]:
    with imported("approximate_backup", (STRATEGIES, "approximate_backup")) as module:
        yield module


@pytest.fixture(scope="module", autouse=True)
def standbys() -> Iterator[Any]:
    with imported("warm_standby", (STRATEGIES, "warm_standby")) as module:
        yield module


# -- the guides ----------------------------------------------------------------------------------------------


def printed_by(code: str) -> str:
    """What a block of a guide prints, in a process of its own."""
    path = os.pathsep.join([str(EXAMPLES), str(ROOT)])
    command = [sys.executable, "-c", code]
    env = os.environ | {"PYTHONPATH": path}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def blocks(guide: Path, pattern: str) -> list[Any]:
    return re.findall(pattern, guide.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def test_what_the_guide_shows_runs_as_it_stands() -> None:
    """The one Python block of CONTRIBUTING.md: a scenario, and the conformance suite."""
    (block,) = blocks(GUIDE, r"^ *```python\n(.*?)^ *```$")
    said = printed_by("\n".join(line.removeprefix("   ") for line in block.splitlines()))
    assert re.fullmatch(r"effects restored: \d+ missing: \d+\nkeeps its word\n", said)


def test_what_the_page_of_strategies_shows_runs_as_it_stands() -> None:
    """Its one Python block: what that prints stands below it."""
    ((code, printed),) = blocks(STANDBYS, r"^```python\n(.*?)^```\n\n```\n(.*?)^```$")
    assert printed_by(code) == printed


@pytest.mark.parametrize(
    ("guide", "pattern", "file"),
    [
        (GUIDE, r'(@STRATEGIES\.register\("approximate_backup"\).*?)```', "approximate_backup.py"),
        (STANDBYS, r"^```py\n(.*?)^```$", "warm_standby.py"),
    ],
    ids=["approximate_backup", "warm_standby"],
)
def test_guides_quote_the_examples(guide: Path, pattern: str, file: str) -> None:
    """Every line of code that they show of a class stands in its file."""
    source = " ".join((EXAMPLES / file).read_text("utf-8").split())
    shown = [line.strip() for block in blocks(guide, pattern) for line in block.splitlines()]
    assert shown
    assert all(line in source for line in shown if not line.startswith('"""'))


# -- an approximate backup -----------------------------------------------------------------------------------


def test_it_is_one_short_file() -> None:
    assert len((EXAMPLES / "approximate_backup.py").read_text().splitlines()) <= 100


def test_it_saves_what_amnesia_loses(backups: Any) -> None:
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
def test_a_backup_that_outlives_its_window_is_found(backups: Any, interval_ms: int) -> None:
    """Backups that a window does not void: what it has put out is restored after it, and put out again.

    This can be seen from the window's end until the next backup. With an interval of 1 s all that strikes at
    whole seconds finds a backup of the same instant.
    """

    class Outliving(backups.Backups):
        def look(self, task: Any, i: int) -> None:
            if task.available:
                self.backups.take(task)

        def window_ended(self, task: Any, parts: Any, now: int) -> int:
            return 0

    @STRATEGIES.register("outliving")
    class Forgetful(backups.ApproximateBackup):
        """Backs up, and forgets to forget (as Huang and Lee, 2016, do not)."""

        def protocol(self, job: Any) -> Any:
            return Outliving(job, self)

    try:
        with pytest.raises(AssertionError, match="duplicates"):
            conformance.keeps_its_promise(Forgetful(interval=interval_ms * 1_000_000))
    finally:
        STRATEGIES.discard("outliving")


def test_a_wrong_parameter_is_explained_like_any_other(backups: Any) -> None:
    """Parameters of a strategy from outside are validated where the scenario says them."""
    with pytest.raises(ScenarioError, match="updates"):
        load(EXAMPLES / "approximate-word-count.yaml", ["strategy.updates=0"])
    with pytest.raises(ScenarioError, match="interval"):
        load(EXAMPLES / "approximate-word-count.yaml", ["strategy.intervall=2 s"])


# -- a standby that takes over at detection ------------------------------------------------------------------


def run(
    strategy: str = "warm_standby", failures: tuple[Any, ...] = (CRASH,), until: float = 195, **more: Any
) -> Replication:
    topology = {
        "s": spout("values", values=(1,), repeat=True),
        "count": bolt("windowed_count", {"s": "shuffle"}, 1, window={"length": 1000 * MS}),
    }
    if strategy == "warm_standby":
        more.setdefault("interval", 10 * MS)
    return simulate(world(topology, strategy, failures, until, **more))


def test_it_is_ready_when_the_failure_is_noticed() -> None:
    """At 55 instead of 155 ms, with what the standby got at 30 ms: the ones counted at 11 and 21 ms.

    That of 31 ms is missing, and those that arrived at 40 and 50 ms are lost: three of the nineteen. Nothing
    happens at 155 ms: a restart then would bring an older state back.
    """
    done = run()
    (row,) = done.recoveries
    assert (row["detected_at_s"], row["ready_at_s"], row["restart_s"]) == (0.055, 0.055, 0)
    assert (row["restored"], row["missing"]) == (2, 1)
    assert (done.ledger["emitted"], done.ledger["lost"]) == (19, 3)


def test_without_it_the_restart_is_waited_for() -> None:
    """The same world under amnesia: 155 ms; the three that were counted and the twelve that arrived at 40 to
    150 ms are lost.
    """
    done = run("none")
    assert done.recoveries[0]["ready_at_s"] == 0.155
    assert done.ledger["lost"] == 15


def test_the_state_that_is_sent_costs_network() -> None:
    """An entry at 20 and 30 ms, and at 60, 70, 80 and 90 ms: with none at 10 ms, and nobody to send while it
    is down, six times the size of an entry. The streams cost what they do with entries of 0 bytes.
    """
    sent = [run(until=95, entry_size=size).cost["network_bytes"] for size in (0, 64, 1000)]
    assert (sent[1] - sent[0], sent[2] - sent[0]) == (6 * 64, 6 * 1000)


def test_a_standby_that_fails_meanwhile_is_not_brought_back() -> None:
    """A second crash at 45 ms is noticed at 65 ms: nothing is taken over at 55 ms, so that of 60 ms is lost,
    too.
    """
    done = run(failures=(CRASH, CRASH.model_copy(update={"at": 45 * MS})))
    assert done.recoveries[1]["ready_at_s"] == 0.065
    assert done.ledger["lost"] == 4


def test_an_outage_is_over_when_its_last_task_is_ready() -> None:
    """The host of a count with a standby and of a forwarder without one: the forwarder is back at 155 ms."""
    topology = {
        "s": spout("values", values=(1,), repeat=True, hosts=(0,)),
        "p": bolt("forward", {"s": "shuffle"}, 1, hosts=(1,)),
        "count": bolt("windowed_count", {"p": "shuffle"}, 1, hosts=(1,), window={"length": 1000 * MS}),
    }
    crash = fault("crash_host", 35, host=1, detection=20, restart=100)
    scenario = world(topology, "warm_standby", (crash,), 195, hosts=2, interval=10 * MS)
    (row,) = simulate(scenario).recoveries
    assert (row["detected_at_s"], row["ready_at_s"]) == (0.055, 0.155)


@pytest.mark.long
@pytest.mark.parametrize("check", conformance.CHECKS)
def test_it_keeps_its_word(standbys: Any, check: Any) -> None:
    """The conformance suite, which is asked of every strategy."""
    check(standbys.WarmStandby(interval=1000 * MS))
