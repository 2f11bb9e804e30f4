"""What docs/validation.md states as simulated is what a run gives: tables of the page are computed again."""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tideover
from tideover.calibrate import capacities
from tideover.calibrate.recoveries import fit, read
from tideover.cli.reproduce import PAPERS, RATE, WINDOW_S
from tideover.reports import published
from tideover.reports.calibration import recoveries
from tideover.reports.formatting import strategy_name

ROOT = Path(__file__).parents[2]
FILES = ROOT.parent / "shared" / "published"
Row = dict[str, str]
Figures = dict[str, float | str | None]
"""By column: what the page has to state; of a column that is not named here nothing is asked."""


def stated(heading: str, number: int = 0) -> list[Row]:
    """The rows of a table of the page: under this heading, so many tables after the first."""
    page = (ROOT / "docs" / "validation.md").read_text(encoding="utf-8")
    (section,) = (part for part in re.split(r"\n##+ ", page) if part.startswith(heading))
    table = re.findall(r"(?:^\|.*\n){3,}", section, re.MULTILINE)[number]
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines())
    return [dict(zip(head, row, strict=True)) for row in rows]


def agrees(cell: str, value: float | str | None) -> bool:
    """Whether a cell states this value, to its last digit; a text has to be there as it is."""
    if value is None or isinstance(value, str):
        return cell == ("nothing" if value is None else value)
    if cell == "falls":
        return value < 0
    found = re.search(r"[−+-]?\d[\d,]*\.?\d*", cell)
    assert found, cell
    digits = found[0].replace("−", "-").replace(",", "")
    return abs(float(digits) - value) <= 0.501 * 10.0 ** -len(digits.partition(".")[2])


# -- what the tables state, computed again -------------------------------------------------------------------


def phase_two() -> Iterator[Figures]:
    found = tideover.sweep(PAPERS["stableford-phase2"], master=None)
    cells = published.with_cells(found.recoveries, rate=RATE, window_s=WINDOW_S)
    table = published.group("stableford", "recovery")
    for row in published.pair_recoveries(cells, table).head(len(table.rows)).to_dict("records"):
        yield {
            "strategy": strategy_name(row["strategy"]),
            "tuples/s": row["tuples_per_s"],
            "failure into window": row["fail_at_s"],
            "published": row["published_s"],
            "as logged": row["logged_s"],
            "uncut": row["simulated_s"],
            "agrees if in": row["required"],
        }


def real_restarts(paper: str) -> dict[tuple[Any, ...], Figures]:
    """By strategy, free workers, Nimbus's timeout, replay of a tuple, and length of the queues."""
    sweep = tideover.sweep(PAPERS[paper], master=None)
    return {
        (
            strategy_name(row["strategy"]),
            str(row["free_workers"]),
            f"{row['nimbus_s']:g} s",
            f"{1000 * row['replay_cost_s']:g} ms",
            f"{row['queue_length'] or 0:,}",
        ): {
            "restarts": row["restarts"],
            "all back": row["back_s"],
            "replayed until": row["replayed_until_s"],
            "published": row["published_s"],
            "latency grows": row["growth_s_per_min"],
            "greatest latency": row["greatest_latency_s"],
            "new roots/s": row["new_roots_per_s"],
            "roots lost": row["roots_lost"],
        }
        for row in published.phase_one_rows(sweep.recoveries, sweep.runs, sweep.timeline)
    }


def phase_one_of(paper: str, number: int) -> Iterator[Figures]:
    """For each row of the page; "any" and "–" stand for the replay of a tuple that makes no difference."""
    found = real_restarts(paper)
    keys = ("strategy", "free workers", "Nimbus's timeout", "replay of a tuple", "receive queues")
    for row in stated("A process that really dies", number):
        asked = [row.get(key, "–") for key in keys]
        every = [
            figures
            for key, figures in found.items()
            if all(want in ("–", "any", have) for want, have in zip(asked, key, strict=True))
        ]
        assert every, asked
        known = [{name: value for name, value in figures.items() if name in row} for figures in every]
        assert all(one == pytest.approx(known[0], rel=1e-3, abs=0.05) for one in known), asked
        yield known[0]


def ack_costs(number: int) -> Iterator[Figures]:
    example = runpy.run_path(str(ROOT / "examples" / "fit_ack_cost.py"))
    for known in example["PHASES"]:
        cost = example["fit_ack_cost"](known.spout, known.replay_std)
        if number:
            found = example["judge"](known, cost)
            names = ("ack cost", "rise of the mean, published", "simulated", "error")
            figures = (found.ack_cost_us, found.published_rise_ms, found.rise_ms, 100 * found.error)
            yield dict(zip(names, figures, strict=True))
            continue
        table = published.group("stableford", "normal_latency")
        for phase, strategy, rate, *values in table.rows:
            if phase == known.phase:
                here = example["latency"](known.spout, cost if strategy == "source_replay" else None)
                for there, name in zip(values, ("median", "mean", "std", "p95"), strict=True):
                    yield {
                        "strategy": strategy_name(strategy),
                        "tuples/s": rate,
                        "published": there,
                        "simulated": here[name],
                        "error": 100 * (here[name] / there - 1),
                    }


def measured(file: str) -> Path:
    if not (FILES / file).exists():
        pytest.skip("the published measurements are not here")
    return FILES / file


def left_out(file: str, kinds: dict[str, str]) -> Iterator[Figures]:
    """Errors of what was left out; kinds in their order, for each workload of Khaos, for all of Demeter."""
    errors = fit(read(measured(file))).frames["errors"].set_index(["workload", "kind", "model"])
    workloads = list(dict.fromkeys(workload for workload, _, _ in errors.index))
    places = [(w, k) for w in workloads for k in kinds]
    if "outage_end" in kinds:
        places = [(w, k) for k in kinds for w in workloads]
    for workload, kind in places:
        mine = errors.loc[(workload, kind, "mechanism")]
        plain = errors["mean_error"].get((workload, kind, "fluid"))
        yield {
            "workload": workload,
            "not seen by the fit": kinds[kind],
            "quantity": kinds[kind],
            "points": mine["n"],
            "mean": 100 * mine["mean_error"],
            "mean error": mine["mean_error_s"],
            "median": 100 * mine["median_error"],
            "worst": 100 * mine["worst_error"],
            "in 90 % interval": mine["coverage"] * mine["n"],
        } | ({} if kind == "outage_end" else {"its mean width": 100 * mine["mean_width"], LAW: 100 * plain})


def capacity() -> Iterator[Figures]:
    found = capacities.frames(capacities.read(measured("demeter_profile_recoveries.csv")))["errors"]
    for row in found[found["kind"] == "leave_one_out"].to_dict("records"):
        yield {
            "workload": row["workload"],
            "saturated runs": row["n"],
            "mean": 100 * row["mean_error"],
            "median": 100 * row["median_error"],
            "worst": 100 * row["worst_error"],
            "in 90 % interval": row["coverage"] * row["n"],
            "its mean width": 100 * row["mean_width"],
        }


def handovers() -> Iterator[Figures]:
    for comes_back in ("5 s", None):
        settings = {"run.replications": 40, "detector.restart": comes_back, "run.duration": "180 s"}
        found = tideover.run("kafka-streams-handover", settings).rows("recoveries")
        times = [row["ready_at_s"] - row["failed_at_s"] for row in found]
        yield {"simulated, mean of 40": float(np.mean(times)), "least and greatest": min(times)}


def throughputs() -> Iterator[Figures]:
    found = tideover.sweep(PAPERS["ksafety"], master=None)
    points = [found.result(point).scenario for point in found.points["point"]]
    rows = published.ksafety_rows(points, list(found.records()))
    yield from of_rows((row for row in rows if row["published_per_s"] is not None), unit="_per_s")


def of_rows(rows: Iterable[dict[str, Any]], *more: str, unit: str = "") -> Iterator[Figures]:
    """What a study has published and simulated, and ``more`` of its columns."""
    for row in rows:
        both = {name: row[f"{name}{unit}"] for name in ("published", "simulated")}
        yield both | {name.replace("_", " "): row[name] for name in more}


LAW = "plain fluid law, mean"
KHAOS = {
    "leave_one_out": "each point",
    "leave_interval_out": "each interval",
    "leave_top_rate_out": "highest rate of each interval",
}
DEMETER = {"outage_end": "end of the outage", "leave_one_out": "latency back to normal"}
Computed = Callable[[], Iterator[Figures]]
TABLES: list[tuple[str, int, Computed]] = [
    ("Recovery time of a lost word count", 0, phase_two),
    ("A process that really dies", 0, lambda: phase_one_of("stableford-phase1", 0)),
    ("A process that really dies", 1, lambda: phase_one_of("stableford-phase1-queues", 1)),
    ("Latency without failures", 0, lambda: ack_costs(0)),
    ("Latency without failures", 1, lambda: ack_costs(1)),
    ("Recovery of Flink jobs", 0, lambda: left_out("khaos_flink_recovery_calibration.csv", KHAOS)),
    ("Failures of Flink jobs", 0, lambda: of_rows(recoveries.detection_rows(), "verdict", unit="_s")),
    ("Failures of Flink jobs", 1, lambda: left_out("demeter_flink_failures.csv", DEMETER)),
    ("Failures of Flink jobs", 2, capacity),
    ("Maximum throughput under active replication", 0, throughputs),
    ("Overhead of state management", 0, lambda: of_rows(published.overhead())),
    ("Stages of recovery", 0, lambda: of_rows(published.recovery(), "stateful_tasks_affected")),
    ("Handover of Kafka Streams tasks", 0, handovers),
]


@pytest.mark.parametrize(("heading", "number", "computed"), TABLES)
def test_the_page_states_what_a_run_gives(heading: str, number: int, computed: Computed) -> None:
    """Row by row, every figure that is computed, to the last digit of the page."""
    other = []
    for row, figures in zip_longest(stated(heading, number), computed()):
        assert row is not None, figures
        assert figures is not None, row
        other += [
            f"{name}: {row[name]}, not {value}, in {' | '.join(row.values())}"
            for name, value in figures.items()
            if name in row and not agrees(row[name], value)
        ]
    assert not other, "\n".join(other)


def test_a_cell_states_a_value_to_its_last_digit() -> None:
    assert agrees("84 s", 84.03)
    assert not agrees("82 s", 84.03)
    assert agrees("6,673", 6673.2)
    assert agrees("−45 %", -45.3)
    assert not agrees("53.8 s (1 of 3)", 53.9)
    assert agrees("nothing", None)
    assert not agrees("nothing", "0 s")
    assert agrees("falls", -0.1)
