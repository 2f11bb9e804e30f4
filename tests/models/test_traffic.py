"""How much flows over each edge: what is known of one topology is not told of another."""

from __future__ import annotations

import numpy as np
import pytest

from tideover import parts
from tideover.models.job.topology import Topology, traffic
from tideover.sim.units import S

SPOUT = parts.SpoutConfig(spout=parts.Keys(keys=7), arrivals=parts.Poisson(rate="70/s"))
BOLT = parts.BoltConfig(
    bolt=parts.Forward(), from_={"in": {"fields": ["key"]}}, service="1 ms", parallelism=3
)


def job(spout: parts.SpoutConfig = SPOUT, name: str = "out") -> Topology:
    return Topology({"in": spout, name: BOLT}, False)


def test_each_task_gets_what_its_keys_bring() -> None:
    """Seven keys in equal parts, key modulo three."""
    flows = traffic(job())
    assert flows["in->out"] == pytest.approx([30, 20, 20])


def test_the_same_configurations_under_another_name_are_another_edge() -> None:
    found = [traffic(job(name=name)) for name in ("out", "other", "out")]
    assert [list(flows) for flows in found] == [["in->out"], ["in->other"], ["in->out"]]
    assert all(np.array_equal(*flows.values(), next(iter(found[0].values()))) for flows in found)


def test_another_rate_is_another_flow_however_many_were_asked_for() -> None:
    """More than are kept, twice: what was put out is found anew."""
    rates = [*range(7, 7 * 21, 7)] * 2
    for rate in rates:
        spout = SPOUT.model_copy(update={"arrivals": parts.Poisson(rate=f"{rate}/s")})
        assert traffic(job(spout))["in->out"].sum() == pytest.approx(rate)


def test_what_is_known_of_one_while_is_not_told_of_another() -> None:
    """Ten seconds of 100/s in each minute of 10/s."""
    burst = parts.Burst(rate="10/s", peak="100/s", length="10 s", every="60 s")
    topology = job(SPOUT.model_copy(update={"arrivals": burst}))
    spans = [None, 60 * S, 70 * S, None]
    found = [traffic(topology, over)["in->out"].sum() for over in spans]
    expected = [25 if over is None else burst.expected(over) / over * S for over in spans]
    assert found == pytest.approx(expected)
    assert len(set(found)) > 1


def test_nobody_changes_what_is_known() -> None:
    flows = traffic(job())
    with pytest.raises(ValueError, match="read-only"):
        flows["in->out"][0] = 1
    with pytest.raises(AttributeError):
        flows.clear()  # type: ignore[attr-defined]
    assert list(traffic(job())) == ["in->out"]
