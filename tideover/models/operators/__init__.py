"""Operators: what bolts do to tuples, and the state that some keep; `tideover.models` registers them."""
