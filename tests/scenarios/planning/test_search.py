"""The search against programs that share nothing with it: every candidate in full, an outside optimiser."""

import itertools

import numpy as np
import pytest

import tideover
from tests.scenarios.planning.worlds import BASE, World, bytes_that_cost, noise, seconds
from tideover.scenarios.planning import plan as planning
from tideover.scenarios.planning.plan import kept
from tideover.scenarios.planning.search import Ask
from tideover.scenarios.planning.spec import Space, read
from tideover.scenarios.spark.settings import Place

INTERVAL, PHASE, KIND = "strategy.checkpoint_interval", "strategy.checkpoint_phase", "strategy.kind"
LEAST, MOST = 4, 40


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
        luck = 1 + spread * (
            noise(replication, seed) + 0.3 * noise(replication, seed, sorted(values.items()))
        )
        return {"store_bytes": bytes_that_cost(cost), "recovery": recovery * luck}

    spec = {
        "scenario": BASE,
        "set": {"strategies.rsm.checkpoint_interval": "5 s"},
        "prices": {"store_per_gb": 1.0},
        "objectives": [f"recovery <= {limit:.3f} s", "lost = 0"],
        "choices": {
            KIND: ["aligned_snapshots", "rsm"],
            INTERVAL: {"from": "1 s", "to": "40 s", "steps": 17, "scale": "log"},
            PHASE: {"from": "1 s", "to": "9 s", "steps": 9},
        },
        "search": {"replications": {"least": LEAST, "most": MOST}},
    }
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
    read_spec = read(
        {
            "scenario": BASE,
            "objectives": ["lost = 0"],
            "choices": {INTERVAL: ["2 s", "5 s"], "run.seed": [1, 2]},
        }
    )
    asks = [Ask({INTERVAL: "5 s", "run.seed": 2}, 1, 2), Ask({INTERVAL: "2 s", "run.seed": 1}, 0, 0, 2.0)]
    with kept(read_spec.space, None, Place(None), print) as evaluator:
        found = evaluator(asks)
    for number, (settings, replications, rate) in enumerate(
        [({INTERVAL: "5 s", "run.seed": 2}, [1, 2], "10/s"), ({INTERVAL: "2 s", "run.seed": 1}, [0], "20/s")]
    ):
        alone = tideover.run(
            BASE, settings | {"run.replications": 3, "topology.source.rate": rate, "name": "a small job"}
        )
        for table, name in zip(found, ("runs", "recoveries"), strict=True):
            mine = table[table["ask"] == number].drop(columns=["ask"]).reset_index(drop=True)
            its = getattr(alone, name)
            its = its[its["replication"].isin(replications)].reset_index(drop=True)
            left_out = ["scenario_json"] if name == "runs" else []
            assert mine.drop(columns=left_out).equals(
                its.drop(columns=left_out)[mine.drop(columns=left_out).columns]
            )


def test_a_run_that_fails_is_a_candidate_that_does_not_hold():
    """Law: a failed run spoils its candidate and nobody else."""

    class Failing(World):
        def __call__(self, asks):
            runs, recoveries = super().__call__(asks)
            bad = [number for number, ask in enumerate(asks) if ask.values[INTERVAL] == "2 s"]
            runs.loc[runs["ask"].isin(bad), "error"] = "out of memory"
            return runs, recoveries

    spec = {"scenario": BASE, "objectives": ["lost = 0"], "choices": {INTERVAL: ["2 s", "5 s"]}}
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
    spec = {
        "scenario": BASE,
        "objectives": ["lost = 0", "recovery <= 500 ms"],
        "choices": {"topology.work.service": ["120 ms", "20 ms", "130 ms", "30 ms"]},
        "search": {"replications": {"least": 2, "most": 2}},
    }
    tideover.plan(spec, evaluator=world)
    tried = [ask.values["topology.work.service"] for asks in world.rounds for ask in asks]
    assert tried == ["20 ms", "30 ms", "120 ms", "130 ms"]
    assert [len(asks) for asks in world.rounds] == [2, 2]
