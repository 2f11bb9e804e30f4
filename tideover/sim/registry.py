"""Parts that can be named in a scenario: frozen pydantic models, registered by a decorator.

A *part* (a distribution, a failure kind, a spout, a bolt, a grouping, a strategy's parameters) is one class.
It is registered under the name that a scenario uses, and validated, documented and listed from there.
"""

from __future__ import annotations

import difflib
import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, ClassVar, Generic, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field


class Part(BaseModel):
    """Configuration of one part: frozen, and closed to keys it does not know."""

    per_tuple: ClassVar[frozenset[str]] = frozenset()
    """Durations that each tuple costs: a tuple that stands for several (``run.lump``) costs several."""
    rate_factors: ClassVar[frozenset[str]] = frozenset()
    """Numbers that all of its rates are multiplied by: less where one tuple stands for several."""
    caps: ClassVar[frozenset[str]] = frozenset()
    """Most tuples of something: of tuples that stand for several there may be less (`coarsening.GRAIN`)."""
    omitted: ClassVar[frozenset[str]] = frozenset()
    """Fields that a result's configuration leaves out at their default: what came later, and is not used."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True, defer_build=True)


def setting(description: str, default: Any = None, **limits: Any) -> Any:
    """A field of a part that has a default: what it means, and pydantic's limits of its values (``ge=1``).
    Those of a quantity go into its type (`Positive`, `Period`), whose own would win over them here.
    """
    return Field(default, description=description, **limits)


T = TypeVar("T")
P = TypeVar("P")


def import_modules(package: str) -> None:
    """Import all modules of a package in the order of their names, so that their parts are registered."""
    for module in sorted(pkgutil.iter_modules(import_module(package).__path__), key=lambda found: found.name):
        import_module(f"{package}.{module.name}")


class UnknownName(ValueError):
    """A name that no part is registered under; says which are known and which is nearest."""

    def __init__(self, what: str, name: str, known: list[str]) -> None:
        near = difflib.get_close_matches(name, known, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        super().__init__(f"unknown {what} {name!r}{hint} (known: {', '.join(known)})")


class Registry(Generic[T]):
    """Names of one sort of part, in the order of their registration."""

    def __init__(self, what: str) -> None:
        self.what = what
        self._parts: dict[str, type[T]] = {}

    def register(self, name: str) -> Callable[[type[P]], type[P]]:
        """Class decorator; raises ValueError if the name is taken. Type checkers see the class as it is."""

        def add(part: type[P]) -> type[P]:
            if name in self._parts:
                raise ValueError(
                    f"{self.what} {name!r} is registered already, by {self._parts[name].__qualname__}"
                )
            self._parts[name] = cast("type[T]", part)
            part.kind = name  # type: ignore[attr-defined]
            return part

        return add

    def __getitem__(self, name: str) -> type[T]:
        try:
            return self._parts[name]
        except KeyError:
            raise UnknownName(self.what, str(name), list(self._parts)) from None

    def __contains__(self, name: object) -> bool:
        return name in self._parts

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def items(self) -> list[tuple[str, type[T]]]:
        """(name, class) of every registered part."""
        return list(self._parts.items())

    def discard(self, name: str) -> None:
        """Take a name out again (for tests that register a part of their own)."""
        self._parts.pop(name, None)


def kind_of(part: Any) -> str:
    """The name a part is registered under; raises TypeError if there is none."""
    if not hasattr(part, "kind"):
        raise TypeError(f"{part!r} is not a part that is registered under a name")
    return str(part.kind)
