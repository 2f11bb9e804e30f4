"""What is wrong with an input, said so that it can be mended: where, which key, what is allowed. For all that
read something; the form of a message, FILE:LINE: KEY: MESSAGE, is part of the command line and stays.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MOST_SHOWN = 20
_LONGEST = 400
_MOST_MEANT = 3


@dataclass(frozen=True)
class Problem:
    """One fault of an input.

    ``file``: the file as it was named, or ``--set``; ``line``: from 1, None for ``--set``; ``key``: dotted,
    as in ``topology.count.window``, or ``(file)``; ``message``: what is wrong; what is allowed.

    >>> str(Problem("a.yaml", 3, "run.duration", "'30' has no unit"))
    "a.yaml:3: run.duration: '30' has no unit"
    """

    file: str
    line: int | None
    key: str
    message: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        text = f"{place}: {shorten(self.key, 120)}: {shorten(self.message, _LONGEST)}"
        # Without control characters, which could write anything to a terminal.
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class ScenarioError(ValueError):
    """A scenario that cannot be used; ``problems`` says why, in the order of the file, at most 20 of them."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted(problems, key=lambda p: (p.line is None, p.line))[:MOST_SHOWN]
        super().__init__(self.problems)

    def __str__(self) -> str:
        return "\n".join(map(str, self.problems))


def suggest(name: str, known: Iterable[str], elsewhere: Iterable[str] = (), are: str = "known") -> str:
    """What to say after "unknown …": the nearest known name, and all of them.

    ``elsewhere``: names that are known in other places; they go before the nearest one.

    >>> suggest("splitt", ["split", "count"])
    "did you mean 'split'? (known: split, count)"
    """
    names = list(known)
    near = list(elsewhere)[:_MOST_MEANT] or difflib.get_close_matches(name[:100], names, 1)
    listed = f"{are}: {', '.join(names)}" if names else "none is known here"
    return f"did you mean {' or '.join(map(repr, near))}? ({listed})" if near else listed


def unknown_parameters(of: str, given: Iterable[str], known: Sequence[str]) -> list[Problem]:
    """Names of parameters that there are not; ``of``: what they were given to.

    >>> print(*unknown_parameters("Run", ["durtion"], ["duration", "seed"]))
    Run: durtion: unknown parameter; did you mean 'duration'? (known: duration, seed)
    """
    unknown = [name for name in given if name not in known]
    return [Problem(of, None, name, f"unknown parameter; {suggest(name, known)}") for name in unknown]


def listed(names: Iterable[str]) -> str:
    """Names as a sentence lists them.

    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    *first, last = [*names] or [""]
    return f"{', '.join(first)} and {last}" if first else last


def is_misspelt(name: str, given: Iterable[str]) -> bool:
    """Whether one of the given keys probably means ``name``, which is then not called missing too."""
    return any(difflib.get_close_matches(other[:100], [name]) for other in given if other != name)


def shorten(text: str, longest: int) -> str:
    """The text, cut in the middle if it is too long to be read."""
    if len(text) <= longest:
        return text
    return f"{text[: longest // 2]} … {text[-longest // 3 :]}"
