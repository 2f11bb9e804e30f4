"""Typed objects: which there are, what they take, and that they are the parts that a file makes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tideover
from tests import parts_stubs
from tideover import parts
from tideover.models.config import Slo
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import BoltConfig, Links, MachineType, Run, SpoutConfig, Store
from tideover.models.operators.window import Window
from tideover.scenarios import library
from tideover.scenarios.part_builder import REGISTRIES, key_of, part_to_data
from tideover.sim.registry import Part
from tideover.sim.units import format_duration

BUILT_IN = [
    *(part for registry in REGISTRIES.values() for _, part in registry.items()),
    *(Window, SpoutConfig, BoltConfig, Hosts, MachineType, Links, Store, Run, Slo),
]
OURS = {part.__name__: part for part in BUILT_IN if part.__module__.startswith("tideover.")}


def test_every_part_that_a_scenario_names_has_a_typed_object() -> None:
    """Under the name of its class; what other packages or tests register stays theirs."""
    assert sorted(OURS) == parts.__all__
    assert {name: getattr(parts, name).part for name in OURS} == OURS


def test_the_stub_says_what_the_classes_do() -> None:
    stale = f"{parts_stubs.FILE} is stale; write it again: python tests/parts_stubs.py"
    assert parts_stubs.FILE.read_text() == parts_stubs.stub(), stale


@pytest.mark.parametrize("name", OURS)
def test_the_signature_and_the_docstring_name_every_parameter(name: str) -> None:
    typed, part = getattr(parts, name), OURS[name]
    assert list(inspect.signature(typed).parameters) == list(part.model_fields)
    for field, info in part.model_fields.items():
        assert info.description is None or f"{field}: {info.description}" in typed.__doc__


def every_part(value: Any) -> Iterator[Part]:
    """The parts in a scenario, outermost first, without the scenario itself."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else ()
    if isinstance(value, Part):
        if type(value) in OURS.values():
            yield value
        inner = [getattr(value, name) for name in type(value).model_fields]
    for item in inner:
        yield from every_part(item)


@pytest.mark.parametrize("name", library.names())
def test_a_typed_object_is_the_part_that_a_file_makes(name: str) -> None:
    """Every part of every built-in scenario, built again from the texts that stand for its parameters."""
    for part in every_part(tideover.load(name)):
        said = part_to_data(part)
        if isinstance(part, SpoutConfig | BoltConfig) or not isinstance(said, dict):
            said = {key_of(field): getattr(part, field) for field in type(part).model_fields}
        given = {field: said[key_of(field)] for field in type(part).model_fields}
        if isinstance(part, SpoutConfig | BoltConfig):
            given["tuple_size"] = tideover.n_bytes(part.tuple_size)
        elif isinstance(part, parts.Constant):
            given["value"] = format_duration(part.value)
        built = getattr(parts, type(part).__name__)(**given)
        assert type(built) is type(part)
        assert built == part


def test_a_public_name_stands_for_its_class() -> None:
    """``isinstance``, ``issubclass``, ``match`` and the attributes of the class work through it."""
    strategy = tideover.load("wordcount").strategy
    assert isinstance(strategy, tideover.SourceReplay)
    assert not isinstance(strategy, tideover.Amnesia)
    assert issubclass(type(strategy), tideover.SourceReplay)
    assert issubclass(tideover.SourceReplay, tideover.SourceReplay)
    assert not issubclass(tideover.Amnesia, tideover.SourceReplay)
    assert tideover.SourceReplay.promise == "at least once"
    match strategy:
        case tideover.StateManagement():
            pytest.fail("it is another")
        case tideover.SourceReplay(message_timeout=timeout):
            assert timeout == 30 * 10**9


@given(st.integers(0, 10**12))
def test_a_timedelta_is_a_duration(microseconds: int) -> None:
    """To the microsecond; pandas' to the nanosecond."""
    given = timedelta(microseconds=microseconds)
    assert parts.Constant(value=given).value == 1000 * microseconds
    finer = pd.Timedelta(1000 * microseconds + 7, unit="ns")
    assert parts.Constant(value=finer).value == 1000 * microseconds + 7


def test_shorter_forms_of_a_file_are_taken() -> None:
    """A duration for a distribution or a window, a name for a grouping without parameters."""
    bolt = parts.BoltConfig(
        bolt=parts.WindowedCount(window="30 s"), from_={"a": "shuffle", "b": parts.Global()}, service="1 ms"
    )
    assert bolt.service == parts.Constant(value="1 ms")
    assert bolt.from_ == {"a": parts.Shuffle(), "b": parts.Global()}
    assert isinstance(bolt.bolt, parts.WindowedCount)
    assert bolt.bolt.window == parts.Window(length="30 s")
    assert parts.Links(pairs={"0-1": "5 ms"}).pairs == {"0-1": parts.Constant(value="5 ms")}


REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: tideover.SourceReplay(message_timeout=30), r"^SourceReplay: message_timeout: 30 has no unit; "),
    (
        lambda: tideover.SourceReplay(mesage_timeout="30 s"),
        r"^SourceReplay: mesage_timeout: unknown parameter; did you mean 'message_timeout'\? \(kno",
    ),
    (lambda: tideover.StateManagement(), r"^StateManagement: checkpoint_interval: is missing; distance"),
    (lambda: tideover.CrashTask(at="-5 s", component="a"), r"^CrashTask: at: '-5 s' is negative"),
    (lambda: tideover.Run(duration="5 s", lump=0), r"^Run: lump: must be at least 1, not 0$"),
    (
        lambda: tideover.Run(duration="5 s", lump=2, lump_rate="9/s"),
        r"^Run: lump, lump_rate: give either lump ",
    ),
    (lambda: parts.Periodic(rate=50.0), r"^Periodic: rate: 50.0 has no unit; write a rate"),
    (lambda: parts.Periodic(rate="5/s", fixed_offset=1), r"^Periodic: fixed_offset: 1 has no unit"),
    (lambda: parts.Store(bandwidth=5), r"^Store: bandwidth: 5 has no unit; write a bandwidth"),
    (lambda: parts.BoltConfig(tuple_size=5), r"BoltConfig: tuple_size: 5 has no unit; write a size"),
    (lambda: parts.BoltConfig(from_={"a": "shufle"}), r"from_\.a: unknown grouping 'shufle'; did you"),
    (lambda: parts.Window(), r"^Window: length, tuples: give either length \(a duration\) or tuples"),
    (lambda: parts.Window(tuples=5, trigger="marker"), r"^Window: tuples, trigger: a window of tuples"),
]
NO_VALUES: list[tuple[Callable[[], object], str]] = [
    (lambda: parts.Constant("5 s"), r"^Constant takes its parameters by name, as in Constant\(value=…\)$"),
    (lambda: parts.BoltConfig(bolt=parts.Forward), r"^Forward is a class; give an object of it, Forward\("),
    (lambda: tideover.compare("wordcount", [tideover.Amnesia(), 3]), r"^3 is not a part that is registered"),
]


@pytest.mark.parametrize(
    ("call", "says", "error"),
    [(*one, tideover.ScenarioError) for one in REFUSED] + [(*one, TypeError) for one in NO_VALUES],
)
def test_what_a_file_could_not_say_is_refused_at_once(call: Any, says: str, error: type[Exception]) -> None:
    """Numbers without a unit, names that there are not (with the nearest), what a file is refused for; what
    is no value at all is an error of types.
    """
    with pytest.raises(error, match=says):
        call()
