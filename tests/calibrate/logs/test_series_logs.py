"""Series of lag and throughput: failures whose truth is known, and what is none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tideover.calibrate import logs
from tideover.calibrate.episodes import Floats
from tideover.calibrate.logs.findings import Findings
from tideover.calibrate.logs.series_files import LAG, THROUGHPUT, Series
from tideover.calibrate.logs.series_fits import Estimate, Shape, shapes
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.profiles import read as read_profile

T0 = 1_800_000_000.0


class World(NamedTuple):
    """A job that reads nothing from ``began`` for ``outage`` s, while ``rate`` rows/s come in; then it does
    ``capacity`` rows/s until nothing waits, ``again`` rows of them a second time.
    """

    began: float = 703.0
    outage: float = 60.0
    rate: float = 1000.0
    capacity: float = 1500.0
    again: float = 0.0

    @property
    def read(self) -> float:
        return self.began + self.outage

    @property
    def caught_up(self) -> float:
        return self.read + (self.rate * self.outage + self.again) / (self.capacity - self.rate)

    def waiting(self, at: Floats) -> Floats:
        up = self.rate * np.clip(at - self.began, 0, self.outage)
        return np.maximum(up - (self.capacity - self.rate) * np.maximum(at - self.read, 0), 0)

    def done(self, at: Floats) -> Floats:
        """Rows processed until a moment."""
        edges = np.array([0.0, self.began, self.read, self.caught_up, 1e9])
        rates = np.array([self.rate, 0.0, self.capacity, self.rate])
        return np.interp(at, edges, np.concatenate(([0.0], np.cumsum(rates * np.diff(edges)))))

    def lag(self, at: Floats, level: float = 0.0) -> Series:
        return series(LAG, at, level + self.waiting(at))

    def throughput(self, at: Floats) -> Series:
        step = at[1] - at[0]
        return series(THROUGHPUT, at, (self.done(at) - self.done(at - step)) / step)


def series(kind: str, at: Floats, value: Floats) -> Series:
    return Series(kind, kind, T0 + at, value, "file", np.arange(1.0, len(at) + 1))


def every(step: float, until: float = 1600.0) -> Floats:
    return np.arange(step, until, step)


def only(one: Series) -> Shape:
    (shape,) = (shape for _, shape in shapes(one) if shape is not None)
    return shape


def moments(shape: Shape) -> list[float]:
    return [e.value - T0 for e in (shape.began, shape.read, shape.caught_up)]


worlds = st.builds(
    World,
    began=st.floats(400, 800),
    outage=st.floats(40, 150),
    rate=st.floats(10, 1e5),
    again=st.just(0.0),
).flatmap(lambda w: st.floats(1.2, 3.0).map(lambda times: w._replace(capacity=times * w.rate)))


@settings(max_examples=8)
@given(world=worlds, step=st.sampled_from([1.0, 2.0, 5.0]))
def test_corners_lie_where_the_lines_meet(world: World, step: float) -> None:
    """Law: of a lag without noise the corners come out between scrapes, and slopes are the rates."""
    shape = only(world.lag(every(step, 2000.0), level=world.rate / 10))
    assert moments(shape)[:2] == pytest.approx([world.began, world.read], abs=step / 20)
    assert (shape.rate.value, shape.capacity.value) == pytest.approx((world.rate, world.capacity), rel=0.01)
    if world.caught_up < 1900:
        assert moments(shape)[2] == pytest.approx(world.caught_up, abs=step / 5)


@settings(max_examples=4)
@given(world=worlds, step=st.sampled_from([1.0, 2.0, 5.0]), again=st.sampled_from([0.0, 0.3]))
def test_what_was_missed_is_made_up_for(world: World, step: float, again: float) -> None:
    """Law: rate times outage is what is done beyond the rate afterwards, but for rows processed again."""
    missed = world.rate * world.outage
    world = world._replace(again=again * missed)
    shape = only(world.throughput(every(step, 2500.0)))
    assert moments(shape) == pytest.approx([world.began, world.read, world.caught_up], abs=step / 2)
    assert (shape.rate.value, shape.capacity.value) == pytest.approx((world.rate, world.capacity), rel=0.02)
    assert shape.again.value == pytest.approx(again * missed, abs=0.03 * missed)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_noise_and_gaps_hardly_move_corners(seed: int, gaps: float) -> None:
    """Law: with noise of 2 % of the peak, and a third of the scrapes missing, no moment is off by more than
    half of the distance of two scrapes, and each lies in its interval.
    """
    world, rng = World(), np.random.default_rng(seed)
    at = every(5.0)
    at = at[rng.random(len(at)) >= gaps]
    noise = 0.02 * world.rate * world.outage * rng.standard_normal(len(at))
    shape = only(series(LAG, at, np.maximum(2000 + world.waiting(at) + noise, 0)))
    truth = [world.began, world.read, world.caught_up]
    assert moments(shape) == pytest.approx(truth, abs=4.0)
    for estimate, true in zip((shape.began, shape.read, shape.caught_up), truth, strict=True):
        assert estimate.low < T0 + true < estimate.high


@pytest.mark.long
def test_intervals_hold_what_they_promise() -> None:
    """Law: of 100 failures with noise, between 80 and 100 % of the rates and capacities lie in their nominal
    90 % intervals; those of moments, which half a scrape is added to, hold nearly all.
    """
    world, inside = World(), dict.fromkeys(("rate", "capacity", "began", "caught_up"), 0)
    for seed in range(100):
        rng = np.random.default_rng(seed)
        at = every(5.0) + rng.random() * 5
        shape = only(series(LAG, at, 3000 + world.waiting(at) + 800 * rng.standard_normal(len(at))))
        truth = {"rate": 1000.0, "capacity": 1500.0, "began": T0 + 703.0, "caught_up": T0 + world.caught_up}
        for name, true in truth.items():
            estimate: Estimate = getattr(shape, name)
            inside[name] += estimate.low <= true <= estimate.high
    assert 80 <= inside["rate"] <= 100
    assert 80 <= inside["capacity"] <= 100
    assert min(inside["began"], inside["caught_up"]) >= 90


DAY = np.arange(0, 86_400, 15.0)
LOAD = 1.2 + np.sin(2 * np.pi * DAY / 86_400)
HUMP = np.where(abs(DAY - 43_200) < 1500, 5e4 * np.cos(np.pi * (DAY - 43_200) / 3000) ** 2, 0)


@pytest.mark.parametrize(
    ("kind", "value"),
    [(LAG, 3000 * LOAD), (THROUGHPUT, 3000 * LOAD), (LAG, 0 * DAY), (LAG, 3000 + HUMP)],
    ids=["lag by day", "load by day", "noise", "a bend"],
)
@pytest.mark.parametrize("noise", ["normal", "exponential"])
def test_what_is_no_failure(kind: str, value: Floats, noise: str) -> None:
    """Law: no failure, no recovery: neither a day's load, nor noise, nor a lag that rises in a curve."""
    rng = np.random.default_rng(1)
    drawn = rng.standard_normal(len(DAY)) if noise == "normal" else rng.exponential(1, len(DAY))
    found = [shape for _, shape in shapes(series(kind, DAY, np.maximum(value + 100 * drawn, 0))) if shape]
    assert found == []


@pytest.mark.parametrize("points", range(12, 20))
def test_a_short_throughput_has_no_failure(points: int) -> None:
    """Law: no failure, no recovery, with as few points as a series may have."""
    assert [*shapes(series(THROUGHPUT, np.arange(1.0, points + 1), np.full(points, 5.0)))] == []


def test_a_failure_between_two_scrapes_has_bounds() -> None:
    """Law: of three points no line is told, but corners lie between two points each."""
    world = World()
    shape = only(world.lag(every(60.0)))
    assert shape.began.low - T0 <= world.began <= shape.began.high - T0
    assert shape.caught_up.low - T0 <= world.caught_up <= shape.caught_up.high - T0
    assert np.isnan([shape.read.value, shape.rate.value, shape.capacity.value]).all()


def test_a_series_that_ends_too_early() -> None:
    """Law: corners before the end are told, that of catching up is not."""
    world = World()
    shape = only(world.lag(every(5.0, 800.0)))
    assert shape.open
    assert moments(shape)[:2] == pytest.approx([world.began, world.read], abs=0.5)
    assert np.isnan(shape.caught_up.value)


# Files


def csv(at: Sequence[object], value: Floats, header: str = "", by: str = ",") -> str:
    rows = [f"{when}{by}{v:.6g}" for when, v in zip(at, value.tolist(), strict=True)]
    return "\n".join([*([header] if header else []), *rows]) + "\n"


AT = every(5.0)
WAITING = World().waiting(AT) + 10


def found(path: Path, content: str) -> Findings:
    path.write_text(content)
    (one,) = logs.read(path).found
    return one


def test_times_of_every_kind_are_the_same(tmp_path: Path) -> None:
    """Law: seconds, milliseconds and ISO 8601 with or without a zone tell the same failure, by the same line;
    a header, comments and other separators change nothing but the line.
    """
    moments_ = [datetime.fromtimestamp(T0 + at, UTC) for at in AT.tolist()]
    path = tmp_path / "records_lag.csv"
    first = found(path, csv((T0 + AT).tolist(), WAITING))
    others = [
        csv([round(1000 * (T0 + at)) for at in AT.tolist()], WAITING),
        csv([when.isoformat() for when in moments_], WAITING),
        csv([when.isoformat().replace("+00:00", "Z") for when in moments_], WAITING, "timestamp;value", ";"),
        "# scraped\n" + csv([when.isoformat(" ")[:19] for when in moments_], WAITING, "time\tlag", "\t"),
    ]
    for more, content in zip((0, 0, 1, 2), others, strict=True):
        one = found(path, content)
        for stage, other in zip(first.failures[0].stages, one.failures[0].stages, strict=True):
            assert stage.at == pytest.approx(other.at, abs=1e-3)
            assert stage.mark.line + more == other.mark.line
    line = first.failures[0].stages[0].mark.line
    assert AT[line - 1] <= World().began < AT[line]  # the last point before it


def test_a_real_lag_tells_what_was_measured_at_its_source() -> None:
    """Six kills of a real Flink: corners are within a scrape of 1 s of what was measured every 20 ms, if they
    are given. One rise and fall is no triangle, and is named; of two the scrapes are too few for more than
    bounds.
    """
    where = Path(__file__).parents[2] / "data" / "flink"
    kills = np.loadtxt(where / "kills.csv", delimiter=",", skiprows=1)
    (one,) = logs.read(where / "records_lag.csv").found
    whole = 0
    for failure in one.failures:
        at, silence, back = min(kills, key=lambda kill: abs(kill[0] - failure.began))
        assert failure.began == pytest.approx(at, abs=1)
        if (read := failure.at("running")) is not None:
            caught_up = failure.at("caught_up")
            assert (read, caught_up) == pytest.approx((at + silence, at + back), abs=1)
            whole += 1
    assert (len(one.failures), whole) == (5, 3)
    assert any("does not rise and fall in straight lines" in said for said in one.remarks)


def test_lines_that_are_broken_are_named(tmp_path: Path) -> None:
    path = tmp_path / "lag.csv"
    rows = csv((T0 + AT).tolist(), WAITING).splitlines()
    rows[5:5] = ["soon,3", f"{T0 + 27},much", f"{T0 + 28},1,2"]
    path.write_text("\n".join(rows))
    evidence = logs.read(path)
    assert len(evidence.found[0].failures) == 1
    assert [str(problem) for problem in evidence.problems.told] == [
        "lag.csv:6: (line): does not begin with a time: seconds or milliseconds since 1970, or ISO 8601",
        "lag.csv:7: (line): has a value that is no number",
        "lag.csv:8: (line): has not 2 columns, as the first line",
        *[str(problem) for problem in evidence.problems.told[3:]],  # that the last line has no end
    ]


def test_lines_shorter_than_the_first_are_all_named(tmp_path: Path) -> None:
    """A header may end with a comma, and no line do so."""
    rows = csv((T0 + AT).tolist(), WAITING, header="time,lag,")
    (tmp_path / "lag.csv").write_text(rows + '""\n')
    with pytest.raises(ScenarioError, match=r"lag\.csv:2: \(line\): has not 3 columns"):
        logs.read(tmp_path)


def prometheus(parts: Sequence[tuple[dict[str, str], Floats]]) -> str:
    result = [
        {"metric": metric, "values": [[T0 + at, str(v)] for at, v in zip(AT, value, strict=True) if v == v]}
        for metric, value in parts
    ]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def test_partitions_are_added_up_and_groups_are_not(tmp_path: Path) -> None:
    """Law: parts of a lag sum to the lag, where all were scraped; another group's is a source of its own."""
    seldom = np.where(np.arange(len(AT)) % 7 == 2, np.nan, WAITING / 3)
    metric = {"__name__": "kafka_consumergroup_lag", "topic": "in"}
    parts = [
        ({**metric, "consumergroup": "a", "partition": "0"}, seldom),
        ({**metric, "consumergroup": "a", "partition": "1"}, 2 * WAITING / 3),
        ({**metric, "consumergroup": "b", "partition": "0"}, 0 * WAITING),
    ]
    path = tmp_path / "answer.json"
    path.write_text(prometheus(parts))
    a, b = logs.read(path).found
    assert (a.source, len(a.failures)) == ("kafka_consumergroup_lag{consumergroup=a,topic=in}", 1)
    assert a.tables["series"]["value"].tolist() == pytest.approx(WAITING[~np.isnan(seldom)].tolist())
    assert (b.source, len(b.failures)) == ("kafka_consumergroup_lag{consumergroup=b,topic=in}", 0)
    told = {quantity.name: quantity for quantity in a.quantities}
    assert told["rate"].value == pytest.approx(1000, rel=0.001)
    assert told["catch_up_capacity"].value == pytest.approx(1500, rel=0.001)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (prometheus([({}, WAITING)])[:-200], "is no JSON at character"),
        ('{"status":"error","errorType":"bad_data","error":"no such query"}', "Prometheus answered: no such"),
        ("timestamp,lag\n", "has no series of at least 12 points"),
        (csv((T0 + AT[:5]).tolist(), WAITING[:5]), "has no series of at least 12 points"),
    ],
)
def test_what_holds_no_series_is_refused(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "answer"
    path.write_text(content)
    with pytest.raises(ScenarioError, match=message):
        logs.read(path)


def test_a_throughput_tells_what_a_lag_alone_does_not(tmp_path: Path) -> None:
    """Law: where half of the job goes on, the lag rises by half of the rate; the throughput of the same time
    says so, and gives the rate: 1000 rows/s, of which 500 are missed, and 500 more than the rate are done.
    """
    half = World(rate=500.0, capacity=1000.0)
    (tmp_path / "lag.csv").write_text(csv((T0 + AT).tolist(), half.waiting(AT)))
    alone = {quantity.name: quantity for quantity in logs.read(tmp_path / "lag.csv").found[0].quantities}
    assert alone["rate"].value == pytest.approx(500, rel=0.001)
    counted = csv((T0 + AT).tolist(), half.done(AT) + 500 * AT, "timestamp,records_total")  # a counter
    (tmp_path / "rate.csv").write_text(counted)
    (both,) = logs.read(tmp_path).found
    told = {quantity.name: quantity for quantity in both.quantities}
    assert told["rate"].value == pytest.approx(1000, rel=0.001)
    assert told["catch_up_capacity"].value == pytest.approx(1500, rel=0.001)
    (said,) = both.remarks
    assert "50 % of the rate is still processed in it" in said


def test_a_profile_of_a_series_is_one(tmp_path: Path) -> None:
    """It holds the outage and the capacity, in ways that a scenario takes."""
    one = found(tmp_path / "lag.csv", csv((T0 + AT).tolist(), WAITING))
    assert one.profile is not None
    (text,) = logs.read(tmp_path / "lag.csv").profiles.values()
    (tmp_path / "lag.yaml").write_text(text)
    read_profile(tmp_path / "lag.yaml")
    assert "detection: 60" in text.replace("59.9999", "60").replace("60.0000", "60")
    next_one, caught_up, *_ = one.predictions
    assert (next_one.measure, caught_up.measure) == ("outage", "caught_up")
    assert caught_up.estimate == pytest.approx(3 * next_one.estimate, rel=0.05)  # 1500 / (1500 - 1000)
