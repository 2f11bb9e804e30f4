"""Factors: keys of a scenario that take several values, and how the values of several go together."""
