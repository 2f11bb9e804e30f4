"""The page of `tideover explore` in a real browser: Debian's Chromium, without a window."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.reports.serving import serving
from tideover.reports.explore import server as export
from tideover.reports.explore.answer import World, answer
from tideover.reports.explore.server import Server, Workers
from tideover.scenarios import library

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.xdist_group("explore")
WIDE, NARROW = {"width": 1200, "height": 900}, {"width": 390, "height": 844}
START = "#scenario=wordcount&first=source_replay&second=rsm&moment=75&timeout_phase=10"
NAMES = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str | None:
    """The one that is here, or one that Debian's packages bring."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", "chromium"]):
            subprocess.run(command, capture_output=True, timeout=600, check=False)
        found = next(filter(None, map(shutil.which, NAMES)), None)
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = chromium()
    if path is None:
        pytest.skip("no Chromium is here, and none can be installed")
    with playwright.sync_playwright() as driver:
        options = ["--no-sandbox"] if os.geteuid() == 0 else []
        made = driver.chromium.launch(executable_path=path, args=options)
        yield made
        made.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("explored")


@pytest.fixture(scope="module")
def mine(folder: Path) -> Path:
    """A scenario of one's own."""
    file = folder / "mine.yaml"
    file.write_text(library.text("wordcount"))
    return file


@pytest.fixture(scope="module")
def server(mine: Path) -> Iterator[Server]:
    with closing(Workers(str(mine), longest_s=30)) as workers, serving(workers) as made:
        yield made


class Shown:
    """A page, what it complains of, and what it loads."""

    def __init__(self, browser: Any, **options: Any) -> None:
        self.context = browser.new_context(viewport=WIDE, **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.wrong: list[str] = []
        self.loaded: list[str] = []
        self.page.on("console", lambda one: self.wrong.append(one.text) if one.type == "error" else None)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", lambda one: self.loaded.append(one.url))

    def open(self, address: str) -> Any:
        self.page.goto("about:blank")
        self.page.goto(address)
        self.settle()
        return self.page

    def settle(self) -> None:
        """Until what was asked last is shown."""
        self.page.wait_for_selector("main.tideover-explore:not([aria-busy])")

    def hears(self, words: str) -> None:
        """Until this is said on the page."""
        said = "(words) => document.querySelector('.said').textContent.includes(words)"
        self.page.wait_for_function(said, arg=words)

    def numbers(self, side: str) -> dict[str, float | None]:
        rows = self.page.query_selector_all(f"#side-{side} table tr")
        found = {}
        for row in rows:
            value = row.query_selector("td").get_attribute("data-value")
            found[row.query_selector("th").inner_text()] = None if value in (None, "null") else float(value)
        return found

    def both(self) -> list[dict[str, float | None]]:
        return [self.numbers(side) for side in ("first", "second")]


@pytest.fixture
def shown(browser: Any, server: Server) -> Iterator[Shown]:
    made = Shown(browser)
    yield made
    made.context.close()
    assert made.wrong == []


world = cache(World.of)


def numbers(kind: str, moved: dict[str, Any], name: str = "wordcount") -> dict[str, float | None]:
    """What `tideover run` says (held in test_explore.py)."""
    return {one["label"]: one["value"] for one in answer(world(name), kind, moved)["numbers"]}


def slide(page: Any, name: str, place: int) -> float:
    """Move a slider to one of its positions, as a pointer would; the value that it then has."""
    page.evaluate(
        "([id, place]) => { const one = document.getElementById(id); one.value = place;"
        " one.dispatchEvent(new Event('input', { bubbles: true })); }",
        [f"control-{name}", place],
    )
    value: Any = world("wordcount").controls[name].values[place]
    return value


def test_every_slider_moves_the_numbers_of_run(shown: Shown, server: Server) -> None:
    page = shown.open(server.address + START)
    sliders = page.eval_on_selector_all("input[type=range][id^=control-]", "all => all.map((one) => one.id)")
    names = [one.removeprefix("control-") for one in sliders]
    some = ("moment", "timeout_phase", "message_timeout", "timeout_buckets", "checkpoint_interval", "rate")
    assert {*some} <= {*names}
    moved: dict[str, Any] = {"moment": 75.0, "timeout_phase": 10.0}
    seen = [shown.both()]
    for name in names:
        most = int(page.get_attribute(f"#control-{name}", "max"))
        moved[name] = slide(page, name, min(most, 2 if name != "moment" else 20))
        shown.settle()
        seen.append(shown.both())
        controls = world("wordcount").controls
        assert seen[-1] == [
            numbers(kind, {one: value for one, value in moved.items() if controls[one].concerns(kind)})
            for kind in ("source_replay", "rsm")
        ], name
        assert page.get_attribute(f"#control-{name}", "aria-valuetext")
    assert len({str(each) for both in seen for each in both}) > len(names)  # and they change


def test_the_address_gives_the_same_page_again(shown: Shown, server: Server) -> None:
    page = shown.open(server.address + START)
    for change in (
        lambda: page.select_option("#side-second select", "active_replication"),
        lambda: slide(page, "k", 1),
        lambda: page.select_option("#control-failure", "crash_task"),
    ):
        change()
        shown.settle()
    address, before = page.url, shown.both()
    assert "second=active_replication" in address
    page = shown.open(address)
    assert shown.both() == before
    assert page.input_value("#control-failure") == "crash_task"
    assert page.input_value("#control-k") == "1"
    page.evaluate("location.hash = '#scenario=kill-host&first=none&second=rsm'")
    page.wait_for_function("() => document.querySelector('h1').textContent.includes('one host of four dies')")
    shown.settle()
    assert shown.numbers("first") == numbers("none", {}, "kill-host")


def test_the_diagram_plays(shown: Shown, server: Server) -> None:
    page = shown.open(server.address + START)
    button = page.locator("#diagram-first .play button").first
    slider, cursor = page.locator("#diagram-first .play input"), page.locator("#diagram-first .cursor")
    assert cursor.get_attribute("visibility") == "hidden"
    button.click()
    page.wait_for_function("() => Number(document.querySelector('#diagram-first .play input').value) > 20")
    assert cursor.get_attribute("visibility") == "visible"
    button.click()  # pauses
    at = float(slider.input_value())
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert float(slider.input_value()) == at + 1
    drawn = page.inner_text("#diagram-first .play output")
    page.locator("#diagram-first .play button[aria-label=later]").click()
    page.wait_for_function(
        "(old) => document.querySelector('#diagram-first .play output').textContent !== old", arg=drawn
    )


def test_roots_fall_into_two_batches(shown: Shown, server: Server) -> None:
    page = shown.open(server.address + START)
    label = page.get_attribute("#side-first svg.roots", "aria-label")
    assert label == "150 roots time out: 100 at 100 s, 50 at 130 s."
    assert page.locator("#side-first svg.roots rect").count() > 300
    assert page.locator("#side-first svg.roots .rotation").count() == 3


HEIGHTS = """() => [...document.querySelectorAll(".diagram svg text")].map((one) =>
  parseFloat(getComputedStyle(one).fontSize) * one.getScreenCTM().d)"""
"""Of the words in diagrams, as drawn (px)."""


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["1200", "390"])
def test_it_fits(shown: Shown, server: Server, size: dict[str, int]) -> None:
    shown.page.set_viewport_size(size)
    page = shown.open(server.address + START)
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    tops = [page.locator(f"#side-{side}").bounding_box() for side in ("first", "second")]
    assert (tops[0]["y"] == tops[1]["y"]) == (size is WIDE)
    assert min(page.evaluate(HEIGHTS)) >= 8


def test_by_keyboard_alone(shown: Shown, server: Server) -> None:
    page = shown.open(server.address + START)
    wanted = page.eval_on_selector_all(
        "main button, main select, main input",
        "all => all.map((one) => one.id || one.getAttribute('aria-label') || one.textContent)",
    )
    focus = (
        "() => { const one = document.activeElement; const style = getComputedStyle(one);"
        " return [one.id || one.getAttribute('aria-label') || one.textContent, style.outlineStyle]; }"
    )
    reached = []
    for _ in range(len(wanted) + 3):
        page.keyboard.press("Tab")
        reached.append(page.evaluate(focus))
    assert {*wanted} <= {name for name, _ in reached}
    assert {outline for name, outline in reached if name in wanted} == {"solid"}
    page.focus("#control-moment")
    before = page.url
    page.keyboard.press("ArrowRight")
    shown.settle()
    assert "moment=76" in page.url != before
    assert shown.numbers("second") == numbers("rsm", {"moment": 76.0})


LIKE_JUPYTER = """() => document.addEventListener("keydown", (event) => {
  let element = event.target;
  for (; element && !element.hasAttribute("data-lm-suppress-shortcuts"); element = element.parentElement)
    if (element.matches(":focus")) { event.preventDefault(); event.stopPropagation(); return; }
}, true)"""
"""Its shortcuts, as @lumino/commands looks for them: from the element in focus up to one that wants none."""


def test_jupyter_leaves_the_keys_to_the_page(shown: Shown, server: Server) -> None:
    page = shown.open(server.address + START)
    page.evaluate(LIKE_JUPYTER)
    for control, key in (("#control-moment", "ArrowRight"), ("#control-failure", "ArrowDown")):
        before = page.url
        page.focus(control)
        page.keyboard.press(key)
        shown.settle()
        assert page.url != before, control


CONTRAST = """() => {
  const channel = (v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const read = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const ground = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const c = read(getComputedStyle(at).backgroundColor);
      if (c.length === 3 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const one of document.querySelectorAll("main *")) {
    if (one.closest(".diagram") || one.closest("defs")) continue;
    const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !one.getClientRects().length || one.tagName === "OPTION" || one.tagName === "title") continue;
    const style = getComputedStyle(one), svg = one.namespaceURI.includes("svg");
    const a = light(read(svg ? style.fill : style.color)), b = light(ground(one));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) found.push([one.tagName, one.textContent.slice(0, 40), Math.round(ratio * 10) / 10]);
  }
  return found;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_can_be_read(browser: Any, server: Server, scheme: str) -> None:
    shown = Shown(browser, color_scheme=scheme)
    page = shown.open(server.address + START)
    assert page.evaluate(CONTRAST) == []
    faint = {"light": "#999", "dark": "#555"}[scheme]
    page.evaluate("(colour) => { document.querySelector('.headline').style.color = colour; }", faint)
    assert page.evaluate(CONTRAST) != []  # it would be seen
    shown.context.close()


def test_figures_have_texts_and_captions(shown: Shown, server: Server) -> None:
    page = shown.open(server.address + START)
    figures = page.eval_on_selector_all(
        "figure", "all => all.map((one) => one.querySelector('figcaption')?.textContent.length ?? 0)"
    )
    assert len(figures) >= 9
    assert min(figures) > 20
    assert page.locator("svg[role=img]:not([aria-label])").count() == 0
    unnamed = "all => all.filter((one) => !one.labels.length).length"
    assert page.locator("input:not([aria-label])").evaluate_all(unnamed) == 0


def test_a_wrong_address_is_told_and_the_rest_is_shown(shown: Shown, server: Server) -> None:
    page = shown.open(server.address + "#scenario=wordcount&first=magic&second=rsm&rate=77777&colour=red")
    said = page.inner_text(".said")
    assert "first: magic is no strategy" in said
    assert "rate: 77777 is no position" in said
    assert "colour: there is no such control" in said
    assert shown.numbers("second") == numbers("rsm", {})
    page = shown.open(server.address + "#scenario=nowhere")
    assert "there is no 'nowhere' here" in page.inner_text(".said")
    shown.wrong = [text for text in shown.wrong if "400 (Bad Request)" not in text]


def test_an_older_answer_never_takes_the_place_of_a_newer_one(shown: Shown, server: Server) -> None:
    """The first request for a moment of 80 s is held back until the one for 90 s has been answered."""
    page = shown.open(server.address + START)
    held: list[Any] = []

    def hold(route: Any) -> None:
        if '"moment":80' in (route.request.post_data or "") and "answer" in route.request.url:
            held.append(route)
        else:
            route.continue_()

    page.route("**/answer", hold)
    places = world("wordcount").controls["moment"].values
    slide(page, "moment", places.index(80.0))
    page.wait_for_function("() => document.querySelector('.waits')")  # 200 ms have gone by
    slide(page, "moment", places.index(90.0))
    shown.settle()
    for route in held:
        route.abort() if route.request.failure else route.continue_()
    page.unroute("**/answer")
    assert held
    assert shown.numbers("second") == numbers("rsm", {"moment": 90.0})
    assert page.locator(".waits").count() == 0


LATE = """async () => {
  const { mount, server } = await import("/explore.js");
  const element = document.createElement("main");
  document.body.replaceChildren(element);
  const held = new Promise((free) => { window.free = free; });
  mount(element, async (what, request) => {
    const found = await server()(what, request);
    if (request.moved?.moment === 80) await held;
    return found;
  });
}"""


def test_nor_does_one_of_a_source_that_cannot_be_stopped(shown: Shown, server: Server) -> None:
    page = shown.open(server.address + START)
    page.evaluate(LATE)
    shown.settle()
    places = world("wordcount").controls["moment"].values
    slide(page, "moment", places.index(80.0))
    page.wait_for_function("() => document.querySelector('.waits')")
    slide(page, "moment", places.index(90.0))
    shown.settle()
    page.evaluate("async () => { window.free(); await new Promise((done) => setTimeout(done)); }")
    assert shown.numbers("second") == numbers("rsm", {"moment": 90.0})


def test_a_run_that_does_not_end_and_a_file_that_changes_are_told(
    browser: Any, server: Server, mine: Path
) -> None:
    shown = Shown(browser)
    page = shown.open(f"{server.address}#scenario=mine.yaml&first=source_replay&second=rsm&moment=75")
    text = mine.read_text()
    mine.write_text(text.replace("rate: 10/s", "rate: 20/s"))
    slide(page, "moment", 1)
    shown.hears("The file has changed")
    mine.write_text(text.replace("rate: 10/s", "rate: fast"))
    slide(page, "moment", 2)
    shown.hears("mine.yaml:8: topology.sentences.rate")
    shown.settle()
    assert page.locator(".side.old").count() == 2
    mine.write_text(text)
    server.workers.longest_s = 0.001
    slide(page, "moment", 3)
    shown.hears("did not end within")
    server.workers.longest_s = 30
    slide(page, "moment", 4)
    shown.settle()
    assert page.locator(".side.old").count() == 0
    shown.context.close()


def test_an_exported_page_needs_nothing(browser: Any, folder: Path) -> None:
    file = folder / "page.html"
    file.write_bytes(export.page(world("wordcount"), ["source_replay", "rsm"], {"moment": [70.0, 75.0]}))
    shown = Shown(browser)
    page = shown.open(file.as_uri())
    slide_to = page.locator("#control-moment")
    assert slide_to.get_attribute("max") == "2"
    slide_to.focus()
    page.keyboard.press("End")
    shown.settle()
    assert shown.numbers("first") == numbers("source_replay", {"moment": 75.0})
    assert [url for url in shown.loaded if not url.startswith(("file:", "data:", "about:"))] == []
    assert shown.wrong == []
    shown.context.close()
