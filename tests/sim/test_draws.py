"""Draws: functions of seed, replication, component, purpose, tuple and attempt, and of nothing else; the data
plane's are equal to their definitions in exact arithmetic, whatever compiled them.
"""

from __future__ import annotations

import importlib.util
import itertools
import math
import shutil
import subprocess
import sys
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from tideover.sim.distributions import (
    AliasTable,
    Constant,
    Distribution,
    Empirical,
    Exponential,
    Gamma,
    Request,
    Uniform,
    Zipf,
)
from tideover.sim.draws import Bits, Draws, Purpose, below, mix, uniform01
from tideover.sim.plane.build import HERE, build
from tideover.sim.plane.library import ffi, lib
from tideover.sim.units import MAX_DURATION, MS

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


WORD = 2**64
any_word = st.integers(0, WORD - 1)
integers = st.integers(-(2**63), 2**63 - 1)
durations = st.one_of(st.integers(0, 100), st.integers(0, MAX_DURATION))
normal = st.floats(sys.float_info.min, sys.float_info.max)


def natural_log(x: npt.NDArray[np.float64], library: Any = lib) -> npt.NDArray[np.float64]:
    found = np.empty_like(x)
    library.natural_log_array(ffi.from_buffer("double[]", x), x.size, ffi.from_buffer("double[]", found))
    return found


def ulps(x: float, found: float) -> float:
    """By how many units in the last place of log(x) what was found differs from it."""
    with localcontext() as context:
        context.prec = 50
        exact = Decimal(x).ln()
        return float(abs(Decimal(found) - exact) / Decimal(math.ulp(float(exact))))


@given(any_word, integers, integers)
def test_bits_are_those_of_their_definition(key: int, index: int, attempt: int) -> None:
    """Law: splitmix64's finaliser of a sum, and for identities the first half of it, in Python's integers."""
    z = (index * 0x9E3779B97F4A7C15 + key + attempt * 0xD6E8FEB86659FD93) % WORD
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    identity = z ^ (z >> 27)
    z = identity * 0x94D049BB133111EB % WORD
    draws = Draws(0)
    draws._keys = {("a", Purpose.SERVICE): key, ("a", Purpose.IDENTITY): key}
    one, again = np.array([index]), np.array([attempt])
    assert draws.bits("a", Purpose.SERVICE, one, again).tolist() == [z ^ (z >> 31)]
    assert draws.identity("a", one, again).tolist() == [identity]


def test_indexes_of_any_shape_and_stride() -> None:
    """Law: the shape of the indexes is that of the draws, and how they lie in memory is of no account."""
    draws, index = Draws(1), np.arange(24).reshape(4, 6)
    drawn = draws.bits("a", Purpose.SERVICE, index)
    assert drawn.shape == index.shape
    assert draws.bits("a", Purpose.SERVICE, index[::2, ::3]).tolist() == drawn[::2, ::3].tolist()
    assert uniform01(drawn[::2]).tolist() == uniform01(drawn)[::2].tolist()
    assert below(drawn.T, 9).tolist() == below(drawn, 9).T.tolist()
    sampled = Exponential(mean=MS).sample(drawn[:, 1].copy()).tolist()
    assert Exponential(mean=MS).sample(drawn[:, 1]).tolist() == sampled
    with pytest.raises(ValueError, match=r"attempts of shape \(3,\) for indexes of shape \(4,\)"):
        draws.bits("a", Purpose.SERVICE, np.arange(4), np.arange(3))


def test_of_nothing_comes_nothing() -> None:
    none = Draws(1).bits("a", Purpose.SERVICE, np.arange(0))
    assert none.tolist() == uniform01(none).tolist() == below(none, 3).tolist() == []
    assert Exponential(mean=1).sample(none).tolist() == Zipf(keys=3).index(none).tolist() == []


@given(any_word, st.integers(1, 2**31 - 1))
def test_uniform_numbers_are_those_of_their_definition(word: int, limit: int) -> None:
    """The centre of one of 2**53 cells, to the nearest double, ties to even, as Python divides; and the upper
    32 bits, times the limit, divided by 2**32.
    """
    bits = np.array([word], np.uint64)
    assert uniform01(bits).tolist() == [min(((word >> 11) * 2 + 1) / 2**54, 1 - 2**-53)]
    assert below(bits, limit).tolist() == [(word >> 32) * limit >> 32]


@given(st.lists(normal, min_size=1, max_size=20))
def test_the_logarithm_is_within_a_unit_in_the_last_place(x: list[float]) -> None:
    for one, found in zip(x, natural_log(np.array(x)).tolist(), strict=True):
        assert ulps(one, found) < 1


@pytest.mark.parametrize("about", [0.5, math.sqrt(0.5), 1.0, math.sqrt(2), 2.0])
@pytest.mark.parametrize("width", [2.0**-4, 2.0**-12, 2.0**-30, 2.0**-49])
def test_the_logarithm_where_it_is_hardest(about: float, width: float) -> None:
    """About 1, where it vanishes, and where the exponent goes over to the next one."""
    x = about + (uniform01(words(400)) - 0.5) * width
    assert max(map(ulps, x.tolist(), natural_log(x).tolist())) < 0.95


def test_the_logarithm_at_its_edges() -> None:
    root = math.sqrt(0.5)
    edges = [sys.float_info.min, sys.float_info.max, 2.0**-33, 1 - 2.0**-33]
    edges += [math.nextafter(x, to) for x in (0.5, root, 1.0, 2 * root, 2.0) for to in (0, x, 3)]
    for x, found in zip(edges, natural_log(np.array(edges)).tolist(), strict=True):
        assert found == math.log(x) == 0 if x == 1 else ulps(x, found) < 1


@given(st.lists(any_word, min_size=1, max_size=10), durations)
def test_exponential_durations_are_those_of_their_definition(drawn: list[int], mean: int) -> None:
    """Law: -mean * log(u), u at the centre of one of 2**32 cells, rounded; in 50 digits it is the same but
    for three roundings of a double, and for the choice between neighbours where it lies between two integers.
    """
    found = Exponential(mean=mean).sample(np.array(drawn, np.uint64)).tolist()
    with localcontext() as context:
        context.prec = 50
        for word, duration in zip(drawn, found, strict=True):
            u = (Decimal(word >> 32) + Decimal("0.5")) / 2**32
            exact = min(-mean * u.ln(), Decimal(MAX_DURATION))
            assert abs(duration - exact) <= Decimal("0.5") + exact * Decimal(2.0**-51)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 127, 128, 1000, 65_536])
@pytest.mark.parametrize("mean", [0, 1, 3 * MS, 2**46 - 1, 2**46, MAX_DURATION])
def test_exponential_durations_are_the_same_one_by_one(n: int, mean: int) -> None:
    """Law: blocks of many, which wider instructions may draw, have the bytes of single draws."""
    bits, some = words(n), np.unique(np.linspace(0, n - 1, 300).astype(int))
    bits[-1] = WORD - 1
    bits[0] = 0
    one_by_one = [int(Exponential(mean=mean).sample(bits[i : i + 1].copy())[0]) for i in some]
    together = Exponential(mean=mean).sample(bits.copy())
    assert together[some].tolist() == one_by_one
    rounded = np.rint(-float(mean) * natural_log(((bits >> np.uint64(32)).astype(float) + 0.5) / 2**32))
    assert together.tolist() == np.minimum(rounded, float(MAX_DURATION)).astype(np.int64).tolist()


@given(st.lists(any_word, min_size=1, max_size=10), durations, durations)
def test_uniform_durations_are_those_of_their_definition(drawn: list[int], one: int, other: int) -> None:
    """Law: in floats, u times the width, rounded with ties to even, above the lowest."""
    low, high = sorted((one, other))
    found = Uniform(low=low, high=high).sample(np.array(drawn, np.uint64)).tolist()
    u = uniform01(np.array(drawn, np.uint64)).tolist()
    assert found == [low + round(x * float(high - low)) for x in u]


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=70).filter(any), st.lists(any_word, min_size=1))
def test_alias_tables_are_read_as_walker_has_it(weights: list[int], drawn: list[int]) -> None:
    table = AliasTable(weights)
    cells = len(table._own)
    expected = [
        cell if word % 2**32 < table._own[cell] else int(table._alias[cell])
        for word in drawn
        for cell in [word * cells // WORD]
    ]
    bits = np.array(drawn, np.uint64)
    assert table.index(bits).tolist() == expected
    values = tuple(range(7, 7 + len(weights)))
    assert Empirical(values=values, weights=tuple(map(float, weights))).sample(bits).tolist() == [
        7 + i for i in expected
    ]


ANSWERS = [
    Constant(value=30),
    Exponential(mean=3 * MS),
    Uniform(low=0, high=9 * MS),
    Empirical(values=(1, 5 * MS, MAX_DURATION)),
    Request(answer=Exponential(mean=MS), timeout=2 * MS, retries=1, backoff=5),
]


@given(
    st.sampled_from(ANSWERS),
    st.sampled_from([None, 1, 10, 4 * MS, MAX_DURATION]),
    st.integers(0, 4),
    st.sampled_from([0, 5, MAX_DURATION]),
    st.sampled_from([None, 1e9, 300.0]),
    st.lists(any_word, min_size=1, max_size=20),
)
def test_requests_are_those_of_answers_drawn_in_python(
    answer: Distribution,
    timeout: int | None,
    retries: int,
    backoff: int,
    limit: float | None,
    drawn: list[int],
) -> None:
    """Law: a request takes what it takes, whichever side draws its answers."""
    again = {} if timeout is None else {"timeout": timeout, "retries": retries, "backoff": backoff}
    request = Request(answer=answer, limit=limit, **again)
    bits = np.array(drawn, np.uint64)
    assert request.law().compiled
    assert request._sample(bits.copy()).tolist() == request.sample(bits.copy()).tolist()


def test_the_data_plane_knows_what_is_drawn_elsewhere() -> None:
    for drawn_in_python in (Gamma(mean=MS, cv=0.5), Request(answer=Gamma(mean=MS, cv=0.5))):
        assert not drawn_in_python.law().compiled
        assert drawn_in_python.law().struct.kind == lib.DRAW_ELSEWHERE
        assert (drawn_in_python.sample(words(9)) > 0).all()


def test_a_distribution_must_say_how_it_is_drawn() -> None:
    class Unsaid(Distribution):
        pass

    with pytest.raises(NotImplementedError):
        Unsaid().sample(words(1))


COMPILERS = {name: [name] for name in ("gcc", "clang") if shutil.which(name)}
if importlib.util.find_spec("ziglang"):
    COMPILERS["zig"] = [sys.executable, "-m", "ziglang", "cc"]


@pytest.mark.parametrize("compiler", COMPILERS)
def test_every_compiler_gives_the_same_bytes(compiler: str, tmp_path: Path) -> None:
    """Law: draws and logarithms are arithmetic that IEEE 754 defines to the last bit."""
    for source in (*HERE.glob("*.h"), HERE / "draws.c"):
        shutil.copy(source, tmp_path)
    other = ffi.dlopen(str(build(tmp_path / "out", COMPILERS[compiler], folder=tmp_path)))
    n = 100_000
    bits, found = words(n), np.empty(n, np.int64)
    for law in (dist.law() for dist in (*ANSWERS, Exponential(mean=2**50))):
        arrays = ffi.from_buffer("uint64_t[]", bits), n, ffi.from_buffer("int64_t[]", found)
        other.draw_duration_array(law.struct, *arrays)
        assert found.tobytes() == law.sample(bits.copy()).tobytes()
    x = (bits >> np.uint64(1)).view(np.float64)  # of every size
    x = np.ascontiguousarray(x[np.isfinite(x) & (x >= sys.float_info.min)])
    assert natural_log(x, other).tobytes() == natural_log(x).tobytes()
