"""Spouts: what is emitted. One kind a file."""

from tideover.models.job.spouts import keys, sentences, values

__all__ = ["keys", "sentences", "values"]
