"""The fit of costs finds what was put in, and a simulation with them lasts as long as the measured batch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.calibrate import campaigns
from tideover.calibrate import fits
from tideover.calibrate.counterpart import predicted
from tideover.calibrate.episodes import episodes
from tideover.calibrate.fits import fit_costs

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
