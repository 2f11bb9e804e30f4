"""What is wrong with a load over a day, or with the hour of a run, is said with the key."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load, load_text
from tideover.scenarios.part_builder import to_data
from tideover.scenarios.reference import json_schema
from tideover.scenarios.sweeps.factors import as_number, unit_of, written
from tideover.sim.units import format_percent, parse_percent

BY_HOUR = str([1.0] * 12 + [2.0] * 12)
DAY = f"{{kind: day, peak: 40/s, by_hour: {BY_HOUR}, growth: 5 %, months: 6}}"
GOOD = f"""\
topology:
  log: {{spout: keys, keys: 10, arrivals: {DAY}}}
  count: {{bolt: windowed_count, from: {{log: {{fields: [key]}}}}, service: 1 ms, window: 10 s}}
strategy: none
failures: [{{kind: crash_task, component: count, at: 20 s}}]
run: {{duration: 60 s, fails_at: 18:00}}
"""
ARRIVALS = "day.yaml:2: topology.log.arrivals"


def problem(text: str) -> str:
    with pytest.raises(ScenarioError) as caught:
        load_text(text, "day.yaml")
    (found,) = caught.value.problems
    return str(found)


def test_it_is_read_and_written() -> None:
    scenario = load_text(GOOD)
    data = to_data(scenario)
    assert data["topology"]["log"]["arrivals"]["growth"] == "5 %"
    assert data["run"]["fails_at"] == "18:00"
    assert load(json.loads(json.dumps(data))) == scenario
    jsonschema.validate(data, json_schema())


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (BY_HOUR, str([1.0] * 23), f"{ARRIVALS}.by_hour: has 23 values; give 24, one for each hour"),
        (BY_HOUR, str([1.0] * 23 + [-1]), f"{ARRIVALS}.by_hour: the value at 23 o'clock is -1; it must be"),
        (BY_HOUR, str([0] * 24), f"{ARRIVALS}.by_hour: is 0 all day; at least one value must be above 0"),
        (BY_HOUR, "5", f"{ARRIVALS}.by_hour: must be a list"),
        ("peak: 40/s, ", "", f"{ARRIVALS}: by_hour says what the rates are in proportion; give peak"),
        (f", by_hour: {BY_HOUR}", "", f"{ARRIVALS}: give either by_hour (with peak) or a file"),
        ("by_hour", "file: x.csv, by_hour", f"{ARRIVALS}: give either by_hour (with peak) or a file"),
        ("5 %", "0.05", f"{ARRIVALS}.growth: 0.05 has no unit; write a percentage, such as 5 %"),
        ("5 %", "-5 %", f"{ARRIVALS}.growth: '-5 %' is negative; a percentage must not be"),
        ("months: 6", "months: -1", f"{ARRIVALS}.months: must be at least 0, not -1"),
        ("months: 6", "months: 900", f"{ARRIVALS}: comes to 4.704e+20/s at its highest; at most 1e+09/s"),
        ("peak:", "interpolation: cubic, peak:", f"{ARRIVALS}.interpolation: must be 'linear' or 'steps'"),
        ("fails_at: 18:00", "fails_at: 25:00", "day.yaml:6: run.fails_at: '25:00' is not a time of day; "),
        ("fails_at: 18:00", "fails_at: noon", "day.yaml:6: run.fails_at: 'noon' is not a time of day; "),
        ("fails_at: 18:00", "starts_at: peak", "day.yaml:6: run.starts_at: 'peak' is not a time of day; "),
        ("fails_at: 18:00", "fails_at: 18", "day.yaml:6: run.fails_at: must be a text, not 18"),
        ("fails_at: 18:00", "fails_at: 18:00, starts_at: 17:00", "day.yaml:6: run: give either starts_at"),
        ("at: 20 s", "every: 20 s", "day.yaml:6: run.fails_at: needs a failure with at, which is then"),
        (
            f"arrivals: {DAY}",
            "rate: 10/s",
            "day.yaml:6: run.fails_at: has no effect: the load follows the time of day only with arrivals",
        ),
    ],
)
def test_what_is_wrong_has_its_key(old: str, new: str, said: str) -> None:
    assert old in GOOD
    assert problem(GOOD.replace(old, new)).startswith(said)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            "hour,rate_per_s\n" + "".join(f"{h},1\n" for h in range(23)),
            "load.csv: has 23 hours; a day has 24",
        ),
        ("hour,rate_per_s\n" + "".join(f"{h},1\n" for h in range(25)), "load.csv:26: hours must be 0 to 23"),
        ("hour,rate_per_s\n0,1\n2,1\n", "load.csv:3: hours must be 0 to 23, one after the other, not '2'"),
        ("hour,rate_per_s\n0,-1\n", "load.csv:2: a rate must be 0/s, or 1.2e-07/s to 1e+09/s"),
        ("hour,rate_per_s\n0,nan\n", "load.csv:2: a rate must be 0/s, or 1.2e-07/s to 1e+09/s"),
        ("hour,rate_per_s\n0,1,1\n", "load.csv:2: a time and a rate are needed, found '0,1,1'"),
        ("hour,rate_per_s\n0,many\n", "load.csv:2: a time and a rate are needed, found '0,many'"),
        ("hour,rate\n0,1\n", "load.csv:1: the first line must be hour,rate_per_s or time,rate_per_s"),
        ("", "load.csv:1: the first line must be hour,rate_per_s or time,rate_per_s"),
        ("time,rate_per_s\n", "load.csv: at least one row with a rate above 0 is needed"),
        ("time,rate_per_s\n08:00,1\n07:00,1\n", "load.csv:3: times must rise"),
        ("time,rate_per_s\n08:00,1\n08:00,1\n", "load.csv:3: times must rise"),
        ("time,rate_per_s\n8 am,1\n", "load.csv:2: '8 am' is not a time of day; write a time of day"),
    ],
)
def test_what_is_wrong_in_a_file_has_its_line(rows: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "load.csv"
    file.write_text(rows)
    text = GOOD.replace(f"peak: 40/s, by_hour: {BY_HOUR}", f"file: {file}")
    assert problem(text).startswith(f"{ARRIVALS}: {said}")


def test_swept_hours_and_growth_are_numbers_in_tables() -> None:
    assert unit_of(["18:00", "04:30"]) == "h"
    assert (as_number("04:30", "h"), written(4.5, "h")) == (4.5, "04:30")
    assert unit_of(["5 %", "10 %"]) == "%"
    assert (as_number("5 %", "%"), written(5.0, "%")) == (5.0, "5 %")
    assert unit_of(["18:00", "peak"]) == ""


@pytest.mark.parametrize("ratio", [0.0, 0.05, 0.123, 0.07, 1.0, 10.0])
def test_percentages_are_read_back(ratio: float) -> None:
    assert parse_percent(format_percent(ratio)) == ratio


@pytest.mark.parametrize("text", ["", "5", "%", "5 % more", "1001 %"])
def test_what_is_no_percentage(text: str) -> None:
    with pytest.raises(ValueError, match="percentage"):
        parse_percent(text)
