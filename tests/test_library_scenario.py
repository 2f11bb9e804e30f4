"""Scenarios in Python: ``with_`` is the change in the file, nothing is mutated, and YAML holds all of it."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tideover
from tideover import parts
from tideover.models.strategies.base import STRATEGIES
from tideover.parts.typed import typed as parts_typed
from tideover.scenarios import library, yaml_source
from tideover.scenarios.part_builder import to_data

OWN = [kind for kind, part in STRATEGIES.items() if part.__module__.startswith("tideover.")]
KINDS = [
    kind
    for kind in OWN
    if library.tree("wordcount").get("strategies", kind)
    or not any(field.is_required() for field in STRATEGIES[kind].model_fields.values())
]
"""Strategies whose parameters the word count has."""
TYPED = [
    tideover.ActiveReplication(k=2),
    tideover.AlignedSnapshots(checkpoint_interval="7 s"),
    tideover.Amnesia(),
    tideover.MicroBatch(trigger_interval="2 s"),
    tideover.SourceReplay(timeout_buckets=3),
    parts.EStorm(members=3),
    parts.Hybrid(rest="none", bolts={"count": {"kind": "active_replication", "k": 2}}),
    parts.StormCheckpoint(checkpoint_interval="2 s"),
    parts.PassiveStandby(checkpoint_interval="2 s", delta=True),
    parts.UpstreamBackup(ack_interval="3 s"),
    parts.ActiveStandby(copy_time="1 s"),
    parts.Trident(spout="transactional", message_timeout="20 s"),
    parts.BatchRerun(trigger_interval="10 s"),
    parts.ChangelogTopics(commit_interval="7 s"),
    tideover.StateManagement(checkpoint_interval="7 s", replay_rate="900/s"),
]


TYPED += [
    parts_typed(STRATEGIES[kind])(**STRATEGIES[kind].typical)
    for kind in OWN
    if kind not in {one.kind for one in TYPED}
]


def typed(kind: str) -> Any:
    """The typed strategy of a kind."""
    return {one.kind: one for one in TYPED}[kind]


def from_text(text: str) -> tideover.Scenario:
    """The scenario of a file's text, with its blocks."""
    return tideover.load(yaml_source.parse(text, "mine.yaml").plain())


OPTIONAL = {
    "strategies.source_replay": {"message_timeout": "30 s", "timeout_phase": "1 s", "max_spout_pending": 90},
    "strategies.rsm": {"checkpoint_interval": "5 s", "replay_rate": "800/s"},
    "strategies.aligned_snapshots": {"checkpoint_interval": "5 s", "checkpoint_phase": "1 s"},
}
"""A block ``strategies`` that has values where the typed objects have none."""

seconds = st.integers(5, 60).map(tideover.seconds)
texts = st.text(st.characters(codec="utf-8", exclude_categories=("C",)), max_size=9)
CHANGES = {
    "strategy.kind": st.sampled_from(KINDS),
    "strategies.rsm.checkpoint_interval": seconds,
    "topology.sentences.rate": st.integers(1, 50).map(tideover.per_second),
    "topology.count.window": seconds | st.just({"tuples": 40}),
    "topology.split.parallelism": st.integers(1, 3),
    "failures.0.at": st.integers(61, 90).map(tideover.seconds),
    "failures": st.just([]),
    "links.latency": st.just({"kind": "exponential", "mean": "2 ms"}),
    "run.seed": st.integers(0, 9),
    "run.lag_window": seconds | st.none(),
    "description": texts,
}
"""Values by key of the word count."""


def changes(most: int = 4) -> st.SearchStrategy[dict[str, Any]]:
    """Some of them, with no key beside one that it is under."""
    alone = {key: value for key, value in CHANGES.items() if key != "failures"}
    some = st.fixed_dictionaries({}, optional=alone).filter(lambda found: len(found) <= most)
    return some | st.fixed_dictionaries({"failures": CHANGES["failures"]})


# What with_ is.


@given(changes())
def test_with_is_the_same_change_as_set(changed: dict[str, Any]) -> None:
    assert tideover.load("wordcount").with_(changed) == tideover.load("wordcount", changed)


@given(st.integers(1, 9).map(lambda n: 1000 * n), st.integers(10, 90))
def test_short_parameters_are_those_of_the_file(rate: int, capacity: int) -> None:
    """As keywords, as keys and as settings; also of a scenario that was changed before."""
    short = {"rate": tideover.per_second(rate), "capacity": f"{capacity}/ms"}
    base = tideover.load("flink-recovery")
    wanted = tideover.load("flink-recovery", short)
    assert base.with_(**short) == base.with_(short) == tideover.load(base, short) == wanted
    assert base.with_(description="x").with_(**short, description=base.description) == wanted


@settings(max_examples=15)
@given(changes(), changes().filter(lambda changed: "failures.0.at" not in changed))
def test_a_scenario_that_was_changed_is_changed_like_its_file(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    """After the first change, the second does the same to the scenario and to the file written of it; what
    the first one said stays.
    """
    once = tideover.load("wordcount").with_(first)
    assert once.with_(second) == from_text(once.to_yaml()).with_(second)


@pytest.mark.parametrize("name", ["wordcount", "micro-batch"])
@pytest.mark.parametrize("strategy", TYPED, ids=lambda strategy: strategy.kind)
def test_a_typed_strategy_is_taken_as_it_is(name: str, strategy: Any) -> None:
    """Whatever the scenario's block ``strategies`` and its profile say, at once and after other changes."""
    base = tideover.load(name).with_({**OPTIONAL, "topology.count.window.trigger": "marker"})
    changed = base.with_(strategy=strategy)
    assert changed.strategy == strategy
    assert changed.with_({"run.seed": 9}).with_(description="x").strategy == strategy
    assert changed.with_(strategy=base.strategy).with_strategy(strategy) == changed
    assert changed.topology == base.topology
    assert from_text(changed.to_yaml()).strategy == strategy


PAIRS = [
    pytest.param(kind, first, marks=() if (i - j) % len(KINDS) in (0, 1, 6) else pytest.mark.long)
    for i, kind in enumerate(KINDS)
    for j, first in enumerate(KINDS)
]
"""Each kind after itself and after two others; as a whole, after all."""


@pytest.mark.parametrize(("kind", "first"), PAIRS)
def test_a_strategys_name_picks_it_with_what_the_scenario_has_for_it(kind: str, first: str) -> None:
    """Whichever strategy it had before: then with no parameter of that one."""
    by_name = tideover.load("wordcount", {"strategy.kind": kind})
    for base in (tideover.load("wordcount", {"strategy.kind": first}), by_name.with_(strategy=typed(first))):
        assert base.with_(strategy=kind) == by_name


@pytest.mark.parametrize(("kind", "first"), PAIRS)
def test_a_kind_is_changed_as_in_a_file_whose_strategy_says_so(kind: str, first: str) -> None:
    """Of the one before, only those keys stay that the other knows, too; what was set is not refused."""
    changed = tideover.load("wordcount").with_(strategy=typed(first))
    wanted = from_text(changed.to_yaml()).with_({"strategy.kind": kind})
    assert changed.with_({"strategy.kind": kind}) == wanted


def test_a_profile_goes_on_giving_what_it_gave() -> None:
    """Also the record of what it gave is the same as with all changes at once, in one file."""
    base = tideover.load("micro-batch")
    once = base.with_({"strategy.plan_time": "9 ms"}).with_({"run.seed": 8}).with_(description="x")
    at_once = {"strategy.plan_time": "9 ms", "run.seed": 8, "description": "x"}
    assert once == tideover.load("micro-batch", at_once)
    assert once.profile is not None
    assert base.profile is not None
    assert once.profile.taken.keys() == base.profile.taken.keys() - {"strategy.plan_time"}


def test_a_profile_is_found_from_where_it_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a change: from the folder in which that was made, not from the scenario's; also after other ones."""
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine.yaml").write_text(library.text("micro-batch"))
    measured = Path(library.__file__).parent / "measured" / "micro-batch-word-count.yaml"
    (tmp_path / "other.yaml").write_text(measured.read_text())
    monkeypatch.chdir(tmp_path)
    changed = tideover.load("there/mine.yaml").with_(profile="other.yaml")
    assert changed.profile is not None
    assert changed.profile.file == "other.yaml"
    assert changed.with_({"run.seed": 8}).profile == changed.profile


def test_a_key_that_was_taken_away_has_its_default() -> None:
    """``null`` takes away what has a default, in the scenario itself and in later ones."""
    base = tideover.load("wordcount").with_({"run.warmup": None, "topology.split.parallelism": None})
    assert (base.run.warmup, base.topology["split"].parallelism) == (0, 1)
    assert base.with_(description="x").run == base.run
    assert base.with_({"run.warmup": "7 s"}).run.warmup == 7 * 10**9
    assert from_text(base.to_yaml()) == base


def test_what_is_not_named_stays() -> None:
    base = tideover.load("wordcount")
    links, store = parts.Links(latency="3 ms"), parts.Store(latency="9 ms")
    crash = tideover.CrashTask(at="70 s", component="split")
    extra = parts.BoltConfig(bolt=parts.Forward(), from_={"count": "global"}, service="1 ms")
    values = {"name": "other", "hosts": 4, "links": links, "store": store, "failures": [crash]}
    changed = base.with_({"run.seed": 5, "topology.extra": extra}, **values)
    assert (changed.name, changed.hosts, changed.links, changed.store) == ("other", 4, links, store)
    assert changed.failures == (crash,)
    assert changed.run == base.run.model_copy(update={"seed": 5})
    assert {k: v for k, v in changed.topology.items() if k != "extra"} == base.topology
    assert (changed.strategy, changed.description) == (base.strategy, base.description)
    assert changed.with_(hosts=None).hosts is None


@given(changes(), st.sampled_from(["run", "topology.nowhere.rate", "strategy.no_such_key"]))
def test_nothing_changes_the_scenario_itself(changed: dict[str, Any], wrong: str) -> None:
    """Neither a change that is made nor one that is refused, nor a change of the changed one."""
    base = tideover.load("wordcount")
    before = to_data(base)
    once = base.with_(changed)
    after = to_data(once)
    with pytest.raises(tideover.ScenarioError):
        base.with_({**changed, wrong: 3})
    once.with_({"run.seed": 77})
    assert (to_data(base), to_data(once)) == (before, after)


REFUSED: list[tuple[Any, str]] = [
    (lambda base: base.with_(rate="5/s"), r"^with_: rate: unknown key; did you mean 'topology\.sentences\.r"),
    (lambda base: base.with_({"run.seeed": 1}), r"^with_: run\.seeed: unknown key; did you mean 'seed'"),
    (lambda base: base.with_({"run.duration": 9}), r"^with_: run\.duration: 9 has no unit; write a dur"),
    (lambda base: base.with_(strategy="rms"), r"^with_: strategy\.kind: unknown strategy 'rms'; did you"),
    (
        lambda base: base.with_(failures=[tideover.CrashTask(at="75 s", component="cuont")]),
        r"^with_: failures\.0\.component: there is no component 'cuont'; did you mean 'count'",
    ),
    (lambda base: base.with_(profile="no-such"), r"^with_: profile: there is no file 'no-such'"),
    # A profile that gives nothing; a typed strategy may leave it nothing to give.
    (
        lambda base: base.with_(profile="micro-batch-word-count"),
        r"^with_: profile: .* gives nothing to this scenario",
    ),
    (
        lambda base: word_count(topology={}),
        r"^Scenario: topology: is empty; it needs at least one spout and one bolt$",
    ),
    (
        lambda base: tideover.Scenario(nam="x", topologie={}, strategy="none"),
        r"^Scenario: nam: unknown parameter; did you mean 'name'\? .*\n"
        r"Scenario: topologie: unknown parameter; did you mean 'topology'\? ",
    ),
]
NO_CHANGES: list[tuple[Any, str]] = [
    (lambda base: base.with_(strategy=tideover.Amnesia), r"^Amnesia is a class; give an object of it"),
    (
        lambda base: base.with_("run.seed=3"),
        r"^with_ takes values by dotted key, as in \{'run\.seed': 3\}, not",
    ),
]


@pytest.mark.parametrize(
    ("call", "says", "error"),
    [(*one, tideover.ScenarioError) for one in REFUSED] + [(*one, TypeError) for one in NO_CHANGES],
)
def test_what_a_file_would_be_refused_for_is_refused(call: Any, says: str, error: type[Exception]) -> None:
    with pytest.raises(error, match=says):
        call(tideover.load("wordcount"))


# From nothing, and to a file.


def word_count(**changed: Any) -> tideover.Scenario:
    """The built-in word count, with the parameters of its strategy, from typed objects alone."""
    sentences = parts.SpoutConfig(spout=parts.Sentences(), arrivals=parts.Periodic(rate="10/s"))
    split = parts.BoltConfig(bolt=parts.SplitWords(), from_={"sentences": "shuffle"}, service="0.2 ms")
    by_word, counted = {"split": parts.Fields(fields=["word"])}, parts.WindowedCount(window="30 s")
    given: dict[str, Any] = {
        "name": "word count",
        "description": tideover.load("wordcount").description,
        "topology": {
            "sentences": sentences,
            "split": split,
            "count": parts.BoltConfig(bolt=counted, from_=by_word, service="0.1 ms"),
        },
        "strategy": tideover.SourceReplay(message_timeout="30 s"),
        "failures": [tideover.LoseState(at="65 s", within="30 s", component="count")],
        "run": tideover.Run(duration="240 s", warmup="60 s", replications=5),
    }
    return tideover.Scenario(**given | changed)


def test_a_scenario_of_typed_objects_is_the_one_of_a_file() -> None:
    """Also one that is varied then, or built of a strategy's name, and its runs."""
    base = tideover.load("wordcount")
    assert word_count() == base
    assert word_count(strategy="source_replay") == base
    assert word_count().with_({"run.seed": 2}, hosts=3) == base.with_({"run.seed": 2}, hosts=3)
    assert tideover.Scenario.model_validate(dict(word_count())) == base
    short = {"run.duration": "100 s", "run.replications": 1}
    assert tideover.run(word_count(), short).to_dict() == tideover.run("wordcount", short).to_dict()


@settings(max_examples=15)
@given(changes(), st.sampled_from([None, *TYPED]), texts)
def test_yaml_holds_a_scenario(changed: dict[str, Any], strategy: Any, name: str) -> None:
    """Whatever it was changed to, and whatever its name looks like to a reader of YAML."""
    scenario = tideover.load("wordcount", {"topology.count.window": {"length": "30 s", "trigger": "marker"}})
    if "topology.count.window" not in changed:
        scenario = scenario.with_({} if strategy is None else {"strategy": strategy}, name=name)
    scenario = scenario.with_({key: value for key, value in changed.items() if key != "strategy.kind"})
    assert from_text(scenario.to_yaml()) == scenario


@pytest.mark.parametrize(
    "name", ["yes", "null", "~", "0x1F", "1e3", ".4E4", "1_000", "007", ".inf", "=", "- a", "a: b", ""]
)
def test_yaml_quotes_what_looks_like_something_else(name: str) -> None:
    assert from_text(word_count(name=name).to_yaml()).name == name


@pytest.mark.parametrize("name", library.names())
def test_every_built_in_scenario_goes_to_yaml_and_back(name: str, tmp_path: Path) -> None:
    """With its short parameters and its block ``strategies``; those from a profile say so."""
    scenario = tideover.load(name)
    text = scenario.to_yaml(tmp_path / "mine.yaml")
    assert (tmp_path / "mine.yaml").read_text() == text
    found = tideover.load(tmp_path / "mine.yaml")
    assert found == scenario == from_text(text)
    for block in ("strategies", "parameters"):
        trees: list[Any] = [scenario._tree, found._tree]
        assert (block in trees[0][0].value) == (block in trees[1][0].value)


def test_a_file_that_a_scenario_names_is_found_from_elsewhere(tmp_path: Path) -> None:
    """A trace of rates beside the scenario: with_ looks there, and to_yaml names it from the root."""
    (tmp_path / "rates.csv").write_text("time_s,rate_per_s\n0,10\n50,20\n")
    (tmp_path / "there").mkdir()
    (tmp_path / "mine.yaml").write_text(
        library.text("wordcount").replace("rate: 10/s", "arrivals: {kind: trace, file: rates.csv}")
    )
    scenario = tideover.load(tmp_path / "mine.yaml")
    assert scenario.with_({"run.seed": 2}).topology == scenario.topology
    scenario.to_yaml(tmp_path / "there" / "other.yaml")
    assert tideover.load(tmp_path / "there" / "other.yaml") == scenario


def test_copies_and_pickles_can_be_varied() -> None:
    """A copy with other fields is varied from those, not from what the first one was built from."""
    base = tideover.load("flink-recovery")
    for other in (pickle.loads(pickle.dumps(base)), copy.deepcopy(base), base.model_copy()):
        assert other == base
        assert other.with_(rate="5000/s") == base.with_(rate="5000/s")
    other = base.with_strategy(parts.AlignedSnapshots(checkpoint_interval="9 s"))
    assert other.with_({"run.seed": 4}).strategy == parts.AlignedSnapshots(checkpoint_interval="9 s")
    assert (base == 3, base == other) == (False, False)
