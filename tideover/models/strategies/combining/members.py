"""Members: which strategy is for which bolt, and what they come to together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Generic, TypeVar

from pydantic import AfterValidator, Field

from tideover.models.job.topology import Component
from tideover.models.strategies.base import STRATEGIES, KeyPath, Promise, Strategy
from tideover.sim.registry import kind_of

T = TypeVar("T")


def _may_be_member(strategy: Strategy) -> Strategy:
    if strategy.alone is not None:
        able = ", ".join(sorted(kind for kind, cls in STRATEGIES.items() if cls.alone is None))
        raise ValueError(
            f"{kind_of(strategy)} cannot be the strategy of some bolts only: {strategy.alone}; "
            f"allowed are {able}"
        )
    if strategy.named_bolts():
        raise ValueError("names bolts itself; which are its own is said by bolts, stateless and rest")
    return strategy


Member = Annotated[Strategy, AfterValidator(_may_be_member)]


class Members(Strategy):
    """A strategy that has others for the bolts: keys by which these are given."""

    bolts: Annotated[
        dict[str, Member],
        Field(default_factory=dict, description="strategies of single bolts, by the bolt's name"),
    ]
    stateless: Annotated[
        Member | None,
        Field(description="that of all other bolts that keep no state; that of the rest if not given"),
    ] = None
    rest: Annotated[Member, Field(description="the strategy of all other bolts")]

    @property
    def all_members(self) -> dict[KeyPath, Strategy]:
        """All of them, by where they are given."""
        found: dict[KeyPath, Strategy] = {("rest",): self.rest}
        if self.stateless is not None:
            found["stateless",] = self.stateless
        return found | {("bolts", name): member for name, member in self.bolts.items()}

    def place(self, component: str, keeps_state: bool) -> KeyPath:
        """Where the strategy of a bolt is given."""
        if component in self.bolts:
            return ("bolts", component)
        return ("rest",) if keeps_state or self.stateless is None else ("stateless",)

    def of(self, component: Component) -> Strategy:
        """The strategy of a bolt."""
        return self.all_members[self.place(component.name, component.keeps_state)]

    def named_bolts(self) -> dict[KeyPath, str]:
        return {("bolts", name): name for name in self.bolts}

    def named_hosts(self) -> dict[KeyPath, int]:
        named = ((at, member.named_hosts()) for at, member in self.all_members.items())
        return {(*at, *path): host for at, hosts in named for path, host in hosts.items()}

    def named_stores(self) -> dict[KeyPath, str]:
        named = ((at, member.named_stores()) for at, member in self.all_members.items())
        return {(*at, *path): store for at, stores in named for path, store in stores.items()}

    def replicas(self, component: str, keeps_state: bool) -> int:
        return self.all_members[self.place(component, keeps_state)].replicas(component, keeps_state)

    @classmethod
    def most_replicas(cls, given: Mapping[str, Any]) -> int:
        bolts = _plain(given.get("bolts"))
        found = [given.get("rest"), given.get("stateless")]
        found += bolts.values() if isinstance(bolts, Mapping) else []
        return max(_most_replicas(_plain(each)) for each in found)


def _plain(value: Any) -> Any:
    """A value of a file without its place there."""
    return getattr(value, "value", value)


def _most_replicas(given: Any) -> int:
    """Most replicas of a member: a part, a kind, or keys that nobody has checked."""
    if isinstance(given, Strategy):
        return given.most_replicas(dict(given))
    keys = {"kind": given} if isinstance(given, str) else given
    kind = _plain(keys.get("kind")) if isinstance(keys, Mapping) else None
    if not (isinstance(kind, str) and kind in STRATEGIES):
        return 1
    return STRATEGIES[kind].most_replicas({key: _plain(value) for key, value in keys.items()})


class OfMembers(Generic[T]):
    """Something that a strategy says of itself: by its members; as a class, with the ``usual`` ones."""

    def __init__(self, usual: T, of: Callable[[Any], T]) -> None:
        self._usual, self._of = usual, of

    def __get__(self, strategy: Members | None, cls: type[Members]) -> T:
        return self._usual if strategy is None else self._of(strategy)


_KEPT: dict[Promise, tuple[bool, bool]] = {
    "none": (False, False),
    "at most once": (True, False),
    "at least once": (False, True),
    "exactly once": (True, True),
}
"""Whether there are no duplicates, and whether nothing is lost."""


def weakest(members: Iterable[Strategy]) -> Promise:
    """What is kept of the members' promises. Who goes on with nothing has forgotten what it had from one
    replica of a sender, and takes it from another: so beside replicas it may count twice.
    """
    members = list(members)
    once, lossless = (all(each) for each in zip(*(_KEPT[m.promises()] for m in members), strict=True))
    forgets = not lossless and any(member.needs.paths for member in members)
    return next(promise for promise, kept in _KEPT.items() if kept == (once and not forgets, lossless))
