"""What a candidate costs and how far it is from its limits; formulas for checkpoint intervals."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tideover
from tests.scenarios.planning.worlds import BASE, World
from tests.theory.checkpoints import utilisation
from tideover.models.config import daily_share
from tideover.scenarios import saturation
from tideover.scenarios.loader import load
from tideover.scenarios.objectives.objective import Objective
from tideover.scenarios.planning.checkpoint_interval import closed_form, daly, young
from tideover.scenarios.planning.plan import kept
from tideover.scenarios.planning.search import Ask, Session, judged, margin, promising, saved, tables
from tideover.scenarios.planning.spec import read
from tideover.scenarios.spark.settings import Place
from tideover.sim.draws import Draws

ROOT = Path(tideover.__file__).parents[1]
INTERVAL = "strategy.checkpoint_interval"
SPEC = {
    "scenario": BASE | {"hosts": {"machines": {"node": {"count": 3, "price": 0.5}}}},
    "failures": {"lose_state": {"every": "10 h", "of": "host"}},
    "prices": {"store_per_gb": 2.0, "network_per_gb": 3.0, "downtime_per_hour": 100},
    "objectives": ["availability >= 99.9 %", "recovery <= 20 s", "lost = 0"],
    "choices": {INTERVAL: ["2 s"]},
}


def found(recoveries, store=(0, 0), network=(0, 0), lost=(0, 0)):
    """A candidate of two replications."""
    spec = read(SPEC)
    runs = [
        {"replication": n, "store_bytes": s, "network_bytes": w, "lost": gone, "error": None}
        for n, (s, w, gone) in enumerate(zip(store, network, lost, strict=True))
    ]
    rows = [
        {"replication": n, "kind": "lose_state", "time_to_recover_s": time}
        for n, times in enumerate(recoveries)
        for time in times
    ]
    scenario = spec.space.at({INTERVAL: "2 s"})
    return judged(spec.wanted, {INTERVAL: "2 s"}, scenario, *tables(runs, rows))


def test_a_month_by_hand():
    """Law: machines by the hour; bytes of a run of 40 s as often as that goes into a month of 730 h; downtime
    as often as three hosts with a failure every ten hours have one.
    """
    one = found([[10.0], [20.0, 40.0]], store=(10**6, 3 * 10**6), network=(0, 2 * 10**6))
    month = 730 * 3600 / 40
    down = [1 - math.exp(-3 / 36_000 * mean) for mean in (10.0, 30.0)]
    assert one.costs["machines"] == pytest.approx([3 * 0.5 * 730] * 2)
    assert one.costs["store"] == pytest.approx([0.001 * 2 * month, 0.003 * 2 * month])
    assert one.costs["network"] == pytest.approx([0, 0.002 * 3 * month])
    assert one.costs["downtime"] == pytest.approx([730 * 100 * part for part in down])
    assert one.cost == pytest.approx(float(np.mean([sum(c[i] for c in one.costs.values()) for i in (0, 1)])))
    assert one.judgements[0].value == pytest.approx(1 - sum(down) / 2)


@pytest.mark.parametrize(
    ("moment", "now"),
    [({"starts_at": "15:00"}, 80.0), ({"starts_at": "03:00"}, 40.0), ({"fails_at": "12:00"}, 60.0)],
)
def test_what_is_sent_is_that_of_the_day(moment, now):
    """Law: whatever the hour of the runs, a month sends what its load sends. Half of the day has twice the
    load; a run that fails as the load goes up has as much before as after.
    """
    curve = {"kind": "day", "peak": "80/s", "by_hour": [1] * 12 + [2] * 12, "interpolation": "steps"}
    source = {"spout": "values", "values": [1], "repeat": True, "arrivals": curve}
    topology = BASE["topology"] | {"source": source}
    scenario = load(BASE | {"topology": topology, "run": BASE["run"] | moment})
    assert daily_share(scenario, Draws(1)) == pytest.approx(60.0 / now, rel=1e-3)


def test_a_load_that_does_not_follow_the_hour_is_the_same_all_day():
    assert daily_share(load(BASE), Draws(1)) == 1


def test_what_never_recovers_is_always_down():
    one = found([[10.0], [None]])
    assert one.costs["downtime"][1] == pytest.approx(73_000)
    assert one.runs["availability"].to_list()[1] == 0
    assert not one.holds
    assert one.violation == math.inf


def test_margins_are_parts_of_the_limit():
    """Law: 0 at the limit, and as large as the part of it (of what may be missing to all) that is left."""
    one = found([[15.0], [15.0]])
    availability, recovery, lost = one.judgements
    assert margin(recovery) == pytest.approx(0.25)
    assert margin(availability) == pytest.approx(1 - (1 - math.exp(-15 * 3 / 36_000)) / 0.001)
    assert margin(lost) == math.inf
    broken = found([[30.0], [30.0]], lost=(0, 4))
    assert margin(broken.judgements[1]) == pytest.approx(-0.5)
    assert margin(broken.judgements[2]) == -4
    assert broken.missed == ["lost = 0", "availability >= 99.9 %", "recovery <= 20 s"]
    assert broken.violation == 4


def test_savings_are_paired():
    """Law: what all replications have in common cancels: what is saved each time is sure."""
    dear, cheap = (found([[10.0], [400.0]], store=(size,) * 2) for size in (10**9, 9 * 10**8))
    low, high = saved(cheap, dear, 0.99)
    assert low == pytest.approx(high) == pytest.approx(0.1 * 2 * 730 * 3600 / 40)
    assert cheap.cost_interval[1] > dear.cost_interval[0]


@pytest.mark.parametrize(
    "arrivals",
    [
        {"rate": "10/s"},
        {"pause": "100 ms"},
        {"pause": "60 ms", "emit_cost": "40 ms"},
        {"arrivals": {"kind": "poisson", "rate": "10/s"}},
        {"arrivals": {"kind": "burst", "rate": "5/s", "peak": "20/s", "length": "2 s", "every": "10 s"}},
        {"arrivals": {"kind": "ramp", "start": "5/s", "end": "15/s"}},
        {"arrivals": {"kind": "day", "peak": "10/s", "by_hour": [1] * 12 + [2] * 12}},
    ],
    ids=lambda given: str(given.get("arrivals", given)),
)
def test_every_load_can_be_scaled(arrivals):
    """Law: with twice the load twice as many roots are offered."""
    source = {key: value for key, value in BASE["topology"]["source"].items() if key != "rate"} | arrivals
    scenario = BASE | {"topology": BASE["topology"] | {"source": source}}
    space = read(SPEC | {"scenario": scenario, "failures": {}}).space
    once, twice = (saturation.offered(space.at({INTERVAL: "2 s"}, load)) for load in (1.0, 2.0))
    assert twice == pytest.approx(2 * once, rel=1e-6)


def test_a_law_without_curves_is_predicted_exactly():
    """Law: where costs and quotients are exponentials, what is interpolated is what is there; those that are
    feasible and cheaper are named, the cheapest first.
    """
    places = np.array([(i, j) for i in range(5) for j in range(5)], float)
    costs = 100 * np.exp(-0.3 * places[:, 0] + 0.1 * places[:, 1])
    margins = 1 - np.exp(0.25 * places[:, 0] - 0.2 * places[:, 1] - 0.11)[:, None]
    corners = [0, 4, 20, 24, 12, 7]
    others = [i for i in range(25) if i not in corners]
    leader = 70.0
    near = promising(places[corners], costs[corners], margins[corners], places[others], leader)
    wanted = [i for i in others if costs[i] < 0.99 * leader and margins[i, 0] >= 0]
    assert [others[i] for i in near] == sorted(wanted, key=lambda i: costs[i])
    assert wanted


def test_objectives_of_other_tables_are_refused():
    """Law: what a plan keeps no table of cannot be asked of it."""
    with pytest.raises(ValueError, match="a plan keeps no tasks"):
        read(SPEC | {"objectives": ["utilisation <= 80 %"]})
    assert Objective.parse("utilisation <= 80 %").metric.table == "tasks"


def test_availability_of_the_optimum_is_that_of_its_recoveries():
    """Law: 10 s and 30 s of recovery, three hosts that each fail every ten hours: exp(-20 s / 12,000 s)."""
    world = World(lambda values, n, load: {"recovery": 10.0 if n % 2 else 30.0})
    spec = SPEC | {"objectives": ["lost = 0"], "search": {"replications": {"least": 2, "most": 4}}}
    plan = tideover.plan(spec, evaluator=world)
    assert plan.availability.value == pytest.approx(math.exp(-20 * 3 / 36_000))
    assert plan.best.judgements[0].objective.text == "lost = 0"


def test_the_example_is_a_plan():
    """Law: the file in the documentation can be read; candidates are simulated and judged (coarsely here)."""
    path = ROOT / "examples" / "plan.yaml"
    spec = read(path, ["run.lump_rate=20/s", "run.duration=60 s", "failures.0.within=10 s"])
    (block,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "planning.md").read_text("utf-8"), re.S)
    assert block in path.read_text("utf-8")
    first = next(iter(spec.space))
    interval = {"strategies.aligned_snapshots.checkpoint_interval": "16 s"}
    values = spec.space.values(first) | interval | {"hosts.count": 6}
    with kept(spec.space, None, Place(None), print) as evaluator:
        session = Session(spec.space, spec.wanted, evaluator)
        (one,) = session.evaluate([Ask(values, 0, 1)])
    assert one.error is None
    assert one.costs["machines"] == pytest.approx([6 * 0.20 * 730] * 2)
    assert [judgement.n for judgement in one.judgements] == [2] * 4
    assert session.runs == 2


@given(st.floats(1e-3, 1e3), st.floats(1e-6, 20.0))
def test_the_closed_form_has_the_greatest_utilisation(cost, part):
    """Law: no other interval of a fine grid around it, or far from it, is used better."""
    mtbf = cost / part
    best = closed_form(cost, mtbf)
    assert best > cost
    top = utilisation(best, cost, mtbf, 3.0)
    others = cost + (best - cost) * np.geomspace(0.01, 20, 200)
    assert max(utilisation(float(one), cost, mtbf, 3.0) for one in others) <= top * (1 + 1e-9)
    for factor in (0.97, 1.03):
        assert utilisation(cost + (best - cost) * factor, cost, mtbf, 3.0) < top


def test_utilisation_is_what_a_process_with_failures_has():
    """Law: what it says is what a simulation of intervals counts that begin anew."""
    rng = np.random.default_rng(7)
    interval, cost, mtbf, restart = 30.0, 4.0, 50.0, 5.0
    clock, done = 0.0, 0
    while done < 40_000:
        life = rng.exponential(mtbf)
        if life >= interval:
            clock += interval
            done += 1
        else:
            clock += life + restart
    used = done * (interval - cost) / clock
    assert used == pytest.approx(utilisation(interval, cost, mtbf, restart), rel=0.01)


@given(st.floats(1e-3, 10.0))
def test_all_agree_where_failures_are_rare(cost):
    """Law: Young's is the first term of the others: they meet as checkpoints get short."""
    mtbf = cost * 1e6
    assert young(cost, mtbf) == pytest.approx(closed_form(cost, mtbf), rel=2e-3)
    assert daly(cost, mtbf) == pytest.approx(closed_form(cost, mtbf), rel=1e-5)


def test_daly_is_nearer_to_the_optimum_than_young():
    for cost, mtbf in ((1.0, 50.0), (5.0, 100.0), (20.0, 600.0)):
        best = closed_form(cost, mtbf)
        assert abs(daly(cost, mtbf) - best) < abs(young(cost, mtbf) - best)


def test_published_cases():
    """Young (1974): sqrt(2 c M). Daly (2006): M where a checkpoint takes twice the MTBF."""
    assert young(5.0, 3600.0) - 5.0 == pytest.approx(math.sqrt(36_000))
    assert daly(200.0, 100.0) - 200.0 == 100.0
    with pytest.raises(ValueError, match="positive"):
        young(1.0, 0.0)
