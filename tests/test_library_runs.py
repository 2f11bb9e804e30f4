"""The library's verbs, of names, files, scenarios and typed objects; and what an editor completes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jedi
import pytest

import tideover
from tests.sweeps import points
from tideover import api, parts
from tideover.models.strategies.base import STRATEGIES
from tideover.parts.typed import typed
from tideover.scenarios import library, runs
from tideover.scenarios.loader import tree
from tideover.scenarios.part_builder import to_data
from tideover.scenarios.sweeps import sweep_file

ROOT = Path(__file__).parents[1]
SHORT = {"run.duration": "100 s", "run.warmup": "30 s", "run.replications": 1}
REPLAY = tideover.SourceReplay(message_timeout="10 s", timeout_phase="1 s")
RESTORE = tideover.StateManagement(checkpoint_interval="5 s")


@pytest.fixture(scope="module")
def base() -> tideover.Scenario:
    return tideover.load("wordcount").with_(SHORT)


def test_run_takes_a_name_a_path_a_mapping_or_a_scenario(base: tideover.Scenario, tmp_path: Path) -> None:
    """The name and its file with settings; the object, its data, and the file written of it."""
    base.to_yaml(tmp_path / "mine.yaml")
    (tmp_path / "plain.yaml").write_text(library.text("wordcount"))
    wanted = tideover.run("wordcount", SHORT).to_dict()
    plain = tmp_path / "plain.yaml"
    for source in (plain, str(plain), tideover.load("wordcount")):
        assert tideover.run(source, SHORT).to_dict() == wanted
    for source in (base, tmp_path / "mine.yaml", {**to_data(base)}):
        assert tideover.run(source).to_dict() == wanted
    changed = tideover.run(base.with_(strategy=REPLAY))
    assert tideover.run(base, {"strategy": REPLAY}).to_dict() == changed.to_dict()


def test_traces_are_kept_if_they_are_asked_for(base: tideover.Scenario) -> None:
    assert tideover.run(base).traces == []
    assert tideover.run(base, trace=True).traces[0].emitted


def test_progress_is_reported() -> None:
    heard: list[tuple[int, int]] = []
    two = SHORT | {"run.replications": 2}
    tideover.compare("wordcount", ["none", "rsm"], two, report=lambda *said: heard.append(said))
    assert heard == [(0, 4), (1, 4), (2, 4), (3, 4)]


def test_compare_subtracts_what_shares_its_luck() -> None:
    found = tideover.compare("wordcount", ["source_replay", "rsm"], ["run.replications=2"])
    assert list(found.results) == ["source_replay", "rsm"]
    assert (found.verdict.reference, found.verdict.best) == ("source_replay", "rsm")
    assert found.verdict.text.endswith(".")
    rows = found.differences.set_index("column")
    means = found.recoveries.groupby("strategy")["catch_up_s"].mean()
    assert rows.loc["catch_up_s", "mean"] == pytest.approx(means["rsm"] - means["source_replay"])
    assert set(rows["pairs"]) == {2}
    assert [record["strategy"] for record in found.to_list()] == ["source_replay", "rsm"]
    assert found.to_list()[0]["differences"] == []
    assert len(found.timeline) == 2 * 2 * 240


def test_a_failed_replication_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(scenario: Any, number: int, trace: bool) -> None:
        raise ArithmeticError("so it is")

    monkeypatch.setattr(runs, "simulate", fail)
    with pytest.raises(tideover.RunFailed, match=r"^replication 0: ArithmeticError: so it is$"):
        tideover.run("wordcount")


def test_an_unknown_name_is_an_error_of_its_kind() -> None:
    """Of a scenario, which the command line tells too; and of the package."""
    with pytest.raises(tideover.ScenarioError, match="did you mean 'wordcount'"):
        tideover.run("wordcout")
    assert {"run", "compare", "sweep", "Result", "__version__"} <= set(dir(tideover))
    with pytest.raises(AttributeError, match="has no attribute 'sweeep'"):
        tideover.sweeep  # noqa: B018


def test_importing_takes_little() -> None:
    heavy = ("numpy", "pandas", "scipy", "matplotlib", "pyspark", "rich", "typer")
    code = f"import sys, tideover; sys.exit(', '.join(m for m in {heavy} if m in sys.modules) or None)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_typed_strategies_are_compared_as_they_are(base: tideover.Scenario) -> None:
    """Each is what ``with_`` makes of it, whatever the file says of its kind; names go with them."""
    found = api.compared(base, [REPLAY, "active_replication", RESTORE])
    assert list(found) == ["source_replay", "active_replication", "rsm"]
    assert found == {
        "source_replay": base.with_(strategy=REPLAY),
        "active_replication": base.with_(strategy="active_replication"),
        "rsm": base.with_(strategy=RESTORE),
    }
    assert api.compared("wordcount", [REPLAY, RESTORE], SHORT)["rsm"] == found["rsm"]
    compared = tideover.compare(base, [REPLAY, RESTORE])
    assert compared.results["rsm"].to_dict() == tideover.run(found["rsm"]).to_dict()


def test_a_scenario_keeps_the_strategies_of_its_file(base: tideover.Scenario) -> None:
    """All of them are compared, with their parameters, if none is named."""
    found = api.compared(base)
    assert found == api.compared("wordcount", settings=SHORT)
    assert list(found) == list(tree("wordcount")[0].value["strategies"].value)


@pytest.mark.parametrize(
    ("strategies", "says"),
    [
        (["rsm"], "at least two"),
        (["rsm", "rsm"], "twice"),
        ([REPLAY, tideover.SourceReplay()], r"^a strategy is named twice in source_replay, source_replay;"),
    ],
)
def test_a_comparison_needs_two_strategies(base: tideover.Scenario, strategies: list[Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        tideover.compare(base, strategies)


def test_every_point_of_a_sweep_is_a_change_of_the_scenario(base: tideover.Scenario) -> None:
    """With typed objects or texts as values, the last key changing fastest; of an object, or in a mapping."""
    values = {"strategy": [REPLAY, RESTORE, "none"], "topology.sentences.rate": ["5/s", "10/s"]}
    found = tideover.sweep(base, values, master=None)
    wanted = [
        base.with_({"topology.sentences.rate": rate}, strategy=strategy)
        for strategy in (REPLAY, RESTORE, "none")
        for rate in ("5/s", "10/s")
    ]
    assert [found.result(point).scenario for point in range(6)] == wanted
    assert [len(found.result(point).recoveries) for point in range(6)] == [1] * 6
    assert found.parameters == {"strategy": "", "topology.sentences.rate": "1/s"}
    whole = tideover.sweep({"scenario": base, "grid": values, "seed": 1}, master=None)
    assert whole.runs.equals(found.runs)


def test_a_sweep_of_a_scenario_knows_its_short_parameters_and_its_folder(tmp_path: Path) -> None:
    """As a sweep file does that names the scenario's file."""
    (tmp_path / "rates.csv").write_text("time_s,rate_per_s\n0,10\n50,20\n")
    (tmp_path / "mine.yaml").write_text(
        "parameters: {scale: {sets: topology.a.arrivals.scale}}\n"
        "topology:\n"
        "  a: {spout: keys, arrivals: {kind: trace, file: rates.csv}}\n"
        "  b: {bolt: windowed_count, from: {a: shuffle}, service: 1 ms, window: 5 s}\n"
        "strategy: none\n"
        "run: {duration: 60 s}\n"
    )
    scenario = tideover.load(tmp_path / "mine.yaml")
    wanted = points(sweep_file.read({"scenario": tmp_path / "mine.yaml", "grid": {"scale": [1, 2]}}))
    assert points(sweep_file.read({"scenario": scenario, "grid": {"scale": [1, 2]}})) == wanted


def test_a_sweep_sets_what_was_changed_before(base: tideover.Scenario, tmp_path: Path) -> None:
    """As it does for the file written of the changed scenario: its ``set`` and its keys win."""
    changed = base.with_({"run.seed": 3, "run.warmup": None}, strategy=REPLAY)
    changed.to_yaml(tmp_path / "mine.yaml")
    sweep = {
        "set": {"run.seed": 4, "run.warmup": "20 s", "strategy.timeout_phase": "2 s"},
        "grid": {"strategy.message_timeout": ["8 s", "9 s"]},
    }
    found = points(sweep_file.read({"scenario": changed, **sweep}))
    assert found == points(sweep_file.read({"scenario": tmp_path / "mine.yaml", **sweep}))
    wanted = tideover.SourceReplay(message_timeout="9 s", timeout_phase="2 s")
    assert found[1].scenario == changed.with_({"run.seed": 4, "run.warmup": "20 s"}, strategy=wanted)


def test_points_and_compared_scenarios_can_be_varied(base: tideover.Scenario) -> None:
    (point,) = points(sweep_file.read({"scenario": base, "grid": {"run.seed": [5]}}))
    assert tideover.load(point.scenario, {"run.seed": 1}) == base
    compared = api.compared(base, [REPLAY, RESTORE])
    assert compared["rsm"].with_(strategy=REPLAY) == compared["source_replay"]


def test_what_is_wrong_with_a_sweep_of_a_scenario_has_its_key(base: tideover.Scenario) -> None:
    with pytest.raises(
        tideover.ScenarioError, match=r"^sweep: grid\.strategy\.mesage_timeout: unknown key; did"
    ):
        tideover.sweep(base, {"strategy.mesage_timeout": ["3 s"]}, master=None)
    with pytest.raises(tideover.ScenarioError, match=r"^sweep: grid\.strategy: must be a list of values"):
        tideover.sweep(base, {"strategy": REPLAY}, master=None)  # type: ignore[call-overload]


def test_a_part_from_outside_takes_units_too(
    base: tideover.Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worked example's strategy: registered when it is imported, and taken out again."""
    monkeypatch.syspath_prepend(ROOT / "examples")
    try:
        import warm_standby

        standby = typed(warm_standby.WarmStandby)(interval="2 s")
        assert standby == warm_standby.WarmStandby(interval=2 * 10**9)
        assert base.with_(strategy=standby).strategy == standby
        assert list(api.compared(base, [standby, REPLAY])) == ["warm_standby", "source_replay"]
    finally:
        sys.modules.pop("warm_standby", None)
        STRATEGIES.discard("warm_standby")


@pytest.fixture(scope="module")
def completion(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Workers that run at the same time must not share what jedi remembers of files. To read them takes
    seconds: the tests of this module do it once.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jedi.settings, "cache_directory", str(tmp_path_factory.mktemp("jedi")))
        yield


@pytest.mark.usefixtures("completion")
@pytest.mark.parametrize(
    ("code", "completed"),
    [
        ("import tideover\ntideover.SourceReplay(message_", "message_timeout="),
        ("from tideover import parts\nparts.BoltConfig(ser", "service="),
        ("from tideover import parts\nparts.Poi", "Poisson"),
        ("import tideover\ntideover.load('wordcount').with_(fail", "failures="),
        ("import tideover\ntideover.Scenario(topo", "topology="),
        ("import tideover\ntideover.SourceReplay().message_", "message_timeout"),
    ],
)
def test_an_editor_completes_names_and_parameters(code: str, completed: str) -> None:
    """By jedi, which reads the source and the stubs, and is what IPython completes with."""
    *_, last = lines = code.splitlines()
    script = jedi.Script(code, project=jedi.Project(ROOT))
    assert completed in [found.name for found in script.complete(len(lines), len(last))]


@pytest.mark.usefixtures("completion")
def test_a_live_session_completes_parameters() -> None:
    code = "SourceReplay(message_"
    session = jedi.Interpreter(code, [{"SourceReplay": tideover.SourceReplay, "parts": parts}])
    assert [found.name for found in session.complete(1, len(code))] == ["message_timeout="]
