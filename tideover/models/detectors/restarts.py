"""How long a restart waits: restart strategies, one class a kind.

`heartbeats` asks them at each restart. A new one is a class here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from pydantic import model_validator

from tideover.sim.registry import Part, Registry, setting
from tideover.sim.units import Duration, Positive, S, format_duration

RESTARTS: Registry[RestartStrategy] = Registry("restart strategy")


class Earlier(NamedTuple):
    """A restart: when its failure was noticed, and when it was over, or the next one noticed (ns)."""

    noticed: int
    ready: int


class RestartStrategy(Part):
    """How long a restart waits after a failure was noticed.

    Subclasses register themselves with ``@RESTARTS.register(name)`` and give ``wait``.
    """

    kind: ClassVar[str]

    def wait(self, noticed: int, earlier: Sequence[Earlier]) -> int | None:
        """How long to wait after a failure ``noticed`` then (ns), and ``earlier`` ones; None: give up."""
        raise NotImplementedError


@RESTARTS.register("exponential_delay")
class ExponentialDelay(RestartStrategy):
    """The first restart waits for ``initial``, each one after it ``factor`` times as long, at most ``most``.

    Once it has run for ``reset_after`` without a failure, the next restart is a first one. Apache Flink,
    ``restart-strategy.type: exponential-delay``, with its defaults, without jitter.
    """

    initial: Positive = setting("how long the first restart waits", S)
    factor: float = setting("by which each wait is longer", 1.5, ge=1, le=1000)
    most: Positive = setting("longest wait; at least initial", 60 * S)
    reset_after: Positive = setting("time without a failure after which waits begin anew", 3600 * S)

    @model_validator(mode="after")
    def _in_order(self) -> ExponentialDelay:
        if self.initial > self.most:
            longest = format_duration(self.most)
            raise ValueError(
                f"initial ({format_duration(self.initial)}) must not be longer than most ({longest})"
            )
        return self

    def wait(self, noticed: int, earlier: Sequence[Earlier]) -> int | None:
        in_a_row, later = 0, noticed
        for one in reversed(earlier):
            if later - one.ready >= self.reset_after:
                break
            in_a_row, later = in_a_row + 1, one.noticed
        delay = float(self.initial)
        for _ in range(in_a_row):
            delay = min(delay * self.factor, self.most)
        return round(delay)


@RESTARTS.register("failure_rate")
class FailureRate(RestartStrategy):
    """Each restart waits for ``delay``, unless more than ``most_failures`` were noticed ``within`` a span.

    Apache Flink, ``restart-strategy.type: failure-rate``, with its defaults.
    """

    delay: Duration = setting("how long each restart waits", S)
    most_failures: int = setting("most failures in the span", 1, ge=1, le=10**9)
    within: Positive = setting("the span", 60 * S)

    def wait(self, noticed: int, earlier: Sequence[Earlier]) -> int | None:
        recent = sum(noticed - one.noticed < self.within for one in earlier)
        return self.delay if recent < self.most_failures else None


@RESTARTS.register("fixed_delay")
class FixedDelay(RestartStrategy):
    """Each restart waits for ``delay``; after ``attempts`` of them there is no other.

    Apache Flink, ``restart-strategy.type: fixed-delay``.
    """

    delay: Duration = setting("how long each restart waits", 10**9)
    attempts: int | None = setting("most restarts; default: any number", ge=0)

    def wait(self, noticed: int, earlier: Sequence[Earlier]) -> int | None:
        if self.attempts is not None and len(earlier) >= self.attempts:
            return None
        return self.delay
