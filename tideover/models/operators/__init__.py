"""Operators: what bolts do to tuples, and the state that some keep. One kind a file."""

from tideover.models.operators import kinds

__all__ = ["kinds"]
