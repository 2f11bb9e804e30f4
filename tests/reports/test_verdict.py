"""The sentences that are read off intervals and paired differences."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tests.reports.made_up import NAN, fake_result, joined
from tideover.reports.columns import conform
from tideover.reports.conclusions import COMPARED, Verdict, of_record, outcome, run_sentence, verdict, whole

SOON = {"source_replay": [60.0] * 6, "rsm": [0.5] * 6}
LATE = {"source_replay": [0.5] * 6, "rsm": [60.0] * 6}
EQUAL = {"source_replay": [60.0] * 6, "rsm": [60.0] * 6}
NO_TRACE = {"none": [0.0] * 6, "active_replication": [0.0] * 6}
STORE = {"store": {"source_replay": 0, "rsm": 96_000}}


def frame(values: dict[str, list[float]]) -> pd.DataFrame:
    """Recoveries: by strategy, the time to recover in each of its replications."""
    same = {"seed": 1, "kind": "lose_state", "component": "count", "failed_at_s": 75.0, "replayed": 10}
    return pd.DataFrame(
        {"strategy": s, "replication": r, **same, **dict.fromkeys(COMPARED, 1.0), "time_to_recover_s": value}
        for s, series in values.items()
        for r, value in enumerate(series)
    )


def runs(strategies: list[str], n: int, **figures: Any) -> pd.DataFrame:
    """Each run emits 1000 roots and 8 windows; a figure may be given for all, or strategy by strategy."""
    usual = {
        "network": 100,
        "cpu": 1.0,
        "store": 0,
        "lost": 0,
        "wrong": 0,
        "twice": 0,
        "missing": 0,
    } | figures
    names = (
        "network_bytes",
        "cpu_s",
        "store_bytes",
        "lost",
        "windows_wrong",
        "duplicated",
        "windows_missing",
    )
    same = {"seed": 1, "error": None, "emitted": 1000, "windows_emitted": 8}

    def of(strategy: str) -> dict[str, Any]:
        values = (value[strategy] if isinstance(value, dict) else value for value in usual.values())
        return dict(zip(names, values, strict=True))

    rows = ({"strategy": s, "replication": r, **same, **of(s)} for s in strategies for r in range(n))
    return pd.DataFrame(rows)


def compared(times: dict[str, list[float]], **figures: Any) -> Verdict:
    """Of strategies that recover in these times."""
    return verdict(frame(times), runs(list(times), len(next(iter(times.values()))), **figures))


def alone(strategy: str, times: list[float], **figures: Any) -> str:
    """What is said of one strategy by itself."""
    done = runs([strategy], len(times), **figures)
    return run_sentence(outcome(strategy, whole(conform("recoveries", frame({strategy: times}))), done))


def test_the_sentences():
    """Both are correct; the differences of the pairs are ``draws``, so the interval is scipy's of them."""
    draws = np.random.default_rng(7).normal(57.8, 1.0, 10)
    network = {"source_replay": 100, "rsm": 130}
    found = compared({"source_replay": list(draws + 0.2), "rsm": [0.2] * 10}, network=network)
    low, high = stats.ttest_1samp(draws, 0).confidence_interval(0.95)
    assert found.text.splitlines() == [
        "Source replay and R+SM lose no root, count none twice and put out every window right.",
        f"R+SM recovers {draws.mean():.1f} s sooner after a failure than source replay "
        f"(95 % interval {low:.1f} to {high:.1f} s, 10 pairs).",
        "R+SM costs 1.3 times the network bytes of source replay.",
    ]
    assert (found.reference, found.best) == ("source_replay", "rsm")


def test_loss_comes_before_speed_and_every_strategy_is_named():
    """30,844 lost roots of the reference are the first thing said, with how many there were: 6 runs of 1000.
    The others are correct, lose nothing but count twice, and leave windows out.
    """
    nothing = dict.fromkeys(("none", "rsm", "source_replay", "mine"), 0)
    found = compared(
        {"none": [0.5] * 6, "rsm": [20.0] * 6, "source_replay": [9.0] * 6, "mine": [1.0] * 6},
        lost=nothing | {"none": 25, "mine": 1},
        twice=nothing | {"source_replay": 7},
        wrong=nothing | {"none": 1, "source_replay": 2},
        missing=nothing | {"mine": 1},
    )
    lines = found.text.splitlines()
    assert lines[0] == (
        "R+SM loses no root, counts none twice and puts out every window right; "
        "none (amnesia) loses 150 of 6,000 roots and puts out 6 of 48 windows wrong; "
        "source replay loses no root, but counts 42 of 6,000 roots twice and puts out 12 of 48 windows "
        "wrong; mine loses 6 of 6,000 roots and leaves out 6 windows."
    )
    assert found.best == "rsm"
    assert "R+SM recovers 19.5 s later after a failure than none (amnesia)" in lines[1]
    assert lines[2] == (
        "Sooner than R+SM, but less correct: none (amnesia) (0.5 s after a failure), source replay (9.0 s "
        "after a failure) and mine (1.0 s after a failure)."
    )


@pytest.mark.parametrize("harm", ["lost", "twice", "wrong", "missing"])
@pytest.mark.parametrize("least", [0, 1])
def test_who_does_less_harm_is_the_best(harm, least):
    """Each of the four suffices, however quick and cheap the strategy is; of two the one that does less."""
    figures = {"network": {"none": 1, "rsm": 100}, harm: {"none": least + 1, "rsm": least}}
    assert compared({"none": [0.0] * 6, "rsm": [50.0] * 6}, **figures).best == "rsm"


def test_a_scenario_without_windows_is_not_praised_for_them():
    done = runs(list(SOON), 6).assign(windows_emitted=0)
    first = verdict(frame(SOON), done).text.splitlines()[0]
    assert first == "Source replay and R+SM lose no root and count none twice."


@pytest.mark.parametrize("failed_at", [75.0, None])
def test_no_subject_is_left_to_guessing(failed_at):
    """Every clause on a strategy has its name: pronouns could mean either."""
    results = [fake_result(name, failed_at=failed_at) for name in ("source_replay", "rsm", "none")]
    text = verdict(joined(results, "recoveries"), joined(results, "runs")).text
    words = set(text.lower().replace(";", " ").replace(",", " ").split())
    assert not words & {"it", "its", "they", "them", "this", "that"}
    assert text.endswith(".")


@pytest.mark.parametrize(
    ("times", "figures", "says"),
    [
        ({"source_replay": [60.0], "rsm": [0.5]}, {}, "(1 pair, so no interval)"),
        ({"source_replay": [60.0, 61.0, 60.0], "rsm": [0.5, 0.4, 0.6]}, {}, "only 3 pairs"),
        (SOON, {}, "59.5 s sooner after a failure than source replay (the same in all 6 pairs)"),
        (EQUAL, {}, "recover equally soon in all 6 pairs"),
        # No trace is not a time to subtract; and not said of who loses, for whom nobody has to wait.
        (
            {"source_replay": [60.0] * 6, "active_replication": [0.0] * 6},
            {},
            "Active replication shows no trace of a failure in output, state or backlog (time to recover 0 s "
            "in all 6 replications), where source replay recovers 60.0 s after a failure (the same in all "
            "6 replications).",
        ),
        (
            NO_TRACE,
            {"lost": {"none": 1, "active_replication": 0}},
            "none (amnesia) recovers 0.0 s after a failure (the same in all 6 replications)",
        ),
        (NO_TRACE, {}, "Neither none (amnesia) nor active replication shows a trace of a failure"),
        # Who has not recovered is counted and named.
        (
            {"source_replay": [60.0, NAN, NAN, 60.0, 59.0, 61.0], "rsm": [0.5] * 6},
            {},
            "only 4 pairs in which both have recovered); source replay has not recovered by the end of the "
            "run in 2 of 6 replications.",
        ),
        (
            {"source_replay": [60.0] * 6, "rsm": [NAN] * 6},
            {},
            "Source replay recovers 60.0 s after a failure (the same in all 6 replications), where R+SM has "
            "not recovered by the end of the run in 6 of 6 replications.",
        ),
        # A cost without a base is an amount.
        (SOON, STORE, "R+SM costs 96.0 kB of store bytes per run where source replay needs none."),
        (LATE, STORE, "Source replay costs no store bytes where R+SM needs 96.0 kB per run."),
        (LATE, {}, "Source replay and R+SM cost the same to within 5 %."),
    ],
)
def test_what_is_said(times, figures, says):
    text = compared(times, **figures).text
    assert says in text.splitlines() if says[0].isupper() and says.endswith(".") else says in text
    assert ("95 % interval" in text) is ("only" in says)


def test_no_difference_is_not_sold_as_one():
    rng = np.random.default_rng(5)
    same = rng.normal(10, 1, 10)
    found = compared({"source_replay": list(same), "rsm": list(same + rng.normal(0, 1, 10))})
    assert "cannot be told apart" in found.text


def test_what_replays_nothing_is_judged_like_all():
    """Micro-batches stand still and work it off: that nothing is replayed is no recovery in no time."""
    data = frame({"rsm": [3.0] * 6, "micro_batch": [10.7] * 6})
    data.loc[data.strategy == "micro_batch", ["state_recovery_s", "replayed"]] = (NAN, 0)
    found = verdict(data, runs(["micro_batch", "rsm"], 6))
    assert found.best == "rsm"
    assert "R+SM recovers 7.7 s sooner after a failure than micro-batches" in found.text


def test_a_replication_has_recovered_only_if_it_has_from_all_its_failures():
    """Two failures, 3 s after the first; from the second one of two replications does not recover. Its 3 s
    would be a recovery from half of what struck it.
    """
    first = frame({"source_replay": [60.0, 60.0], "rsm": [3.0, 3.0]})
    later = frame({"source_replay": [60.0, 60.0], "rsm": [5.0, NAN]})
    data = pd.concat([first, later.assign(failed_at_s=150.0)])
    found = verdict(data, runs(["source_replay", "rsm"], 2))
    headline = found.pairs[0].difference
    assert (headline.n, headline.mean, headline.undefined) == (1, 4.0 - 60.0, 1)
    assert "R+SM has not recovered by the end of the run in 1 of 2 replications" in found.text


@pytest.mark.parametrize("never", [6, 1])
def test_who_has_not_recovered_each_time_does_not_win(never):
    found = compared({"source_replay": [60.0] * 6, "rsm": [NAN] * never + [0.5] * (6 - never)})
    assert found.best == "source_replay"


def test_without_a_failure_costs_are_compared_by_name():
    """What was not simulated is not compared; the factor says of whom to whom: 1.25 / 1.6 = 0.78."""
    results = [fake_result(name, failed_at=None) for name in ("rsm", "source_replay")]
    lines = verdict(results[0].recoveries, joined(results, "runs")).text.splitlines()
    assert lines[1].startswith("No failure was simulated")
    assert lines[2].startswith("Source replay costs 0.78 times the network bytes")
    assert "of R+SM" in lines[2]
    assert "ran without a failure" in run_sentence(of_record(results[0].to_dict()))


def test_failed_runs_are_left_out_and_named():
    done = runs(list(SOON), 6)
    done.loc[11, "error"] = "it broke"
    data = frame(SOON | {"rsm": [0.5] * 5})
    assert verdict(data, done).text.endswith("1 of 12 runs failed and are left out: 1 of R+SM.")
    done.loc[done.strategy == "source_replay", "error"] = "it broke"
    text = verdict(data[data.strategy == "rsm"], done).text
    assert "R+SM recovers 0.5 s after a failure" in text
    assert text.endswith("7 of 12 runs failed and are left out: 6 of source replay and 1 of R+SM.")
    done["error"] = "it broke"
    assert verdict(data, done).text.startswith("No run ended without an error")


def test_one_strategy_alone_is_no_comparison():
    with pytest.raises(ValueError, match="at least two"):
        compared({"rsm": [1.0]})


def test_one_run_in_two_sentences():
    """15 s each time, the end of the window that lost something; and one that does not always recover."""
    assert alone("none", [15.0] * 6, lost=150, wrong=1) == (
        "None (amnesia) loses 900 of 6,000 roots and puts out 6 of 48 windows wrong.\n"
        "None (amnesia) recovers 15.0 s after a failure (the same in all 6 replications)."
    )
    told = alone("source_replay", [60.0, NAN, NAN, 60.0, 59.0, 61.0])
    assert "source replay has not recovered by the end of the run in 2 of 6 replications" in told


@pytest.mark.parametrize("failed_at", [75.0, None])
@pytest.mark.parametrize("strategy", ["none", "source_replay"])
def test_a_record_has_the_outcome_of_its_frames(strategy, failed_at):
    """A run reads its record, a comparison its frames: they say the same, but for how costs are rounded."""
    result = fake_result(strategy, failed_at=failed_at)
    of_frames = outcome(strategy, whole(conform("recoveries", result.recoveries)), result.runs)
    found = of_record(result.to_dict())
    assert replace(found, costs={}) == replace(of_frames, costs={})
    assert found.costs == pytest.approx(of_frames.costs)
