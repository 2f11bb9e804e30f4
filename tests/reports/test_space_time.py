"""The space-time diagram as a picture: what is in it, where, and what it says it leaves out."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest

import tideover
from tests.oracle.worlds import MS, bolt, fault, ms, spout, world
from tideover.cli.run import trace_lines
from tideover.models.accounts.trace import Stretch
from tideover.models.config import Scenario
from tideover.models.evaluation.diagram import Arrow, Diagram
from tideover.models.job.components import Links
from tideover.models.simulation import simulate, watch
from tideover.reports.audits import pictured
from tideover.reports.figures.space_time import LISTED, Highlight, choose, layout, only, space_time
from tideover.reports.pages import usual_stretch
from tideover.scenarios.audit.cases import Case, Moment, Strike, Verdict, Victim
from tideover.scenarios.audit.examples import Example
from tideover.sim.units import S

SVG = "{http://www.w3.org/2000/svg}"
PARAMETERS: dict[str, dict[str, Any]] = {
    "source_replay": {"message_timeout": 300 * MS, "ack_cost": 1 * MS},
    "rsm": {"checkpoint_interval": 100 * MS, "replay_cost": 1 * MS},
    "aligned_snapshots": {"checkpoint_interval": 100 * MS},
    "active_replication": {"k": 1, "hosts": 8},
    "micro_batch": {"trigger_interval": 200 * MS},
    "storm_checkpoint": {"message_timeout": 300 * MS, "checkpoint_interval": 200 * MS},
    "none": {},
}


def word_count(strategy: str) -> Scenario:
    """s ──▶ split (2) ──▶ 2 count (3), windows of 400 ms; count.0 is down from 1000 to 1150."""
    topology = {
        "s": spout("sentences", gap=40),
        "split": bolt("split_words", {"s": "shuffle"}, 2),
        "count": bolt("windowed_count", {"split": "fields"}, 3, window={"length": 400 * MS}, parallelism=2),
    }
    down = fault("crash_task", 1000, component="count", detection=50, restart=100)
    links = Links(latency=ms(5), local=ms(5))
    return world(topology, strategy, (down,), 2000, links=links, **PARAMETERS[strategy])


@cache
def watched(strategy: str, begin: int = 900, end: int = 1300) -> Diagram:
    return watch(word_count(strategy), 0, Stretch(begin * MS, end * MS))


def titles(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter(f"{SVG}title")]


def numbers(group: ET.Element) -> Iterator[float]:
    """Where shapes are, from left to right."""
    for shape in group.iter():
        for name in ("x1", "x2", "cx"):
            if name in shape.attrib:
                yield float(shape.attrib[name])
        corners = re.findall(r"([\d.-]+)[ ,]([\d.-]+)", shape.get("points", "") + shape.get("d", ""))
        yield from (float(x) for x, _ in corners)
        if shape.tag == f"{SVG}rect":
            x = float(shape.attrib["x"])
            yield from (x, x + float(shape.attrib["width"]))


def written(svg: str) -> str:
    return "\n".join(element.text or "" for element in ET.fromstring(svg).iter(f"{SVG}text"))


@pytest.mark.parametrize("strategy", PARAMETERS)
def test_every_arrow_and_mark_has_its_text(strategy: str) -> None:
    """Law: the texts beside the pointer name each message that is drawn, and each step and window."""
    diagram = watched(strategy)
    shown, said = choose(diagram), titles(space_time(diagram))
    assert len(shown.arrows) > 40
    together = "\n".join(said)
    for arrow in shown.arrows:
        assert any(all(line in title for line in arrow.text) for title in said), arrow.text
    for event in diagram.events:
        assert event.text in together
    for down in diagram.downs:
        assert down.text in together
    assert max(title.count("attempt") for title in said) <= LISTED


@pytest.mark.parametrize("strategy", PARAMETERS)
def test_words_are_those_of_the_trace(strategy: str) -> None:
    """Law: what happens in the stretch is told in the same words by ``run --trace``."""
    one = simulate(word_count(strategy), trace=True)
    told = [line[18:] for line in trace_lines(one)]
    diagram = watched(strategy)
    for event in diagram.events:
        words = re.sub("^count.0: (failure|ready)", r"count: \1", event.text)
        if event.kind in ("detected", "ready"):
            assert words.partition(": ")[2] in "\n".join(told)
        else:
            assert words in told


@pytest.mark.parametrize("strategy", PARAMETERS)
@pytest.mark.parametrize("stretch", [(900, 1300), (1100, 1110), (0, 2000), (1995, 2000)])
def test_nothing_is_drawn_outside_of_the_stretch(strategy: str, stretch: tuple[int, int]) -> None:
    """Law: arrows and marks end at the edges of the stretch, but for the shapes of their ends."""
    diagram = watched(strategy, *stretch)
    place = layout(diagram, choose(diagram).lanes)
    root = ET.fromstring(space_time(diagram))
    for group in root.iter(f"{SVG}g"):
        if group.find(f"{SVG}title") is not None:
            for x in numbers(group):
                assert place.left - 10 <= x <= place.right + 18, ET.tostring(group)


def test_a_moment_is_where_it_belongs() -> None:
    """The first tuple that count.0 loses leaves at (its time - begin) / length of the way."""
    diagram = watched("none")
    lost = next(a for a in diagram.arrows if a.lost)
    assert lost.sent is not None
    svg = space_time(diagram)
    place = layout(diagram, diagram.lanes)
    groups = ET.fromstring(svg).iter(f"{SVG}g")
    group = next(g for g in groups if lost.text[0] in (g.findtext(f"{SVG}title") or ""))
    line = next(e for e in group.iter(f"{SVG}line") if "stroke-opacity" not in e.attrib["style"])
    share = (lost.sent - 900 * MS) / (400 * MS)
    wanted = place.left + share * (place.right - place.left)
    assert float(line.attrib["x1"]) == pytest.approx(wanted, abs=0.02)
    assert float(line.attrib["y1"]) == pytest.approx(place.y["split.0"], abs=0.02)


@pytest.mark.parametrize("most", [5, 30, 100])
def test_thinning_keeps_whole_trees_and_says_so(most: int) -> None:
    """Law: of each root that is drawn all tuples are, never more than ``most`` (but one whole root); the rest
    is counted below; what was lost or sent again comes first.
    """
    diagram = watched("source_replay", 900, 1700)
    tuples = [a for a in diagram.arrows if a.kind == "tuple"]
    begin, end = diagram.stretch
    inside = [a for a in tuples if (a.sent or 0) <= end and (a.came or a.over or end) >= begin]
    shown = choose(diagram, most=most)
    drawn = [a for a in shown.arrows if a.kind == "tuple"]
    roots = {a.whole for a in drawn}
    assert [a for a in inside if a.whole in roots] == drawn
    assert len(drawn) <= most or len(roots) == 1
    concerned = {a.whole for a in inside if a.lost or a.again}
    assert roots <= concerned or concerned <= roots
    words = f"{len(drawn):,} of {len(inside):,} tuples drawn: all those of {len(roots):,} of "
    assert words in written(space_time(diagram, most=most))
    acks = [a for a in shown.arrows if a.kind == "ack"]
    assert all(a.whole in roots for a in acks)


def test_what_is_left_out_is_no_silence() -> None:
    """Law: each end of a tuple in the stretch is one of an arrow, or counted in the bars below its lane."""
    diagram = watched("source_replay", 900, 1700)
    begin, end = diagram.stretch
    shown = choose(diagram, most=5)

    def ends(arrows: Iterable[Arrow]) -> Counter[tuple[str, int]]:
        both = ((at, lane) for a in arrows for at, lane in ((a.sent, a.source), (a.came, a.target)))
        return Counter((lane, at) for at, lane in both if at is not None and begin <= at <= end)

    tuples = [a for a in diagram.arrows if a.kind == "tuple"]
    drawn = [a for a in shown.arrows if a.kind == "tuple"]
    assert Counter(shown.rest) == ends(tuples) - ends(drawn)
    assert "Grey bars below a line" in written(space_time(diagram, most=5))
    assert not choose(diagram, most=10_000).rest
    small = watched("none")
    assert choose(small).left_out == ()
    assert "Not all is drawn" not in space_time(small)


def test_the_usual_stretch_shows_all_of_the_recovery() -> None:
    """A tenth of it is ahead of the failure, a tenth behind the recovery: 60 s of source replay are there."""
    result = tideover.run("wordcount", {"run.replications": 1})
    (row,) = result.replications[0].recoveries
    failed, recovered = row["failed_at_s"], row["failed_at_s"] + row["time_to_recover_s"]
    begin, end = usual_stretch(result)
    tenth = (end - begin) / S / 10
    assert recovered - failed > 30
    assert (failed - begin / S, end / S - recovered) == pytest.approx((tenth, tenth))


def test_what_the_picture_is_about_is_drawn_first_and_named() -> None:
    """However few are drawn, the tuple that a strike duplicated is among them, with that word; the strike
    stands before its step, or behind.
    """
    diagram = watched("rsm")
    concerned = [a for a in diagram.arrows if a.kind == "tuple" and not (a.lost or a.again)][-1]
    assert concerned.effect is not None
    step = next(e for e in diagram.events if e.what == "checkpoint saved")
    strike = "crash_task before checkpoint saved"
    about = Highlight(step.at, "before", strike, {concerned.effect: "duplicated"})
    svg = space_time(diagram, "smallest example", about, most=1)
    assert {"duplicated", strike} <= set(written(svg).splitlines())
    assert any(title.startswith("DUPLICATED") and concerned.text[0] in title for title in titles(svg))
    place = layout(diagram, choose(diagram).lanes)
    dark = [e for e in ET.fromstring(svg).iter(f"{SVG}line") if e.get("y1") == f"{place.top - 28:g}"]
    assert [float(e.attrib["x1"]) for e in dark] == pytest.approx([place.x(step.at) - 5] * 2, abs=0.01)


def test_only_some_components() -> None:
    """What two components exchange, and what they exchange with roles."""
    part = only(watched("source_replay"), {"split", "count"})
    assert [lane.name for lane in part.lanes] == ["split.0", "count.0", "count.1", "acker"]
    acked = {(task, "acker") for task in ("split.0", "count.0", "count.1")}
    tuples = {("split.0", "count.0"), ("split.0", "count.1")}
    assert {(a.source, a.target) for a in part.arrows} == tuples | acked


def test_hosts_are_bands() -> None:
    """Tasks of one host are beside one another, whatever their order in the topology."""
    topology = {
        "s": spout("keys", keys=2, hosts=(0,)),
        "p": bolt("forward", {"s": "shuffle"}, 1, hosts=(1,)),
        "q": bolt("forward", {"p": "shuffle"}, 1, hosts=(0,)),
    }
    diagram = watch(world(topology, until=50, hosts=2), 0, Stretch(0, 50 * MS))
    place = layout(diagram, diagram.lanes)
    assert sorted(place.y, key=lambda name: place.y[name]) == ["s.0", "q.0", "p.0"]
    assert [host for host, _, _ in place.bands] == [0, 1]


def test_the_picture_is_the_same_each_time_and_escapes_what_it_is_given() -> None:
    diagram = watched("rsm")
    title = "<script>alert(1)</script> & 'co'"
    svg = space_time(diagram, title)
    assert svg == space_time(watch(word_count("rsm"), 0, diagram.stretch), title)
    assert "<script" not in svg
    assert title in written(svg)
    # Inside of a page the colours are the page's variables; programs for slides know none.
    assert "var(--ink" in space_time(diagram, inline=True)
    assert "var(" not in space_time(diagram)
    assert "id=" not in space_time(diagram).replace("width=", "")


def test_an_audits_example_is_drawn_with_what_is_lost() -> None:
    """split crashes before a tuple is processed at count: what comes to it until it is back is lost, and
    drawn with that word, beside the strike.
    """
    quiet = word_count("none").model_copy(update={"failures": ()})
    moment = Moment(1000 * MS, "count.0", "tuple processed")
    strike = Strike(moment, "before", moment.at - 1, None)
    crash = fault("crash_task", 0, component="split", detection=50, restart=100)
    crash = crash.model_copy(update={"at": strike.at})
    victim = Victim("crash_task", (("component", "split"),), "split.0")
    example = Example(Case((crash,), (strike,), (victim,)), Verdict(), 0)
    picture = pictured(SimpleNamespace(scenario=quiet), example)
    words = picture.svg.replace("</text>", "\n")
    assert "crash_task of split.0, before count.0: tuple processed" in words
    assert ">lost\n" in words
    assert "LOST" in picture.svg
