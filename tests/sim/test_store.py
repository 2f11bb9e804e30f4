"""The store: one request after the other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tideover.sim.kernel import Kernel, Rank
from tideover.sim.store import StoreServer

SECOND = 10**9


def served(
    requests: list[tuple[int, int]], latency: int, bandwidth: int
) -> tuple[list[tuple[int, int]], int]:
    """(request, when it was done) in order, and the bytes; requests are (moment, bytes)."""
    kernel = Kernel()
    store = StoreServer(kernel, latency, bandwidth)
    done: list[tuple[int, int]] = []
    said: dict[int, int] = {}

    def ask(i: int, size: int) -> None:
        said[i] = store.request(size, Rank.RESTORE, lambda: done.append((i, kernel.now)))

    for i, (moment, size) in enumerate(requests):
        kernel.at(moment, Rank.CHECKPOINT, lambda i=i, size=size: ask(i, size))
    kernel.run(1000 * SECOND)
    assert done == [(i, said[i]) for i, _ in done]
    return done, store.bytes


def test_by_hand() -> None:
    """5 ns of latency; 2 bytes a nanosecond, rounded up: 10 bytes 10 ns, 3 bytes 7 ns, nothing 5 ns."""
    done, size = served([(100, 10), (100, 3), (104, 0), (200, 10)], 5, 2 * SECOND)
    assert done == [(0, 110), (1, 117), (2, 122), (3, 210)]
    assert size == 23


@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 200)), max_size=12),
    st.integers(0, 40),
    st.integers(1, 4),
)
def test_first_come_first_served(requests: list[tuple[int, int]], latency: int, bytes_per_ns: int) -> None:
    """Law: each request begins when it comes or when the one before it ends, and takes latency + bytes /
    bandwidth.
    """
    requests = sorted(requests, key=lambda request: request[0])
    done, size = served(requests, latency, bytes_per_ns * SECOND)
    free_at, expected = 0, []
    for i, (moment, amount) in enumerate(requests):
        free_at = max(free_at, moment) + latency + -(-amount // bytes_per_ns)
        expected.append((i, free_at))
    assert done == expected
    assert size == sum(amount for _, amount in requests)


def disturbed(how: str) -> list[tuple[int, int]]:
    """Three requests of 10 ns each at 0, and what befalls the store at 5 and until 25."""
    kernel = Kernel()
    store = StoreServer(kernel, 10, SECOND)
    done: list[tuple[int, int]] = []
    for i in range(3):
        kernel.at(0, Rank.CHECKPOINT, lambda i=i: store.request(0, 15, lambda: done.append((i, kernel.now))))
    if how == "slow":
        kernel.at(5, Rank.FAULT, lambda: store.slow(3))
        kernel.at(25, Rank.READY, lambda: store.slow(1))
    else:
        kernel.at(5, Rank.FAULT, lambda: store.stop(25))
    kernel.run(1000)
    assert store.busy_ns(1000) == {"slow": 10 + 30 + 10, "down": 5 + 30}[how]
    return done


def test_a_slow_store_serves_what_it_has_begun_as_it_began() -> None:
    """The first is done at 10; the second begins while it is slow, and takes 30; the third is as ever."""
    assert disturbed("slow") == [(0, 10), (1, 40), (2, 50)]


def test_a_store_that_was_down_begins_anew() -> None:
    """From 25 on, one after the other; 5 ns of the first were in vain."""
    assert disturbed("down") == [(0, 35), (1, 45), (2, 55)]
