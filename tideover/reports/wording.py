"""Sentences of reports: each answer is a macro of ``templates/sentences.j2``, where its words are changed.

Called by what pages and the terminal conclude. What is given to a macro are results, and figures of them;
numbers are written by the functions of `formatting`, which the macros have as filters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from tideover.models.results import counted
from tideover.models.schema import LOSSY, OPEN
from tideover.reports import formatting
from tideover.scenarios.errors import listed

BLOCKS: Any = {"trim_blocks": True, "lstrip_blocks": True}
"""What stands in blocks leaves no lines."""


def sentences(macro: str, *given: Any) -> list[str]:
    """The lines of an answer."""
    lines = getattr(_macros(), macro)(*given).splitlines()
    return [line.strip() for line in lines if line.strip()]


def text(macro: str, *given: Any) -> str:
    """An answer as one text."""
    return " ".join(sentences(macro, *given))


@cache
def _macros() -> Any:
    names = ("fixed", "in_words", "number", "places_for", "size", "strategy_name", "with_ending")
    filters: dict[str, Any] = {name: getattr(formatting, name) for name in names}
    filters |= {"counted": counted, "listed": listed, "n": "{:,}".format}
    known = {"infinity": math.inf, "LOSSY": LOSSY, "OPEN": OPEN}
    return template("sentences.j2", filters, known, **BLOCKS, extensions=["jinja2.ext.do"]).module


def template(name: str, filters: Mapping[str, Any], known: Mapping[str, Any] = {}, **options: Any) -> Any:
    """A jinja template of ``templates``, which names nothing that is not there; it has these ``filters``."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(undefined=StrictUndefined, **options)
    environment.filters |= filters
    environment.globals |= known
    return environment.from_string(read(name))


def read(name: str) -> str:
    return files("tideover.reports").joinpath("templates", name).read_text(encoding="utf-8")
