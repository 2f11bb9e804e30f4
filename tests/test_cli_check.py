"""``tideover check``, from the command line and from Python: answers, exit codes, and what others read."""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
import warnings
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import tideover as library
from tideover.cli import main
from tideover.cli.output import json_text

ROOT = Path(__file__).parents[1]
RSM = {"strategy.kind": "rsm", "run.duration": "120 s", "run.replications": 2}
SHORT = [part for key, value in RSM.items() for part in ("--set", f"{key}={value}")]
MET, BROKEN, UNSURE = "lost = 0", "hosts <= 1 host", "recovery_p50 <= 1000 s"


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Calls the command in this process: exit code, standard output, standard error."""
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)

    def call(*args: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tideover", "check", *map(str, args)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return call


def asked(*texts: str) -> list[str]:
    return [part for text in texts for part in ("--objective", text)]


@pytest.mark.parametrize(
    ("texts", "strict", "code"),
    [
        ([MET], False, 0),
        ([MET, BROKEN], False, 1),
        ([UNSURE], False, 0),
        ([UNSURE], True, 1),
        ([MET], True, 0),
        (["cost <= 3/h", MET], False, 1),
    ],
)
def test_it_exits_with_1_if_an_objective_is_broken(
    check: Any, texts: list[str], strict: bool, code: int
) -> None:
    got, out, err = check("wordcount", *SHORT, *asked(*texts), *["--strict"] * strict)
    assert (got, err) == (code, "")
    assert ("broken" in out or "One of 2 objectives is not measured here" in out) == (code == 1)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["wordcount"], "wordcount: slo: has no objectives; give some there, slo: [recovery_p95 <= 20 s"),
        (
            ["wordcount", *asked("lots = 0")],
            "--objective: lots = 0: unknown metric 'lots'; did you mean lost?",
        ),
        (["wordcount", *asked(UNSURE), "--set", "failures=[]"], f"--objective: {UNSURE}: nothing fails"),
        (
            ["wordcount", *asked(MET), "--junit", "nowhere/x.xml"],
            "--junit: nowhere/x.xml: there is no directory",
        ),
        (["wordcount", *asked(MET), "--junit", "."], "--junit: .: is a directory"),
        (["wordcount", "--set", "slo=[lots = 0]"], "--set: slo.0: unknown metric 'lots'"),
        (["wordcont", *asked(MET)], "did you mean"),
    ],
)
def test_bad_input_is_one_line(check: Any, arguments: list[str], says: str) -> None:
    code, out, err = check(*arguments, *SHORT)
    assert (code, out) == (2, "")
    assert says in err
    assert len(err.splitlines()) == 1


def test_it_takes_the_objectives_of_the_scenario_or_those_that_are_given(check: Any) -> None:
    source = ["wordcount", *SHORT, "--set", f"slo=[{MET}]", "--json"]
    for more, texts in (([], [MET]), (asked(UNSURE), [UNSURE])):
        found = json.loads(check(*source, *more)[1])
        assert [one["objective"] for one in found["objectives"]] == texts
    assert found["replications"] == 2
    assert json.loads(check(*source, "--replications", 3)[1])["replications"] == 3


def test_an_objective_of_everything_is_warned_of(check: Any) -> None:
    objective = "availability >= 100 %"
    code, out, err = check("wordcount", *SHORT, *asked(objective), "--json")
    assert code == 1
    assert err.startswith(f"Warning: {objective}: an objective of 100 % leaves no error budget")
    assert json.loads(out)["remarks"]


def test_too_few_replications_are_told(check: Any) -> None:
    _, out, _ = check("wordcount", *SHORT, *asked("recovery_p99 <= 1000 s"))
    assert "2 replications are too few to decide it: at least 368 are needed" in " ".join(out.split())


def test_json_says_what_python_does(check: Any) -> None:
    _, out, _ = check("wordcount", *SHORT, *asked(MET, BROKEN, UNSURE), "--json")
    found = library.check("wordcount", [MET, BROKEN, UNSURE], RSM)
    assert out == json_text(found.to_dict())
    frame = found.to_frame()
    assert list(frame["objective"]) == [MET, BROKEN, UNSURE]
    assert list(frame["verdict"]) == [one.verdict for one in found.judgements] == ["met", "broken", "unsure"]
    assert not found.ok
    assert [one.objective.text for one in found.broken] == [BROKEN]
    assert "lost = 0" in found._repr_html_()
    assert repr(found).splitlines()[-1].strip() == f"{UNSURE}: unsure>"
    with pytest.raises(TypeError, match="give a list"):
        library.check("wordcount", MET)


# The elements and attributes that Jenkins' schema (junit-10.xsd) knows, those that it requires first.
ALLOWED = {
    "testsuites": ([], ["name", "time", "tests", "failures", "errors"]),
    "testsuite": (["name", "tests", "failures", "errors"], ["skipped", "time", "id", "timestamp"]),
    "properties": ([], []),
    "property": (["name", "value"], []),
    "testcase": (["name"], ["classname", "time", "group"]),
    "failure": ([], ["type", "message"]),
    "system-out": ([], []),
}
INSIDE = {
    "testsuites": ["testsuite"],
    "testsuite": ["properties", "testcase"],
    "properties": ["property"],
    "testcase": ["failure", "system-out"],
}


def test_junit_takes_the_place_of_its_own_files_alone(check: Any, tmp_path: Path) -> None:
    """The scenario itself, and any other file, stays as it is; nothing is run."""
    world = tmp_path / "world.yaml"
    world.write_text(library.load("wordcount").to_yaml())
    before = world.read_bytes()
    code, out, err = check(world, *asked(MET), "--junit", world)
    assert (code, out) == (2, "")
    assert "is there, and is not what tideover check wrote" in err
    assert world.read_bytes() == before


def test_junit_is_what_jenkins_and_gitlab_read(check: Any, tmp_path: Path) -> None:
    path = tmp_path / "out.xml"
    given = [*SHORT, *asked(MET, BROKEN, UNSURE), "--junit", path, "--set", 'name="a <b> & \\x07c"']
    check("wordcount", *given)
    text = path.read_text("utf-8")
    root = ElementTree.fromstring(text)
    for element in root.iter():
        required, more = ALLOWED[element.tag]
        assert {*required} <= {*element.attrib} <= {*required, *more}
        inner = [one.tag for one in element]
        assert inner == sorted(inner, key=INSIDE.get(element.tag, []).index)
    (suite,) = root
    cases = suite.findall("testcase")
    failed = [case.get("name") for case in cases if case.find("failure") is not None]
    assert [case.get("name") for case in cases] == [MET, BROKEN, UNSURE]
    assert failed == [BROKEN]
    assert (suite.get("tests"), suite.get("failures")) == ("3", "1")
    properties = {one.get("name"): one.get("value") for one in root.iter("property")}
    assert properties["seed"] == "1"
    assert properties["replications"] == "2"
    assert properties["version"] == library.__version__
    assert "interval: " in str(cases[1].findtext("system-out"))
    check("wordcount", *given)
    assert path.read_text("utf-8") == text


def test_the_page_shows_what_is_printed(check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command of docs/checks.md prints the block below it, and ends with the exit code that it names."""
    monkeypatch.chdir(ROOT / "examples")
    page = (ROOT / "docs" / "checks.md").read_text("utf-8")
    blocks = re.findall(
        r"```\ntideover check (.*?)\n```\n\n```\n(.*?)```\n\n[^\n]*exit code (\d)", page, re.DOTALL
    )
    assert len(blocks) >= 2
    for command, shown, code in blocks:
        got, out, _ = check(*command.split())
        assert [line.rstrip() for line in out.rstrip().splitlines()] == shown.splitlines()
        assert got == int(code)
    ((program, printed),) = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", page, re.DOTALL)
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(program, {})
    assert said.getvalue() == printed
