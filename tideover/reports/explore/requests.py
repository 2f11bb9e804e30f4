"""What the page may ask: to describe a scenario, to run it under a strategy, to draw its diagram.

A request names a scenario that is built in, or the one that was given on the command line, by its name:
never a path. It moves controls, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tideover.models.job.topology import TopologyError
from tideover.reports.explore.answer import World, answer, pictured
from tideover.scenarios import library
from tideover.scenarios.errors import ScenarioError

Answer = dict[str, Any]
ASKED = ("describe", "answer", "picture")
FIRST = "wordcount"
"""What is explored where nothing is named."""


class Answers:
    """Answers requests in this process. ``source``: a file that may be asked for, or a built-in name."""

    def __init__(self, source: str | None = None) -> None:
        self._source = source
        self._worlds: dict[str, tuple[Any, World]] = {}

    def __call__(self, request: Mapping[str, Any]) -> Answer:
        """``{"refused": …}`` for what cannot be answered, ``{"too_much": …}`` for what does not fit."""
        if request.get("what") not in ASKED:
            return {
                "refused": f"what: {request.get('what')!r} is nothing that one asks; {', '.join(ASKED)} are"
            }
        known: dict[str, Any] = {
            "scenario": str | None,
            "strategy": str,
            "moved": dict,
            "at_s": int | float | None,
        }
        for key, sort in known.items():
            needed = request.get("what") != "describe" and key in ("strategy", "moved")
            if (key in request or needed) and not isinstance(request.get(key), sort):
                return {"refused": f"{key}: {request.get(key)!r} is not what a request has there"}
        try:
            return self._answered(request)
        except ScenarioError as error:
            return {"refused": "; ".join(str(problem) for problem in error.problems[:3])}
        except (ValueError, OSError, TopologyError) as error:
            return {"refused": str(error)}
        except MemoryError:
            return {"too_much": "the run needs more memory than it may have: choose a lower rate"}

    def check(self) -> None:
        """Raises ScenarioError if the scenario cannot be explored."""
        self._world(shown(self._source or FIRST))[0].described()

    def warm(self) -> None:
        """Load what the first answer would wait for."""
        world = World.of(FIRST)
        answer(world, next(iter(world.scenarios)), {})

    def _answered(self, request: Mapping[str, Any]) -> Answer:
        name = request.get("scenario") or shown(self._source or FIRST)
        world, version = self._world(name)
        about = {"scenario": name, "version": version}
        if request["what"] == "describe":
            names = [*library.names()]
            if self._source is not None and self._source not in names:
                names.insert(0, shown(self._source))
            return world.described() | about | {"scenarios": names}
        strategy, moved = request["strategy"], request["moved"]
        if request["what"] == "picture":
            return pictured(world, strategy, moved, request.get("at_s")) | about
        return answer(world, strategy, moved) | about

    def _world(self, name: str) -> tuple[World, str]:
        """The scenario of a name, read again if its file has changed; and what tells its versions apart."""
        if self._source is not None and name == shown(self._source):
            source = self._source
        elif name in library.names():
            source = name
        else:
            raise ValueError(f"scenario: there is no {name!r} here; there are {', '.join(library.names())}")
        stamp: Any = None
        if library.is_path(source):
            found = Path(source).stat()
            stamp = (found.st_mtime_ns, found.st_size)
        if name not in self._worlds or self._worlds[name][0] != stamp:
            self._worlds[name] = (stamp, World.of(source))
        return self._worlds[name][1], str(stamp)


def shown(source: str) -> str:
    """What a source is called in an address: of a path the file's name alone."""
    return Path(source).name if library.is_path(source) else source
