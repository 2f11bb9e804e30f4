"""Plans that a death voids, against a plain list."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.no_data import kernel_without_data
from tideover.models.runtime.supervision import Plans
from tideover.sim.kernel import Rank

STEPS = st.lists(st.one_of(st.tuples(st.integers(0, 9), st.integers(0, 9)), st.none()), max_size=20)


@given(STEPS)
def test_what_is_done_was_planned_in_this_life(steps: list[tuple[int, int] | None]) -> None:
    """A step every 5 ns: something is planned (so long after now; so long after the last step), or (None) all
    that was planned is void. Done is, each at its moment, what no later death has voided before.
    """
    kernel, done = kernel_without_data(), list[tuple[int, int]]()
    plans, end = Plans(kernel), 5 * len(steps)

    def act(number: int) -> None:
        done.append((number, kernel.now))

    def step(number: int, what: tuple[int, int] | None) -> None:
        if what is None:
            plans.void()
        else:
            plans.after(what[0], Rank.CHECKPOINT, lambda: act(number))
            plans.at(end + what[1], Rank.CHECKPOINT, lambda: act(number))

    for number, what in enumerate(steps):
        kernel.at(5 * number, Rank.FAULT, lambda number=number, what=what: step(number, what))
    kernel.run(end + 20)

    deaths = [5 * number for number, what in enumerate(steps) if what is None] + [10**9]
    expected = []
    for number, what in enumerate(steps):
        if what is not None:
            died = min(death for death in deaths if death > 5 * number)
            expected += [(number, t) for t in (5 * number + what[0], end + what[1]) if t < died]
    assert sorted(done) == sorted(expected)
