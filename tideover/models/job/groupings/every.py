"""Every task."""

from __future__ import annotations

from typing import ClassVar

from tideover.models.job.groupings.base import GROUPINGS, Grouping


@GROUPINGS.register("all")
class All(Grouping):
    """A copy to each task; each copy is a tuple of its own in the tree."""

    copies: ClassVar[bool] = True
