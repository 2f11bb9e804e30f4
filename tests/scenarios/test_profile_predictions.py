"""What a prediction is made of: the draws and the scatter of a profile, and what lies beyond it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tideover
from tests.scenarios.profile_texts import PROFILE, outage
from tideover.scenarios.loader import load


def predicted(tmp_path: Path, profile: str, *settings: str) -> dict:
    (tmp_path / "measured.yaml").write_text(profile)
    (tmp_path / "test.yaml").write_text(outage())
    return tideover.run(tmp_path / "test.yaml", settings).to_dict()


def test_a_prediction_spans_the_draws_and_the_scatter(tmp_path: Path) -> None:
    """Draws of detection + restart of 12, 15 and 18 s: catch-up of 24, 30 and 36 s, estimate the middle one.

    Without scatter the ends are the first and the last draw; a scatter of 5 % moves both outwards by less
    than its 2.1 standard deviations, since the ends are those of a mixture, and the estimate a little down.
    """
    found = predicted(tmp_path, PROFILE.replace("0.05", "0"))
    (recovery,) = found["recoveries"]
    assert recovery["catch_up_s"] == pytest.approx(30, abs=0.1)
    exact = found["prediction"]["catch_up_s"]
    assert [exact[k] for k in ("low", "estimate", "high")] == pytest.approx([24, 30, 36], abs=0.1)
    assert (exact["level"], exact["undefined"]) == (0.9, 0)
    wide = predicted(tmp_path, PROFILE)["prediction"]["catch_up_s"]
    assert 30 * 0.95 < wide["estimate"] < 30
    assert 24 * 0.9 < wide["low"] < 24
    assert 36 < wide["high"] < 36 * 1.1


def test_draws_that_do_not_fit_are_left_out_and_told(tmp_path: Path) -> None:
    """Snapshots begin every 20 s: a fault at 0.5 of the interval strikes at 30 s, at 0.4 at 48 s, after
    the end.

    The last two draws are left to predict from; without them there is no prediction.
    """
    profile = """\
name: moments
values: {failures: {crash_task: {in_interval: 0.5, restart: 1 s}}}
draws: {keys: [failures.crash_task.in_interval], rows: [[0.4], [0.5], [0.6]]}
scatter: {catch_up_s: 0}
"""
    settings = ["strategy={kind: rsm, checkpoint_interval: 20 s}", "run.duration=47 s"]
    found = predicted(tmp_path, profile, *settings)
    assert found["prediction"]["catch_up_s"]["undefined"] == 0
    (remark,) = [text for text in found["warnings"] if text.startswith("profile moments")]
    assert "1 of its draws do not fit the scenario, and the prediction is without them: " in remark
    assert "failures.0.in_interval: the first such moment is 48 s" in remark
    found = predicted(tmp_path, profile.replace("[[0.4], [0.5], [0.6]]", "[[0.4]]"), *settings)
    assert found["prediction"] is None


RANGES = "ranges: {rate: {low: 90/s, high: 120/s}, interval: {low: 5 s, high: 5 s}}\n"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ([], []),
        (["rate=90/s"], []),
        (["rate=80/s"], ["the rate is 80/s, but measured was 90/s to 120/s"]),
        (["topology.log.parallelism=2"], ["the rate is 200/s, but measured was 90/s to 120/s"]),
        (["strategy={kind: rsm, checkpoint_interval: 5 s}"], []),
        (["strategy={kind: rsm, checkpoint_interval: 6 s}"], ["the interval is 6 s, but measured was 5 s"]),
    ],
)
def test_what_lies_outside_of_what_was_measured_is_told(
    tmp_path: Path, settings: list[str], says: list[str]
) -> None:
    """The rate is that of all tasks of all spouts; a strategy without an interval cannot leave its range."""
    warnings = predicted(tmp_path, PROFILE + RANGES, *settings)["warnings"]
    expected = [f"profile measured: {text}: the prediction extrapolates" for text in says]
    assert [text for text in warnings if text.endswith("extrapolates")] == expected


def test_what_is_set_by_hand_is_not_drawn(tmp_path: Path) -> None:
    found = predicted(tmp_path, PROFILE.replace("0.05", "0"), "failures.0.detection=10 s")
    exact = found["prediction"]["catch_up_s"]
    assert [exact[k] for k in ("low", "high")] == pytest.approx([2 * (10 + 4), 2 * (10 + 6)], abs=0.1)


def test_an_end_without_a_value_is_null(tmp_path: Path) -> None:
    """Down for 18 s at 180/s, the job needs 162 s more: longer than the run. At 12 s: 108 s, too long too."""
    found = predicted(tmp_path, PROFILE, "topology.log.rate=180/s")
    assert found["recoveries"][0]["catch_up_s"] is None
    assert found["prediction"]["catch_up_s"]["high"] is None
    assert found["prediction"]["catch_up_s"]["undefined"] == 1
    (cut,) = (text for text in found["warnings"] if text.startswith("profile"))
    assert "3 of 3 recoveries under its draws are not over at the end of the run (100 s)" in cut
    longer = predicted(tmp_path, PROFILE, "topology.log.rate=180/s", "run.duration=600 s")
    assert longer["recoveries"][0]["catch_up_s"] == pytest.approx(15 * 200 / (200 - 180), rel=0.02)
    assert longer["prediction"]["catch_up_s"]["undefined"] == 0
    assert not [text for text in longer["warnings"] if "end of the run" in text]


def test_a_profile_that_has_changed_gives_no_intervals(tmp_path: Path) -> None:
    predicted(tmp_path, PROFILE)
    found = load(tmp_path / "test.yaml")
    (tmp_path / "measured.yaml").write_text(PROFILE + "# another\n")
    result = tideover.run(found)
    assert result.prediction is None
    assert any("has changed" in text for text in result.warnings)


def test_the_same_seed_gives_the_same_prediction(tmp_path: Path) -> None:
    first, second = (predicted(tmp_path, PROFILE) for _ in range(2))
    assert json.dumps(first) == json.dumps(second)
