"""On clusters too the engine equals the per-tuple reference: who runs where, and who fails with whom."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.models.test_exactness import EACH, FEW, LONG, QUICK, agree
from tests.oracle.cluster_worlds import on_clusters
from tests.oracle.layout import Layout
from tideover.models.config import Scenario, deployment_of
from tideover.sim.draws import Draws


@EACH
def test_the_engine_equals_the_reference_on_clusters(strategy: str) -> None:
    agree(on_clusters((strategy,)), FEW)


@settings(QUICK, max_examples=50)
@given(on_clusters(("none", "active_replication")))
def test_who_runs_where_equals_the_reference(scenario: Scenario) -> None:
    cluster, layout = deployment_of(scenario).cluster, Layout(scenario, Draws(1, 0))
    assert dict(cluster.at) == layout.host
    assert {place: worker.number for place, worker in cluster.worker_of.items()} == layout.worker


@pytest.mark.long
@EACH
def test_the_engine_equals_the_reference_on_many_clusters(strategy: str) -> None:
    agree(on_clusters((strategy,)), LONG)
