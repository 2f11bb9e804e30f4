"""Numbers with units, for scenarios and settings that are written in Python; `tideover` exports them.

Each function gives the text that a file would hold; of several numbers (a list, an array, a range) a list of
texts, as a grid takes it.

>>> seconds(15), milliseconds(0.2), per_second(50), n_bytes(256)
('15 s', '0.2 ms', '50/s', '256 B')
>>> seconds([2, 5])
['2 s', '5 s']
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol, overload

from tideover.sim.units import parse_bandwidth, parse_duration, parse_rate, parse_size

if TYPE_CHECKING:
    import numpy as np

    Number = float | np.number[Any]


class Quantity(Protocol):
    """Gives numbers a unit. Raises TypeError for what is no number, ValueError for what no file may say."""

    @overload
    def __call__(self, value: Iterable[Number]) -> list[str]: ...
    @overload
    def __call__(self, value: Number) -> str: ...


def _in(unit: str, parse: Callable[[str], Any], name: str, what: str) -> Quantity:
    """The function of this name."""

    def written(value: Any) -> Any:
        plain = value.tolist() if hasattr(value, "tolist") else value  # numpy's and pandas' own
        if isinstance(plain, Iterable) and not isinstance(plain, str):
            return [written(item) for item in plain]
        if isinstance(plain, bool) or not isinstance(plain, int | float):
            raise TypeError(f"{value!r} is not a number; the unit is added here")
        whole = isinstance(plain, float) and plain.is_integer()
        text = f"{int(plain) if whole else plain!r}{unit}"
        parse(text)
        return text

    written.__name__ = written.__qualname__ = name
    written.__doc__ = f"{what}. Raises TypeError for what is no number, ValueError for what is out of range."
    return written


seconds = _in(" s", parse_duration, "seconds", "A duration in seconds")
milliseconds = _in(" ms", parse_duration, "milliseconds", "A duration in milliseconds")
per_second = _in("/s", parse_rate, "per_second", "A rate, in 1/s")
n_bytes = _in(" B", parse_size, "n_bytes", "A size in bytes")
bytes_per_second = _in(" B/s", parse_bandwidth, "bytes_per_second", "A bandwidth in bytes per second")
