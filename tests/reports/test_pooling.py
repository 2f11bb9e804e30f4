"""Failures of one replication are not independent: twice the same tells no more than once."""

import pandas as pd
import pytest

import tideover
from tideover.models.schema import HEADLINE, named
from tideover.reports import figures
from tideover.reports.conclusions import verdict
from tideover.reports.tables import overview
from tideover.scenarios.statistics.intervals import of_replications

SHORT = {"strategy.kind": "rsm", "run.replications": 4, "run.duration": "130 s"}


@pytest.fixture(scope="module")
def result():
    return tideover.run("wordcount", SHORT)


def twice(recoveries: pd.DataFrame) -> pd.DataFrame:
    """Each failure again, five seconds later, with the same recovery."""
    return pd.concat([recoveries, recoveries.assign(failed_at_s=recoveries["failed_at_s"] + 5)])


def test_the_table_has_the_same_intervals(result) -> None:
    record = result.to_dict()
    doubled = record | {"recoveries": [row for row in record["recoveries"] for _ in range(2)]}
    once, more = (overview([one]).rows for one in (record, doubled))
    assert any("±" in row[1] for row in once[:8] if len(row) > 1)
    assert (once[0], more[0]) == (
        ("Recovery (mean of 4)",),
        ("Recovery (mean of 4 replications, 8 failures)",),
    )
    assert once[1:] == more[1:]


def test_the_stages_have_the_same_interval(result) -> None:
    def said(recoveries: pd.DataFrame) -> list[str]:
        return [text.get_text() for text in figures.recovery_stages(recoveries).texts]

    assert said(twice(result.recoveries)) == said(result.recoveries)


def test_the_figure_has_an_interval_as_wide(result) -> None:
    """Resampled, so equal up to the draws; taken for independent it would be narrower by a third."""

    def width(recoveries: pd.DataFrame) -> float:
        lines = figures.recovery(recoveries).lines
        return max(
            float(max(line.get_xdata()) - min(line.get_xdata())) for line in lines if len(line.get_xdata())
        )

    assert width(twice(result.recoveries)) == pytest.approx(width(result.recoveries), rel=0.12)


def test_the_verdict_is_the_same(result) -> None:
    recoveries = pd.concat([result.recoveries, result.recoveries.assign(strategy="none", **{HEADLINE: 9.0})])
    runs = pd.concat([result.runs, result.runs.assign(strategy="none")])
    assert verdict(twice(recoveries), runs).text == verdict(recoveries, runs).text


def test_a_replication_that_recovers_sometimes_has_no_time() -> None:
    found = [(0, 2.0), (1, 3.0), (0, None), (1, 5.0)]
    assert of_replications(found, named("recoveries", HEADLINE)) == [None, 4.0]
    assert of_replications(found, named("recoveries", "state_recovery_s")) == [2.0, 4.0]
