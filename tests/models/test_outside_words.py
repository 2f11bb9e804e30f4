"""What a strategy from outside the package says of itself is heard: its load, its remarks, its own keys. What
a failure from outside names is looked up.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pytest
from pydantic import Field

from tideover.models import advice
from tideover.models.advice import task_loads, warnings
from tideover.models.config import topology_of
from tideover.models.effort import effort
from tideover.models.job.topology import Component
from tideover.models.remarks import Plan, Saving, by_task
from tideover.models.runtime.job import Job
from tideover.models.simulation import simulate
from tideover.models.strategies.base import STRATEGIES, KeyPath, Promise, Protocol, Strategy, Work
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load_text
from tideover.scenarios.runs import run
from tideover.sim.faults import FAULTS, Fault
from tideover.sim.units import MS, Duration


class Copying(Strategy):
    """At most once: a standby gets a copy after every k tuples of a bolt. No copy is a replica."""

    promise: ClassVar[Promise] = "at most once"
    survives: ClassVar[frozenset[str]] = frozenset({"lose_state"})
    counts_tuples: ClassVar[tuple[str, ...]] = ("k",)
    gives_up: ClassVar[tuple[str, ...]] = ("patience",)
    spouts_wait: ClassVar[tuple[str, ...]] = ("credit",)

    k: Annotated[int, Field(ge=1, description="tuples between two copies")] = 4
    copy_time: Annotated[Duration, Field(description="time of a copy")] = 0
    standby: Annotated[int | None, Field(description="host of the standby")] = None
    copied: Annotated[str, Field(description="bolt that is copied")] = "count"
    components: Annotated[int, Field(description="standbys, whatever the name says")] = 1
    patience: Annotated[Duration | None, Field(description="a root that waits for longer comes again")] = None
    credit: Annotated[int | None, Field(description="most roots under way")] = None

    def load(self, component: Component) -> Work:
        return Work(self.copy_time / self.k) if component.name == self.copied else Work()

    def named_bolts(self) -> dict[KeyPath, str]:
        return {("copied",): self.copied}

    def named_hosts(self) -> dict[KeyPath, int]:
        return {} if self.standby is None else {("standby",): self.standby}

    def remarks(self, plan: Plan) -> list[str]:
        return [f"{self.copied}: up to {self.k} tuples are lost" for fault in plan.hit(self.copied)]

    def protocol(self, job: Job) -> Protocol:
        return Copies(job, self)


class Copies(Protocol):
    """At each tuple a part of the copy."""

    def __init__(self, job: Job, strategy: Copying) -> None:
        super().__init__(job)
        for task in self.view.bolts:
            if task.index == 0:
                self.do.charge(task.component.name, round(strategy.load(task.component).per_tuple))


class Twofold(Copying):
    """The same, with two of each task."""

    def replicas(self, component: str, keeps_state: bool) -> int:
        return 2


class Anywhere(Fault):
    """A failure of its own, which takes none of the bases that say what is hit."""

    component: str | None = None
    task: int = 0
    host: int | None = None
    hosts: tuple[int, ...] = ()
    worker: int = 0
    rack: int = 0
    store: str | None = None


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    """As importing a user's module does; taken out again."""
    STRATEGIES.register("copying")(Copying)
    STRATEGIES.register("twofold")(Twofold)
    FAULTS.register("anywhere")(Anywhere)
    yield
    FAULTS.discard("anywhere")
    STRATEGIES.discard("copying")
    STRATEGIES.discard("twofold")


TEXT = """\
topology:
  log: {spout: keys, keys: 10, rate: 100/s}
  count: {bolt: windowed_count, from: {log: {fields: [key]}}, service: 6 ms, window: 5 s}
strategy: {kind: copying, copy_time: 20 ms}
failures: [{kind: lose_state, component: count, at: 10 s, within: 0 s}]
run: {duration: 60 s}
"""


def test_its_load_and_its_remarks_are_told_by_the_command_line(tideover: Any, tmp_path: Path) -> None:
    """100/s of 6 ms and a fourth of 20 ms: 1.1 s of work in a second. What a run adds comes after that."""
    file = tmp_path / "copies.yaml"
    file.write_text(TEXT)
    code, out, _ = tideover("run", file, "--json")
    said = json.loads(out)["warnings"]
    assert not code
    assert said[:2] == [
        "count: load 1.10: a task gets 100 tuples/s and cannot keep up; its queue grows without end",
        "count: up to 4 tuples are lost",
    ]
    assert run(load_text(TEXT, settings=["strategy.kind=none"])).warnings == []


def test_its_load_is_what_a_run_shows() -> None:
    """With copies of 8 ms: 6 ms + 2 ms, a hundred times a second."""
    scenario = load_text(TEXT, settings=["strategy.copy_time=8 ms"])
    assert task_loads(topology_of(scenario), scenario.strategy)["count"].load == pytest.approx(0.8)
    assert simulate(scenario).tasks[0]["utilisation"] == pytest.approx(0.8, rel=0.01)


def test_its_own_k_and_components_are_no_replicas() -> None:
    """There is as much to do with k = 40 as with k = 1, and more with two of each task."""
    few, many = (effort(load_text(TEXT, settings=[f"strategy.k={k}"])) for k in (1, 40))
    assert few == many
    assert effort(load_text(TEXT, settings=["strategy.kind=twofold"])).moved > few.moved


UNKNOWN = [
    ("component: cuont", "component: there is no component 'cuont'; did you mean 'count'"),
    ("component: count, task: 1", "task: count has no task 1; its tasks are 0 to 0"),
    ("host: 2", "host: there is no host 2; this topology uses 0 to 1"),
    ("hosts: [0, 2]", "hosts.1: there is no host 2"),
    ("worker: 1", "worker: there is no worker 1; each host has 1"),
    ("rack: 1", "rack: there is no rack 1; there are 1"),
    ("store: disk", "store: there is no store 'disk'"),
]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (["failures.0={kind: crash_host, host: 2, at: 1 s}"],
         "failures.0.host: there is no host 2; this topology uses 0 to 1"),
        (['links.pairs={"0-2": 1 ms}'], "links.pairs.0-2: there is no host 2; this topology uses 0 to 1"),
        (['links.pairs={"0-2": 1 ms}', "strategies={copying: {k: 9}}"],
         "links.pairs.0-2: there is no host 2; this topology uses 0 to 1"),
        (['links.pairs={"0-20": 1 ms}', "strategies={active_replication: {k: 9}}"],
         "links.pairs.0-20: there is no host 20; this topology uses 0 to 19"),
        (["strategy.kind=twofold", "failures.0={kind: crash_host, host: 4, at: 1 s}"],
         "failures.0.host: there is no host 4; this topology uses 0 to 3"),
        (["strategy.copied=cuont"], "strategy.copied: there is no component 'cuont'; did you mean 'count'"),
        (["strategy.copied=log"], "strategy.copied: 'log' is a spout; only bolts can be named here"),
        (["hosts=4", "strategy.standby=4"], "strategy.standby: there is no host 4; hosts: 4 means 0 to 3"),
        *(([f"failures.0={{kind: anywhere, at: 1 s, {key}}}"], f"failures.0.{why}") for key, why in UNKNOWN),
        (["run.lump=10"], "run.lump: does not go with strategy.k, which counts single tuples"),
    ],
)  # fmt: skip
def test_the_checks_go_by_what_it_says_of_its_keys(settings: list[str], says: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load_text(TEXT, settings=settings)
    (problem,) = caught.value.problems
    assert f"{problem.key}: {problem.message}".startswith(says)


@pytest.mark.parametrize(
    "settings",
    [
        ["strategy.kind=twofold", "failures.0={kind: crash_host, host: 3, at: 1 s}"],
        ['links.pairs={"0-19": 1 ms}', "strategies={active_replication: {k: 9}}"],
        ["hosts=4", "strategy.standby=3"],
    ],
)
def test_hosts_that_there_are_can_be_named(settings: list[str]) -> None:
    assert load_text(TEXT, settings=settings).strategy.kind in ("copying", "twofold")


def test_remarks_name_its_own_keys() -> None:
    """That spouts wait, and after how long it takes a root to be lost: by the keys that say so."""
    (over, _) = warnings(load_text(TEXT, settings=["strategy.credit=5"]))
    assert over.endswith("cannot keep up; the spouts have to wait (credit)")
    done: Any = simulate(load_text(TEXT, settings=["strategy.copy_time=0 s"]))
    done.ledger["false_timeouts"] = 3
    for settings, given in ((["strategy.patience=7 s"], " (strategy.patience is 7 s)"), ([], "")):
        (said,) = advice.remarks_on_limits(load_text(TEXT, settings=settings), [done])
        assert f"emitted again{given}, which makes others wait" in said


def test_what_strategies_share_takes_plain_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten entries of 30 ms, in copies every 200 ms: 100 ms too long, and said under the strategy's own key;
    the same entries keep the task for 1.5 of its time.
    """
    saving = Saving("every", interval=200 * MS, time=0, cost=30 * MS, entry_size=0)
    monkeypatch.setattr(Copying, "remarks", lambda self, plan: by_task(plan, saving))
    (said,) = warnings(load_text(TEXT, settings=["strategy.copy_time=0 s"]))
    assert said == "every 0.2 s: a checkpoint of 10 entries takes up to 0.301 s, longer than the interval"
    assert saving.load(10) == Work(per_tuple=0, saving=1.5)


def test_who_has_a_driver_is_not_told_that_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ["strategy.copy_time=0 s", "failures.0.component=driver"]
    (said,) = warnings(load_text(TEXT, settings=settings))
    assert said == "failures: copying has no driver: that it is lost changes nothing"
    monkeypatch.setattr(Copying, "roles", frozenset({"driver"}))
    assert warnings(load_text(TEXT, settings=settings)) == []
