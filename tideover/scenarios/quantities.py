"""Numbers with units, for scenarios and settings that are written in Python.

Each function gives the text that a file would hold; of several numbers (a list, an array, a range) a list of
texts, as a grid takes it.

>>> seconds(15), milliseconds(0.2), per_second(50), n_bytes(256)
('15 s', '0.2 ms', '50/s', '256 B')
>>> seconds([2, 5])
['2 s', '5 s']
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, overload

from tideover.sim.units import parse_bandwidth, parse_duration, parse_rate, parse_size

if TYPE_CHECKING:
    import numpy as np

    Number = float | np.number[Any]


@overload
def seconds(value: Iterable[Number]) -> list[str]: ...
@overload
def seconds(value: Number) -> str: ...
def seconds(value: Any) -> str | list[str]:
    """A duration in seconds. Raises TypeError for what is no number, ValueError for what is no duration."""
    return _written(value, " s", parse_duration)


@overload
def milliseconds(value: Iterable[Number]) -> list[str]: ...
@overload
def milliseconds(value: Number) -> str: ...
def milliseconds(value: Any) -> str | list[str]:
    """A duration in milliseconds; raises like ``seconds``."""
    return _written(value, " ms", parse_duration)


@overload
def per_second(value: Iterable[Number]) -> list[str]: ...
@overload
def per_second(value: Number) -> str: ...
def per_second(value: Any) -> str | list[str]:
    """A rate, in 1/s; raises like ``seconds``."""
    return _written(value, "/s", parse_rate)


@overload
def n_bytes(value: Iterable[Number]) -> list[str]: ...
@overload
def n_bytes(value: Number) -> str: ...
def n_bytes(value: Any) -> str | list[str]:
    """A size in bytes; raises like ``seconds``."""
    return _written(value, " B", parse_size)


@overload
def bytes_per_second(value: Iterable[Number]) -> list[str]: ...
@overload
def bytes_per_second(value: Number) -> str: ...
def bytes_per_second(value: Any) -> str | list[str]:
    """A bandwidth in bytes per second; raises like ``seconds``."""
    return _written(value, " B/s", parse_bandwidth)


def _written(value: Any, unit: str, parse: Callable[[str], Any]) -> Any:
    plain = value.tolist() if hasattr(value, "tolist") else value  # numpy's and pandas' own
    if isinstance(plain, Iterable) and not isinstance(plain, str):
        return [_written(item, unit, parse) for item in plain]
    if isinstance(plain, bool) or not isinstance(plain, int | float):
        raise TypeError(f"{value!r} is not a number; the unit is added here")
    whole = isinstance(plain, float) and plain.is_integer()
    text = f"{int(plain) if whole else plain!r}{unit}"
    parse(text)
    return text
