"""The site: it is built without a warning, which runs every lesson and the command of every question; its
links lead somewhere, it needs no network, and its figures have texts.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import tideover
from tideover.scenarios.reference import markdown

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
pytestmark = pytest.mark.xdist_group("site")
QUESTIONS = 21
LESSONS = 6
EXPLORED = 3
MOST_BYTES = 5_000_000
"""Of a page with its runs inside."""


class Page(HTMLParser):
    """What a page refers to, and its anchors.

    links     where one gets by a click
    assets    what the browser loads by itself
    textless  pictures without a text
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.assets: list[str] = []
        self.anchors: set[str] = set()
        self.textless: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in ("script", "img", "iframe", "source") and "src" in given:
            self.assets.append(given["src"])
        if tag == "link" and given.get("rel") in ("stylesheet", "preload", "icon", "modulepreload"):
            self.assets.append(given["href"])
        if tag == "img" and not given.get("alt"):
            self.textless.append(given.get("src", ""))
        if tag == "iframe" and not given.get("title"):
            self.textless.append(given.get("src", ""))
        if tag == "svg" and given.get("role") == "img" and not given.get("aria-label"):
            self.textless.append("svg")


def sphinx(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", *map(str, arguments)]
    env = os.environ | {"PYTHONPATH": str(ROOT), "JUPYTER_PLATFORM_DIRS": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=env)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    done = sphinx("-W", "--keep-going", "-d", out / "trees", DOCS, out / "html")
    assert done.returncode == 0, done.stderr
    return out / "html"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {file: Page(file.read_text("utf-8")) for file in sorted(site.rglob("*.html"))}


def broken(pages: dict[Path, Page]) -> Iterator[str]:
    """Links and assets that lead nowhere."""
    for file, page in pages.items():
        for link in [*page.links, *page.assets]:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            known = pages.get(target)
            if not target.exists():
                yield f"{file.name}: {link}: there is no such file"
            elif parts.fragment and known is not None and unquote(parts.fragment) not in known.anchors:
                yield f"{file.name}: {link}: there is no such anchor"


def test_every_link_leads_somewhere(pages: dict[Path, Page]) -> None:
    assert list(broken(pages)) == []
    assert sum(len(page.links) for page in pages.values()) > 1000


def test_a_broken_link_would_be_found(tmp_path: Path) -> None:
    file = tmp_path / "a.html"
    file.write_text('<a href="#b"></a><a href="c.html"></a><a href="#d" id="d"></a>')
    assert [text.split(": ")[1] for text in broken({file: Page(file.read_text())})] == ["#b", "c.html"]


def test_nothing_comes_from_a_network_and_pictures_have_texts(pages: dict[Path, Page], site: Path) -> None:
    """Links to elsewhere are secure and whole."""
    assert {file.name: page.textless for file, page in pages.items() if page.textless} == {}
    loaded = [asset for page in pages.values() for asset in page.assets]
    assert [asset for asset in loaded if urlsplit(asset).scheme not in ("", "data")] == []
    styles = "".join(file.read_text("utf-8") for file in site.rglob("*.css"))
    assert re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//[^)\"']*", styles) == []
    links = {link for page in pages.values() for link in page.links}
    outside = {link for link in links if urlsplit(link).scheme not in ("", "mailto")}
    assert sorted(link for link in outside if not re.fullmatch(r"https://[\w.-]+\.\w+(/\S*)?", link)) == []


def test_all_lessons_and_questions_are_there(site: Path) -> None:
    """Each question says where it was asked, has one command, one figure, and what to notice."""
    lessons = [file.stem for file in (site / "lessons").glob("*.html")]
    assert len(lessons) == LESSONS
    questions = sorted((DOCS / "questions").glob("*.md"))
    assert len(questions) == QUESTIONS
    for file in questions:
        text, html = file.read_text("utf-8"), (site / "questions" / f"{file.stem}.html").read_text("utf-8")
        assert text.count("```{answer}") == 1, file.name
        assert html.count('<figure class="answer">') == 1, file.name
        assert "## What to notice" in text, file.name
        before = text.partition("```{answer}")[0]
        assert re.search(r"[Aa]sked|[Tt]aken from", before), file.name
        assert "](https://" in before, file.name


def test_each_lesson_is_there_as_a_notebook_with_what_it_put_out(pages: dict[Path, Page], site: Path) -> None:
    for lesson in (site / "lessons").glob("*.html"):
        (link,) = (link for link in pages[lesson].links if link.endswith(f"/{lesson.stem}.ipynb"))
        cells = json.loads((lesson.parent / unquote(link)).read_text("utf-8"))["cells"]
        assert any(cell.get("outputs") for cell in cells), lesson.name


def test_pages_to_play_with_are_there(pages: dict[Path, Page], site: Path) -> None:
    """Each stands in a frame of another page, and has all its runs inside."""
    framed = [asset for asset in pages[site / "explore.html"].assets if asset.startswith("explored/")]
    assert len(framed) == EXPLORED
    assert all((site / file).stat().st_size < MOST_BYTES for file in framed)


def test_the_index_by_engine_names_what_there_is() -> None:
    """Its second column has keys and kinds of the reference, its last lines scenarios and examples."""
    text = (DOCS / "by-engine.md").read_text("utf-8")
    column = "".join(re.findall(r"^\| .*? \| (.*) \|$", text, re.MULTILINE))
    named = {word for code in re.findall(r"`([^`/]+)`", column) for word in re.findall(r"[a-z_]{3,}", code)}
    known = set(re.findall(r"[a-z_]{3,}", markdown()))
    assert named - known == set()
    below = " ".join(re.findall(r"^- Scenarios: (.*)$", text, re.MULTILINE))
    for name in re.findall(r"`([^`]+)`", below):
        assert (ROOT / name).exists() if "/" in name else tideover.load(name), name


def test_a_command_that_fails_stops_the_build(tmp_path: Path) -> None:
    """So does a word that the output lacks, a figure that there is not, a page that cannot be made."""
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "conf.py").write_text(
        f"import sys; sys.path.insert(0, {str(DOCS / '_ext')!r})\n"
        "extensions = ['myst_parser', 'answers', 'explored']\n"
        f"answers_root, answers_kept = {str(ROOT)!r}, {str(tmp_path / 'kept')!r}\n"
        f"explored_kept = {str(tmp_path / 'pages')!r}\n"
    )
    (docs / "index.md").write_text(
        "# A\n\n```{answer}\ntideover run no-such-thing\n```\n\n"
        "```{answer}\n:figure: Nothing\n:caption: c\n:alt: a\n"
        "tideover run wordcount --set run.replications=1\n```\n\n"
        "{seen}`word count: seed 1` {seen}`word count: seed 2`\n\n"
        "```{explored} wordcount --grid nope=1\n:title: t\n```\n"
    )
    done = sphinx(docs, tmp_path / "out")
    warned = [line for line in done.stderr.splitlines() if "WARNING" in line]
    wrong = ["no-such-thing", "figure 'Nothing'", "'word count: seed 2'", "'nope=1'"]
    assert [words in line for words, line in zip(wrong, warned, strict=True)] == [True] * len(wrong)
