"""What Python does about garbage while a simulation runs."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MORE = 200_000
"""So many objects more than at the last search, and garbage that refers to itself is searched for again."""


@contextmanager
def standing() -> Iterator[None]:
    """Python does not look for garbage that refers to itself in what stands already, and seldom in what is
    new. Afterwards all is as before, but that what somebody else has frozen is looked through again.

    Trains live for a step, and nothing that they refer to refers to them: to look through them, and through
    all channels, is for nothing.
    """
    first, second, third = gc.get_threshold()
    gc.freeze()
    if first:  # else somebody wants no search
        gc.set_threshold(max(first, MORE), second, third)
    try:
        yield
    finally:
        gc.set_threshold(first, second, third)
        gc.unfreeze()
