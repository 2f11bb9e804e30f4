"""The search beside programs that share nothing with it, and cases with a known answer."""

import itertools
import math

import numpy as np
import pytest

import tideover
from tests.scenarios.planning.worlds import (
    BASE,
    World,
    asked,
    bytes_that_cost,
    noise,
    recovery_that_is_down,
    seconds,
)
from tests.theory.checkpoints import utilisation
from tideover.scenarios.planning import plan as planning
from tideover.scenarios.planning.checkpoint_interval import closed_form
from tideover.scenarios.planning.plan import kept
from tideover.scenarios.planning.search import Ask
from tideover.scenarios.planning.spec import Space, read
from tideover.scenarios.spark.settings import Place

INTERVAL = "strategy.checkpoint_interval"


def test_the_interval_of_greatest_utilisation_is_found():
    """Law: where waste is all that costs, the cheapest interval is that of Lambert's W."""
    cost_s, mtbf_s = 0.05, 40.0

    def figures(values, replication, load):
        waste = 1 - utilisation(seconds(values[INTERVAL]), cost_s, mtbf_s)
        return {"recovery": recovery_that_is_down(waste, mtbf_s) * (1 + 0.02 * noise(replication))}

    world = World(figures)
    spec = asked(
        {INTERVAL: {"from": "100 ms", "to": "30 s", "steps": 49, "scale": "log"}},
        replications=(4, 40),
        failures={"lose_state": f"{mtbf_s:g} s"},
        prices={"downtime_per_hour": 100},
    )
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

    spec = asked(
        {INTERVAL: {"from": "1 s", "to": "100 s", "steps": 33, "scale": "log"}},
        replications=(5, 40),
        failures={"lose_state": f"{mtbf_s:g} s"},
        prices={"store_per_gb": 1.0, "downtime_per_hour": 1000},
    )
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

    choices = {INTERVAL: {"from": "1 s", "to": "17 s", "steps": 33}}
    spec = asked(choices, "recovery <= 20 s", replications=(3, 30), prices={"store_per_gb": 1.0})
    plan = tideover.plan(spec, evaluator=World(figures))
    assert plan.best.values == {INTERVAL: "9.5 s"}
    assert plan.binding.objective == "recovery <= 20 s"
    assert plan.binding.margin == pytest.approx(1 - 2.01 * 9.5 / 20, abs=0.01)
    assert {missed for _, missed in plan.binding.cheaper} == {("recovery <= 20 s",)}
    assert plan.headroom.holds <= 20 / (2.01 * 9.5) <= plan.headroom.breaks
    assert plan.headroom.breaks / plan.headroom.holds <= 1.05
    assert plan.headroom.first == ("recovery <= 20 s",)
    assert plan.runs <= plan.exhaustive / 4


def test_only_one_replica_more_is_feasible():
    """Law: without a replica the state is lost, one masks that, for more there are no hosts. Simulated."""
    choices = {
        "strategy.kind": ["none", "active_replication"],
        "strategies.active_replication.k": [1, 2, 3],
        "hosts.count": [2],
    }
    hosts = {"machines": {"any": {"count": 1}}, "placement": "k_safe"}
    more = {"scenario": BASE | {"hosts": hosts}, "machines": {"node": {"per_hour": 0.5, "slots": 2}}}
    spec = asked(choices, "recovery_max <= 0.5 s", replications=(2, 4), **more)
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
    slow = BASE | {"failures": [BASE["failures"][0] | {"detection": "1 s", "restart": "500 ms"}]}
    spec = asked({INTERVAL: ["2 s", "4 s"]}, "recovery <= 500 ms", replications=(2, 4), scenario=slow)
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


INTERVAL, PHASE, KIND = "strategy.checkpoint_interval", "strategy.checkpoint_phase", "strategy.kind"
MOST = 40


def made_up(seed):
    """A world with two ordered choices and one without order, and what its figures are on average."""
    rng = np.random.default_rng(seed)
    a, b, c, e = rng.uniform(20, 80), rng.uniform(0.2, 2.0), rng.uniform(0.5, 2.0), rng.uniform(0.0, 0.3)
    dear, slow, spread = rng.uniform(0.6, 1.6), rng.uniform(0.5, 1.6), rng.uniform(0.005, 0.05)
    limit = rng.uniform(6, 40)

    def figures(values, replication, load=1.0):
        second = values[KIND] == "rsm"
        t = seconds(values[INTERVAL])
        p = seconds(values[PHASE]) if PHASE in values else 4.0
        cost = (a / t + b * t + e * p * p) * (dear if second else 1.0)
        recovery = (c * t + 30 / (1 + p)) * (slow if second else 1.0)
        # One luck for all candidates, and a little of their own.
        own = 0.3 * noise(replication, seed, sorted(values.items()))
        luck = 1 + spread * (noise(replication, seed) + own)
        return {"store_bytes": bytes_that_cost(cost), "recovery": recovery * luck}

    choices = {
        KIND: ["aligned_snapshots", "rsm"],
        INTERVAL: {"from": "1 s", "to": "40 s", "steps": 17, "scale": "log"},
        PHASE: {"from": "1 s", "to": "9 s", "steps": 9},
    }
    more = {"set": {"strategies.rsm.checkpoint_interval": "5 s"}, "prices": {"store_per_gb": 1.0}}
    spec = asked(choices, f"recovery <= {limit:.3f} s", replications=(4, MOST), **more)
    return spec, figures, limit


def exhaustive(spec, figures, limit):
    """The cheapest of all that hold, each in full; without a line of the planner. None: none holds."""
    ts = np.geomspace(1, 40, 17)
    best = None
    for kind, t, p in itertools.product(("aligned_snapshots", "rsm"), ts, range(1, 10)):
        if kind == "rsm" and p > 1:
            continue  # it has no phase
        values = {KIND: kind, INTERVAL: f"{t:.6g} s"}
        values |= {PHASE: f"{p} s"} if kind == "aligned_snapshots" else {}
        each = [figures(values, n) for n in range(MOST)]
        if sum(one["recovery"] for one in each) / MOST <= limit:
            cost = sum(round(one["store_bytes"]) for one in each) / MOST / bytes_that_cost(1.0)
            best = cost if best is None else min(best, cost)
    return best


def check(seed):
    spec, figures, limit = made_up(seed)
    known = exhaustive(spec, figures, limit)
    world = World(figures)
    plan = tideover.plan(spec, evaluator=world)
    assert plan.exhaustive == (17 * 9 + 17) * MOST
    assert world.runs == plan.runs <= plan.exhaustive / 4
    assert (plan.best is None) == (known is None)
    if known is not None:
        assert plan.best.n == MOST
        assert known <= plan.best.cost * (1 + 1e-9)
        assert plan.best.cost <= 1.02 * known
    return plan


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_an_exhaustive_search_finds_nothing_cheaper(seed):
    """Law: not by more than 2 %, with at most a quarter of its runs."""
    check(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10, 60))
def test_an_exhaustive_search_finds_nothing_cheaper_at_random(seed):
    check(seed)


class Outside:
    """Optuna in the planner's place: it is asked for a trial at a time, and told what it costs."""

    def __init__(self, spec, session):
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.space: Space = spec.space
        self.most = spec.effort.most
        self.sampler = optuna.samplers.TPESampler(seed=3, multivariate=True)
        self.study = optuna.create_study(sampler=self.sampler)
        self.left = 60

    def ask(self):
        if not self.left:
            return []
        self.left -= 1
        self.trial = self.study.ask()
        index = tuple(
            self.trial.suggest_int(choice.key, 0, len(choice.levels) - 1)
            if choice.ordered
            else self.trial.suggest_categorical(choice.key, range(len(choice.levels)))
            for choice in self.space.choices
        )
        return [Ask(self.space.values(self.space.canonical(index)), 0, self.most - 1)]

    def tell(self, candidates):
        (one,) = candidates
        self.study.tell(self.trial, one.cost if one.holds else 1e6 * (1 + one.violation))


def test_an_outside_optimiser_takes_over():
    """Law: who searches is asked and told; runs that it asks for twice are done once; the answer has the same
    form, and its best is one that it asked for.
    """
    spec, figures, limit = made_up(1)
    world = World(figures)
    plan = tideover.plan(spec, evaluator=world, search=Outside)
    known = exhaustive(spec, figures, limit)
    assert len(plan.found) < 60 or len(plan.found) == len(world.rounds)
    assert world.runs == plan.runs == len(plan.found) * MOST
    assert plan.best is min((one for one in plan.found if one.holds), key=lambda one: one.cost)
    assert known * (1 - 1e-9) <= plan.best.cost <= 1.5 * known


def test_what_a_run_in_this_process_says_is_what_run_says():
    """Law: the evaluator's rows are those of ``tideover.run``, whatever is asked for together."""
    read_spec = read(asked({INTERVAL: ["2 s", "5 s"], "run.seed": [1, 2]}, replications=(2, 3)))
    asks = [Ask({INTERVAL: "5 s", "run.seed": 2}, 1, 2), Ask({INTERVAL: "2 s", "run.seed": 1}, 0, 0, 2.0)]
    with kept(read_spec.space, None, Place(None), print) as evaluator:
        found = evaluator(asks)
    for number, (ask, rate) in enumerate(zip(asks, ("10/s", "20/s"), strict=True)):
        alone = tideover.run(BASE, ask.values | {"run.replications": 3, "topology.source.rate": rate})
        for table, its in zip(found, (alone.runs, alone.recoveries), strict=True):
            mine = table[table["ask"] == number].drop(columns=["ask", "scenario_json"], errors="ignore")
            its = its[its["replication"].between(ask.first, ask.last)]
            assert mine.reset_index(drop=True).equals(its[mine.columns].reset_index(drop=True))


def test_a_run_that_fails_is_a_candidate_that_does_not_hold():
    """Law: a failed run spoils its candidate and nobody else."""

    class Failing(World):
        def __call__(self, asks):
            runs, recoveries = super().__call__(asks)
            bad = [number for number, ask in enumerate(asks) if ask.values[INTERVAL] == "2 s"]
            runs.loc[runs["ask"].isin(bad), "error"] = "out of memory"
            return runs, recoveries

    spec = asked({INTERVAL: ["2 s", "5 s"]}, replications=(5, 40))
    plan = tideover.plan(spec, evaluator=Failing(lambda values, n, load: {"recovery": 1.0}))
    assert plan.best.values == {INTERVAL: "5 s"}
    (failed,) = [one for one in plan.found if one.error]
    assert (failed.missed, failed.holds) == (["out of memory"], False)


def test_each_better_answer_is_told_before_the_search_is_over():
    """Law: what is told first comes of the first requests alone; nothing is told twice, each is better than
    the one before or surer of it, and the last is the plan's own.
    """
    spec, figures, _ = made_up(1)
    world, told = World(figures), []

    def answered(plan):
        told.append((len(world.rounds), plan))

    found = planning.plan(read(spec), world, answered=answered)
    rounds = [number for number, _ in told]
    assert rounds == sorted(set(rounds))
    assert rounds[0] == 1 < len(world.rounds)
    assert told[0][1].runs == sum(ask.runs for ask in world.rounds[0])
    best = [plan.best for _, plan in told if plan.best is not None]
    for before, after in itertools.pairwise(best):
        assert after.cost < before.cost or after.n > before.n or not before.holds
    assert best[-1] is found.best
    assert told[-1][1].headroom is None is not found.headroom


def test_candidates_that_cannot_keep_up_are_tried_last():
    """Law: 120 ms of work for 10/s are too much, 20 ms are not. All cost the same, so the order is that of
    the file; the overloaded come after all others, and are tried all the same: nothing says that they miss.
    """
    world = World(lambda values, replication, load=1.0: {"recovery": 1.0})
    choices = {"topology.work.service": ["120 ms", "20 ms", "130 ms", "30 ms"]}
    spec = asked(choices, "recovery <= 500 ms", replications=(2, 2))
    tideover.plan(spec, evaluator=world)
    tried = [ask.values["topology.work.service"] for asks in world.rounds for ask in asks]
    assert tried == ["20 ms", "30 ms", "120 ms", "130 ms"]
    assert [len(asks) for asks in world.rounds] == [2, 2]
