"""What does a sweep's work: this process, or Spark. Both make the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from tideover.scenarios.sweeps.chunks import Chunk
    from tideover.scenarios.sweeps.files import Files
    from tideover.scenarios.sweeps.manifest import Manifest
    from tideover.scenarios.sweeps.points import Points
    from tideover.scenarios.sweeps.reduction import Reduction
    from tideover.scenarios.sweeps.reuse import Reuse
    from tideover.scenarios.sweeps.simulating import Task
    from tideover.scenarios.sweeps.survey import Refused, Surveyed

Tell = Callable[[str, float], None]
"""Called with what is being done, and how much of it is done beside what was reported as done."""


class Done(NamedTuple):
    """Chunks that are in their place: their runs, and how many of them failed."""

    chunks: tuple[str, ...]
    runs: int
    failed: int


class Engine(Protocol):
    """Where points are made and runs are done; ``files``: where the rows go."""

    @property
    def files(self) -> Files:
        """Where the dataset lies."""

    def survey(self, recipe: Points, numbers: Sequence[int], tell: Tell) -> Iterable[Surveyed | Refused]:
        """Look at points."""

    def make(self, task: Task, chunks: Iterable[Chunk], reuse: Reuse, tell: Tell) -> Iterator[Done]:
        """Do the runs of chunks, but for those that can be taken from other files, and write each chunk."""

    def index(self, paths: Sequence[str]) -> pa.Table:
        """Which runs are in which of some files: ``run``, ``file`` and whether it ``failed``, a row each. A
        file that cannot be read has none.
        """

    def reduced(self, known: Manifest, how: Reduction) -> pa.Table:
        """What is made of the rows of each point."""

    def reduce(self, known: Manifest, how: Reduction) -> None:
        """Write what is made of the rows of each point, a file for each part of the points."""
