"""Times of day, as clocks show them: ``18:00`` is 64,800 s after midnight, in whole nanoseconds."""

from __future__ import annotations

import re

from tideover.sim.units import DAY, HOUR, MINUTE, S

TIME_HINT = "write a time of day, such as 18:00 or 17:59:30 (00:00 to 23:59:59)"
_FORM = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9])(?:\.([0-9]{1,9}))?)?")


def parse_time_of_day(text: str) -> int:
    """Nanoseconds after midnight. Raises ValueError for anything but HH:MM, HH:MM:SS, and parts of a second.

    >>> parse_time_of_day("18:00") // S, parse_time_of_day("0:00:01.5")
    (64800, 1500000000)
    """
    found = _FORM.fullmatch(text.strip())
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
