"""Draws: functions of seed, replication, component, purpose, tuple and attempt, and of nothing else."""

from __future__ import annotations

import itertools
import subprocess
import sys

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from tideover.sim.draws import Bits, Draws, Purpose, below, mix, uniform01

N = 100_000
indexes = st.lists(st.integers(0, 2**62), min_size=1, max_size=60)


def words(
    n: int = N, seed: int = 1, replication: int = 0, component: str = "a", purpose: Purpose = Purpose.SERVICE
) -> Bits:
    return Draws(seed, replication).bits(component, purpose, np.arange(n, dtype=np.int64))


@given(indexes, st.lists(st.integers(0, 60), max_size=4))
def test_draws_do_not_depend_on_cutting_or_order(index: list[int], cuts: list[int]) -> None:
    draws = Draws(3)
    whole = np.array(index, np.int64)
    together = draws.bits("a", Purpose.CONTENT, whole)
    parts = [draws.bits("a", Purpose.CONTENT, part) for part in np.split(whole, sorted(cuts))]
    assert np.concatenate(parts).tolist() == together.tolist()
    assert draws.bits("a", Purpose.CONTENT, whole[::-1].copy())[::-1].tolist() == together.tolist()
    assert whole.tolist() == index  # the argument is not touched


def test_another_component_changes_nothing() -> None:
    alone, together = Draws(1), Draws(1)
    index = np.arange(100, dtype=np.int64)
    together.bits("new", Purpose.SERVICE, index)
    assert (
        alone.bits("a", Purpose.SERVICE, index).tolist()
        == together.bits("a", Purpose.SERVICE, index).tolist()
    )


def test_seed_replication_component_and_purpose_each_change_the_draws() -> None:
    """Law: any two families differ, everywhere, and are uncorrelated."""
    families = [
        words(seed=seed, replication=replication, component=component, purpose=purpose)
        for seed in (0, 1)
        for replication in (0, 1)
        for component in ("a", "b")
        for purpose in (Purpose.SERVICE, Purpose.GAP)
    ]
    limit = float(scipy.stats.norm.isf(0.0005 / 120)) / N**0.5  # 120 pairs
    for one, other in itertools.combinations(families, 2):
        assert not (one == other).any()
        assert abs(np.corrcoef(uniform01(one.copy()), uniform01(other.copy()))[0, 1]) < limit


def test_seed_and_replication_are_not_confused() -> None:
    assert words(1, seed=1, replication=11)[0] != words(1, seed=11, replication=1)[0]
    assert words(1, seed=1, replication=2)[0] != words(1, seed=12, replication=0)[0]


def test_an_attempt_changes_the_draw_and_attempt_zero_does_not() -> None:
    draws, index = Draws(1), np.arange(1000, dtype=np.int64)
    plain = draws.bits("a", Purpose.SERVICE, index)
    attempts = [draws.bits("a", Purpose.SERVICE, index, np.full(1000, i, np.int64)) for i in range(3)]
    assert plain.tolist() == attempts[0].tolist()
    assert not (attempts[1] == plain).any()
    assert not (attempts[1] == attempts[2]).any()


def test_draws_are_the_same_in_another_process() -> None:
    code = (
        "import numpy as np\n"
        "from tideover.sim.draws import Draws, Purpose\n"
        "print(Draws(1).bits('a', Purpose.SERVICE, np.arange(5, dtype=np.int64)).tolist())"
    )
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert out.strip() == str(words(5).tolist())


@pytest.mark.parametrize("purpose", list(Purpose))
def test_draws_are_uniform(purpose: Purpose) -> None:
    """Chi-square over 1000 cells, of the words and of how neighbours follow one another (Knuth, TAOCP 2,
    3.3.2).
    """
    u = uniform01(words(purpose=purpose))
    assert u.min() > 0
    assert u.max() < 1
    assert scipy.stats.chisquare(np.bincount((u * 1000).astype(int), minlength=1000)).pvalue > 1e-4
    pairs = (u[:-1:2] * 30).astype(int) * 30 + (u[1::2] * 30).astype(int)
    assert scipy.stats.chisquare(np.bincount(pairs, minlength=900)).pvalue > 1e-4


def test_luck_over_many_seeds_is_what_chance_allows() -> None:
    """1,000 seeds, five streams of 4,000 draws each. Over the seeds the mean of exponentials, and how draws
    go with the next one and with those of the next stream, are standard normal, as the central limit theorem
    has it (Kolmogorov's test), and no seed is further off than chance; large draws are as many as expected.
    """
    seeds, streams, n = 1000, 5, 4000
    index = np.arange(n, dtype=np.int64)
    scores: dict[str, list[float]] = {"mean": [], "next": [], "beside": [], "tail": []}
    for seed in range(seeds):
        draws = Draws(seed)
        u = np.array([uniform01(draws.bits(f"a.{i}", Purpose.FAULT, index)) for i in range(streams)])
        size, c = streams * n, u - 0.5
        scores["mean"].append((float(-np.log(u).mean()) - 1) * size**0.5)
        for name, product in (("next", c[:, 1:] * c[:, :-1]), ("beside", c[1:] * c[:-1])):
            scores[name].append(float(product.mean()) * 12 * product.size**0.5)
        scores["tail"].append(((u < 0.001).sum() / size - 0.001) / (0.001 / size) ** 0.5)
    limit = float(scipy.stats.norm.isf(0.0005 / seeds))
    for name in ("mean", "next", "beside"):
        assert scipy.stats.kstest(scores[name], "norm").pvalue > 1e-3, name
        assert max(map(abs, scores[name])) < limit, name
    # counts of 20 are not normal; their variance over the seeds is that of Poisson's law
    assert np.var(scores["tail"]) == pytest.approx(1, abs=4 * (2.05 / seeds) ** 0.5)


@pytest.mark.parametrize("step", [1, 2, 8, 1 << 20, 1 << 40])
def test_draws_are_uniform_for_indexes_in_steps(step: int) -> None:
    """uids come in steps: all words at one place of the tree, all roots of one spout task."""
    bits = Draws(1).bits("a", Purpose.SERVICE, np.arange(1 << 20, dtype=np.int64)[:N] * step)
    for shift in (0, 20, 54):
        cells = ((bits >> np.uint64(shift)) & np.uint64(1023)).astype(np.int64)
        assert scipy.stats.chisquare(np.bincount(cells, minlength=1024)).pvalue > 1e-4


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20))
def test_the_mixer_is_that_of_splitmix64(values: list[int]) -> None:
    """Law: equal to the finaliser of the paper, in Python's integers."""

    def finaliser(z: int) -> int:
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return z ^ (z >> 31)

    assert mix(np.array(values, np.uint64)).tolist() == [finaliser(z) for z in values]


@pytest.mark.parametrize("bit", range(0, 62, 7))
def test_one_bit_of_an_index_changes_half_of_the_draw(bit: int) -> None:
    """Each bit of the draw flips with probability 1/2.

    The strict avalanche criterion: A. F. Webster, S. E. Tavares, *On the design of S-boxes*, CRYPTO 1985.
    """
    draws, index = Draws(1), np.arange(N, dtype=np.int64)
    flips = draws.bits("a", Purpose.SERVICE, index) ^ draws.bits("a", Purpose.SERVICE, index ^ (1 << bit))
    limit = float(scipy.stats.norm.isf(0.0005 / 64 / 9)) * 0.5 / N**0.5
    for out in range(64):
        share = float(((flips >> np.uint64(out)) & np.uint64(1)).mean())
        assert abs(share - 0.5) < limit


@pytest.mark.parametrize("n", [1, 2, 3, 7, 1000])
def test_below_is_uniform_over_its_range(n: int) -> None:
    found = below(words(), n)
    assert found.dtype == np.int64
    assert (found.min(), found.max()) == (0, n - 1)
    assert n == 1 or scipy.stats.chisquare(np.bincount(found, minlength=n)).pvalue > 1e-4


def test_uniform01_never_gives_0_or_1() -> None:
    edge = np.array([0, 2**64 - 1], np.uint64)
    low, high = uniform01(edge).tolist()
    assert low == 2.0**-54
    assert high == 1 - 2.0**-53 < 1
