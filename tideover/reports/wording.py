"""Sentences of reports: each answer is a macro of ``templates/sentences.j2``, where its words are changed.

Called by what pages and the terminal conclude. What is given to a macro are results, and figures of them;
numbers are written by the functions of `formatting`, which the macros have as filters.
"""

from __future__ import annotations

import math
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from tideover.models.results import counted
from tideover.models.schema import LOSSY, OPEN
from tideover.reports import formatting
from tideover.scenarios.errors import listed

if TYPE_CHECKING:
    from jinja2.environment import TemplateModule


def sentences(macro: str, *given: Any) -> list[str]:
    """The lines of an answer."""
    lines = getattr(_macros(), macro)(*given).splitlines()
    return [line.strip() for line in lines if line.strip()]


def text(macro: str, *given: Any) -> str:
    """An answer as one text."""
    return " ".join(sentences(macro, *given))


@cache
def _macros() -> TemplateModule:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.do"]
    )
    names = ("fixed", "number", "places_for", "size", "strategy_name", "with_ending")
    environment.filters |= {name: getattr(formatting, name) for name in names}
    environment.filters |= {"counted": counted, "listed": listed, "n": "{:,}".format}
    environment.globals |= {"infinity": math.inf, "LOSSY": LOSSY, "OPEN": OPEN}
    source = files("tideover.reports").joinpath("templates", "sentences.j2").read_text(encoding="utf-8")
    return environment.from_string(source).module
