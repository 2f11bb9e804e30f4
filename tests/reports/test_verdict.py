"""The sentences that are read off intervals and paired differences."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tideover.reports.columns import conform
from tideover.reports.conclusions import COMPARED, of_record, outcome, run_sentence, verdict, whole

NAN = float("nan")


def frame(values: dict[str, list[float]], column: str = "time_to_recover_s") -> pd.DataFrame:
    rows = [
        {
            "strategy": s,
            "seed": 1,
            "replication": r,
            "kind": "lose_state",
            "component": "count",
            "failed_at_s": 75.0,
        }
        | dict.fromkeys(COMPARED, 1.0)
        | {column: value, "replayed": 10}
        for s, series in values.items()
        for r, value in enumerate(series)
    ]
    return pd.DataFrame(rows)


def runs(
    strategies: list[str], n: int, network=100, cpu=1.0, store=0, lost=0, wrong=0, twice=0, missing=0
) -> pd.DataFrame:
    """Each run emits 1000 roots and 8 windows; a figure may be given for all, or strategy by strategy."""

    def of(value, strategy):
        return value[strategy] if isinstance(value, dict) else value

    rows = [
        {
            "strategy": s,
            "seed": 1,
            "replication": r,
            "error": None,
            "network_bytes": of(network, s),
            "cpu_s": of(cpu, s),
            "store_bytes": of(store, s),
            "lost": of(lost, s),
            "emitted": 1000,
            "windows_emitted": 8,
            "duplicated": of(twice, s),
            "windows_wrong": of(wrong, s),
            "windows_missing": of(missing, s),
        }
        for s in strategies
        for r in range(n)
    ]
    return pd.DataFrame(rows)


@pytest.fixture
def draws():
    return np.random.default_rng(7).normal(57.8, 1.0, 10)


# The sentences


BOTH = "Source replay and R+SM lose no root, count none twice and put out every window right."


def alone(strategy, recoveries, done):
    """What is said of one strategy by itself."""
    return run_sentence(outcome(strategy, whole(conform("recoveries", recoveries)), done))


def test_the_sentences(draws):
    """Both are correct; the differences of the pairs are ``draws``, so the interval is scipy's of them."""
    n = len(draws)
    data = frame({"source_replay": list(draws + 0.2), "rsm": [0.2] * n})
    network = {"source_replay": 100, "rsm": 130}
    found = verdict(data, runs(["source_replay", "rsm"], n, network=network))
    low, high = stats.ttest_1samp(draws, 0).confidence_interval(0.95)
    assert found.text.splitlines() == [
        BOTH,
        f"R+SM recovers {draws.mean():.1f} s sooner after a failure than source replay "
        f"(95 % interval {low:.1f} to {high:.1f} s, 10 pairs).",
        "R+SM costs 1.3 times the network bytes of source replay.",
    ]
    assert (found.reference, found.best) == ("source_replay", "rsm")


def test_loss_comes_before_speed_and_every_strategy_is_named():
    """30,844 lost roots of the reference are the first thing said, with how many there were: 6 runs of 1000.
    The others are correct, lose nothing but count twice, and leave windows out.
    """
    data = frame({"none": [0.5] * 6, "rsm": [20.0] * 6, "source_replay": [9.0] * 6, "mine": [1.0] * 6})
    done = runs(
        ["none", "rsm", "source_replay", "mine"],
        6,
        lost={"none": 25, "rsm": 0, "source_replay": 0, "mine": 1},
        twice={"none": 0, "rsm": 0, "source_replay": 7, "mine": 0},
        wrong={"none": 1, "rsm": 0, "source_replay": 2, "mine": 0},
        missing={"none": 0, "rsm": 0, "source_replay": 0, "mine": 1},
    )
    found = verdict(data, done)
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
def test_who_is_not_correct_is_not_the_best(harm):
    """Each of the four suffices, however quick and cheap the strategy is."""
    data = frame({"none": [0.0] * 6, "rsm": [50.0] * 6})
    network = {"none": 1, "rsm": 100}
    done = runs(["none", "rsm"], 6, network=network, **{harm: {"none": 1, "rsm": 0}})
    assert verdict(data, done).best == "rsm"


def test_of_two_that_lose_the_one_that_loses_less_is_better():
    data = frame({"none": [0.0] * 6, "rsm": [50.0] * 6})
    assert verdict(data, runs(["none", "rsm"], 6, lost={"none": 2, "rsm": 1})).best == "rsm"


def test_a_scenario_without_windows_is_not_praised_for_them():
    done = runs(["source_replay", "rsm"], 6).assign(windows_emitted=0)
    data = frame({"source_replay": [60.0] * 6, "rsm": [0.5] * 6})
    first = verdict(data, done).text.splitlines()[0]
    assert first == "Source replay and R+SM lose no root and count none twice."


@pytest.mark.parametrize("failed_at", [75.0, None])
def test_no_subject_is_left_to_guessing(make_result, joined, failed_at):
    """Every clause on a strategy has its name: pronouns could mean either."""
    results = [make_result(name, failed_at=failed_at) for name in ("source_replay", "rsm", "none")]
    text = verdict(joined(results, "recoveries"), joined(results, "runs")).text
    words = set(text.lower().replace(";", " ").replace(",", " ").split())
    assert not words & {"it", "its", "they", "them", "this", "that"}
    assert text.endswith(".")


def test_too_few_pairs_are_admitted():
    one = verdict(frame({"source_replay": [60.0], "rsm": [0.5]}), runs(["source_replay", "rsm"], 1)).text
    assert "(1 pair, so no interval)" in one
    data = frame({"source_replay": [60.0, 61.0, 60.0], "rsm": [0.5, 0.4, 0.6]})
    assert "only 3 pairs" in verdict(data, runs(["source_replay", "rsm"], 3)).text


def test_zero_variance_is_said_and_not_dressed_as_an_interval():
    data = frame({"source_replay": [60.0] * 10, "rsm": [0.5] * 10})
    text = verdict(data, runs(["source_replay", "rsm"], 10)).text
    assert "59.5 s sooner after a failure than source replay (the same in all 10 pairs)" in text
    assert "interval" not in text


def test_no_difference_is_not_sold_as_one():
    rng = np.random.default_rng(5)
    same = rng.normal(10, 1, 10)
    data = frame({"source_replay": list(same), "rsm": list(same + rng.normal(0, 1, 10))})
    assert "cannot be told apart" in verdict(data, runs(["source_replay", "rsm"], 10)).text
    equal = frame({"source_replay": [60.0] * 10, "rsm": [60.0] * 10})
    text = verdict(equal, runs(["source_replay", "rsm"], 10)).text
    assert "recover equally soon in all 10 pairs" in text


def test_no_trace_is_not_a_time_to_subtract():
    data = frame({"source_replay": [60.0] * 6, "active_replication": [0.0] * 6})
    text = verdict(data, runs(["source_replay", "active_replication"], 6)).text
    assert text.splitlines()[1] == (
        "Active replication shows no trace of a failure in output, state or backlog (time to recover 0 s in "
        "all 6 replications), where source replay recovers 60.0 s after a failure (the same in all "
        "6 replications)."
    )


def test_no_trace_is_not_said_of_who_loses():
    """A tuple that is lost leaves a hole in the output, though nobody has to wait for anything."""
    data = frame({"none": [0.0] * 6, "active_replication": [0.0] * 6})
    done = runs(["none", "active_replication"], 6, lost={"none": 1, "active_replication": 0})
    text = verdict(data, done).text
    assert "none (amnesia) recovers 0.0 s after a failure (the same in all 6 replications)" in text
    same = verdict(data, runs(["none", "active_replication"], 6)).text
    assert "Neither none (amnesia) nor active replication shows a trace of a failure" in same


def test_what_replays_nothing_is_judged_like_all():
    """Micro-batches stand still and work it off: that nothing is replayed is no recovery in no time."""
    data = frame({"rsm": [3.0] * 6, "micro_batch": [10.7] * 6})
    data.loc[data.strategy == "micro_batch", ["state_recovery_s", "replayed"]] = (NAN, 0)
    found = verdict(data, runs(["micro_batch", "rsm"], 6))
    assert found.best == "rsm"
    assert "R+SM recovers 7.7 s sooner after a failure than micro-batches" in found.text


def test_who_has_not_recovered_is_counted_and_named():
    data = frame({"source_replay": [60.0, NAN, NAN, 60.0, 59.0, 61.0], "rsm": [0.5] * 6})
    text = verdict(data, runs(["source_replay", "rsm"], 6)).text
    assert (
        "only 4 pairs in which both have recovered); source replay has not recovered by the end of the run "
        "in 2 of 6 replications." in text
    )
    told = alone("source_replay", data, runs(["source_replay"], 6))
    assert "source replay has not recovered by the end of the run in 2 of 6 replications" in told


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
    data = frame({"source_replay": [60.0] * 6, "rsm": [NAN] * never + [0.5] * (6 - never)})
    assert verdict(data, runs(["source_replay", "rsm"], 6)).best == "source_replay"


def test_who_never_recovers_is_told():
    data = frame({"source_replay": [60.0] * 6, "rsm": [NAN] * 6})
    text = verdict(data, runs(["source_replay", "rsm"], 6)).text
    assert (
        "Source replay recovers 60.0 s after a failure (the same in all 6 replications), where R+SM has not "
        "recovered by the end of the run in 6 of 6 replications." in text
    )


def test_cost_without_a_base_is_an_amount():
    data = frame({"source_replay": [60.0] * 6, "rsm": [0.5] * 6})
    store = {"source_replay": 0, "rsm": 96_000}
    done = runs(["source_replay", "rsm"], 6, store=store)
    text = verdict(data, done).text
    assert text.endswith("R+SM costs 96.0 kB of store bytes per run where source replay needs none.")
    data = frame({"source_replay": [0.5] * 6, "rsm": [60.0] * 6})
    text = verdict(data, done).text
    assert text.endswith("Source replay costs no store bytes where R+SM needs 96.0 kB per run.")
    same = verdict(data, runs(["source_replay", "rsm"], 6)).text
    assert same.endswith("Source replay and R+SM cost the same to within 5 %.")


def test_without_a_failure_costs_are_compared_by_name(make_result):
    """What was not simulated is not compared; the factor says of whom to whom: 1.25 / 1.6 = 0.78."""
    results = [make_result(name, failed_at=None) for name in ("rsm", "source_replay")]
    data, done = results[0].recoveries, pd.concat([r.runs for r in results])
    lines = verdict(data, done).text.splitlines()
    assert lines[1].startswith("No failure was simulated")
    assert lines[2].startswith("Source replay costs 0.78 times the network bytes")
    assert "of R+SM" in lines[2]
    assert "ran without a failure" in run_sentence(of_record(results[0].to_dict()))


def test_failed_runs_are_left_out_and_named():
    done = runs(["source_replay", "rsm"], 6)
    done.loc[11, "error"] = "it broke"
    data = frame({"source_replay": [60.0] * 6, "rsm": [0.5] * 5})
    assert verdict(data, done).text.endswith("1 of 12 runs failed and are left out: 1 of R+SM.")
    done.loc[done.strategy == "source_replay", "error"] = "it broke"
    text = verdict(data[data.strategy == "rsm"], done).text
    assert "R+SM recovers 0.5 s after a failure" in text
    assert text.endswith("7 of 12 runs failed and are left out: 6 of source replay and 1 of R+SM.")
    done["error"] = "it broke"
    assert verdict(data, done).text.startswith("No run ended without an error")


def test_one_strategy_alone_is_no_comparison():
    with pytest.raises(ValueError, match="at least two"):
        verdict(frame({"rsm": [1.0]}), runs(["rsm"], 1))


def test_one_run_in_two_sentences():
    """15 s each time, the end of the window that lost something."""
    text = alone("none", frame({"none": [15.0] * 6}), runs(["none"], 6, lost=150, wrong=1))
    assert text == (
        "None (amnesia) loses 900 of 6,000 roots and puts out 6 of 48 windows wrong.\n"
        "None (amnesia) recovers 15.0 s after a failure (the same in all 6 replications)."
    )


@pytest.mark.parametrize("failed_at", [75.0, None])
@pytest.mark.parametrize("strategy", ["none", "source_replay"])
def test_a_record_has_the_outcome_of_its_frames(make_result, strategy, failed_at):
    """A run reads its record, a comparison its frames: they say the same, but for how costs are rounded."""
    result = make_result(strategy, failed_at=failed_at)
    of_frames = outcome(strategy, whole(conform("recoveries", result.recoveries)), result.runs)
    found = of_record(result.to_dict())
    assert replace(found, costs={}) == replace(of_frames, costs={})
    assert found.costs == pytest.approx(of_frames.costs)
