"""Runs that are there already: in files of another sweep in the same place, or beside failed ones.

A run is known by its name (`survey.run_name`), so a changed grid finds what it shares with the one before.
Failed runs are never taken over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tideover.scenarios.sweeps.chunks import Unit

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Reuse:
    """Where runs are: ``names`` in order, and in which of ``files`` (their paths) each of them is."""

    names: np.ndarray
    place: np.ndarray
    files: tuple[str, ...]

    def split(self, units: Sequence[Unit]) -> tuple[dict[str, list[str]], list[Unit]]:
        """The names of those that are there, by file; and those that are to be done."""
        if not len(self.names):
            return {}, list(units)
        asked = np.array([unit.run for unit in units], dtype=self.names.dtype)
        at = np.minimum(np.searchsorted(self.names, asked), len(self.names) - 1)
        there = self.names[at] == asked
        known: dict[str, list[str]] = {}
        for unit, place in zip(np.array(asked)[there], self.place[at[there]], strict=True):
            known.setdefault(self.files[place], []).append(unit.decode())
        return known, [unit for unit, found in zip(units, there, strict=True) if not found]

    @property
    def empty(self) -> bool:
        """Nothing is there."""
        return not len(self.names)


NOTHING = Reuse(np.empty(0, "S32"), np.empty(0, np.int32), ())


def reuse(index: pa.Table) -> Reuse:
    """``index``: a row for each run that did not fail, with ``run`` and ``file`` (a path in the dataset)."""
    if not index.num_rows:
        return NOTHING
    files = sorted(set(index["file"].unique().to_pylist()))
    number = {file: i for i, file in enumerate(files)}
    place = np.fromiter((number[file] for file in index["file"].to_pylist()), np.int32, index.num_rows)
    names = index["run"].to_numpy(zero_copy_only=False).astype("S32")
    order = np.lexsort((place, names))  # of several files that have it always the same
    return Reuse(names[order], place[order], tuple(files))
