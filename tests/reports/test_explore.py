"""The page of `tideover explore` is told what `tideover run` says, and what its pictures need."""

from __future__ import annotations

import base64
import gzip
import json
import math
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tideover
from tideover import api
from tideover.models.simulation import simulate
from tideover.reports.explore import server
from tideover.reports.explore.answer import ONE_RUN, Answers, World, answer, pictured
from tideover.reports.figures.timeline import Roots
from tideover.scenarios import library
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load, load_for_strategies
from tideover.scenarios.precedence import read_settings

WORLD = World.of("wordcount")
WORDCOUNT = library.text("wordcount")
ASKED: dict[str, Any] = {"what": "answer", "scenario": "wordcount", "strategy": "rsm", "moved": {}}
MOVED: list[tuple[str, str, dict[str, Any]]] = [
    ("wordcount", "source_replay", {}),
    ("wordcount", "source_replay", {"moment": 75.0, "timeout_phase": 10.0, "message_timeout": 20.0}),
    ("wordcount", "rsm", {"moment": 71.0, "checkpoint_interval": 15.0, "rate": 50.0}),
    ("wordcount", "active_replication", {"k": 2.0, "failure": "crash_task", "restart": 5.0}),
    ("wordcount", "source_replay", {"failure": "none", "moment": 75.0}),
    ("kill-host", "aligned_snapshots", {"detection": 20.0, "rate": 25.0}),
    ("kill-host", "hybrid", {}),
    ("kafka-streams-handover", "changelog", {}),
]


def told(found: dict[str, Any]) -> dict[str, Any]:
    return {one["label"]: one["value"] for one in found["numbers"]}


@pytest.mark.parametrize(("name", "kind", "moved"), MOVED)
def test_its_numbers_are_those_of_the_command_below_them(name, kind, moved, tideover) -> None:
    found = answer(World.of(name), kind, moved)
    words = shlex.split(found["equals"])
    assert words[0] == "tideover"
    assert ONE_RUN in words
    code, out, _ = tideover(*words[1:], "--json")
    assert code == 0
    record = json.loads(out)
    numbers, rows = told(found), record["recoveries"]
    times = [row["time_to_recover_s"] for row in rows]
    assert numbers["time to recover, s"] == (times[0] if times else None)
    assert numbers["roots lost"] == record["ledger"]["lost"]
    assert numbers["counted twice"] == record["ledger"]["duplicated"]
    assert numbers["windows wrong"] == record["windows"]["wrong"] + record["windows"]["missing"]
    assert numbers["normal latency, ms"] == record["latency_ms"]["mean"]
    assert found["failure"] is None or found["failure"]["at_s"] == rows[0]["failed_at_s"]


def test_stages_add_up_and_the_series_is_the_timeline() -> None:
    moved = {"moment": 75.0}
    for kind in WORLD.every.kinds:
        found = answer(WORLD, kind, moved)
        took = told(found)["time to recover, s"]
        assert math.isclose(sum(stage["s"] for stage in found["stages"]), took or 0.0, abs_tol=1e-6), kind
        one = simulate(api.load("wordcount", found_settings(kind, moved)))
        assert found["series"]["backlog"] == [row["backlog"] for row in one.timeline], kind


def found_settings(kind: str, moved: dict[str, Any]) -> list[str]:
    return [f"strategy.kind={kind}", *WORLD.settings(kind, moved)]


def test_lost_roots_fall_into_two_batches_where_the_law_says_so() -> None:
    """Window from 60 s, rotations at 70 s, 100 s, …; lost at 75 s: what came in the 10 s before 70 s is in
    the oldest bucket at 100 s, what came in the 5 s after it at 130 s; 10 roots a second.
    """
    found = answer(WORLD, "source_replay", {"moment": 75.0, "timeout_phase": 10.0})["roots"]
    assert found["batches"] == [{"given_up": 100.0, "roots": 100}, {"given_up": 130.0, "roots": 50}]
    assert [at for at in found["rotations"] if 60 < at < 140] == [70.0, 100.0, 130.0]
    assert all(row["lost"] == max(75.0, row["emitted"]) for row in found["rows"])
    assert {row["batch"] for row in found["rows"]} == {0, 1}
    before = max(place for place, at in enumerate(found["t_s"]) if at < 100)
    assert [bucket["lost"][before] for bucket in found["buckets"]] == [50, 100]  # the newest first


class RotatingMap:
    """Storm's, in a few lines."""

    def __init__(self, buckets: int) -> None:
        self.buckets: list[set[Any]] = [set() for _ in range(buckets)]

    def rotate(self) -> set[Any]:
        self.buckets.insert(0, set())
        return self.buckets.pop()


@pytest.mark.parametrize("buckets", [2, 3])
def test_buckets_hold_what_a_rotating_map_holds(buckets: int) -> None:
    moved = {"moment": 75.0, "timeout_phase": 10.0, "timeout_buckets": float(buckets)}
    settings = found_settings("source_replay", moved)
    one = simulate(load("wordcount", settings), trace=True)
    trace, s = one.trace, 1e9
    events: list[tuple[float, int, Any]] = [(at / s, 0, (root, n)) for _, _, root, n, at in trace.emitted]
    events += [(at / s, 1, (root, n)) for root, n, at in trace.completed]
    these = Roots(trace, [75.0])
    events += [(float(at), 2, None) for each in these.rotations.values() for at in each]
    instants = [50.25, 72.45, 88.65, 99.95, 103.35, 131.15, 150.55]
    inside = these.in_buckets(np.array(instants))
    found, book = [], RotatingMap(buckets)
    for _, what, root in sorted([*events, *((at, 3, None) for at in instants)], key=lambda one: one[:2]):
        if what == 0:
            book.buckets[0].add(root)
        elif what == 1:
            for bucket in book.buckets:
                bucket.discard(root)
        elif what == 2:
            book.rotate()
        else:
            found.append([len(bucket) for bucket in book.buckets])
    for place, sizes in enumerate(found):
        counted = [int(each[:, place].sum()) for each in inside]
        assert counted + [0] * (buckets - len(counted)) == sizes


def test_every_position_of_every_control_is_a_scenario_or_refused_in_words() -> None:
    refused = []
    for kind in WORLD.every.kinds:
        for control in [one for one in WORLD.controls.values() if one.concerns(kind)]:
            for value in control.values:
                settings = read_settings(WORLD.settings(kind, {control.name: value}))
                try:
                    load_for_strategies(WORLD.tree, [kind], settings)
                except ScenarioError as error:
                    refused.append((kind, control.name, value, str(error)))
    assert [one for one in refused if not one[3].startswith("--set: ")] == []


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"scenario": "nowhere"}, "'nowhere'"),
        ({"scenario": "../../etc/passwd"}, "passwd"),
        ({"scenario": ["wordcount"]}, "scenario: "),
        ({"strategy": "magic"}, "'magic' does not go"),
        ({"strategy": 5}, "strategy: 5"),
        ({"moved": {"topology": 1}}, "no such control"),
        ({"moved": {"rate": 12345}}, "no position"),
        ({"moved": {"rate": [1]}}, "no position"),
        ({"moved": None}, "moved: None"),
        ({"what": "picture", "at_s": "now"}, "at_s: 'now'"),
        ({"what": "remove"}, "what: 'remove'"),
    ],
)
def test_what_cannot_be_answered_is_refused_by_name(changed: dict[str, Any], words: str) -> None:
    asked = {key: value for key, value in (ASKED | changed).items() if value is not None}
    assert words in Answers()(asked)["refused"]


def test_a_file_is_read_again_when_it_changes_and_says_what_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(WORDCOUNT)
    answers, ask = Answers(str(file)), ASKED | {"scenario": "mine.yaml"}
    first = answers(ask)
    file.write_text(WORDCOUNT.replace("rate: 10/s", "rate: 20/s"))
    second = answers(ask)
    assert first["version"] != second["version"]
    assert told(second)["normal CPU, ms/s"] > 1.5 * told(first)["normal CPU, ms/s"]
    file.write_text(WORDCOUNT.replace("rate: 10/s", "rate: fast"))
    assert "mine.yaml:8: topology.sentences.rate: " in answers(ask)["refused"]
    file.unlink()
    assert "mine.yaml" in answers(ask)["refused"]
    assert "mine.yaml" in answers({"what": "describe"})["refused"]
    assert answers({"what": "describe", "scenario": "wordcount"})["title"] == "word count"


@pytest.mark.parametrize("name", ["cluster", "kill-host", "wordcount"])
def test_answers_and_pictures_are_small(name: str) -> None:
    world = World.of(name)
    for kind in ("source_replay", "active_replication"):
        assert len(json.dumps(answer(world, kind, {}))) < 300_000
        assert len(json.dumps(pictured(world, kind, {}))) < 600_000


def test_the_picture_is_around_the_moment_that_is_asked_for() -> None:
    found = pictured(WORLD, "rsm", {"moment": 75.0}, 75.0)
    length = found["to_s"] - found["from_s"]
    assert math.isclose(75.0 - found["from_s"], length / 5, rel_tol=1e-6)
    assert 'aria-label="Space-time diagram' in found["svg"]
    assert pictured(WORLD, "rsm", {}, 1e9)["to_s"] == 240.0


# -- a page with its runs inside


def inside(made: bytes) -> dict[str, Any]:
    held = made.split(b'id="runs">')[1].split(b"</script>")[0]
    found: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(held)))
    return found


def test_a_page_holds_the_runs_of_its_grid(tmp_path: Path) -> None:
    grid = {"moment": [70.0, 75.0], "message_timeout": [20.0]}
    made = server.page(WORLD, ["source_replay", "rsm"], grid)
    runs = inside(made)
    # Each moment and the file's; of one of them the timeout, too, and the file's.
    assert len(runs["runs"]) == 3 * 2 + 3
    key = 'source_replay [["message_timeout",20],["moment",75]]'
    moved = {"moment": 75.0, "message_timeout": 20.0}
    assert runs["runs"][key]["answer"] == json.loads(json.dumps(answer(WORLD, "source_replay", moved)))
    assert b"http://" not in made.replace(b"http://www.w3.org/", b"")
    assert b"https://" not in made
    assert server.MARK in made[:10_000]


def test_a_page_is_not_larger_than_it_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_PAGE_BYTES", 50_000)
    with pytest.raises(server.TooLarge, match="give fewer positions"):
        server.page(WORLD, ["rsm"], {"moment": [70.0]})


def test_a_cell_of_jupyter_is_told_the_same() -> None:
    pytest.importorskip("anywidget")
    page, sent = tideover.explore("wordcount"), []
    page.send = sent.append
    page._handle_custom_msg(ASKED | {"id": 1}, [])
    page._handle_custom_msg(ASKED | {"id": 2, "strategy": "x"}, [])
    assert sent[0]["id"] == 1
    assert told(sent[0]["answer"]) == told(answer(WORLD, "rsm", {}))
    assert "'x' does not go" in sent[1]["error"]
    assert "export function render" in page._esm
    assert "data-mount" not in page._esm


def test_a_page_does_not_say_where_its_file_lay(tmp_path: Path) -> None:
    """And the command of an answer can be pasted, whatever the path."""
    file = tmp_path / "my own.yaml"
    file.write_text(WORDCOUNT)
    world = World.of(str(file))
    runs = inside(server.page(world, ["rsm", "none"], {"moment": [70.0]}))
    assert (runs["describe"]["scenario"], runs["describe"]["scenarios"]) == ("my own.yaml", ["my own.yaml"])
    assert shlex.split(answer(world, "rsm", {})["equals"])[2] == str(file)


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("stableford-phase2", "source_replay", "rsm"),
        ("cluster", "active_replication", "source_replay"),
        ("flink-recovery", "aligned_snapshots", "rsm"),
        # It names others, but neither of the two that many know.
        ("estorm-synthetic", "source_replay", "storm_checkpoint"),
    ],
)
def test_it_begins_with_the_scenarios_own_strategy(name: str, first: str, second: str) -> None:
    described = World.of(name).described()
    assert (described["first"], described["second"]) == (first, second)
