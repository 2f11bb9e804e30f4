"""``run`` and ``calibrate`` say the same of the same kill: there is one definition of a normal backlog."""

from __future__ import annotations

import pytest

from tests.calibrate.test_faults import TRUE, killed
from tideover.calibrate import counterpart
from tideover.models.simulation import simulate


@pytest.mark.parametrize("kind", ["kill_executor", "kill_driver"])
@pytest.mark.parametrize("at", [12.05, 12.3, 12.8])
def test_run_and_calibrate_tell_the_same_catch_up_and_gap(kind: str, at: float) -> None:
    """The scenario of an episode, run by itself, beside what the calibration predicts of it. A backlog falls
    when results are out; ``run`` sees that at the next boundary of its slots of 10 ms.
    """
    episode, costs = killed(kind, at)
    told = counterpart.predicted(episode, costs, TRUE[kind])
    (row,) = simulate(counterpart.scenario(episode, costs, TRUE[kind])).recoveries
    assert told["catch_up_s"] > 1
    late = row["catch_up_s"] - told["catch_up_s"]
    assert 0 <= late <= 0.01
    assert row["output_gap_s"] == pytest.approx(told["output_gap_s"], abs=1e-6)
