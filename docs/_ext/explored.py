"""The directive ``explored``: a page of ``tideover explore`` with its runs inside, as a frame of the page.

Its argument is what follows the command; the option ``title`` says what moves, for those who do not see it.
"""

from __future__ import annotations

import hashlib
import html
import shlex
import tempfile
from pathlib import Path
from typing import Any, ClassVar

from answers import called
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

LOG = logging.getLogger(__name__)
FOLDER = "explored"
"""Of the site, for these pages."""


class Explored(SphinxDirective):
    """See the module."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[Any] = {"title": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        asked = self.arguments[0]
        name = f"{shlex.split(asked)[0]}-{hashlib.sha256(asked.encode()).hexdigest()[:8]}.html"
        file = Path(self.config.explored_kept) / FOLDER / name
        if not file.exists() and (wrong := self._export(asked, file)):
            LOG.warning("explored: %s: %s", asked, wrong, location=self.get_location())
            return []
        address = "../" * self.env.docname.count("/") + f"{FOLDER}/{name}"
        title = html.escape(self.options["title"])
        frame = f'<iframe class="explored" src="{address}" title="{title}" loading="lazy"></iframe>'
        alone = f'<p><a href="{address}">On a page of its own</a></p>'
        return [nodes.raw("", frame + alone, format="html")]

    def _export(self, asked: str, file: Path) -> str:
        """What was wrong, if anything."""
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=file.parent) as folder:
            here = Path(folder)
            words = ["explore", *shlex.split(asked), "--export", file.name]
            said, code = called(words, here, Path(self.config.answers_root))
            if code:
                return said
            (here / file.name).replace(file)
        return ""


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_config_value("explored_kept", "", "env")
    app.add_directive("explored", Explored)
    return {"version": "1", "parallel_read_safe": True}
