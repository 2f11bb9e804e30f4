"""The site: Sphinx with MyST-NB and furo. `make docs` builds it, without a network, into build/site."""

from __future__ import annotations

import ast
import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "docs" / "_ext"), str(ROOT)]

import latex2mathml.converter
import nbformat
from docutils import nodes
from jupyter_cache import get_cache
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

import tideover

SOURCES = hashlib.sha256()
"""Changes with the package and its examples: what commands and lessons put out is kept under it, and computed
but once."""
for source in sorted([*(ROOT / "tideover").rglob("*"), *(ROOT / "examples").iterdir()]):
    if source.is_file() and source.suffix not in (".pyc", ".cffi") and source.stem != "libplane":
        SOURCES.update(source.read_bytes())
KEPT = ROOT / ".cache" / "site" / SOURCES.hexdigest()[:16]

project = "Tideover"
author = "the Tideover authors"
version = release = tideover.__version__
html_title = "Tideover"

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "answers", "explored"]
exclude_patterns = ["_ext", "conf.py", "lessons/.ipynb_checkpoints"]
suppress_warnings = ["mystnb.unknown_mime_type", "myst.strikethrough"]

nitpicky = True
nitpick_ignore_regex = [("py:class", ".*")]  # types of Python and pandas: their pages are not at hand

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline"]
myst_heading_anchors = 4
nb_custom_formats = {".py": ["jupytext.reads", {"fmt": "py:percent"}]}
nb_execution_mode = "cache"
nb_execution_cache_path = str(KEPT / "lessons")
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_code_prompt_show, nb_code_prompt_hide = "Show the {type}", "Hide the {type}"
answers_kept = str(KEPT / "answers")
answers_root = str(ROOT)
explored_kept = str(KEPT / "pages")
html_extra_path = [explored_kept]
Path(explored_kept).mkdir(parents=True, exist_ok=True)

html_math_renderer = "mathml"
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {"source_repository": "", "top_of_page_buttons": []}
html_copy_source = False
html_show_sphinx = html_show_copyright = False

# Lessons run in processes of their own, which have to find the package, too.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))


def _written(*_: object) -> None:
    """Pages that the package says itself: every key and column, what every command takes, every rule."""
    from tideover.scenarios.reference import markdown

    _write("reference", markdown())
    _write("commands", _commands())
    _write("rules", _rules())


RULES = {
    "models/strategies/": "Strategies",
    "models/mechanisms/": "What strategies share",
    "models/operators/": "Windows",
    "models/job/components": "Bounded queues",
    "models/job/spouts": "Queues that spouts read",
    "sim/faults": "Failures",
    "models/runtime/planned_stops": "Failures",
    "models/detectors": "Detectors",
    "": "Hosts, stores and wires",
}
"""The parts of the page of rules: where the modules lie whose docstrings tell them."""


def _rules() -> str:
    """The docstrings of all strategies, and of all other modules that have a list of rules in theirs."""
    parts: dict[str, list[str]] = {title: [f"## {title}\n"] for title in RULES.values()}
    package = ROOT / "tideover"
    for file in (*sorted(package.glob("models/**/*.py")), *sorted(package.glob("sim/**/*.py"))):
        place = file.relative_to(package).with_suffix("").as_posix().removesuffix("/__init__")
        told = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
        if "\n- " in told or place == "models/strategies/none":
            title = next(title for prefix, title in RULES.items() if place.startswith(prefix))
            name = file.stem if title == "Strategies" else place
            parts[title].append(f"### {name}\n\n{told}\n")
    head = "# Rules, instant by instant\n\nAs they stand in the docstrings of the package.\n"
    return "\n".join([head, _goes_with(), *(text for part in parts.values() for text in part)])


WINDOWS = {
    "sliding": "sliding windows",
    "event": "by event",
    "session": "sessions by event",
    "arrival session": "sessions by arrival",
    "aside": "late ones put aside",
    "join": "joins",
    "ids": "only ids saved",
}
"""What strategies call the sorts of windows, in words."""


def _goes_with() -> str:
    """A table: what each strategy goes with, as its class says."""
    from tideover.models.strategies.base import STRATEGIES

    columns = [*WINDOWS.values(), "queues with a bound", "`source`", "`messages: lose`"]
    lines = ["## What each strategy goes with\n", f"| strategy | {' | '.join(columns)} |"]
    lines.append("|---" * (1 + len(columns)) + "|")
    for kind, of in sorted(STRATEGIES.items()):
        others = (of.bounded_queues, of.reads_queues, of.loses_messages)
        found = [*(sort in of.windows for sort in WINDOWS), *others]
        lines.append(f"| `{kind}` | {' | '.join('yes' if each else '–' for each in found)} |")
    notes = (
        "`upstream_backup` takes sliding windows by marker alone, `aligned_snapshots` queues that block or "
        "give credits; a `hybrid` goes with what all its members do.\n"
    )
    return "\n".join([*lines, "", notes])


def _commands() -> str:
    """The help of every command, as a terminal shows it."""
    from typer.testing import CliRunner

    from tideover.cli import scenarios
    from tideover.cli.app import app

    names = [[str(one.name)] for one in app.registered_commands]
    names += [["scenarios", str(one.name)] for one in scenarios.app.registered_commands]
    found = ["# Commands\n"]
    for words in sorted(names):
        told = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "100", "NO_COLOR": "1"})
        lines = "\n".join(line.rstrip() for line in told.output.strip("\n").splitlines())
        found.append(f"## tideover {' '.join(words)}\n\n```text\n{lines}\n```\n")
    return "\n".join(found)


def _write(name: str, text: str) -> None:
    page = ROOT / "docs" / f"{name}.md"
    if not page.exists() or page.read_text("utf-8") != text:
        page.write_text(text, "utf-8")


def _formula(display: str) -> tuple[Callable[[HTML5Translator, nodes.math | nodes.math_block], None], None]:
    """Formulas are MathML, which browsers draw themselves: no script, and nothing from a network."""

    def visit(self: HTML5Translator, node: nodes.math | nodes.math_block) -> None:
        formula = latex2mathml.converter.convert(node.astext(), display=display)
        self.body.append(f'<div class="formula">{formula}</div>' if display == "block" else formula)
        raise nodes.SkipNode

    return visit, None


OFFER = "{nb-download}"


def _offered(app: Sphinx, name: str, source: list[str]) -> None:
    """A lesson ends with itself, as it was executed, for those who want to go on in Jupyter."""
    if Path(app.env.doc2path(name)).suffix == ".py":
        file = f"{name.rpartition('/')[2]}.ipynb"
        source[0] += f"\n# %% [markdown]\n# {OFFER}`This lesson as a notebook <{file}>`\n"


def _filled(app: Sphinx, _: object) -> None:
    """Those that MyST-NB has not run itself, but found among what is kept, it writes without outputs.

    And none has to offer itself.
    """
    kept = get_cache(nb_execution_cache_path)
    made = Path(app.outdir).parent / "jupyter_execute"
    for name in sorted(app.env.found_docs):
        if not name.startswith("lessons/"):
            continue
        file = made / f"{name}.ipynb"
        _, whole = kept.merge_match_into_notebook(nbformat.read(file, as_version=4))
        whole.cells = [cell for cell in whole.cells if not cell.source.startswith(OFFER)]
        nbformat.write(whole, file)


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("builder-inited", _written)
    app.connect("source-read", _offered)
    app.connect("env-updated", _filled)
    app.add_html_math_renderer("mathml", _formula("inline"), _formula("block"))
