"""Kinds of failures, one sort a file. Whoever imports one has all registered, in the order of their files."""

from tideover.sim.registry import import_modules

import_modules(__name__)
