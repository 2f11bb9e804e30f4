"""Units and times of day, parsed at the border: a scenario says ``30 s``, inside it is 30,000,000,000 ns.

Durations become integer nanoseconds, sizes integer bytes, bandwidths integer bytes per second, rates floats
per second. Texts need a unit everywhere. A bare number is taken in Python code (``Constant(value=200_000)``),
and refused where pydantic validates with ``context={"border": True}``, as the loader of scenario files does.

All rooms call it. A new quantity is a ``Unit``, and an annotated type with its marks, at the end.
"""

from __future__ import annotations

import decimal
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationInfo, WithJsonSchema

NS = 1
US = 1_000
MS = 1_000_000
S = 1_000_000_000
MINUTE = 60 * S
HOUR = 3600 * S
DAY = 86_400 * S

# int64 holds 292 years of nanoseconds; a tenth of it leaves room for sums of several.
MAX_DURATION = 10_000 * DAY
MAX_RUN = 1_000 * DAY
MAX_PERIOD = 100 * DAY
MAX_SIZE = 2**60
MAX_RATE = 1e9
MAX_PERCENT = 1000
MIN_RATE = S / MAX_PERIOD

_TIME = {"ns": NS, "us": US, "ms": MS, "s": S, "min": MINUTE, "m": MINUTE, "h": HOUR, "d": DAY}
_TIME |= {"µs": US, "μs": US}  # the micro sign and the Greek letter
_SIZE = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_BANDWIDTH = _SIZE | {"kbit": 125, "Mbit": 125_000, "Gbit": 125_000_000}
_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_TIME_NAMES = "|".join(sorted(_TIME, key=len, reverse=True))
_PIECE = re.compile(rf"({_NUMBER})\s*({_TIME_NAMES})(?![A-Za-zµμ])\s*")
_EXACT = decimal.Context(prec=200, traps=[decimal.InvalidOperation, decimal.Overflow, decimal.Underflow])
_LONGEST = 64


@dataclass(frozen=True)
class Unit:
    """Marks an annotated type as a quantity, so that generic code can tell a duration from a count.

    name     ``duration``, ``size``, ``bandwidth``, ``rate`` or ``percent``
    hint     how one is written, for who has written it in another way
    format   writes a value as a scenario does
    pattern  what a text of it looks like, for a JSON Schema
    """

    name: str
    hint: str
    format: Callable[[Any], str]
    pattern: str

    @property
    def what(self) -> str:
        """What messages call it."""
        return "percentage" if self.name == "percent" else self.name

    def read(self, text: str, form: str, units: Mapping[str, int] = _TIME) -> re.Match[str]:
        """The match of a text, whose second group is one of these units; raises ValueError."""
        match = re.fullmatch(form, self.strip(text))
        if match is None or (match.re.groups > 1 and match[2] not in units):
            raise ValueError(f"{text!r} is not a {self.what}; {self.hint}")
        return match

    def strip(self, text: str) -> str:
        """A text without spaces around it; raises ValueError if it is empty, too long, or a bare number."""
        stripped = text.strip()
        if not stripped:
            raise ValueError(f"an empty text is not a {self.what}; {self.hint}")
        if len(stripped) > _LONGEST:
            raise ValueError(f"a text of {len(stripped)} characters is not a {self.what}; {self.hint}")
        if re.fullmatch(_NUMBER, stripped):
            raise ValueError(f"{stripped!r} has no unit; {self.hint}")
        return stripped

    def number(self, digits: str, text: str, largest: int) -> Decimal:
        """The number before a unit: not negative, and small enough to be multiplied by a unit."""
        try:
            number = _EXACT.create_decimal(digits)
        except decimal.DecimalException:
            raise ValueError(f"{text!r}: the exponent is out of range for a {self.what}") from None
        if digits.startswith("-") and number != 0:
            raise ValueError(f"{text!r} is negative; a {self.what} must not be")
        if number > largest:
            raise ValueError(f"{text!r} is too large for a {self.what}")
        return number

    def bytes(self, text: str, form: str, units: Mapping[str, int]) -> int:
        match = self.read(text, form, units)
        value = _EXACT.multiply(self.number(match[1], text, MAX_SIZE), Decimal(units[match[2]]))
        if value > MAX_SIZE:
            raise ValueError(f"{text!r} is too large for a {self.what}; at most 2**60 B")
        if value != value.to_integral_value():
            raise ValueError(f"{text!r} is not a whole number of bytes")
        return int(value)

    def marks(self, parse: Callable[[str], Any], plain: Callable[[Any], Any], example: str) -> list[Any]:
        """Of an annotated type: the unit, its JSON Schema, and a validator that parses texts, and hands
        numbers to ``plain``, unless they come over the border.
        """

        def validate(value: Any, info: ValidationInfo) -> Any:
            if isinstance(value, str):
                return parse(value)
            if isinstance(value, bool) or value is None or not hasattr(value, "__float__"):
                raise ValueError(f"{_shown(value)} is not a {self.what}; {self.hint}")
            if info.context and info.context.get("border"):
                raise ValueError(f"{_shown(value)} has no unit; {self.hint}")
            return plain(value)

        schema = {"type": "string", "description": self.hint, "pattern": self.pattern, "examples": [example]}
        return [BeforeValidator(validate), self, WithJsonSchema(schema)]


def parse_duration(text: str) -> int:
    """Nanoseconds of a text such as ``30 s``, ``1m30s`` or ``0.2 ms``; rounded to the nearest one (rint).
    Raises ValueError for anything else, and if it is negative, over 10000 days, or rounded to zero.

    >>> parse_duration("1m30s"), parse_duration("0.2 ms")
    (90000000000, 200000)
    """
    stripped = DURATION.strip(text)
    total, position, last_unit = Decimal(0), 0, MAX_DURATION
    while position < len(stripped):
        piece = _PIECE.match(stripped, position)
        if piece is None:
            raise ValueError(f"{text!r} is not a duration; {DURATION_HINT}")
        unit = _TIME[piece[2]]
        if unit >= last_unit:
            raise ValueError(f"{text!r}: the units of a duration must fall, as in 1h30m; {DURATION_HINT}")
        number = DURATION.number(piece[1], text, MAX_DURATION)
        total, position, last_unit = _EXACT.fma(number, Decimal(unit), total), piece.end(), unit
    if total > MAX_DURATION:
        raise ValueError(f"{text!r} is too long; at most {MAX_DURATION // DAY} d")
    nanoseconds = int(total.to_integral_value(decimal.ROUND_HALF_EVEN))
    if nanoseconds == 0 and total != 0:
        raise ValueError(f"{text!r} is less than 1 ns; give 0 s or at least 1 ns")
    return nanoseconds


def parse_size(text: str) -> int:
    """Bytes of a text such as ``256 B`` or ``10 MiB``; raises ValueError for anything else, for negative
    ones, for parts of a byte, and for over 2**60 bytes.

    >>> parse_size("10 MiB"), parse_size("1.5 KiB")
    (10485760, 1536)
    """
    return SIZE.bytes(text, rf"({_NUMBER})\s*([A-Za-z]+)", _SIZE)


def parse_bandwidth(text: str) -> int:
    """Bytes per second of a text such as ``100 MiB/s`` or ``1 Gbit/s``; raises ValueError like
    ``parse_size``, and for zero.

    >>> parse_bandwidth("2 kB/s"), parse_bandwidth("1 Gbit/s")
    (2000, 125000000)
    """
    value = BANDWIDTH.bytes(text, rf"({_NUMBER})\s*([A-Za-z]+)\s*/\s*s", _BANDWIDTH)
    if value == 0:
        raise ValueError(f"{text!r}: a bandwidth must be positive; {BANDWIDTH_HINT}")
    return value


def parse_rate(text: str) -> float:
    """Events per second of a text such as ``10/s`` or ``600/min``; raises ValueError for anything else, and
    for those not between 0.01/d and 1e9/s.

    >>> parse_rate("10/s"), parse_rate("600/min"), parse_rate("0.5/ms")
    (10.0, 10.0, 500.0)
    """
    match = RATE.read(text, rf"({_NUMBER})\s*/\s*([A-Za-zµμ]+)")
    number = RATE.number(match[1], text, MAX_SIZE)
    return _checked_rate(float(Fraction(number) * S / _TIME[match[2]]), repr(text))


def parse_percent(text: str) -> float:
    """The ratio that a text such as ``5 %`` says; raises ValueError for anything else, and over 1000 %.

    >>> parse_percent("5 %")
    0.05
    """
    match = PERCENT.read(text, rf"({_NUMBER})\s*%")
    return float(Fraction(PERCENT.number(match[1], text, MAX_PERCENT)) / 100)


def format_duration(ns: int) -> str:
    """The shortest exact text that ``parse_duration`` reads back.

    >>> [format_duration(v) for v in (0, 90 * S, 7200 * S, 200_000, 10_530_000)]
    ['0 s', '90 s', '2 h', '0.2 ms', '10.53 ms']
    """
    if ns == 0:
        return "0 s"
    units = [("d", DAY), ("h", HOUR)] if ns % HOUR == 0 else [("s", S), ("ms", MS), ("us", US), ("ns", NS)]
    texts = [f"{_plain(ns, size)} {name}" for name, size in units]
    return min(texts, key=len)


def format_size(size: int) -> str:
    """The shortest exact text that ``parse_size`` reads back, in units that divide it.

    >>> [format_size(v) for v in (0, 256, 10 * 2**20, 2_000)]
    ['0 B', '256 B', '10 MiB', '2 kB']
    """
    names = [name for name, unit in _SIZE.items() if size and size % unit == 0]
    return min((f"{size // _SIZE[name]} {name}" for name in reversed(names)), key=len, default="0 B")


def format_bandwidth(bytes_per_s: int) -> str:
    """The text that ``parse_bandwidth`` reads back.

    >>> format_bandwidth(100 * 2**20)
    '100 MiB/s'
    """
    return f"{format_size(bytes_per_s)}/s"


def format_rate(per_s: float) -> str:
    """The text that ``parse_rate`` reads back.

    >>> format_rate(10.0), format_rate(0.25)
    ('10/s', '0.25/s')
    """
    return f"{int(per_s) if per_s == int(per_s) else repr(per_s)}/s"


def format_percent(ratio: float) -> str:
    """The text that ``parse_percent`` reads back.

    >>> format_percent(0.05), format_percent(0.0)
    ('5 %', '0 %')
    """
    return f"{_EXACT.multiply(Decimal(repr(ratio)), Decimal(100)).normalize():f} %"


def _plain(value: int, unit: int) -> str:
    """The quotient without an exponent; exact, as every unit up to a second divides a power of ten."""
    whole, rest = divmod(value, unit)
    if rest == 0:
        return str(whole)
    if unit > S:
        return str(value)
    return f"{whole}.{str(rest).zfill(len(str(unit)) - 1).rstrip('0')}"


def _checked_rate(rate: float, shown: str) -> float:
    if not math.isfinite(rate) or rate <= 0:
        raise ValueError(f"{shown}: a rate must be positive and finite; {RATE_HINT}")
    if not MIN_RATE <= rate <= MAX_RATE:
        raise ValueError(
            f"{shown}: a rate must be between 0.01/d (one in {MAX_PERIOD // DAY} days) and {MAX_RATE:g}/s"
        )
    return rate


def _checked_ratio(ratio: float) -> float:
    if not 0 <= ratio <= MAX_PERCENT / 100:
        raise ValueError(f"{ratio!r} must be between 0 and {MAX_PERCENT // 100}: {MAX_PERCENT} %")
    return ratio


def _shown(value: Any) -> str:
    """A value as its YAML file shows it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list | tuple):
        return "a mapping" if isinstance(value, dict) else "a list"
    return "null" if value is None else str(value)


def _count(what: str, largest: int) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        try:
            whole = operator.index(value)
        except TypeError:
            raise ValueError(f"{value!r} is not a whole number; in Python a {what} is an int") from None
        if not 0 <= whole <= largest:
            raise ValueError(f"{value!r}: a {what} must be between 0 and {largest}")
        return whole

    return check


def _pattern(units: Iterable[str], before: str = "", after: str = "", more: str = "") -> str:
    """A text of a number and a unit; in the regular expressions that every JSON Schema validator knows."""
    number = r"[+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?"
    names = "|".join(sorted(units, key=len, reverse=True))
    return rf"^\s*({number}\s*{before}({names}){after}\s*){more}$"


DURATION_HINT = "write a duration, such as 30 s, 1m30s or 0.2 ms (units: ns, us, ms, s, m or min, h, d)"
SIZE_HINT = "write a size, such as 256 B or 10 MiB (units: B, kB, MB, GB, KiB, MiB, GiB)"
RATE_HINT = "write a rate, such as 10/s or 600/min (per ns, us, ms, s, m or min, h, d)"
PERCENT_HINT = "write a percentage, such as 5 %"
BANDWIDTH_HINT = (
    "write a bandwidth, such as 100 MiB/s or 1 Gbit/s (units: B/s, kB/s, MB/s, GB/s, KiB/s, MiB/s, GiB/s, "
    "kbit/s, Mbit/s, Gbit/s)"
)
DURATION = Unit("duration", DURATION_HINT, format_duration, _pattern(_TIME, more="+"))
SIZE = Unit("size", SIZE_HINT, format_size, _pattern(_SIZE))
BANDWIDTH = Unit("bandwidth", BANDWIDTH_HINT, format_bandwidth, _pattern(_BANDWIDTH, after=r"\s*/\s*s"))
PERCENT = Unit("percent", PERCENT_HINT, format_percent, _pattern("%"))
RATE = Unit("rate", RATE_HINT, format_rate, _pattern(_TIME, before=r"/\s*"))

Duration = Annotated[
    int,
    Field(ge=0, le=MAX_DURATION),
    *DURATION.marks(parse_duration, _count("duration in ns", MAX_DURATION), "30 s"),
]
"""Nanoseconds, int, >= 0."""
Positive = Annotated[Duration, Field(gt=0)]
"""A duration of more than 0 s."""
Period = Annotated[Duration, Field(ge=MS)]
"""A duration of at least 1 ms."""

Size = Annotated[
    int, Field(ge=0, le=MAX_SIZE), *SIZE.marks(parse_size, _count("size in bytes", MAX_SIZE), "256 B")
]
"""Bytes, int, >= 0."""

Bandwidth = Annotated[
    int,
    Field(ge=1, le=MAX_SIZE),
    *BANDWIDTH.marks(parse_bandwidth, _count("bandwidth in bytes/s", MAX_SIZE), "100 MiB/s"),
]
"""Bytes per second, int, > 0."""

Rate = Annotated[
    float, *RATE.marks(parse_rate, lambda value: _checked_rate(float(value), repr(value)), "10/s")
]
"""Per second, float, > 0, finite."""

Percent = Annotated[float, *PERCENT.marks(parse_percent, lambda value: _checked_ratio(float(value)), "5 %")]
"""A ratio, float, >= 0: 0.05 is 5 %."""


TIME_HINT = "write a time of day, such as 18:00 or 17:59:30 (00:00 to 23:59:59)"
_CLOCK = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9])(?:\.([0-9]{1,9}))?)?")


def parse_time_of_day(text: str) -> int:
    """Nanoseconds after midnight. Raises ValueError for anything but HH:MM, HH:MM:SS, and parts of a second.

    >>> parse_time_of_day("18:00") // S, parse_time_of_day("0:00:01.5")
    (64800, 1500000000)
    """
    found = _CLOCK.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a time of day; {TIME_HINT}")
    hours, minutes, seconds, part = found.groups()
    whole = int(hours) * HOUR + int(minutes) * MINUTE + int(seconds or 0) * S
    return whole + int((part or "0").ljust(9, "0"))


def format_time_of_day(time: int) -> str:
    """The shortest text that ``parse_time_of_day`` reads back; ``time``: ns since any midnight.

    >>> [format_time_of_day(t * S) for t in (0, 64_800, 64_801, -60)]
    ['00:00', '18:00', '18:00:01', '23:59']
    """
    hours, rest = divmod(time % DAY, HOUR)
    minutes, rest = divmod(rest, MINUTE)
    seconds, part = divmod(rest, S)
    text = f"{hours:02}:{minutes:02}"
    if part:
        return f"{text}:{seconds:02}.{f'{part:09}'.rstrip('0')}"
    return f"{text}:{seconds:02}" if seconds else text
