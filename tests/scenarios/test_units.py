import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from tideover.sim import units
from tideover.sim.units import (
    MAX_DURATION,
    MAX_SIZE,
    MIN_RATE,
    Bandwidth,
    Duration,
    Rate,
    Size,
    format_bandwidth,
    format_duration,
    format_rate,
    format_size,
    parse_bandwidth,
    parse_duration,
    parse_rate,
    parse_size,
)


class Quantities(BaseModel):
    duration: Duration | None = None
    size: Size = 1
    bandwidth: Bandwidth = 1
    rate: Rate = 1.0


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("30 s", 30 * 10**9),
        ("30s", 30 * 10**9),
        ("1m30s", 90 * 10**9),
        ("1 h 30 min", 5400 * 10**9),
        ("1h 2m 3s 4ms 5us 6ns", 3_723_004_005_006),
        ("0.2 ms", 200_000),
        (".5 s", 500_000_000),
        ("5. s", 5 * 10**9),
        ("+5 s", 5 * 10**9),
        ("1e3 ms", 10**9),
        ("1.5e-3 s", 1_500_000),
        ("3 µs", 3_000),
        ("3 μs", 3_000),
        ("  7 ns ", 7),
        ("0 s", 0),
        ("-0 s", 0),
        ("2 d", 172_800 * 10**9),
        ("10000 d", MAX_DURATION),
        ("0.1 s", 100_000_000),
        ("0.123456789 s", 123_456_789),
        ("33.3333333333333333333333333 ms", 33_333_333),
        ("2.5 ns", 2),
        ("3.5 ns", 4),
    ],
)
def test_durations(text, ns):
    assert parse_duration(text) == ns


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("30", "has no unit"),
        ("0", "has no unit"),
        ("", "empty"),
        ("s", "not a duration"),
        ("30 sec", "not a duration"),
        ("30 S", "not a duration"),
        ("30 M", "not a duration"),
        ("5 minutes", "not a duration"),
        ("1m 5", "not a duration"),
        ("1s1s", "must fall"),
        ("1s 5m", "must fall"),
        ("-5 s", "negative"),
        ("1m -5s", "negative"),
        ("nan s", "not a duration"),
        ("inf s", "not a duration"),
        ("1e400 s", "too large"),
        ("1e99999999999999999999 s", "exponent"),
        ("1e-99999999999999999999 s", "exponent"),
        ("0.1 ns", "less than 1 ns"),
        ("1000.1 y", "not a duration"),
        ("365251 d", "too large|too long"),
        ("10000 d 1 ns", "too long"),
        ("٣ s", "not a duration"),
        ("1_000 s", "not a duration"),
        ("1,5 s", "not a duration"),
        ("30 s # comment", "not a duration"),
        ("0x10 s", "not a duration"),
        ("9" * 80 + " s", "not a duration"),
    ],
)
def test_texts_that_are_no_durations(text, says):
    with pytest.raises(ValueError, match=says):
        parse_duration(text)


OTHERS = {
    parse_size: {"256 B": 256, "10MiB": 10 * 2**20, "1.5 KiB": 1536, "2 kB": 2000, "1 GB": 10**9, "0 B": 0},
    parse_rate: {
        "10/s": 10.0,
        "95 / s": 95.0,
        "20000/s": 20000.0,
        "600/min": 10.0,
        "0.5/ms": 500.0,
        "1/d": 1 / 86400,
    },
    parse_bandwidth: {"100 MiB/s": 100 * 2**20, "2kB / s": 2000},
}
NOTHING = {
    parse_size: (
        *("256", "256 b", "10 MB/s", "-1 B", "0.5 B", "1.0001 kB"),
        *("2e9 GiB", "1e999 B", "B", "1 KB", "nan B"),
    ),
    parse_rate: (
        *("10", "10 s", "10/", "/s", "0/s", "-1/s", "nan/s", "inf/s", "10/sec"),
        *("2e9/s", "1e-10/s", "0.0099/d", "1e400/s", "1/0s"),
    ),
    parse_bandwidth: ("100 MiB", "0 B/s", "100/s", "1 MiB/min", "-1 B/s"),
}


@pytest.mark.parametrize(
    ("parse", "text", "value"), [(p, *each) for p in OTHERS for each in OTHERS[p].items()]
)
def test_sizes_rates_and_bandwidths(parse, text, value):
    assert parse(text) == value


@pytest.mark.parametrize(("parse", "text"), [(parse, text) for parse in NOTHING for text in NOTHING[parse]])
def test_texts_that_are_none(parse, text):
    with pytest.raises(ValueError):
        parse(text)


@given(st.integers(0, MAX_DURATION))
def test_durations_round_trip(ns):
    text = format_duration(ns)
    assert parse_duration(text) == ns
    assert re.search(units.DURATION.pattern, text)


@given(st.integers(0, MAX_SIZE))
def test_sizes_round_trip(size):
    assert parse_size(format_size(size)) == size
    assert size == 0 or parse_bandwidth(format_bandwidth(size)) == size


@given(st.floats(MIN_RATE, 1e9))
def test_rates_round_trip(rate):
    text = format_rate(rate)
    assert parse_rate(text) == rate
    assert re.search(units.RATE.pattern, text)


@given(st.decimals(0, 10**6, places=9), st.sampled_from(["s", "ms"]))
def test_decimals_are_exact(number, unit):
    exact = number * (10**9 if unit == "s" else 10**6)
    text = f"{number:f} {unit}"
    if exact == 0 or exact >= 1:
        assert abs(parse_duration(text) - exact) <= Decimal("0.5")
        assert exact != int(exact) or parse_duration(text) == int(exact)


@given(st.text(max_size=30))
def test_any_text_is_a_duration_or_a_value_error(text):
    for parse in (parse_duration, parse_size, parse_rate, parse_bandwidth):
        try:
            value = parse(text)
        except ValueError:
            continue
        assert value >= 0


def test_python_code_may_use_plain_numbers():
    q = Quantities(duration=5, size=7, bandwidth=8, rate=2)
    assert (q.duration, q.size, q.bandwidth, q.rate) == (5, 7, 8, 2.0)
    assert Quantities(duration="5 s").duration == 5 * 10**9  # type: ignore[arg-type]


@pytest.mark.parametrize("key", ["duration", "size", "bandwidth", "rate"])
@pytest.mark.parametrize("value", [5, 0, 1.5, True, float("nan"), float("inf"), [5], {"a": 1}, "5", ""])
def test_bare_values_do_not_pass_the_border(key, value):
    with pytest.raises(ValidationError) as caught:
        Quantities.model_validate({key: value}, context={"border": True}, strict=True)
    (error,) = caught.value.errors()
    assert error["loc"] == (key,)
    assert units.__dict__[f"{key.upper()}_HINT"] in error["msg"]


@pytest.mark.parametrize(
    ("key", "value"), [("duration", -1), ("duration", 1.5), ("size", -1), ("rate", 0), ("rate", -1)]
)
def test_impossible_numbers_are_refused_in_python_too(key, value):
    with pytest.raises(ValidationError):
        Quantities.model_validate({key: value})
