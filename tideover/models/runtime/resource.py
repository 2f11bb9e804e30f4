"""What can be busy: tasks, cores, cards, stores, links; one protocol for all."""

from __future__ import annotations

from typing import Literal, Protocol

Kind = Literal["task", "cores", "card in", "card out", "store", "link"]


class Resource(Protocol):
    """Something that does work, and can do only so much of it in a second.

    Who models one that several tasks share puts it into ``context.resources`` when the job is wired.
    """

    @property
    def name(self) -> str:
        """What it is called among those of its kind and host (``count.2``, ``redis``)."""

    @property
    def kind(self) -> Kind:
        """What it is."""

    @property
    def host(self) -> int | None:
        """Where it is; None: on no host."""

    def busy_ns(self, now: int) -> float:
        """How long it has been busy up to ``now`` (ns), when the data plane has been moved there. It can be
        so for one second a second; of several cores it is the mean.
        """
