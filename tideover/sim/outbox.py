"""What leaves a node later than now: tuples that wait for their time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from tideover.sim.line import Channel
from tideover.sim.train import Train

Deliver = Callable[[Train], None]


class Post(NamedTuple):
    """A train that leaves tuple by tuple, who is told of it, and by which channel (None: by none)."""

    train: Train
    deliver: Deliver
    lost: Deliver
    channel: Channel | None


class Outbox:
    """Trains that were made already and leave tuple by tuple, in the order in which they were posted.

    ``send``: how messages leave by a channel.
    """

    def __init__(self, send: Callable[[Channel, Train], None]) -> None:
        self._send = send
        self.journal: list[Callable[[], None]] | None = None
        """Where deliveries are noted, if they may turn out not to have happened."""
        self._posts: deque[Post] = deque()

    def post(self, train: Train, deliver: Deliver, lost: Deliver, channel: Channel | None = None) -> None:
        """Hand ``train`` to ``deliver``, each tuple at its time (now or later), as it leaves by ``channel``.

        What has not left when the outbox is cleared (a crash) is handed to ``lost``.
        """
        if train.n:
            self._posts.append(Post(train, deliver, lost, channel))

    def let_out(self, now: int, messages: int | None = None) -> None:
        """Deliver what is due; ``messages``: at most so many that leave by channels (None: any number)."""
        posts = self._posts
        while posts and posts[0].train.time[0] <= now:
            post = posts[0]
            train, channel = post.train, post.channel
            due = int(train.time.searchsorted(now, "right"))
            if channel is not None and messages is not None:
                due = min(due, messages)
                messages -= due
                if not due:
                    return
            posts.popleft()
            if due < train.n:
                train, later = train.split(due)
                posts.appendleft(post._replace(train=later))
            if channel is not None:
                self._send(channel, train)
            if self.journal is None:
                post.deliver(train)
            else:
                self.journal.append(partial(post.deliver, train))

    def messages(self, until: int) -> list[tuple[Channel, Train]]:
        """What is to leave by channels up to ``until``, in order."""
        due = ((p.channel, p.train.pick(p.train.time <= until)) for p in self._posts if p.channel is not None)
        return [(channel, train) for channel, train in due if train.n]

    def clear(self) -> None:
        """Destroy what has not left yet."""
        posts, self._posts = self._posts, deque()
        for post in posts:
            post.lost(post.train)

    def postpone(self, shift: int) -> None:
        """All of it leaves ``shift`` ns later."""
        self._posts = deque(p._replace(train=p.train.replace(time=p.train.time + shift)) for p in self._posts)

    def save(self) -> Callable[[], None]:
        """Remember how it is; returns what brings that back."""
        posts = self._posts.copy()

        def restore() -> None:
            self._posts = posts

        return restore

    def __bool__(self) -> bool:
        return bool(self._posts)

    @property
    def next(self) -> int | None:
        """When the next tuple leaves (ns); None: there is none."""
        return int(self._posts[0].train.time[0]) if self._posts else None
