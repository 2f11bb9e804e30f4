"""Cases with a known answer: the planner finds it, and says why it is that."""

import math

import pytest

import tideover
from tests.scenarios.planning.worlds import (
    BASE,
    World,
    bytes_that_cost,
    noise,
    recovery_that_is_down,
    seconds,
)
from tideover.scenarios.planning.checkpoint_interval import closed_form, utilisation

INTERVAL = "strategy.checkpoint_interval"


def test_the_interval_of_greatest_utilisation_is_found():
    """Law: where waste is all that costs, the cheapest interval is that of Lambert's W."""
    cost_s, mtbf_s = 0.05, 40.0

    def figures(values, replication, load):
        waste = 1 - utilisation(seconds(values[INTERVAL]), cost_s, mtbf_s)
        return {"recovery": recovery_that_is_down(waste, mtbf_s) * (1 + 0.02 * noise(replication))}

    world = World(figures)
    spec = {
        "scenario": BASE,
        "failures": {"lose_state": f"{mtbf_s:g} s"},
        "prices": {"downtime_per_hour": 100},
        "objectives": ["lost = 0"],
        "choices": {INTERVAL: {"from": "100 ms", "to": "30 s", "steps": 49, "scale": "log"}},
        "search": {"replications": {"least": 4, "most": 40}},
    }
    plan = tideover.plan(spec, evaluator=world)
    best = closed_form(cost_s, mtbf_s)
    step = (30 / 0.1) ** (1 / 48)
    assert best / step <= seconds(plan.best.values[INTERVAL]) <= best * step
    waste = 1 - utilisation(best, cost_s, mtbf_s)
    assert plan.best.cost == pytest.approx(730 * 100 * waste, rel=0.02)
    assert world.runs == plan.runs <= plan.exhaustive / 4
    beside = plan.checkpoint_interval
    assert (beside.cost, beside.mtbf) == (0.05, 40.0)
    assert beside.closed_form == pytest.approx(best)


def test_store_against_downtime_gives_a_square_root():
    """Law: a cost of a/T + b T is least at sqrt(a/b), and costs 2 sqrt(a b) there."""
    mtbf_s, store, loss = 1e6, 40.0, 0.5

    def figures(values, replication, load):
        t = seconds(values[INTERVAL])
        lost = t * loss / 730 * mtbf_s / 1000
        return {
            "store_bytes": bytes_that_cost(store / t),
            "recovery": lost + 0.05 * noise(replication) * lost,
        }

    spec = {
        "scenario": BASE,
        "failures": {"lose_state": f"{mtbf_s:g} s"},
        "prices": {"store_per_gb": 1.0, "downtime_per_hour": 1000},
        "objectives": ["lost = 0"],
        "choices": {INTERVAL: {"from": "1 s", "to": "100 s", "steps": 33, "scale": "log"}},
        "search": {"replications": {"least": 5, "most": 40}},
    }
    world = World(figures)
    plan = tideover.plan(spec, evaluator=world)
    assert plan.best.cost == pytest.approx(2 * math.sqrt(store * loss), rel=0.02)
    assert seconds(plan.best.values[INTERVAL]) == pytest.approx(math.sqrt(store / loss), rel=0.35)
    assert plan.runs <= plan.exhaustive / 4


def test_an_objective_binds_where_the_cheaper_ones_break_it():
    """Law: recovery grows with the interval and the store's cost falls: the optimum is the last interval that
    is allowed, and headroom is the load that would take it to the limit.
    """

    def figures(values, replication, load):
        t = seconds(values[INTERVAL])
        return {
            "store_bytes": bytes_that_cost(100 / t),
            "recovery": 2.01 * load * t + 0.01 * noise(replication),
        }

    spec = {
        "scenario": BASE,
        "prices": {"store_per_gb": 1.0},
        "objectives": ["recovery <= 20 s", "lost = 0"],
        "choices": {INTERVAL: {"from": "1 s", "to": "17 s", "steps": 33}},
        "search": {"replications": {"least": 3, "most": 30}},
    }
    plan = tideover.plan(spec, evaluator=World(figures))
    assert plan.best.values == {INTERVAL: "9.5 s"}
    assert plan.binding.objective == "recovery <= 20 s"
    assert plan.binding.margin == pytest.approx(1 - 2.01 * 9.5 / 20, abs=0.01)
    assert {missed for _, missed in plan.binding.cheaper} == {("recovery <= 20 s",)}
    assert plan.headroom.holds <= 20 / (2.01 * 9.5) <= plan.headroom.breaks
    assert plan.headroom.breaks / plan.headroom.holds <= 1.05
    assert plan.headroom.first == ("recovery <= 20 s",)
    assert plan.runs <= plan.exhaustive / 4


CLUSTER = BASE | {"hosts": {"machines": {"any": {"count": 1}}, "placement": "k_safe"}}


def test_only_one_replica_more_is_feasible():
    """Law: without a replica the state is lost, one masks that, for more there are no hosts. Simulated."""
    spec = {
        "scenario": CLUSTER,
        "machines": {"node": {"per_hour": 0.5, "slots": 2}},
        "objectives": ["recovery_max <= 0.5 s", "lost = 0"],
        "choices": {
            "strategy.kind": ["none", "active_replication"],
            "strategies.active_replication.k": [1, 2, 3],
            "hosts.count": [2],
        },
        "search": {"replications": {"least": 2, "most": 4}},
    }
    plan = tideover.plan(spec, master=None)
    assert plan.best.values == {
        "strategy.kind": "active_replication",
        "strategies.active_replication.k": 1,
        "hosts.count": 2,
    }
    assert plan.best.cost == pytest.approx(2 * 0.5 * 730)
    assert len(plan.impossible) == 2
    assert [one.values["strategy.kind"] for one in plan.found if not one.holds] == ["none"]


def test_nothing_is_feasible_and_by_how_much():
    """Law: where even the best recovery takes three times what is asked, that is what is said. Simulated."""
    spec = {
        "scenario": BASE | {"failures": [BASE["failures"][0] | {"detection": "1 s", "restart": "500 ms"}]},
        "objectives": ["recovery <= 500 ms", "lost = 0"],
        "choices": {INTERVAL: ["2 s", "4 s"]},
        "search": {"replications": {"least": 2, "most": 4}},
    }
    plan = tideover.plan(spec, master=None)
    assert plan.best is None
    assert plan.feasible == []
    assert plan.nearest.values == {INTERVAL: "2 s"}
    assert plan.nearest.missed == ["recovery <= 500 ms"]
    mean = plan.nearest.recoveries["time_to_recover_s"].mean()
    assert mean >= 1.5
    assert plan.nearest.violation == pytest.approx((mean - 0.5) / 0.5)
    assert plan.binding.objective == "recovery <= 500 ms"
    assert plan.binding.margin == pytest.approx(-plan.nearest.violation)
    assert plan.headroom is None
    assert not plan.to_dict()["feasible"]
