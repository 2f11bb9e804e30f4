"""Ids in the place of a window's contents: what has left it, and what it has put out."""

from __future__ import annotations

from tideover.sim.train import Ints, Train

STREAM = "stream"
"""Column of tuples that come to a window whose ids are saved: which upstream task has sent them."""
KNOWN = 2
"""In the column of late tuples: its id says that it has left the window already."""


class WindowIds:
    """For each upstream task the greatest id of what has left the window, and of what it has put out.

    A checkpoint has these, and none of the contents. Who has them back compares what comes from each
    upstream task with them: what is at most the first has left already, and is dropped; what is at most the
    second goes into the window, which puts nothing out; the first that is more ends the comparison for its
    upstream task, and waits. When that is so for all, what has waited goes into the window, and all is as
    before (Apache Storm's ``StatefulWindowedBoltExecutor``).
    """

    def __init__(self) -> None:
        self._left: dict[int, int] = {}
        self._put_out: dict[int, int] = {}
        self._streams: dict[int, int] = {}
        """Of the tuples in the window, by id."""
        self._compares: dict[int, tuple[int, int]] = {}
        self.waiting: list[Train] = []

    @property
    def comparing(self) -> bool:
        """Whether it still compares, and puts nothing out."""
        return bool(self._compares)

    @property
    def entries(self) -> int:
        """Upstream tasks of which it knows something."""
        return len(self._put_out)

    def saved(self) -> WindowIds:
        """What a checkpoint has of it, as it begins again."""
        new = WindowIds()
        new._left, new._put_out = dict(self._left), dict(self._put_out)
        new._compares = {stream: (self._left.get(stream, -1), most) for stream, most in self._put_out.items()}
        return new

    def compare(self, train: Train) -> tuple[list[Train], list[int]]:
        """What of the tuples (and of those that have waited) goes into the window, in order, and the rows
        that are dropped.
        """
        into: list[Train] = []
        known: list[int] = []
        streams, ids = train.column(STREAM).tolist(), train.uid.tolist()
        for row, (stream, uid) in enumerate(zip(streams, ids, strict=True)):
            if not self._compares:
                into.append(train.pick(slice(row, None)))
                break
            one = train.pick(slice(row, row + 1))
            if stream not in self._compares:
                self.waiting.append(one)
                continue
            left, put_out = self._compares[stream]
            if uid <= left:
                known.append(row)
            elif uid <= put_out:
                into.append(one)
            else:
                self.waiting.append(one)
                del self._compares[stream]
                if not self._compares:
                    into += self.waiting
                    self.waiting = []
        for part in into:
            self.note(part.uid, part.column(STREAM))
        return into, known

    def note(self, ids: Ints, streams: Ints) -> None:
        """These go into the window."""
        self._streams.update(zip(ids.tolist(), streams.tolist(), strict=True))

    def put_out(self, ids: Ints, left: Ints) -> None:
        """A window of these was put out, with which some left."""
        _raise(self._put_out, self._streams, ids.tolist())
        _raise(self._left, self._streams, left.tolist())
        for uid in left.tolist():
            self._streams.pop(uid, None)


def _raise(marks: dict[int, int], streams: dict[int, int], ids: list[int]) -> None:
    for uid in ids:
        if uid in streams:
            marks[streams[uid]] = max(uid, marks.get(streams[uid], uid))
