"""The directive ``answer`` of question pages: a command, what it puts out, and a figure that it draws; and
the role ``seen``, for words of the page that must occur in that output.
"""

from __future__ import annotations

import hashlib
import html
import json
import multiprocessing
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole

from tideover.cli import main

LOG = logging.getLogger(__name__)
DIAGRAM = "diagram"
"""The figure that ``--diagram`` writes; others are named by the begin of their title in the report."""
COLUMNS = "100"
STREAMS = ("said.txt", "errors.txt")
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tideover.cli.app", "tideover.reports.figures", "tideover.reports.pages"])


class Answer(NamedTuple):
    """What a command has put out, and its figures: HTML by title."""

    output: str
    code: int
    figures: dict[str, str]


def run(command: str, root: Path, drawn: str) -> Answer:
    """Run it where there is nothing but the examples. ``drawn``: the figure that is wanted."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        (here / "examples").symlink_to(root / "examples")
        words = shlex.split(command.replace("\\\n", " "))
        more = {"": [], DIAGRAM: ["--diagram", "diagram.svg"]}.get(drawn, ["--out", "out"])
        if words[0] != "tideover":
            raise ValueError(f"{words[0]}: the command has to be tideover")
        said, code = called([*words[1:], *(more if more[:1] != words[-2:-1] else [])], here, root)
        return Answer(_without(said, more), code, _figures(here))


def called(words: list[str], here: Path, root: Path) -> tuple[str, int]:
    """What ``tideover`` says with these words, in the folder ``here``, and its exit code.

    The process has the package already: to load it would take longer than most commands.
    """
    process = PROCESSES.Process(target=_called, args=(words, here, root))
    process.start()
    process.join()
    texts = [(here / name).read_text("utf-8") for name in STREAMS]
    said = "\n".join(line.rstrip() for line in "".join(texts).splitlines())
    return said, process.exitcode or 0


def _called(words: list[str], here: Path, root: Path) -> None:
    os.chdir(here)
    os.environ |= {"COLUMNS": COLUMNS, "PYTHONPATH": str(root), "NO_COLOR": "1"}
    for number, name in enumerate(STREAMS, 1):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), number)
    sys.argv = ["tideover", *words]
    main()


def _without(said: str, more: list[str]) -> str:
    """What is said of files that only the page has asked for is left out."""
    named = ("Diagram: ", "Report: ", "Beside it: ")
    return "\n".join(line for line in said.splitlines() if not more or not line.startswith(named))


def _figures(here: Path) -> dict[str, str]:
    found = {}
    if (drawn := here / "diagram.svg").exists():
        found[DIAGRAM] = f'<div class="panels">{drawn.read_text("utf-8")}</div>'
    if (report := here / "out" / "report.html").exists():
        for figure in re.findall(r"<figure>(.*?)</figure>", report.read_text("utf-8"), re.S):
            drawing, _, caption = figure.partition("<figcaption>")
            title = re.match(r"<b>Figure \d+\. (.*?)\.</b>", caption)
            if title:
                found.setdefault(html.unescape(title[1]), drawing)
    return found


class AnswerDirective(SphinxDirective):
    """See the module."""

    has_content = True
    option_spec: ClassVar[Any] = dict.fromkeys(
        ("figure", "caption", "alt", "lines"), directives.unchanged_required
    )

    def run(self) -> list[nodes.Node]:
        command, wanted = "\n".join(self.content).strip(), self.options.get("figure", "")
        try:
            found = self._kept(command, wanted)
        except ValueError as error:
            return self._wrong(str(error))
        self.env.temp_data["answer_output"] = found.output
        if found.code:
            return self._wrong(f"{command}: exit code {found.code}: {found.output[-600:]}")
        shown = _lines(found.output, self.options.get("lines"))
        block = nodes.literal_block(text=f"$ {command}\n\n{shown}", language="console")
        made: list[nodes.Node] = [block]
        if wanted:
            made += self._figure(found, wanted)
        return made

    def _kept(self, command: str, wanted: str) -> Answer:
        """What it put out before, if the package has not changed."""
        folder = Path(self.config.answers_kept)
        asked = f"{command}\0{wanted in ('', DIAGRAM) and wanted}\0{Path(__file__).read_text('utf-8')}"
        name = hashlib.sha256(asked.encode()).hexdigest()[:24]
        file = folder / f"{name}.json"
        if file.exists():
            return Answer(**json.loads(file.read_text("utf-8")))
        found = run(command, Path(self.config.answers_root), wanted)
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(found._asdict()), "utf-8")
        return found

    def _figure(self, found: Answer, wanted: str) -> list[nodes.Node]:
        caption, alt = self.options.get("caption"), self.options.get("alt")
        if not caption or not alt:
            return self._wrong("a figure needs a caption and an alt")
        titles = [title for title in found.figures if title.startswith(wanted)]
        if not titles:
            return self._wrong(f"figure {wanted!r}: there are {', '.join(found.figures) or 'none'}")
        drawing = re.sub(
            r'aria-label="[^"]*"', f'aria-label="{html.escape(alt)}"', found.figures[titles[0]], count=1
        )
        children, _ = self.parse_inline(caption, lineno=self.lineno)
        opened = nodes.raw("", f'<figure class="answer">{drawing}', format="html")
        body = nodes.container("", nodes.paragraph("", "", *children), classes=["answer-caption"])
        return [opened, body, nodes.raw("", "</figure>", format="html")]

    def _wrong(self, said: str) -> list[nodes.Node]:
        LOG.warning("answer: %s", said, location=self.get_location())
        return []


def _lines(text: str, asked: str | None) -> str:
    """The lines that are asked for, as in ``1-4, 9-``; ``…`` for others."""
    every = text.splitlines()
    if not asked:
        return text
    kept: list[str] = []
    last = 0
    for part in asked.split(","):
        first, dash, end = part.strip().partition("-")
        begin, stop = int(first), int(end) if end else (len(every) if dash else int(first))
        if begin > last + 1:
            kept.append("…")
        kept += every[begin - 1 : stop]
        last = stop
    return "\n".join([*kept, *(["…"] if last < len(every) else [])])


class Seen(SphinxRole):
    """Words that the output above has."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        output = " ".join(self.env.temp_data.get("answer_output", "").split())
        if " ".join(self.text.split()) not in output:
            LOG.warning(
                "seen: %r is not in the output of this page's command",
                self.text,
                location=self.get_location(),
            )
        return [nodes.strong(text=self.text, classes=["seen"])], []


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_config_value("answers_kept", "", "env")
    app.add_config_value("answers_root", "", "env")
    app.add_directive("answer", AnswerDirective)
    app.add_role("seen", Seen())
    return {"version": "1", "parallel_read_safe": True}
