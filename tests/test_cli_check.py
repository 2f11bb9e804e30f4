"""``tideover check``, from the command line and from Python: answers, exit codes, and what others read."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import tideover as library
from tideover.cli.output import json_text

ROOT = Path(__file__).parents[1]
RSM = {"strategy.kind": "rsm", "run.duration": "120 s", "run.replications": 2}
SHORT = [part for key, value in RSM.items() for part in ("--set", f"{key}={value}")]
MET, BROKEN, UNSURE = "lost = 0", "hosts <= 1 host", "recovery_p50 <= 1000 s"


@pytest.fixture
def check(tideover: Any) -> Any:
    return partial(tideover, "check")


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
