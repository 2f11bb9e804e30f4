"""The figure of what became of each root: its times are those of the trace, its buckets those of the map."""

from typing import Any

import numpy as np
import pytest

import tideover
from tideover.models.results import Result
from tideover.reports import figures
from tideover.reports.figures.timeline import Roots


def run(phase_s: int, **more: Any) -> Result:
    """Ten roots a second, windows and timeouts of 30 s; the count loses its state at 75 s."""
    replay = {f"strategies.source_replay.{key}": value for key, value in more.items()}
    settings = {"failures.0.at": "75 s", "run.replications": 1, "run.duration": "180 s"} | replay
    settings |= {"strategies.source_replay.timeout_phase": f"{phase_s} s", "run.log_resolution": None}
    return tideover.run("stableford-phase2", settings, trace=True)


@pytest.fixture(scope="module")
def two_batches() -> tuple[Result, Roots]:
    result = run(10)
    return result, Roots(result.traces[0], [75.0])


def test_each_root_has_its_times(two_batches):
    """Law: with a rotation at 70, 100 and 130 s the 100 roots of 60 to 70 s are given up at 100 s and the 50
    of 70 to 75 s at 130 s; each batch is emitted again from then on, one root every 0.1 s.
    """
    _, these = two_batches
    values, many = np.unique(these.given_up, return_counts=True)
    assert values.tolist() == [100, 130]
    assert many.tolist() == [100, 50]
    assert set(these.lost) == {75.0}
    assert np.diff(these.number).tolist() == [1] * 149
    assert np.diff(these.emitted) == pytest.approx(0.1)
    for at, many in ((100, 100), (130, 50)):
        batch = these.again[these.given_up == at]
        assert batch[0] == pytest.approx(at, abs=0.1)
        assert np.diff(batch) == pytest.approx(np.full(many - 1, 0.1))


def test_each_bucket_has_its_roots(two_batches):
    """Law: what is emitted goes into the newest bucket, a rotation moves all of it on, a window's end takes
    out what is counted. 64 s: 40 roots in the newest. 74 s: 40 there, 100 in the other. 76 s: the same 150
    are lost and 10 more are emitted. 100.05 s: 50 lost ones are left, with the 100 of 90 to 100 s.
    """
    _, these = two_batches
    assert these.rotations["sentences.0"].tolist() == [10, 40, 70, 100, 130, 160]
    inside = these.in_buckets(np.array([64.05, 74.05, 76.05, 100.05]))
    alive, lost = inside[:, 0].tolist(), inside[:, 1].tolist()
    assert len(inside) == 2
    assert alive[0] == pytest.approx([40, 40, 10, 0], abs=1)
    assert alive[1] == pytest.approx([0, 100, 0, 100], abs=1)
    assert lost == [[0, 0, 50, 0], [0, 0, 100, 50]]


def test_what_is_emitted_while_nobody_receives_is_lost_at_once():
    """Law: a count that crashes at 75 s and is up again after 5 s takes the roots of 75 to 80 s, too; each of
    these is lost when it is emitted.
    """
    down = {"kind": "crash_task", "at": "75 s", "component": "count", "restart": "5 s"}
    result = tideover.run(
        tideover.load("stableford-phase2").with_({"failures": [down], "run.replications": 1}), trace=True
    )
    these = Roots(result.traces[0], [75.0])
    assert these.emitted.max() == pytest.approx(80, abs=0.2)
    assert these.lost.tolist() == np.maximum(these.emitted, 75.0).tolist()


@pytest.mark.parametrize("buckets", [2, 3])
def test_the_figure_has_a_panel_for_each_bucket(buckets):
    figure = figures.roots(run(0, timeout_buckets=buckets))
    above, *below = figure.axes
    assert len(below) == buckets
    assert below[0].get_title("left").startswith("newest bucket")
    assert below[-1].get_title("left").startswith("oldest bucket")
    assert [text.get_text() for text in above.texts if text.get_text()] == [
        f"state recovery {30 * buckets - 0.1:.1f} s"
    ]
    failures = [line for line in above.lines if list(line.get_xdata()) == [75, 75]]
    assert len(failures) == 1


def test_what_cannot_be_drawn_is_said():
    with pytest.raises(ValueError, match=r"trace=True"):
        figures.roots(tideover.run("stableford-phase2", {"run.replications": 1}))
    quiet = tideover.load("stableford-phase2").with_({"run.replications": 1}, failures=())
    with pytest.raises(ValueError, match="no root timed out"):
        figures.roots(tideover.run(quiet, trace=True))
