"""What leaves a node later than now: tuples that wait for their time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

from tideover.sim.train import Train

Deliver = Callable[[Train], None]


class Outbox:
    """Trains that were made already and leave tuple by tuple, in the order in which they were posted."""

    def __init__(self) -> None:
        self.journal: list[Callable[[], None]] | None = None
        """Where deliveries are noted, if they may turn out not to have happened."""
        self._trains: deque[tuple[Train, Deliver, Deliver]] = deque()

    def post(self, train: Train, deliver: Deliver, lost: Deliver) -> None:
        """Hand ``train`` to ``deliver``, each tuple at its time (now or later).

        What has not left when the outbox is cleared (a crash) is handed to ``lost``.
        """
        if train.n:
            self._trains.append((train, deliver, lost))

    def let_out(self, now: int) -> None:
        """Deliver what is due."""
        trains = self._trains
        while trains and trains[0][0].time[0] <= now:
            train, deliver, lost = trains.popleft()
            due = int(train.time.searchsorted(now, "right"))
            if due < train.n:
                train, later = train.split(due)
                trains.appendleft((later, deliver, lost))
            if self.journal is None:
                deliver(train)
            else:
                self.journal.append(partial(deliver, train))

    def clear(self) -> None:
        """Destroy what has not left yet."""
        trains, self._trains = self._trains, deque()
        for train, _, lost in trains:
            lost(train)

    def postpone(self, shift: int) -> None:
        """All of it leaves ``shift`` ns later."""
        self._trains = deque((t.replace(time=t.time + shift), out, lost) for t, out, lost in self._trains)

    def save(self) -> Callable[[], None]:
        """Remember how it is; returns what brings that back."""
        trains = self._trains.copy()

        def restore() -> None:
            self._trains = trains

        return restore

    def __bool__(self) -> bool:
        return bool(self._trains)

    @property
    def next(self) -> int | None:
        """When the next tuple leaves (ns); None: there is none."""
        return int(self._trains[0][0].time[0]) if self._trains else None
