"""The page of a plan: every candidate that was tried is in its figures and in its table."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import tideover
from tests.scenarios.planning.worlds import BASE, World, bytes_that_cost, noise, seconds
from tideover.reports.html import render
from tideover.reports.plans import candidates_grid, drawn, pictures, plan_page

KIND, INTERVAL = "strategy.kind", "strategy.checkpoint_interval"


def made_up(limit):
    """Recovery grows with the interval, and the store's cost falls with it; amnesia has no interval, and does
    not always recover.
    """

    def figures(values, replication, load=1.0):
        if values[KIND] == "none":
            return {"recovery": np.nan if replication == 1 else 5.0, "p99": 10.0}
        t = seconds(values[INTERVAL])
        luck = 1 + 0.02 * noise(replication)
        return {"store_bytes": bytes_that_cost(50 / t), "recovery": (t + 4) * luck, "p99": 20 + 100 / t}

    spec = {
        "scenario": BASE,
        "failures": {"lose_state": "2 h"},
        "prices": {"store_per_gb": 1.0},
        "objectives": [f"recovery <= {limit} s", "lost = 0"],
        "choices": {KIND: ["none", "aligned_snapshots"], INTERVAL: ["1 s", "2 s", "4 s", "8 s"]},
        "search": {"replications": {"least": 3, "most": 6}},
    }
    return tideover.plan(spec, evaluator=World(figures))


@pytest.fixture(scope="module")
def plan():
    return made_up(10)


def test_what_is_drawn_is_what_was_tried(plan):
    """By cost; the optimum is the longest interval within the limit, 4 s; what does not always recover has no
    recovery, and no place in the front's figure.
    """
    table = drawn(plan)
    assert len(table) == len(plan.found)
    assert table["cost_per_month"].is_monotonic_increasing
    (chosen,) = table[table["chosen"]].to_dict("records")
    assert (chosen["interval_s"], chosen["feasible"]) == (4.0, True)
    without = table[table["interval_s"].isna()]
    assert without["recovery"].isna().all()
    titles = ["Cost, recovery and latency", "Cost by checkpoint interval", "Replications spent"]
    assert [picture.title for picture in pictures(plan)] == titles


def test_every_candidate_is_in_the_table_with_its_choices_and_objectives(plan):
    page = render(plan_page(plan))
    data = json.loads(re.search(r'id="grid-data">(.*?)</script>', page, re.DOTALL)[1])
    names = [column["name"] for column in data["columns"]]
    assert names[:4] == ["candidate", "strategy", "checkpoint_interval", "per month"]
    assert len(data["rows"]) == len(plan.found)
    interval, meets = (data["columns"][names.index(name)] for name in ("checkpoint_interval", "meets all"))
    numbers = dict(zip(interval["values"], interval["numbers"], strict=True))
    assert numbers.items() <= {"1 s": 1.0, "2 s": 2.0, "4 s": 4.0, "8 s": 8.0}.items()
    at, all_met = names.index("candidate"), names.index("meets all")
    verdicts = {row[at]: meets["values"][row[all_met]] for row in data["rows"]}
    ordered = sorted(plan.found, key=lambda one: one.cost)
    assert verdicts == {n + 1: "yes" if one.holds else "no" for n, one in enumerate(ordered)}
    assert "recovery &lt;= 10 s" in page
    assert ".parquet" not in page


def test_a_plan_that_nothing_meets_has_a_page_too():
    found = made_up(1)
    assert found.best is None
    page = render(plan_page(found))
    assert "Nothing is feasible" in page
    assert "The arrow is at the nearest." in page
    assert candidates_grid(found) is not None
