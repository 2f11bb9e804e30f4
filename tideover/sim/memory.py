"""What Python does about garbage while a simulation runs."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MORE = 200_000
"""So many objects more than at the last search, and garbage that refers to itself is searched for again."""
_stands = False


@contextmanager
def standing() -> Iterator[None]:
    """Python does not look for garbage that refers to itself in what stands already, and seldom in what is
    new. At the end it is looked for in what is new, and all is as before, but that what somebody else has
    frozen is looked through again. Another such stretch within it changes nothing.

    Trains that are read live for a moment, and nothing that they refer to refers to them: to look through
    them, and through all tasks and channels, is for nothing. But a world refers to itself: what is built in
    such a stretch, and is not kept, gives its memory back at the end.
    """
    global _stands
    if _stands:
        yield
        return
    first, second, third = gc.get_threshold()
    wanted = first > 0 and gc.isenabled()  # else somebody wants no search
    gc.freeze()
    if wanted:
        gc.set_threshold(max(first, MORE), second, third)
    _stands = True
    try:
        yield
    finally:
        _stands = False
        gc.set_threshold(first, second, third)
        if wanted:
            gc.collect()
        gc.unfreeze()
