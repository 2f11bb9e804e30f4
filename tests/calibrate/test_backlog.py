"""What follows from batches: backlog, latency, costs and their spread."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.calibrate import campaigns
from tideover.calibrate import episodes as backlog
from tideover.calibrate import fits
from tideover.calibrate.counterpart import predicted
from tideover.calibrate.episodes import BacklogCurve, episodes
from tideover.calibrate.fits import Spread, fit_costs, spread_beside_luck, spread_by_kind, spread_of
from tideover.calibrate.real.processes import PRINTED


def batches(duration, rate=1000.0, interval=1.0, until=60.0, silent=None):
    """Outputs of batches triggered every ``interval``; none come out in ``silent`` = (from, to)."""
    triggers = np.arange(1, int(until / interval)) * interval
    outputs = triggers + duration
    if silent is not None:
        out = (outputs < silent[0]) | (outputs >= silent[1])
        triggers, outputs = triggers[out], outputs[out]
    return BacklogCurve(outputs, rate * triggers, (np.array([0.0, until]), np.array([0.0, rate * until])))


@given(st.floats(0.01, 0.99), st.floats(1, 1e5), st.floats(0.1, 5))
def test_latency_is_uniform_over_the_interval(share, rate, interval):
    duration = share * interval
    found = batches(duration, rate, interval, until=40 * interval).latencies(10 * interval, 30 * interval)
    at = np.quantile(found, [0, 0.5, 0.95, 1])
    assert at == pytest.approx(duration + interval * np.array([0, 0.5, 0.95, 1]), abs=1e-3 * interval)


@given(st.floats(0.01, 0.99), st.floats(20, 40), st.floats(1.5, 10))
def test_gap_holds_the_outage(duration, failed, down):
    seen = batches(duration, silent=(failed, failed + down))
    last = seen.outputs[seen.outputs < failed][-1]
    first = seen.outputs[seen.outputs > failed][0]
    assert backlog.output_gap(seen, failed, 60.0) == pytest.approx(first - last)
    assert first - last >= down


def test_gap_that_the_end_cuts_off_is_not_counted():
    seen = batches(0.3, silent=(30.0, 99.0))
    assert backlog.output_gap(seen, 30.0, 60.0) is None
    assert backlog.catch_up(seen, 10.0, 30.0, 60.0) is None


@given(st.floats(0.1, 0.9), st.floats(0.0, 0.99), st.integers(2, 8))
def test_one_large_batch_catches_up_at_its_end(duration, phase, missed):
    """The batch after the outage takes everything: its output is the end of the catch-up."""
    failed = 30 + phase
    seen = batches(duration, silent=(failed, failed + missed))
    first = seen.outputs[seen.outputs > failed][0]
    assert backlog.catch_up(seen, 10.0, failed, 60.0) == pytest.approx(first - failed)


@given(st.floats(0.1, 0.9), st.floats(20, 40))
def test_nothing_lost_is_nothing_to_catch_up_with(duration, failed):
    assert backlog.catch_up(batches(duration), 10.0, failed, 60.0) == 0.0


@given(st.floats(0.1, 0.9), st.floats(20, 40))
def test_what_comes_much_later_is_not_caught_up_with(duration, failed):
    """Ten seconds after the fault the rate is doubled, and with it the backlog: not the fault's doing."""
    plain = batches(duration)
    moments = np.array([0.0, failed + 10, 60.0])
    created = np.array([0.0, 1000 * (failed + 10), 1000 * (failed + 10) + 2000 * (50 - failed)])
    done = np.interp(plain.outputs - duration, moments, created)
    seen = BacklogCurve(plain.outputs, done, (moments, created))
    assert backlog.catch_up(seen, 10.0, failed, 60.0) == 0.0


def test_catch_up_waits_for_slow_batches():
    """After the outage the batches are late by 2 s, 1 s, 0.5 s, and then as they were."""
    triggers = np.arange(1.0, 50.0)
    late = np.zeros(49)
    late[30:33] = (2.0, 1.0, 0.5)
    seen = BacklogCurve(
        triggers + 0.3 + late, 100 * triggers, (np.array([0.0, 50.0]), np.array([0.0, 5000.0]))
    )
    found = backlog.catch_up(seen, 5.0, 30.5, 50.0)
    assert found == pytest.approx(33.8 - 30.5)  # of the third late batch, the last of them


def test_nothing_new_is_no_output():
    """A batch that runs again, and the slower of two queries, tell nothing new."""
    moments, rows = backlog.new_outputs(np.array([1.0, 3.0, 2.0, 1.5, 4.0]), np.array([10, 30, 20, 10, 30]))
    assert moments.tolist() == [1.0, 2.0, 3.0]
    assert rows.tolist() == [10, 20, 30]


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(0, 1000)), max_size=30))
def test_outputs_rise(pairs):
    moments, rows = backlog.new_outputs(np.array([m for m, _ in pairs]), np.array([r for _, r in pairs]))
    assert (np.diff(moments) >= 0).all()
    assert (np.diff(rows) > 0).all()
    assert (rows[-1] if len(rows) else 0) == max((r for _, r in pairs), default=0)


CONDITION = ("micro_batch", "word_count", "local-cluster[2,1,1024]")


def fitted(tables):
    return fit_costs(episodes(tables), np.random.default_rng(1))


@settings(deadline=None, max_examples=20)
@given(st.floats(0.1, 0.5), st.floats(1e-6, 4e-5), st.floats(0, 2e-7))
def test_costs_are_found(constant, row, state):
    """Two tasks share the rows and the state: each row takes twice what it adds to the batch."""
    parts = [
        campaigns.steady(
            f"s{n}", (2000, 5000, 9000), lambda rows, n=n: constant + row * rows + state * n, float(n)
        )
        for n in (100, 10_000, 1_000_000)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fits, "DRAWS", 1)  # they take longer than the fit, and it is the fit that counts
        found = fitted(campaigns.joined(*parts))[CONDITION].costs
    assert found.row_s == pytest.approx(2 * row, rel=0.02)
    assert found.state_row_s == pytest.approx(2 * state, rel=0.02, abs=1e-9)
    assert 2 * found.task_s + found.output_s + found.state_s == pytest.approx(constant, rel=0.02, abs=2e-3)
    assert found.plan_s == pytest.approx(0.05)
    assert found.commit_s == pytest.approx(0.03)


@pytest.mark.parametrize("rate", [1000, 4000, 12_000])
def test_prediction_of_an_unseen_rate(rate):
    tables = campaigns.steady("s", (2000, 5000, 9000, rate), lambda rows: 0.2 + 2e-5 * rows, held_out=(3,))
    found = fitted(tables)[CONDITION].costs
    (unseen,) = (e for e in episodes(tables) if e.held_out)
    measured, made = unseen.figures(), predicted(unseen, found, None)
    assert set(measured) == set(made) == {"batch_duration_s", "latency_p50_s", "latency_p95_s"}
    for measure, value in measured.items():
        assert made[measure] == pytest.approx(value, rel=0.02), measure


def test_held_out_episodes_change_nothing():
    def found(work):
        made = campaigns.steady("s", (2000, 5000, 9000), work, held_out=(1,))
        return fitted(made)[CONDITION].costs

    plain = found(lambda rows: 0.2 + 2e-5 * rows)
    odd = found(lambda rows: 0.2 + 2e-5 * rows if not 4500 < rows < 5500 else 0.9)
    assert odd == plain


def test_draws_spread_as_much_as_the_data():
    """Exact data leave no doubt; noisy data do."""

    def spread(noise):
        bits = np.random.default_rng(7)
        tables = campaigns.steady(
            "s", (2000, 4000, 6000, 8000), lambda rows: 0.2 + 2e-5 * rows + noise * bits.normal()
        )
        found = fitted(tables)[CONDITION]
        return np.std([d.row_s for d in found.draws]) / found.costs.row_s

    assert spread(0.0) < 1e-3 < spread(0.02)


def test_what_does_not_vary_is_not_identified():
    same = fitted(campaigns.steady("s", (3000, 3000), lambda rows: 0.2))[CONDITION]
    assert (same.rows_vary, same.state_varies) == (False, False)
    varied = fitted(campaigns.steady("s", (2000, 9000), lambda rows: 0.2 + 1e-5 * rows))[CONDITION]
    assert (varied.rows_vary, varied.state_varies) == (True, False)


def test_a_query_that_replays_costs_what_one_with_a_checkpoint_does():
    """One rate alone tells no cost of a row: those of the other tell it. Two queries at a time are apart."""
    rates = {"micro_batch": (2000, 9000), "source_replay": (3000,), "active_replication": (3000,)}
    parts = [campaigns.steady(s, r, lambda rows: 0.2 + 2e-5 * rows, strategy=s) for s, r in rates.items()]
    found = {c.strategy: fit for c, fit in fitted(campaigns.joined(*parts)).items()}
    assert found["source_replay"].costs == found["micro_batch"].costs
    assert {strategy for strategy, fit in found.items() if fit.rows_vary} == {"micro_batch", "source_replay"}


def width(found, value=5.0):
    low, high = found.interval(np.array([value]))
    return high - low


def test_interval_is_wider_for_less_freedom():
    widths = [width(Spread(0.2, freedom)) for freedom in (1, 2, 5, 30, 1000)]
    assert widths == sorted(widths, reverse=True)
    same = Spread(Spread(0.2, 3).normal, 1e9)
    assert width(same) == pytest.approx(width(Spread(0.2, 3)), rel=0.01)


def test_what_is_predicted_nowhere_has_no_interval():
    assert all(np.isnan(Spread(0.1, 5).interval(np.zeros(0))))


def test_what_mostly_never_comes_has_no_upper_end():
    low, high = Spread(0.1, 5).interval(np.array([5.0, 5.0, np.inf, np.inf]))
    assert 3 < low < 5
    assert high == np.inf


def test_less_than_the_floor_reaches_to_nothing():
    low, high = Spread(0.1, 5).interval(np.array([0.0, 0.2]), floor=1.0)
    assert low == 0
    assert 1 < high < 1.5


def test_two_outcomes_are_both_held():
    """A tenth of the ways ends late: the interval reaches as far, the estimate's own scatter would not."""
    _, high = Spread(0.1, 5).interval(np.array([1.0] * 9 + [8.0]))
    assert high > 6


@pytest.mark.parametrize("kills", [2, 3, 5])
def test_nine_of_ten_new_kills_are_held(kills):
    """Kinds of like scatter, each fitted by its mean: a new kill of a kind is in its interval as often as it
    says. The mean of n kills is off by itself, which the draws of a fit know: they are drawn here, too.
    """
    bits = np.random.default_rng(3)
    inside = []
    for _ in range(200):
        seen = bits.normal(0, 0.3, (6, kills))
        means = seen.mean(axis=1)
        found = spread_by_kind({i: seen[i] - means[i] for i in range(6)})
        for i in range(6):
            likely = np.exp(means[i] + bits.normal(0, 0.3 / np.sqrt(kills), 20))
            low, high = found[i].interval(likely)
            inside.append(low < np.exp(bits.normal(0, 0.3)) < high)
    assert 0.84 < np.mean(inside) < 0.96


def test_kinds_borrow_from_each_other():
    """One kill alone has the scatter of the others; many have their own. Two of three kinds have a
    variance of 0.04 * 4 / 3: that is typical, and theirs, over three degrees of freedom of their own and two.
    """
    steady = np.array([0.2, -0.2, 0.2, -0.2])
    found = spread_by_kind({"a": steady, "b": steady, "alone": np.zeros(1), "wild": np.tile([1.0, -1.0], 50)})
    assert found["a"].scale == found["alone"].scale == pytest.approx(np.sqrt(0.16 / 3))
    assert found["wild"].scale == pytest.approx(1.0, rel=0.05)
    assert [found[kind].freedom for kind in ("alone", "a", "wild")] == [2, 5, 101]


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=20), st.integers(1, 10))
def test_each_parameter_costs_a_degree_of_freedom(left, parameters):
    """With what is expected of it (0.05) for two more."""
    found = spread_of(np.array([*left, np.nan]), parameters, 0.05)
    assert found.freedom == 2 + max(0, len(left) - parameters)
    assert found.scale**2 * found.freedom == pytest.approx(np.square(left).sum() + 2 * 0.05**2)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=20))
def test_where_all_runs_say_the_same_there_is_no_luck(left):
    found, plain = spread_beside_luck(np.tile(left, (12, 1)).T, 2, 0.05), spread_of(np.array(left), 2, 0.05)
    assert (found.scale, found.freedom) == pytest.approx((plain.scale, plain.freedom))


def test_law_luck_that_predictions_draw_is_not_in_their_spread_once_more():
    """In a third of the cases one restart more takes 30 % longer, and all scatter by 0.05. A case that was
    not measured changes nothing. Nine of ten times the interval holds what comes; with the luck in the spread
    it would nearly always.
    """
    bits = np.random.Generator(np.random.PCG64(4))
    longer = np.log(1.3)
    luck, drawn = longer * (bits.random(600) < 1 / 3), longer * (bits.random((600, 12)) < 1 / 3)
    left = drawn - (luck + bits.normal(0, 0.05, 600))[:, None]
    found = spread_beside_luck(np.vstack([left, np.full(12, np.nan)]), 2, 0.05)
    assert found.scale == pytest.approx(0.05, rel=0.1)
    assert spread_of(np.median(left, axis=1), 2, 0.05).scale > 0.1
    low, high = found.interval(np.exp(longer * (np.arange(39) % 3 == 0)))
    came = np.exp(longer * (bits.random(2000) < 1 / 3) + bits.normal(0, 0.05, 2000))
    assert np.mean((low < came) & (came < high)) == pytest.approx(0.9, abs=0.02)


def too_slow():
    """Episodes with two settled batches each, and a session that broke off."""
    tables = campaigns.steady("slow", (2000, 5000), lambda rows: 0.3, length=3.0)
    printed = 'Setting Spark log level to "ERROR".'  # as supervisor._failed joins them
    reason = f"session broken: a driver ended by itself.{PRINTED}\n{printed}"
    broken = campaigns.session("broken", schedule="{}", error=reason)
    return tables | {"sessions": pd.concat([tables["sessions"], pd.DataFrame([broken])])}


def test_what_is_too_little_is_named_with_what_to_do(tideover, monkeypatch, tmp_path):
    monkeypatch.setattr("tideover.calibrate.real.sessions.run", lambda *asked: too_slow())
    code, out, err = tideover("calibrate", "--quick", "--out", tmp_path / "out")
    assert (code, out) == (1, "")
    assert [line for line in err.splitlines() if line.strip()] == [
        "tideover: nothing can be fitted: no episode has 3 batches of normal operation.",
        "  slow/0 (with 2000 rows/s): 2",
        "  slow/1 (with 5000 rows/s): 2",
        "  left out: session broken: a driver ended by itself.",
        "The machine is too slow, or has other work to do. Give another --out to measure anew, or a greater "
        "--pace if it is slow; with the same ones only sessions that failed are tried again.",
    ]
