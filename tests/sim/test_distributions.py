from __future__ import annotations

import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tideover.sim.distributions import (
    DISTRIBUTIONS,
    AliasTable,
    Constant,
    Distribution,
    Empirical,
    Exponential,
    Gamma,
    Lognormal,
    Request,
    Uniform,
    Weibull,
    Zipf,
)
from tideover.sim.draws import Draws, Purpose
from tideover.sim.units import MAX_DURATION, MS

N = 200_000
Z = scipy.stats.norm.isf(0.0005)  # two-sided 99.9 %

CASES = [
    (Constant(value=5 * MS), None),
    (Uniform(low=2 * MS, high=6 * MS), scipy.stats.uniform(2 * MS, 4 * MS)),
    (Exponential(mean=3 * MS), scipy.stats.expon(scale=3 * MS)),
    (Gamma(mean=4 * MS, shape=2.5), scipy.stats.gamma(2.5, scale=4 * MS / 2.5)),
    (Gamma(mean=4 * MS, cv=1.5), scipy.stats.gamma(1 / 2.25, scale=9 * MS)),
    (Lognormal(median=3 * MS, sigma=0.7), scipy.stats.lognorm(0.7, scale=3 * MS)),
    (
        Lognormal(mean=3 * MS, cv=0.5),
        scipy.stats.lognorm(math.sqrt(math.log(1.25)), scale=3 * MS / math.sqrt(1.25)),
    ),
    (Weibull(mean=3 * MS, shape=0.7), scipy.stats.weibull_min(0.7, scale=3 * MS / math.gamma(1 + 1 / 0.7))),
    (Weibull(mean=3 * MS, shape=2.0), scipy.stats.weibull_min(2, scale=3 * MS / math.gamma(1.5))),
    (Empirical(values=(1 * MS, 2 * MS, 9 * MS), weights=(1.0, 2.0, 1.0)), None),
    (Request(answer=Exponential(mean=3 * MS), timeout=4 * MS, retries=2, backoff=1 * MS), None),
]
IDS = [repr(case[0]) for case in CASES]


def words(n: int, seed: int = 7) -> np.ndarray:
    return Draws(seed).bits("test", Purpose.SERVICE, np.arange(n, dtype=np.int64))


@pytest.mark.parametrize(("dist", "law"), CASES, ids=IDS)
def test_mean_lies_in_its_confidence_interval(dist: Distribution, law: object) -> None:
    x = dist.sample(words(N))
    assert x.dtype == np.int64
    half = Z * x.std() / math.sqrt(N)
    assert abs(x.mean() - dist.mean_ns) <= half + 0.5  # half a nanosecond for the rounding


@pytest.mark.parametrize(("dist", "law"), [case for case in CASES if case[1]])
def test_moments_and_shape_agree_with_scipy(dist: Distribution, law: scipy.stats.rv_continuous) -> None:
    assert dist.mean_ns == pytest.approx(law.mean(), rel=1e-12)
    x = dist.sample(words(N)).astype(float)
    # The second moment's own standard error comes from the fourth.
    second = (x - law.mean()) ** 2
    assert abs(second.mean() - law.var()) <= Z * second.std() / math.sqrt(N)
    assert scipy.stats.kstest(x, law.cdf).pvalue > 0.001


def test_quantiles_are_those_of_the_law() -> None:
    u = np.array([0.001, 0.25, 0.5, 0.75, 0.999])
    bits = (u * 2.0**64).astype(np.uint64)
    for dist, law in CASES:
        if law is not None:
            u_used = 1 - u if isinstance(dist, Exponential) else u
            got = dist.sample(bits.copy())
            assert got == pytest.approx(law.ppf(u_used), rel=1e-6, abs=1)


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=40), st.integers(0, 40))
def test_draws_do_not_depend_on_how_a_train_is_cut(bits: list[int], cut: int) -> None:
    whole = np.array(bits, np.uint64)
    for dist, _ in CASES:
        parts = [dist.sample(whole[:cut].copy()), dist.sample(whole[cut:].copy())]
        one_by_one = [int(dist.sample(whole[i : i + 1].copy())[0]) for i in range(len(bits))]
        together = dist.sample(whole.copy())
        assert np.concatenate(parts).tolist() == together.tolist() == one_by_one
        assert (together >= 0).all()


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=40), st.integers(1, 300), st.floats(0, 3))
def test_keys_do_not_depend_on_how_a_train_is_cut(bits: list[int], keys: int, exponent: float) -> None:
    zipf = Zipf(keys=keys, exponent=exponent)
    whole = np.array(bits, np.uint64)
    together = zipf.index(whole.copy())
    assert together.tolist() == [int(zipf.index(whole[i : i + 1])[0]) for i in range(len(bits))]
    assert ((together >= 0) & (together < keys)).all()


@pytest.mark.parametrize("cls", [d for _, d in DISTRIBUTIONS.items()])
def test_extreme_words_stay_in_range(cls: type[Distribution]) -> None:
    edge = np.array([0, 1, 2**32, 2**63, 2**64 - 1], np.uint64)
    for dist, _ in CASES:
        if isinstance(dist, cls):
            assert ((dist.sample(edge.copy()) >= 0) & (dist.sample(edge.copy()) <= MAX_DURATION)).all()


@pytest.mark.parametrize(
    "dist",
    [
        Exponential(mean=MAX_DURATION),
        Lognormal(median=MAX_DURATION, sigma=3),
        Gamma(mean=MAX_DURATION, cv=30),
    ],
)
def test_long_tails_are_cut_at_the_longest_duration(dist: Distribution) -> None:
    """The longest draw is that of the first or of the last word."""
    assert int(dist.sample(np.array([0, 2**64 - 1], np.uint64)).max()) == MAX_DURATION


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=70).filter(any))
def test_alias_table_holds_exactly_the_probabilities_it_states(weights: list[int]) -> None:
    table = AliasTable(weights)
    cells = len(table._own)
    given_away = np.zeros(cells, np.int64)
    own = table._own.astype(np.int64)
    selfish = table._alias == np.arange(cells)
    own[selfish] = 2**32
    np.add.at(given_away, table._alias[~selfish], 2**32 - own[~selfish])
    total = own + given_away
    assert total[: len(weights)].tolist() == table.units.tolist()
    assert not total[len(weights) :].any()
    assert int(table.units.sum()) == table.total == cells * 2**32
    exact = np.array(weights) / sum(weights)
    assert np.abs(table.units / table.total - exact).max() <= len(weights) / table.total
    assert all(table.units[i] == 0 for i, w in enumerate(weights) if w == 0)


def test_zipf_frequencies_fit_the_law() -> None:
    zipf = Zipf(keys=50, exponent=1.1)
    counts = np.bincount(zipf.index(words(N)), minlength=50)
    assert scipy.stats.chisquare(counts, zipf.probabilities * N).pvalue > 0.001
    expected = np.arange(1, 51) ** -1.1
    assert zipf.probabilities == pytest.approx(expected / expected.sum(), rel=1e-12)


def test_a_request_is_tried_again_after_its_timeout() -> None:
    """An answer after 30 never comes by 10: three attempts with two pauses of 5, then none; one attempt with
    a limit of 10**8/s (one in 10 ns) takes 10 though the answer is there after 3.
    """
    waits = Request(answer=Constant(value=30), timeout=10, retries=2, backoff=5)
    assert set(waits.sample(words(10)).tolist()) == {10 + 5 + 10 + 5 + 10}
    assert set(Request(answer=Constant(value=3), limit=1e8).sample(words(10)).tolist()) == {10}


@pytest.mark.parametrize(("timeout", "retries"), [(4, 0), (4, 2), (1, 5), (30, 1)])
def test_mean_of_a_request(timeout: int, retries: int) -> None:
    """Exponential answers of mean m: an attempt fails with p = exp(-timeout / m), and keeps the task for
    m (1 - p) on average; there are (1 - p**(retries + 1)) / (1 - p) of them.
    """
    m, backoff = 3 * MS, 2 * MS
    request = Request(answer=Exponential(mean=m), timeout=timeout * MS, retries=retries, backoff=backoff)
    p = math.exp(-timeout * MS / m)
    attempts = (1 - p ** (retries + 1)) / (1 - p)
    assert request.mean_ns == pytest.approx(attempts * m * (1 - p) + (attempts - 1) * backoff, rel=1e-4)


def test_attempts_of_a_request_are_independent() -> None:
    """Both of two attempts fail with p**2, and whether the first does says nothing of the second."""
    p = 0.25
    timeout = round(-math.log(p) * 3 * MS)
    took = Request(answer=Exponential(mean=3 * MS), timeout=timeout, retries=1).sample(words(N))
    for failed, expected in ((took > timeout, p), (took == 2 * timeout, p * p)):
        assert abs(failed.mean() - expected) < Z * math.sqrt(expected * (1 - expected) / N)


def test_one_key_and_one_value() -> None:
    assert set(Zipf(keys=1).index(words(100)).tolist()) == {0}
    assert set(Empirical(values=(3,)).sample(words(100)).tolist()) == {3}


@pytest.mark.parametrize(
    "make",
    [
        lambda: Uniform(low=2, high=1),
        lambda: Gamma(mean=1),
        lambda: Gamma(mean=1, shape=1, cv=1),
        lambda: Gamma(mean=1, cv=math.nan),
        lambda: Lognormal(mean=1, sigma=1),
        lambda: Lognormal(mean=1, cv=1, median=1, sigma=1),
        lambda: Lognormal(median=1, sigma=-1),
        lambda: Exponential(mean=MAX_DURATION + 1),
        lambda: Exponential(mean=-1),
        lambda: Constant(value=1.5),
        lambda: Empirical(values=()),
        lambda: Empirical(values=(1, 2), weights=(1,)),
        lambda: Empirical(values=(1, 2), weights=(0, 0)),
        lambda: Empirical(values=(1, 2), weights=(math.inf, 0)),
        lambda: Request(answer=Constant(value=1), retries=1),
        lambda: Request(answer=Constant(value=1), backoff=1),
        lambda: Zipf(keys=0),
        lambda: Zipf(keys=3, exponent=math.nan),
    ],
)
def test_impossible_parameters_are_refused(make: object) -> None:
    with pytest.raises(ValidationError):
        make()  # type: ignore[operator]


def test_parts_pickle_and_have_described_fields() -> None:
    for dist, _ in CASES:
        assert pickle.loads(pickle.dumps(dist)) == dist
    for name, cls in DISTRIBUTIONS.items():
        for field, info in cls.model_fields.items():
            assert info.description, f"{name}.{field}"


def test_importing_them_does_not_import_scipy() -> None:
    code = "import sys, tideover.sim.distributions; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
