"""What a plan's file may say, and how it is refused."""

import json
import re

import pytest

from tests.scenarios.planning.worlds import asked
from tideover import load, plan
from tideover.models.job.components import MachineType
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.planning.search import machines_per_month
from tideover.scenarios.planning.spec import Machine, read

FILE = """\
scenario: wordcount
set: {{run.duration: 40 s, run.warmup: 10 s, failures.0.at: 20 s, failures.0.within: 5 s}}
failures: {{lose_state: 30 d}}
machines: {{small: {{per_hour: 0.2, cores: 4}}, large: {{per_month: 730, cores: 8, nic: 1 Gbit/s}}}}
objectives: [recovery <= 20 s, lost = 0]
choices:
  strategy.kind: [none, active_replication]
  strategies.active_replication.k: [1, 2]
  hosts.type: [small, large]
  hosts.count: [2, 4]
{more}
"""


@pytest.fixture
def file(tmp_path):
    def write(old="", new="", more=""):
        path = tmp_path / "plan.yaml"
        text = FILE.format(more=more)
        assert old in text
        path.write_text(text.replace(old, new) if old else text)
        return path

    return write


def test_choices_without_effect_are_no_candidates_of_their_own(file):
    """Law: k means nothing to none: 1 + 2 strategies on 2 sorts of 2 counts of machines."""
    spec = read(file())
    assert spec.space.total == 3 * 2 * 2
    values = [spec.space.values(index) for index in spec.space]
    assert len({json.dumps(one) for one in values}) == 12
    assert all(
        ("strategies.active_replication.k" in one) == (one["strategy.kind"] != "none") for one in values
    )


def test_machines_become_the_scenarios(file):
    """Law: type, count and price are those that were chosen, and a month has 730 hours."""
    space = read(file()).space
    values = {"strategy.kind": "none", "hosts.type": "large", "hosts.count": 4}
    scenario = space.at(values)
    (machine,) = scenario.hosts.machines.values()
    assert (machine.count, machine.cores, machine.nic) == (4, 8, 125_000_000)
    assert machines_per_month(scenario) == pytest.approx(4 * 730)
    assert machines_per_month(space.at(values | {"hosts.type": "small"})) == pytest.approx(4 * 0.2 * 730)


def test_load_is_the_rate_of_all_spouts(file):
    """Law: whatever the scenario's rate, it is the one that is asked for, times the factor."""
    space = read(file(more="load: 50/s")).space
    values = {"strategy.kind": "none", "hosts.type": "large", "hosts.count": 4}
    assert space.at(values).topology["sentences"].arrivals.rate == pytest.approx(50)
    assert space.at(values, 1.5).topology["sentences"].arrivals.rate == pytest.approx(75)


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "said"),
    [
        ("objectives: [recovery <=", "objectives: [recovry <=", 5, "objectives.0", "recovery"),
        ("objectives: [recovery <= 20 s, lost = 0]", "objectives: 3", 5, "objectives", "give a list"),
        ("lost = 0", "7", 5, "objectives.1", "must be a text"),
        ("failures: {lose_state", "failures: {crash_host", 3, "failures.crash_host", "it has lose_state"),
        ("lose_state: 30 d", "lose_state: 30", 3, "failures.lose_state.every", "unit"),
        ("per_hour: 0.2", "per_hour: -1", 4, "machines.small.per_hour", "at least 0"),
        ("per_hour: 0.2", "per_hour: 0.2, per_month: 3", 4, "machines.small", "either"),
        ("per_hour: 0.2, ", "", 4, "machines.small", "either"),
        ("active_replication.k", "active_replication.kk", 8, "choices.strategies.active_replication.kk", "k"),
        ("active_replication.k: [1, 2]", "rsm.k: [1, 2]", 8, "choices.strategies.rsm.k", "no strategy"),
        ("hosts.count: [2, 4]", "hosts.count: []", 10, "choices.hosts.count", "list"),
        ("hosts.type: [small", "hosts.type: [smal", 9, "choices.hosts.type", "small"),
        ("hosts.type: [small", "hosts.type: [{a: 1}", 9, "choices.hosts.type", "no machine a mapping"),
        ("scenario: wordcount", "scenario: wordcont", 1, "scenario", "wordcount"),
        ("choices:", "choises:", 6, "choises", "choices"),
        ("set: ", "search: {confidence: 20 %}\nset: ", 2, "search.confidence", "50 %"),
        (
            "set: ",
            "search: {replications: {least: 9, most: 3}}\nset: ",
            2,
            "search.replications",
            "more than",
        ),
        ("set: ", "load: fast\nset: ", 2, "load", "rate"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(file, old, new, line, key, said):
    """Law: file, line and key of what is wrong, and what is allowed."""
    path = file(old, new)
    with pytest.raises(ScenarioError) as refused:
        read(path)
    problem = refused.value.problems[0]
    assert (problem.file, problem.line) == (str(path), line)
    assert problem.key.startswith(key)
    assert said in problem.message


def test_the_command_says_the_same_as_the_function(tideover, tmp_path):
    """Law: ``--json`` is ``to_dict`` of ``tideover.plan``; without an answer it exits with 1."""
    path = tmp_path / "plan.yaml"
    spec = asked({"strategy.checkpoint_interval": ["2 s", "4 s"]}, "recovery <= 60 s", replications=(2, 2))
    path.write_text(json.dumps(spec))
    code, out, _ = tideover("plan", path, "--no-spark", "--json", "--out", tmp_path / "out")
    expected = plan(spec, master=None).to_dict()
    assert code == 0
    assert json.loads(out) == json.loads(json.dumps(expected).replace("Infinity", "null"))
    assert (tmp_path / "out" / "report.html").is_file()
    assert json.loads((tmp_path / "out" / "result.json").read_text()) == json.loads(out)
    best = load(tmp_path / "out" / "scenario.yaml")
    assert best.strategy == load(expected["best"]["scenario"]).strategy
    assert [one.objective for one in best.slo] == spec["objectives"]
    path.write_text(json.dumps(spec | {"objectives": ["recovery <= 1 ms"]}))
    code, out, errors = tideover("plan", path, "--no-spark")
    assert code == 1
    assert re.search(
        r"^So far, after \d+ runs: nothing .* the nearest misses recovery <= 1 ms: ", errors, re.M
    )
    assert "Nothing is feasible. recovery <= 1 ms cannot be met" in " ".join(out.split())


@pytest.mark.parametrize(("most", "few"), [(71, True), (72, False)])
def test_too_few_replications_are_remarked_on(most, few):
    """A 95 % quantile needs 72 (docs/statistics.md)."""
    choices = {"strategy.checkpoint_interval": ["2 s"]}
    found = read(asked(choices, "recovery_p95 <= 9 s", replications=(2, most)))
    assert any("72 replications" in remark for remark in found.remarks) is few


def test_a_dry_run_counts(tideover, file):
    code, out, errors = tideover("plan", file(), "--dry-run", "--json")
    assert (code, errors) == (0, "")
    found = json.loads(out)
    each, whole, first = (found.pop(key) for key in ("seconds_per_run", "core_s", "first_core_s"))
    assert 0 < each < first < whole == found["expected_runs"] * each
    # each five times, the optimum all its 40, and these at five other loads
    assert found == {"candidates": 12, "runs": 12 * 40, "expected_runs": 12 * 5 + 40 + 5 * 40}


def test_a_file_that_is_wrong_exits_with_2(tideover, file):
    code, _, errors = tideover("plan", file("lost = 0", "lst = 0"), "--dry-run")
    assert code == 2
    assert ":5: objectives.1:" in errors


@pytest.mark.parametrize("limit", ["cores", "nic", "slots"])
def test_a_machine_for_sale_has_the_limits_of_one_in_a_scenario(limit):
    """Law: what a plan buys is put into `hosts.machines`, so it takes the same values, and means the same."""
    for_sale, of_hosts = (part.model_json_schema()["properties"][limit] for part in (Machine, MachineType))
    assert for_sale == of_hosts
