"""When a stateful bolt puts out what it knows: windows, their ids, and how far events have come. Bolts have a
`Window` as setting; `tideover.models.runtime.windowing` ends it for each task.

The rules (tests/models/test_plane_worlds.py, test_windows.py, test_rsm.py):

- `tick`: every `length` a WINDOW marker comes into the task's queue. At its turn all sums that are not 0
  are put out, by key, and cleared. Window w ends at w * `length`; an empty one is "no counts". A tick that
  falls on a task that is down, or not restored, has no effect.
- `tuples: n`: at the departure of the n-th tuple since the last window. Their numbers go on over crashes; a
  restore turns them back to those of its checkpoint, or to 0.
- `marker`: at w * `length` each spout task that is up sends marker w on all its channels (rank MARKER); one
  that was down sends what it has missed when it is ready. When the least of the newest markers of a bolt's
  channels reaches w, the sums of all epochs before w are put out; then any bolt hands w on. The epoch of an
  aggregate is the newest marker that its task had handed on before.
- A window that a task puts out again under a number that it has used is void: it is not sent, and its
  tuples count only if another window or live state has them.
- `slide`: panes are as long as the greatest common divisor of `length` and `slide`; a window is the panes
  of its length. With `slide_tuples` panes are of tuples. A tuple stays until the first window that ends
  without it: until then it is an effect of the state, and is acked when it leaves. A checkpoint has an
  entry for each pane and key.
- `windowed_count` clears at a window's end, `running_count` puts out all sums as they are by then,
  `distinct` each key once with value 1, `windowed_join` for each key the product of the sums of both sides
  (test_running_distinct.py, test_windows.py).
- Under a strategy that reads a durable log, windows given by `length` are ended by markers.

Windows by event, and watermarks (tests/models/test_event_windows.py, test_windows.py):

- A root keeps the time of its event for good: what its spout says (`stamps`), else its first emission, or
  the append time of its record, less a draw of `event_delay`. A tuple of s is in the windows (end -
  `length`, end] that s is in; window w ends at w * `slide` (without it: of `length`).
- Each `watermark_interval` a WINDOW marker comes into the task's queue. At its turn the watermark becomes
  the least, over the components that it reads, of the newest event processed from any of their tasks, less
  `lag`, if that is more. With `idle_after` components that have been silent for so long are left out.
- At this turn all windows that end after the old watermark and not after the new one are put out in order,
  if they have a tuple, or one leaves with them.
- A tuple whose event is not after the watermark is *late*: it is in no window and is acked at once. With
  `late: drop` it has no effect, with `late: aside` it leaves the topology.
- What a task knows of events is part of its state: saved, restored and lost with it. At the end of a run a
  window that the watermark has not reached is not missing.
"""

from __future__ import annotations

from copy import deepcopy
from math import gcd
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import model_validator

from tideover.sim.registry import Part, setting
from tideover.sim.train import Ints, Train
from tideover.sim.units import MS, Duration, Period, S


class Extent(NamedTuple):
    """A sliding window in panes, pieces of which each window has some whole ones (Li et al., *No pane, no
    gain*, SIGMOD Record 2005).

    pane    length of a pane: ns, or tuples
    panes   how many a window has
    slide   how many panes later the next window ends
    stays   a tuple leaves with the first window that ends without it, and not with the last that has it
    """

    pane: int
    panes: int
    slide: int
    stays: bool = True

    @classmethod
    def of(cls, length: int, slide: int) -> Extent:
        pane = gcd(length, slide)
        return cls(pane, length // pane, slide // pane)


class Window(Part):
    """A tumbling window: ``length`` of time, ended by a tick or by a marker that the spouts send; or a
    number of ``tuples``. With ``slide`` (or ``slide_tuples``) one ends each slide, and a tuple is in all that
    overlap it; it leaves, and is acked, with the first window that ends without it.

    ``by`` event, tuples fall into windows by when their events took place. Each ``watermark_interval`` the
    task looks how far events have come: the watermark is the newest event of each input less ``lag``, the
    least of all. Windows that end at or before it are put out; a tuple that comes with an event at or before
    it is late (Storm's ``WaterMarkEventGenerator``; Akidau et al., *The dataflow model*, VLDB 2015, 2.3).

    With ``gap`` windows are sessions: of a key, all that comes (``by`` event: all events of it) with at most
    so much between one and the next. By arrival the task looks each ``watermark_interval``, or each ``gap``
    if that is shorter, which have ended (Flink's ``ProcessingTimeSessionWindows``, whose timers do not wait
    for a look).
    """

    omitted: ClassVar[frozenset[str]] = frozenset(
        {"gap", "slide", "slide_tuples", "by", "lag", "watermark_interval", "late", "idle_after", "saved"}
    )

    length: Duration | None = setting("length in time, e.g. 30 s")
    tuples: int | None = setting("length in tuples", ge=1, le=10**9)
    gap: Duration | None = setting(
        "sessions instead: a key's ends when nothing of it comes (by event: when no event of "
        "it follows) for so long"
    )
    slide: Duration | None = setting(
        "a window of this length ends each slide, e.g. 10 s; default: one after the other"
    )
    slide_tuples: int | None = setting("the same of a window of tuples, as a number of them", ge=1, le=10**9)
    trigger: Literal["tick", "marker"] = setting(
        "what ends a window of time: the task's clock, or the spouts' marker", "tick"
    )

    by: Literal["arrival", "event"] = setting(
        "what puts a tuple into a window of time: when it comes, or when its event took place", "arrival"
    )
    lag: Duration = setting("by event: how much later than newer ones an event may come", 0)
    watermark_interval: Period = setting(
        "by event, and of sessions: how often the task looks how far events have come, or "
        "which sessions have ended",
        S,
    )
    late: Literal["drop", "aside"] = setting(
        "by event: what becomes of a late tuple: nothing, or it leaves on a stream of its own", "drop"
    )
    idle_after: Duration | None = setting(
        "by event: an input that has been silent for so long holds windows back no more; default: it does",
        gt=0,
    )

    saved: Literal["contents", "ids"] = setting(
        "what checkpoints have of it: all that it holds, or only which tuples have left it, "
        "and which it has put out (Storm's stateful windows without persistence)",
        "contents",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Window:
        gap, slide, marker = self.gap, self.slide, self.trigger == "marker"
        if self.saved == "ids" and (self.length is None or self.by == "event" or marker):
            raise ValueError("saved: ids is of windows of time by arrival, that ticks end")
        if self.by == "arrival":
            for name in ("lag", "late", "idle_after", *(("watermark_interval",) if gap is None else ())):
                if getattr(self, name) != type(self).model_fields[name].default:
                    raise ValueError(f"{name} is of windows by event: add by: event, or leave it out")
            if gap is not None and marker:
                raise ValueError("what ends sessions by arrival is their task's clock: leave trigger out")
            if gap is not None and (gap % MS or self.watermark_interval % MS):
                raise ValueError("gap and watermark_interval must be whole milliseconds: so sessions end")
        elif self.tuples is not None:
            raise ValueError("windows of tuples go by arrival: by: event is of windows of time (length)")
        elif marker:
            raise ValueError("what ends windows by event is their watermark: leave trigger out")
        if gap is not None:
            if self.length is not None or self.tuples is not None:
                raise ValueError("sessions end by themselves: length and tuples do not go with gap")
            if gap < MS:
                raise ValueError("gap must be at least 1 ms")
        elif (self.length is None) == (self.tuples is None):
            raise ValueError("give either length (a duration) or tuples (a number)")
        if self.length is not None and self.length < MS:
            raise ValueError("length must be at least 1 ms")
        if self.tuples is not None and marker:
            raise ValueError("a window of tuples needs nothing to end it: trigger does not go with tuples")
        if slide is not None:
            if self.length is None:
                raise ValueError("slide is of a window of time (length); that of tuples has slide_tuples")
            if not MS <= slide <= self.length:
                raise ValueError(
                    "slide must be at least 1 ms and at most length: else tuples are in no window"
                )
            if slide % MS or self.length % MS:
                raise ValueError("length and slide must be whole milliseconds, as panes are")
        if self.slide_tuples is not None:
            if self.tuples is None:
                raise ValueError("slide_tuples is of a window of tuples; that of time has slide")
            if self.slide_tuples > self.tuples:
                raise ValueError("slide_tuples must be at most tuples: else tuples are in no window")
        return self

    @property
    def extent(self) -> Extent | None:
        """Its panes; None: it has none, for it neither slides nor goes by event."""
        if self.length is not None and self.slide is not None:
            return Extent.of(self.length, self.slide)
        if self.tuples is not None and self.slide_tuples is not None:
            return Extent.of(self.tuples, self.slide_tuples)
        if self.length is not None and self.by == "event":
            return Extent(self.length, 1, 1, stays=False)
        return None if self.gap is None else Extent(MS, 1, 1, stays=False)

    @property
    def step(self) -> int:
        """Of windows by event: the time of the end (ns) that each number stands for."""
        assert self.extent is not None
        return self.extent.pane * self.extent.slide

    @property
    def beat(self) -> int | None:
        """Time between moments at which a pane, window or session can end (ns); None: it is of tuples."""
        if self.by == "event":
            return self.watermark_interval
        if self.gap is not None:
            return min(self.gap, self.watermark_interval)  # no two sessions of a key end between two looks
        return None if self.length is None else self.length if self.extent is None else self.extent.pane

    @property
    def every(self) -> int | None:
        """Tuples from one window's end to the next; None: it is one of time."""
        return self.slide_tuples or self.tuples

    @property
    def beats(self) -> int:
        """So many beats from one window's end to the next."""
        return 1 if self.extent is None or self.length is None or self.by == "event" else self.extent.slide


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
        """What goes into the window, of these and of those that have waited; the rows that are dropped."""
        into: list[Train] = []
        known: list[int] = []
        streams, ids = train.column(STREAM).tolist(), train.uid.tolist()
        for row, (stream, uid) in enumerate(zip(streams, ids, strict=True)):
            if not self._compares:
                into.append(train.pick(slice(row, None)))
                break
            one = train.pick(slice(row, row + 1))
            left, put_out = self._compares.get(stream, (-1, -1))
            if uid <= left:
                known.append(row)
            elif uid <= put_out:
                into.append(one)
            else:
                self.waiting.append(one)
                if self._compares.pop(stream, None) and not self._compares:
                    into += self.waiting
                    self.waiting = []
        for part in into:
            self.note(part.uid, part.column(STREAM))
        return into, known

    def note(self, ids: Ints, streams: Ints) -> None:
        self._streams.update(zip(ids.tolist(), streams.tolist(), strict=True))

    def put_out(self, ids: Ints, left: Ints) -> None:
        """A window of these was put out, with which some left."""
        for marks, gone in ((self._put_out, ids), (self._left, left)):
            for uid in gone.tolist():
                if (stream := self._streams.get(uid)) is not None:
                    marks[stream] = max(uid, marks.get(stream, uid))
        for uid in left.tolist():
            self._streams.pop(uid, None)


NEVER = -1


class EventClock:
    """The newest event of each input of a task, and the watermark that follows. Times are in ns.

    The watermark is the least over the inputs of the newest event, less ``lag``; it never goes back. As long
    as nothing has come over an input there is none. An input that has been silent for ``idle_after`` (None:
    for any time) does not count; if all are, the watermark stays (Apache Storm's ``WaterMarkEventGenerator``,
    which knows no idle inputs; Flink's ``withIdleness`` does).

    watermark   an event at or before it is late; NEVER: there is none yet
    ended       windows that end at or before this were put out
    """

    def __init__(self, inputs: int, lag: int, idle_after: int | None) -> None:
        self._lag, self._idle_after = lag, idle_after
        self._newest: Ints = np.full(inputs, NEVER, np.int64)
        self._heard: Ints = np.full(inputs, NEVER, np.int64)
        """When something came over each input, or, before that, when it was first looked."""
        self.watermark = self.ended = NEVER

    def hear(self, inputs: Ints | None, events: Ints, times: Ints) -> npt.NDArray[np.bool_]:
        """Tuples were processed at ``times`` that came over ``inputs`` (None: one); returns the late ones."""
        if inputs is None:
            self._newest[0] = max(self._newest[0], events.max())
            self._heard[0] = times[-1]
        else:
            np.maximum.at(self._newest, inputs, events)
            np.maximum.at(self._heard, inputs, times)
        return events <= self.watermark

    def look(self, now: int) -> None:
        self._heard[self._heard == NEVER] = now
        idle_after = self._idle_after
        self._advance(self._newest if idle_after is None else self._newest[now - self._heard < idle_after])

    def _advance(self, newest: Ints) -> None:
        if len(newest) and newest.min() != NEVER:
            self.watermark = max(self.watermark, int(newest.min()) - self._lag)

    @staticmethod
    def level(clocks: list[EventClock]) -> None:
        """Look how far events have come at any of the tasks that have these."""
        newest = np.max([clock._newest for clock in clocks], axis=0)
        for clock in clocks:
            clock._newest = newest.copy()
            clock._advance(newest)

    def fresh(self) -> EventClock:
        return EventClock(len(self._newest), self._lag, self._idle_after)

    def copy(self) -> EventClock:
        return deepcopy(self)
