"""What a result says where a simulated tuple stands for several, as of `models.coarsening`."""

from __future__ import annotations

from collections.abc import Iterable

from tideover.models.schema.columns import Column


def at_most(kinds: Iterable[str], figures: Iterable[str], undefined: str) -> tuple[Column, ...]:
    """What latencies that are not told are at most, by kind and figure; a spread has no such limit."""
    return tuple(
        Column(
            f"{kind}_{key}_at_most_ms",
            f"what `{kind}_{key}_ms` is at most, about: as `run.lump` has it, whose tuples wait and are "
            "served together; only with it",
            "ms",
            undefined=undefined,
            optional=True,
        )
        for kind in kinds
        for key in figures
        if key != "std"
    )
