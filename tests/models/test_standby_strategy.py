"""The worked example of docs/strategies.md: a standby that takes over at detection, and its bytes on the
network.

    s ──▶ count (1 ms)    a one every 10 ms from 10 ms on, counted 1 ms later; the standby gets the state at
                          10, 20, 30 … ms. The count crashes at 35 ms; detected at 55, restarted at 155 ms.
"""

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

from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models.conformance import CHECKS
from tideover.models.simulation import Replication, simulate
from tideover.models.strategies.base import STRATEGIES

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
CRASH = fault("crash_task", 35, component="count", detection=20, restart=100)


@pytest.fixture(scope="module", autouse=True)
def example() -> Iterator[Any]:
    """The module, imported as a user's; what it registers is taken out again."""
    spec = spec_from_file_location("warm_standby", EXAMPLES / "warm_standby.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # its annotations are resolved there
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]
    STRATEGIES.discard("warm_standby")


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
    again = fault("crash_task", 45, component="count", detection=20, restart=100)
    done = run(failures=(CRASH, again))
    assert [row["ready_at_s"] for row in done.recoveries][1] == 0.065
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
@pytest.mark.parametrize("check", CHECKS)
def test_it_keeps_its_word(example: Any, check: Any) -> None:
    """The conformance suite, which is asked of every strategy."""
    check(example.WarmStandby(interval=1000 * MS))


def test_what_the_guide_shows_runs_as_it_stands() -> None:
    """The one Python block of docs/strategies.md, in a process of its own: what it prints stands below it."""
    guide = (ROOT / "docs" / "strategies.md").read_text("utf-8")
    ((code, printed),) = re.findall(
        r"^```python\n(.*?)^```\n\n```\n(.*?)^```$", guide, re.DOTALL | re.MULTILINE
    )
    path = os.pathsep.join([str(EXAMPLES), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed


def test_the_guide_quotes_the_example() -> None:
    """Every line of the class that the guide shows stands in the file."""
    guide = (ROOT / "docs" / "strategies.md").read_text("utf-8")
    source = " ".join((EXAMPLES / "warm_standby.py").read_text("utf-8").split())
    blocks = re.findall(r"^```py\n(.*?)^```$", guide, re.DOTALL | re.MULTILINE)
    assert blocks
    assert all(line.strip() in source for block in blocks for line in block.splitlines())
