"""What k-safety carries: one set of hosts and costs for all rows of the published table."""

from __future__ import annotations

from typing import Any

import pytest

import tideover
from tideover.cli.reproduce import PAPERS
from tideover.reports import published


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    found = tideover.sweep(PAPERS["ksafety"] | {"set": {"run.duration": "0.6 s"}}, master=None)
    points = [found.result(point).scenario for point in found.points["point"]]
    return published.ksafety_rows(points, found.to_list())


def test_all_published_rows_are_within_five_percent(rows: list[dict[str, Any]]) -> None:
    published = [row for row in rows if row["published_per_s"] is not None]
    assert len(published) == 3
    assert all(abs(row["error"]) <= 0.05 for row in published)


def test_k_1_is_limited_by_cores_unless_there_are_twice_as_many(rows: list[dict[str, Any]]) -> None:
    limits = {(row["system"], row["machines"]): row["limited_by"] for row in rows}
    assert limits["k-safety k=1", "1x"].startswith("cores of host")
    assert {limits["Storm without acking", "1x"], limits["k-safety k=1", "2x"]} == {"the spout"}


def test_acks_cost_the_spout_two_messages_a_tuple(rows: list[dict[str, Any]]) -> None:
    """10 us to emit, 4 to serialise a message to the acker, 8 to deserialise its answer."""
    (acked,) = (row for row in rows if row["system"] == "Storm with acking")
    assert acked["simulated_per_s"] == pytest.approx(1e6 / 22)


@pytest.mark.long
@pytest.mark.parametrize(("part", "grows"), [(0.95, False), (1.05, True)])
def test_the_backlog_grows_beyond_what_can_be_carried(part: float, grows: bool) -> None:
    """k = 1 on the same machines, 5 % below 65,000/s and 5 % above: the backlog of the last second against
    that of the one before.
    """
    pause = 1e9 / (65_000 * part) - 10_000
    result = tideover.run(
        "ksafety-throughput", {"topology.source.pause": f"{pause:.0f} ns", "run.duration": "3 s"}
    )
    backlog = result.timeline["backlog"].tolist()
    assert (backlog[-1] > 1.2 * backlog[-2]) is grows
