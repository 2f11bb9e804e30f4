"""Bolts: what is done to a tuple. One kind a file."""

from tideover.models.bolts import filter, forward, generic, split_words, windowed_count

__all__ = ["filter", "forward", "generic", "split_words", "windowed_count"]
