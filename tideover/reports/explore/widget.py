"""The same page in a cell of Jupyter, by anywidget: answers come as messages of the kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tideover.reports.explore.requests import FIRST, Answers
from tideover.reports.explore.server import asset, module
from tideover.reports.explore.workers import Refused, Superseded, TooMuch, Workers


def explore(scenario: str | Path = FIRST) -> Any:
    """A page with sliders for what a scenario has, and what becomes of two strategies when one moves.

    ``scenario``: a built-in name, or a file. Raises ScenarioError for one that cannot be used, ImportError
    where anywidget is not installed: it comes with ``tideover[notebook]``.
    """
    try:
        import anywidget
        import traitlets
    except ImportError:
        raise ImportError('explore needs anywidget: pip install "tideover[notebook]"') from None

    class Page(anywidget.AnyWidget):
        _esm = module()
        _css = asset("explore.css").decode()
        scenario = traitlets.Unicode().tag(sync=True)

    Answers(str(scenario)).check()
    workers = Workers(str(scenario))
    page = Page(scenario="")

    def asked(_: object, message: dict[str, Any], __: object) -> None:
        number = message.get("id")
        try:
            page.send({"id": number, "answer": workers.ask(message, "page")})
        except (Refused, TooMuch, Superseded) as error:
            page.send({"id": number, "error": str(error)})

    page.on_msg(asked)
    return page
