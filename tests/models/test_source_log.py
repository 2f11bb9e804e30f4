"""A log that is read, trimmed and read again, against a plain list."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tideover.models.mechanisms.source_log import SourceLog
from tideover.sim.train import Train


def train(first: int, n: int) -> Train:
    numbers = np.arange(first, first + n, dtype=np.int64)
    return Train(numbers, numbers, numbers, numbers)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.integers(0, 9)),
        st.tuples(st.just("trim"), st.floats(0, 1)),
        st.tuples(st.just("rewind"), st.none()),
    ),
    max_size=30,
)


@given(STEPS)
def test_what_is_read_again_is_what_was_read_since(steps: list[tuple[str, float]]) -> None:
    """A list of all messages that were let in, and two positions in it, say the same as the log."""
    log, messages, start = SourceLog(), list[int](), 0
    for step, value in steps:
        if step == "read":
            log.add(train(len(messages), int(value)))
            messages += range(len(messages), len(messages) + int(value))
        elif step == "trim":
            start += int(value * (len(messages) - start))
            log.trim(start)
        else:
            again = [uid for part in log.rewind() for uid in part.uid.tolist()]
            assert again == messages[start:]
            del messages[start:]
        assert (log.start, log.read, log.size) == (start, len(messages), len(messages) - start)
        assert [uid for part in log.trains for uid in part.uid.tolist()] == messages[start:]
