"""The block ``slo``: it travels with a scenario wherever that goes, and changes nothing that is simulated."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

import tideover
from tests.scenarios.test_bad_input import GOOD
from tideover import parts
from tideover.api import compared
from tideover.models.config import Slo
from tideover.scenarios import runs
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load, load_text
from tideover.scenarios.part_builder import to_data
from tideover.scenarios.reference import json_schema
from tideover.scenarios.sweeps import sweep_file

BLOCK = "slo: [recovery_p95 <= 20 s, {objective: lost = 0, level: 0.99}]\n"
SLO = (Slo(objective="recovery_p95 <= 20 s"), Slo(objective="lost = 0", level=0.99))
SHORT = {"run.duration": "80 s", "run.replications": 1}

BROKEN = [
    ("slo: lost = 0", "slo", "must be a list, as in [lost = 0]"),
    ("slo: {objective: lost = 0}", "slo", "must be a list"),
    ("slo: [3]", "slo.0", "must be a text"),
    ("slo: [null]", "slo.0", ""),
    ("slo: [lost = 0, lots = 0]", "slo.1", "did you mean lost?"),
    ("slo: [{objective: lots = 0}]", "slo.0.objective", "did you mean lost?"),
    ("slo: [{level: 0.9}]", "slo.0.objective", "is missing"),
    ("slo: [{objective: lost = 0, levl: 0.9}]", "slo.0.levl", "did you mean 'level'?"),
    ("slo: [{objective: lost = 0, level: 95 %}]", "slo.0.level", "must be a number"),
    ("slo: [{objective: lost = 0, level: 0.5}]", "slo.0.level", "must be more than 0.5"),
    ("slo: [{objective: lost = 0, level: 1}]", "slo.0.level", "must be less than 1"),
    ("sol: [lost = 0]", "sol", "did you mean 'slo'?"),
]


def test_an_entry_is_a_text_or_a_mapping() -> None:
    assert load_text(GOOD + BLOCK).slo == SLO
    assert load_text(GOOD).slo == ()


@pytest.mark.parametrize(("block", "key", "message"), BROKEN)
def test_what_is_wrong_is_said_where_it_stands(block: str, key: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load_text(GOOD + block, "job.yaml")
    problem = caught.value.problems[0]
    assert (problem.file, problem.line, problem.key) == ("job.yaml", 12, key)
    assert message in problem.message


def test_it_is_no_part_of_what_a_run_depends_on() -> None:
    without, with_it = load_text(GOOD), load_text(GOOD + BLOCK)
    assert runs.digest(without, "code") == runs.digest(with_it, "code")
    results = [tideover.run(one, SHORT).to_dict() for one in (without, with_it)]
    assert results[1].pop("scenario").pop("slo")
    assert "slo" not in results[0].pop("scenario")
    assert json.dumps(results[0]) == json.dumps(results[1])


def test_it_travels_with_the_scenario(tmp_path: Path) -> None:
    scenario = tideover.load(yaml(tmp_path))
    assert load(to_data(scenario)).slo == SLO
    assert tideover.load(scenario.to_yaml(tmp_path / "copy.yaml") and tmp_path / "copy.yaml").slo == SLO
    assert scenario.with_({"run.seed": 9}).slo == SLO
    assert [one.slo for one in compared(scenario, ["none", "source_replay"]).values()] == [SLO] * 2
    swept = {"scenario": str(tmp_path / "job.yaml"), "grid": {"run.seed": [1, 2]}}
    jsonschema.validate({**to_data(scenario), "slo": ["lost = 0"]}, json_schema())
    assert sweep_file.read(swept).point(1).scenario.slo == SLO


def yaml(folder: Path) -> Path:
    path = folder / "job.yaml"
    path.write_text(GOOD + BLOCK, "utf-8")
    return path


def test_python_gives_texts_or_typed_objects() -> None:
    scenario = tideover.load("wordcount")
    mine = scenario.with_(slo=["lost = 0", parts.Slo(objective="recovery <= 3 s", level=0.9)])
    assert mine.slo == (Slo(objective="lost = 0"), Slo(objective="recovery <= 3 s", level=0.9))
    assert mine.with_({"slo.0.level": 0.8}).slo[0] == Slo(objective="lost = 0", level=0.8)
    assert mine.with_(slo=[]).slo == ()
    with pytest.raises(ScenarioError, match=r"slo\.0.*did you mean lost"):
        scenario.with_(slo=["lots = 0"])
    with pytest.raises(ScenarioError, match=r"must be more than 0\.5"):
        parts.Slo(objective="lost = 0", level=0.3)
