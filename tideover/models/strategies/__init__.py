"""Strategies: how a pipeline survives failure. One protocol a file; `tideover.models` registers them."""
