"""The reports read what the engine really writes."""

import json
import subprocess
import sys

import pandas as pd
import pytest

from tests.reports.made_up import read_tables
from tideover.models.results import Result
from tideover.reports import pages, terminal
from tideover.reports.columns import TABLES
from tideover.reports.conclusions import verdict
from tideover.reports.html import render
from tideover.reports.parquet import write_all
from tideover.reports.published import uncut
from tideover.scenarios import runs
from tideover.scenarios.loader import load

STRATEGIES = ("source_replay", "rsm", "active_replication", "none")


def run(name: str, *settings: str) -> Result:
    return runs.run(load(name, [*settings, "run.replications=2"]))


@pytest.fixture(scope="module")
def results() -> list[Result]:
    return [run("wordcount", f"strategy.kind={kind}") for kind in STRATEGIES]


@pytest.mark.parametrize("table", TABLES)
def test_the_table_of_columns_is_that_of_the_engine(results, table):
    for result in results:
        expected = {column.name for column in TABLES[table] if not column.optional}
        assert set(getattr(result, table).columns) == expected


def test_everything_can_be_compared_written_and_read_back(tmp_path, results):
    found = verdict(pages.join(results, "recoveries"), pages.join(results, "runs"))
    assert terminal.compare_view([result.to_dict() for result in results], found)
    tables = {name: pages.join(results, name) for name in TABLES}
    write_all(tmp_path / "out", tables=tables, page=pages.compare_page(results, found))
    read = read_tables(tmp_path / "out")
    assert list(read) == list(TABLES)
    for name, frame in read.items():
        ordered = tables[name][[column.name for column in TABLES[name] if not column.optional]]
        pd.testing.assert_frame_equal(frame, ordered, check_dtype=False)


def test_the_page_shows_the_scenario_with_its_units(results):
    html = render(pages.run_page(results[1]))
    assert "&#34;checkpoint_interval&#34;: &#34;5 s&#34;" in html
    assert "http://" not in html


def test_a_run_without_failures_has_empty_tables_and_a_report():
    result = run("wordcount", "failures=[]")
    assert len(result.recoveries) == 0
    assert "ran without a failure" in render(pages.run_page(result))
    assert terminal.run_view(json.loads(json.dumps(result.to_dict())))


def test_the_stages_tell_the_recovery_before_its_stamps_are_cut():
    settings = ["strategy.kind=rsm", "topology.sentences.rate=20/s"]
    cut = run("stableford-phase2", *settings)
    whole = run("stableford-phase2", *settings, "run.log_resolution=1 ms")
    assert (cut.recoveries["state_recovery_s"] % 1 == 0).all()
    wanted = whole.recoveries["state_recovery_s"]
    assert uncut(cut.recoveries).tolist() == pytest.approx(wanted.tolist(), abs=0.002)


def test_importing_the_reports_loads_no_drawing_library():
    code = (
        "import sys, tideover.reports.pages, tideover.reports.terminal, tideover.reports.parquet\n"
        "drawing = {'matplotlib', 'seaborn', 'pyspark', 'pyarrow', 'scipy.stats', 'jinja2'}\n"
        "loaded = drawing & set(sys.modules)\n"
        "sys.exit(f'loaded: {loaded}' if loaded else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
