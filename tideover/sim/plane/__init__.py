"""The data plane: C that moves every tuple, and what builds and opens it."""
