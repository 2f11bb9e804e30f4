"""The library's verbs."""

import subprocess
import sys

import pytest

import tideover
from tideover.reports.columns import TABLES
from tideover.scenarios.loader import tree

SHORT = ["run.duration=100s", "run.warmup=30s", "run.replications=2"]


def test_run_takes_a_name_a_path_a_mapping_or_a_scenario(tmp_path):
    by_name = tideover.run("wordcount", SHORT)
    path = tmp_path / "mine.yaml"
    path.write_text(tideover.scenarios.library.text("wordcount"))
    scenario = tideover.load("wordcount", SHORT)
    mapping = {**tideover.scenarios.part_builder.to_data(scenario)}
    others = [
        tideover.run(path, SHORT),
        tideover.run(str(path), SHORT),
        tideover.run(mapping),
        tideover.run(scenario),
        tideover.run(tideover.load("wordcount"), SHORT),
    ]
    for other in others:
        assert other.to_dict() == by_name.to_dict()


def test_results_hold_tidy_tables():
    result = tideover.run("wordcount", SHORT)
    for name in ("recoveries", "runs", "timeline"):
        documented = {column.name for column in TABLES[name] if not column.optional}
        assert set(getattr(result, name).columns) == documented
    assert len(result.runs) == 2
    assert result.traces == []
    assert tideover.run("wordcount", SHORT, trace=True).traces[1].emitted


def test_progress_is_reported():
    heard = []
    tideover.compare("wordcount", ["none", "rsm"], SHORT, report=lambda *said: heard.append(said))
    assert heard == [(0, 4), (1, 4), (2, 4), (3, 4)]


def test_compare_subtracts_what_shares_its_luck():
    found = tideover.compare("wordcount", ["source_replay", "rsm"], ["run.replications=2"])
    assert list(found.results) == ["source_replay", "rsm"]
    assert found.verdict.reference == "source_replay"
    assert found.verdict.best == "rsm"
    assert found.verdict.text.endswith(".")
    rows = found.differences.set_index("column")
    means = found.recoveries.groupby("strategy")["catch_up_s"].mean()
    assert rows.loc["catch_up_s", "mean"] == pytest.approx(means["rsm"] - means["source_replay"])
    assert set(rows["pairs"]) == {2}
    assert [record["strategy"] for record in found.to_list()] == ["source_replay", "rsm"]
    assert found.to_list()[0]["differences"] == []
    assert len(found.timeline) == 2 * 2 * 240


def test_compare_takes_what_the_scenario_lists():
    found = tideover.compare("wordcount", settings=SHORT)
    assert list(found.results) == list(tree("wordcount")[0].value["strategies"].value)


@pytest.mark.parametrize(("strategies", "says"), [(["rsm"], "at least two"), (["rsm", "rsm"], "twice")])
def test_a_comparison_needs_two_strategies(strategies, says):
    with pytest.raises(ValueError, match=says):
        tideover.compare("wordcount", strategies)


def test_bad_input_is_a_scenario_error():
    with pytest.raises(tideover.ScenarioError, match="did you mean 'wordcount'"):
        tideover.run("wordcout")
    with pytest.raises(tideover.ScenarioError, match="has no unit"):
        tideover.run("wordcount", ["run.duration=30"])


def test_a_failed_replication_is_named(monkeypatch):
    def fail(scenario, number, trace):
        raise ArithmeticError("so it is")

    monkeypatch.setattr(tideover.scenarios.runs, "simulate", fail)
    with pytest.raises(tideover.RunFailed, match=r"^replication 0: ArithmeticError: so it is$"):
        tideover.run("wordcount")


def test_an_unknown_name_is_an_attribute_error():
    assert {"run", "compare", "sweep", "Result", "__version__"} <= set(dir(tideover))
    with pytest.raises(AttributeError, match="has no attribute 'sweeep'"):
        tideover.sweeep  # noqa: B018


def test_importing_takes_little():
    heavy = ("numpy", "pandas", "scipy", "matplotlib", "pyspark", "rich", "typer")
    code = f"import sys, tideover; sys.exit(', '.join(m for m in {heavy} if m in sys.modules) or None)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
