"""When a line was written: the time of a log4j layout, and the time zone that it does not say.

Layouts have a date and a time among their first bytes (Flink's own: ``%d{yyyy-MM-dd HH:mm:ss,SSS}``), with or
without a zone; JSON layouts have milliseconds, or seconds and nanoseconds, since 1970.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from contextlib import suppress
from datetime import datetime

_TIME = re.compile(rb"(\d{4}-\d\d-\d\d[ T_]\d\d:\d\d:\d\d)[.,](\d{3,9})( ?(?:Z|UTC|GMT)\b|[+-]\d\d:?\d\d)?")
_WITHIN = 64
_JSON = re.compile(rb'"(?:epochSecond":(\d{9,10}),"nanoOfSecond":(\d{1,9})|timeMillis":(\d{12,13}))\b')
_FIRST_LINES = 200
"""Among so many lines one has a time: a log may begin with a banner, or in a stack trace."""
_QUARTER = 900
"""Time zones differ by quarters of an hour."""


class NoTime(ValueError):
    """A line has no time; ``said`` is what stands there in its place, if anything does."""

    def __init__(self, said: str = "") -> None:
        super().__init__(said)
        self.said = said


class Clock:
    """Reads times of lines as if the log's clock showed UTC; ``utc`` mends them when ``anchor`` has told the
    zone. Of an hour that comes twice, when clocks are set back, the later one is taken.
    """

    def __init__(self) -> None:
        self._zones: list[tuple[float, float]] = []
        self._second, self._epoch = b"", 0.0

    @property
    def knows_zone(self) -> bool:
        return bool(self._zones)

    def at(self, line: bytes) -> float:
        """Seconds since 1970, local unless the line says its zone; raises NoTime."""
        found = _TIME.search(line, 0, _WITHIN)
        if found is None:
            return self._of_json(line)
        second, fraction, zone = found.groups()
        if second != self._second:
            try:
                moment = datetime.fromisoformat(second.decode().replace("_", "T") + "+00:00")
            except ValueError:
                raise NoTime(found[0].decode()) from None
            self._second, self._epoch = second, moment.timestamp()
        at = self._epoch + float(b"0." + fraction)
        if zone is None:
            return at
        if zone[:1] in b"+-":
            at -= (1 if zone[:1] == b"+" else -1) * (3600 * int(zone[1:3]) + 60 * int(zone[-2:]))
        return self._in_utc(at)

    def _of_json(self, line: bytes) -> float:
        found = _JSON.search(line) if line[:1] == b"{" else None
        if found is None:
            raise NoTime
        seconds, nanoseconds, milliseconds = found.groups()
        at = int(milliseconds) / 1000 if milliseconds else int(seconds) + int(nanoseconds) / 1e9
        return self._in_utc(at)

    def _in_utc(self, at: float) -> float:
        if not self._zones:
            self._zones.append((at, 0.0))
        return at

    def anchor(self, local: float, epoch: float) -> None:
        """A line with this time says what it is in UTC, give or take some minutes."""
        offset = float(_QUARTER * round((local - epoch) / _QUARTER))
        if not self._zones or self._zones[-1][1] != offset:
            self._zones.append((local, offset))

    def utc(self, local: float) -> float:
        """A time of the log in UTC; the same if nothing has told its zone."""
        if not self._zones:
            return local
        place = bisect_right(self._zones, (local, float("inf"))) - 1
        return local - self._zones[max(place, 0)][1]


def first_time(head: bytes) -> float | None:
    """The first time in the first bytes of a log, local; None if there is none: it is no log."""
    clock = Clock()
    for line in head.split(b"\n")[:_FIRST_LINES]:
        with suppress(NoTime):
            return clock.at(line)
    return None
