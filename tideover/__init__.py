"""Tideover simulates how a stream processor survives failure."""

__version__ = "0.1.0"
