"""Hosts and their use, as they are drawn."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import tideover
from tests.oracle.worlds import bolt, spout, world
from tests.reports.made_up import fake_result
from tideover.models.evaluation.bottleneck import between_hosts
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import MachineType
from tideover.models.results import Result
from tideover.models.schema import TABLES
from tideover.reports import figures, pages
from tideover.reports.figures import style
from tideover.reports.figures.cluster import MOST_HOSTS, loads


def usage(*rows: tuple[float, float, str, str, int | None, float]) -> pd.DataFrame:
    """A table of one replication: begin, end, resource, kind, host, busy."""
    columns = ("begin_s", "end_s", "resource", "kind", "host", "busy")
    same = {"scenario": "made up", "strategy": "none", "seed": 1, "replication": 0}
    made = [same | dict(zip(columns, row, strict=True)) for row in rows]
    return pd.DataFrame(made, columns=[column.name for column in TABLES["usage"]])


def words(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.texts]


def test_a_load_is_the_busy_part_of_the_time_after_the_warm_up() -> None:
    stretches = ((0, 5, 1.0), (5, 6, 0.8), (6, 10, 0.3))
    table = usage(*((begin, end, "a.0", "task", 0, busy) for begin, end, busy in stretches))
    assert loads(table, after_s=5)["busy"].tolist() == pytest.approx([(0.8 + 4 * 0.3) / 5])
    assert loads(table)["busy"].tolist() == pytest.approx([(5 + 0.8 + 1.2) / 10])


def test_each_host_has_a_box_with_what_is_on_it() -> None:
    table = usage(
        (0, 1, "b.0", "task", 1, 0.25),
        (0, 1, "a.0", "task", 0, 0.5),
        (0, 1, "cores", "cores", 0, 0.125),
        (0, 1, "redis", "store", None, 0.9),
    )
    drawn = words(figures.hosts(table, racks=2))
    expected = ["host 0, rack 0", "cores", "12%", "a.0", "50%", "host 1, rack 1", "b.0", "25%"]
    assert drawn == expected


def test_of_many_hosts_the_busiest_are_drawn() -> None:
    many = MOST_HOSTS + 3
    table = usage(*((0, 1, f"a.{h}", "task", h, 0.9 if h >= 3 else 0.1) for h in range(many)))
    heads = [word for word in words(figures.hosts(table)) if word.startswith("host")]
    assert heads == [f"host {h}" for h in range(3, many)]


def test_over_time_the_busiest_come_first_and_failures_are_lines() -> None:
    table = usage(
        (0, 1, "a.0", "task", 0, 0.1),
        (1, 2, "a.0", "task", 0, 0.3),
        (0, 1, "card in", "card in", 3, 0.9),
        (1, 2, "card in", "card in", 3, 1.0),
    )
    ax = figures.usage_over_time(table, (1.5,))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["card in of host 3, 95%", "a.0, 20%"]
    assert [line.get_xdata()[0] for line in ax.lines] == [1.5]


def test_shades_get_darker_with_the_load() -> None:
    def light(colour: str) -> float:
        red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
        return 0.299 * red + 0.587 * green + 0.114 * blue

    found = [light(style.shade(busy / 100)) for busy in range(101)]
    assert found == sorted(found, reverse=True)
    assert len(set(found)) == len(style.legend())
    for busy in range(101):  # what is written on them can be read
        assert abs(light(style.text_on(style.shade(busy / 100))) - found[busy]) > 90


def test_a_page_says_nothing_of_a_cluster_where_nothing_is_shared() -> None:
    assert not pages.cluster_section([fake_result("source_replay")])


def chain_on(*hosts: int) -> Result:
    """s (4 sentences/s of 100 bytes) -> a (50 bytes) -> b, each on its host; cores make it a cluster."""
    topology = {
        "s": spout(gap=250, hosts=hosts[:1]).model_copy(update={"tuple_size": 100}),
        "a": bolt("forward", {"s": "shuffle"}, 1, hosts=hosts[1:2]).model_copy(update={"tuple_size": 50}),
        "b": bolt("forward", {"a": "shuffle"}, 1, hosts=hosts[2:]),
    }
    machines = Hosts(machines={"m": MachineType(count=3, cores=2)})
    return tideover.run(tideover.Scenario.of(world(topology, "none", (), 100_000, hosts=machines)))


def test_the_page_tells_what_flows() -> None:
    """4 sentences/s of 100 bytes over one edge that leaves the host, and as many over one that does not."""
    result = chain_on(0, 1, 1)
    first, second = result.to_dict()["flows"]
    assert first["messages_per_s"] == pytest.approx(4, abs=0.02)
    assert first["bytes_per_s"] == first["between_hosts_per_s"] == 100 * first["messages_per_s"]
    assert second["bytes_per_s"] == 50 * second["messages_per_s"] == pytest.approx(200, abs=1)
    assert second["between_hosts_per_s"] == 0
    (table,) = pages.cluster_section([result]).tables
    assert [row[0] for row in table.rows] == [first["edge"], second["edge"]]
    assert table.rows[1][3] == "0 B"


@pytest.mark.parametrize(("hosts", "leave"), [((0, 2, 0), [0, 1]), ((1, 1, 2), [1])])
def test_between_hosts_is_what_the_edges_carry_there(hosts: tuple[int, ...], leave: list[int]) -> None:
    """Each edge that leaves its host is all that flows between two: both edges, or the second one."""
    record = chain_on(*hosts).to_dict()
    assert record["between_hosts"] == [
        {
            "from_host": hosts[edge],
            "to_host": hosts[edge + 1],
            **{key: record["flows"][edge][key] for key in ("messages_per_s", "bytes_per_s")},
        }
        for edge in leave
    ]


def test_the_mean_over_runs_counts_those_without_a_pair() -> None:
    pair = {"from_host": 0, "to_host": 1, "messages": 30, "bytes": 600}
    other = {"from_host": 1, "to_host": 0, "messages": 10, "bytes": 200}
    assert between_hosts([[pair], [pair, other]], 10.0) == [
        {"from_host": 0, "to_host": 1, "messages_per_s": 3.0, "bytes_per_s": 60.0},
        {"from_host": 1, "to_host": 0, "messages_per_s": 0.5, "bytes_per_s": 10.0},
    ]


def test_the_table_of_hosts_has_sums_and_its_darkest_cell_is_the_greatest_rate() -> None:
    pairs = [
        {"from_host": 0, "to_host": 2, "bytes_per_s": 4000.0},
        {"from_host": 2, "to_host": 1, "bytes_per_s": 1000.0},
    ]
    ax = figures.traffic(pairs, [0, 1, 2])
    (cells,) = (image.get_array() for image in ax.images)
    assert cells[..., 3].tolist() == [[0, 0, 1], [0, 0, 0], [0, 1, 0]]
    assert cells[0, 2, :3].sum() < cells[2, 1, :3].sum()
    at = {text.get_position(): text.get_text() for text in ax.texts}
    assert at[2, 0] == at[3, 0] == at[2, 3] == "4.00\nkB/s"  # the cell, what 0 sends, what 2 receives
    assert at[3, 3] == "5.00\nkB/s"
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0", "1", "2", "all"]


def test_of_a_hundred_hosts_all_pairs_are_there_and_a_tenth_of_the_names() -> None:
    pairs = [{"from_host": 7, "to_host": host, "bytes_per_s": 1.0 + host} for host in range(100) if host != 7]
    ax = figures.traffic(pairs, range(100))
    assert not ax.texts
    assert int((ax.images[0].get_array()[..., 3] > 0).sum()) == 99
    assert [label.get_text() for label in ax.get_yticklabels()] == [str(host) for host in range(0, 100, 10)]


def flow(edge: str, messages: float, size: float, away: float = 0.0) -> dict[str, Any]:
    carried = {"bytes_per_s": messages * size, "between_hosts_per_s": messages * size * away}
    return {"edge": edge, "messages_per_s": messages} | carried


def test_the_topology_has_a_box_a_component_and_arrows_as_wide_as_what_flows() -> None:
    """s -> a -> b, and s -> b, which passes the level of a: 4,000, 2,000 and 1,000 bytes/s."""
    flows = [flow("s->a", 40, 100, 0.5), flow("a->b", 20, 100), flow("s->b", 10, 100, 1.0)]
    tasks = (("s.0", 0, 0.1), ("a.0", 0, 0.5), ("a.1", 1, 0.75))
    table = usage(*((0, 1, name, "task", host, busy) for name, host, busy in tasks))
    ax = figures.topology(flows, table)
    told = words(ax)
    for box in ("1 task on 1 host, busiest 10%", "2 tasks on 2 hosts, busiest 75%"):
        assert box in told
    assert "40 messages/s, 4.00 kB/s\n50 % to other hosts" in told
    assert "10 messages/s, 1.00 kB/s\n100 % to other hosts" in told
    arrows = [text.arrow_patch.get_linewidth() for text in ax.texts if getattr(text, "arrow_patch", None)]
    assert arrows == sorted(arrows, reverse=True)
    assert arrows[0] - arrows[1] == pytest.approx(2 * (arrows[1] - arrows[2]))
    heights = {text.get_text(): text.get_position()[1] for text in ax.texts if text.get_text() in "sab"}
    assert heights["s"] < heights["a"] < heights["b"]  # downwards
    fills = [patch.get_facecolor() for patch in ax.patches]
    assert sum(fills[1][:3]) < sum(fills[0][:3])  # a is busier than s
