"""A map that forgets by whole buckets.

From Apache Storm's ``RotatingMap`` (storm-client, ``org.apache.storm.utils``), in our own words: what is put
goes into the newest bucket, and a rotation takes the oldest away and opens a new one. To get or to change a
value does not make it younger. Nothing is reckoned from times here: an entry that is put just before a
rotation has seen that rotation.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class RotatingMap(Generic[Key, Value]):
    """``buckets``: how many, at least 2; each in the order in which entries came."""

    def __init__(self, buckets: int) -> None:
        assert buckets >= 2
        self._buckets: list[dict[Key, Value]] = [{} for _ in range(buckets)]  # the newest first

    def put(self, key: Key, value: Value) -> None:
        """A new entry; one of that key, in whatever bucket, is gone."""
        self.remove(key)
        self._buckets[0][key] = value

    def get(self, key: Key) -> Value | None:
        return next((bucket[key] for bucket in self._buckets if key in bucket), None)

    def remove(self, key: Key) -> None:
        for bucket in self._buckets:
            bucket.pop(key, None)

    def rotate(self) -> dict[Key, Value]:
        """What has expired: it was in the oldest bucket."""
        self._buckets.insert(0, {})
        return self._buckets.pop()

    def keep(self, dead: dict[Key, Value]) -> None:
        """Nobody was there to be told what has expired: it will at the next rotation."""
        self._buckets[-1] = dead | self._buckets[-1]

    def clear(self) -> None:
        for bucket in self._buckets:
            bucket.clear()

    def items(self) -> Iterator[tuple[Key, Value]]:
        """All entries, those that were put first coming first."""
        for bucket in reversed(self._buckets):
            yield from bucket.items()

    def __len__(self) -> int:
        return sum(map(len, self._buckets))
