"""How far a task is with its windows."""

from __future__ import annotations

from collections.abc import Callable

REMEMBERED = 1 << 16
"""So many of the newest windows are known by their number when they come again."""


class Windows:
    """The windows of one task: which markers have come, which windows were put out.

    trigger          what ends them: tick, marker, tuples, watermark; None: the task has none
    ended            number of the last window that was ended by a count of tuples; or by a watermark, plus 1
                     (the first is window 0)
    epochs           newest end marker of each logical input
    waiting          numbers of the ticks that wait in the queue
    tick             the tick of this number comes into the queue: it ends the window of its number, or, where
                     windows slide, a pane, and every so many a window
    beats            so many ends, of panes, from one window's end to the next (1: each ends a window)
    count_at_arrival  take in what arrives at once, without service (in a reference run)
    """

    def __init__(self, trigger: str | None, tick: Callable[[int], None], beats: int = 1) -> None:
        self.trigger = trigger
        self.beats = beats
        self.ended = 0
        self.epochs: dict[int, int] = {}
        self.waiting: set[int] = set()
        self.tick = tick
        self.count_at_arrival = False
        self._put_out: dict[int, None] = {}

    @property
    def epoch(self) -> int:
        """The newest marker that has come on all inputs."""
        return min(self.epochs.values())

    @property
    def newest(self) -> int:
        """Number of the newest window that was ended."""
        if self.trigger == "watermark":
            return self.ended - 1
        return self.ended if self.trigger == "tuples" else self.epoch // self.beats

    @property
    def awaited(self) -> list[int]:
        """Numbers of the windows whose tick waits in the queue."""
        return [number // self.beats for number in self.waiting if number % self.beats == 0]

    def put_out(self, number: int) -> bool:
        """Window ``number`` is put out; returns whether it was before."""
        again = number in self._put_out
        self._put_out[number] = None
        if len(self._put_out) > 2 * REMEMBERED:
            for old in list(self._put_out)[:REMEMBERED]:
                del self._put_out[old]
        return again

    def reopen(self, after: int) -> None:
        """Go back to the time before window ``after`` + 1: those that follow are put out as if they had not
        been.
        """
        for number in [number for number in self._put_out if number > after]:
            del self._put_out[number]

    def crash(self) -> None:
        """The task knows nothing of markers any more."""
        self.epochs = dict.fromkeys(self.epochs, 0)
