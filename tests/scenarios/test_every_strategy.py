"""``--strategies all``: who takes part, with which parameters, and who is left out."""

from __future__ import annotations

import pytest

import tideover
from tideover import api
from tideover.models.strategies.base import STRATEGIES
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load_for_strategies
from tideover.scenarios.runs import every_strategy

CHAIN = {
    "name": "chain",
    "topology": {
        "s": {"spout": "sentences", "rate": "5/s"},
        "split": {"bolt": "split_words", "from": {"s": "shuffle"}, "service": "1 ms"},
        "count": {
            "bolt": "windowed_count",
            "from": {"split": {"fields": ["word"]}},
            "service": "1 ms",
            "window": "2 s",
        },
    },
    "strategy": {"kind": "source_replay", "message_timeout": "3 s"},
    "failures": [{"at": "5 s", "kind": "lose_state", "component": "count"}],
    "run": {"duration": "20 s", "warmup": "1 s", "seed": 1, "replications": 1},
}


def built_in() -> list[str]:
    return [name for name, cls in STRATEGIES.items() if cls.__module__.startswith("tideover.")]


@pytest.mark.parametrize("source", ["wordcount", CHAIN], ids=["wordcount", "chain"])
def test_every_strategy_takes_part(source: object) -> None:
    """Law: whatever the scenario says of strategies, each that comes with Tideover can be compared: keys
    without a default have a usual value, which is one that the strategy takes.
    """
    every = every_strategy(source)
    assert set(built_in()) <= set(every.kinds)
    found = load_for_strategies(source, every.kinds, every.settings)
    assert list(found) == list(every.kinds)


def test_those_that_the_scenario_names_come_first_and_need_nothing() -> None:
    every = every_strategy("wordcount")
    named = list(load_for_strategies("wordcount"))
    assert list(every.kinds) == [*named, *sorted(set(every.kinds) - set(named))]
    assert not any("checkpoint_interval" in note for note in every.notes)


def test_what_is_needed_is_told_unless_somebody_gave_it() -> None:
    told = "rsm: checkpoint_interval 5 s, since nothing else is said"
    assert told in every_strategy(CHAIN).notes
    given = ["strategies.rsm.checkpoint_interval=2s"]
    every = every_strategy(CHAIN, given)
    assert told not in every.notes
    assert "strategies.rsm.checkpoint_interval" not in {one.key for one in every.settings}
    found = api.compared(CHAIN, "all", given)
    assert found["rsm"].strategy.checkpoint_interval == 2_000_000_000
    assert found["aligned_snapshots"].strategy.checkpoint_interval == 5_000_000_000


def test_a_strategy_that_does_not_go_with_the_scenario_is_left_out_and_it_is_told_why() -> None:
    """Spouts that read a queue do not go with strategies that read a log of their own."""
    source = {"kind": "kafka", "partitions": 1}
    topology = CHAIN["topology"] | {"s": {"spout": "sentences", "rate": "5/s", "source": source}}
    every = every_strategy(CHAIN | {"topology": topology})
    assert "micro_batch" not in every.kinds
    assert "source_replay" in every.kinds
    (note,) = (note for note in every.notes if note.startswith("micro_batch is left out: "))
    assert "source" in note


def test_a_scenario_that_is_wrong_is_told_as_ever() -> None:
    """Law: nothing is left out where the scenario itself is the reason."""
    with pytest.raises(ScenarioError) as caught:
        every_strategy(CHAIN | {"run": {"duration": "20"}})
    assert caught.value.problems[0].key == "run.duration"


def test_compare_all() -> None:
    found = tideover.compare(CHAIN, "all")
    assert set(built_in()) <= set(found.results)
    assert {one.scenario.failures for one in found.results.values()} == {
        found.results["none"].scenario.failures
    }
    assert tideover.compare(CHAIN, ["all"], ["run.duration=12s"]).results.keys() == found.results.keys()
