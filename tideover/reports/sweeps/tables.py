"""The tables of a sweep: its points, or the best and the worst of many, and the effect of each swept key."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from tideover.models.results.headline import counted
from tideover.models.schema.endings import LOSSY, UNAFFECTED
from tideover.models.schema.fields import HEADLINE, named
from tideover.reports.formatting import UNDEFINED, number, size, with_ending
from tideover.reports.sweeps.points import SUMS, Points, explained, spread
from tideover.reports.tables import Notes, Table

MOST_LISTED = 24
"""Most points that are listed one by one; of more, the best and the worst are."""
BEST, WORST = 10, 5
MOST_VALUES = 8
"""Most values of a swept key in the table of effects."""

_HEADLINE = named("recoveries", HEADLINE)
_LAST = (*SUMS.values(), "network", "failed runs")
_CENSORED = (
    "≥ … (n of m): n of m replications recovered; the others count with the time from the failure to the end "
    "of the run, which is the least that they take"
)
_RANKED = (
    "Best: the shortest time to recover among points that lose no root and count none twice; those that do "
    "not recover in every run come after those that do."
)


def key_tables(points: Points) -> tuple[Table, ...]:
    """What a screen holds: every point if they are few, else the best, the worst, and the effects."""
    if len(points) <= MOST_LISTED:
        return (points_table(points, range(len(points)), "Points of the sweep"),)
    effects = (effects_table(points),) if any(points.influence(key) for key in points.keys) else ()
    if np.isnan(points.headline).all():
        return (points_table(points, range(BEST), f"First {BEST} points"), *effects)
    right = [int(place) for place in points.ranked if not points.wrong[place]]
    shown = []
    if right:
        shown.append(points_table(points, right[:BEST], f"Best {len(right[:BEST])} points", (_RANKED,)))
    worst = points_table(points, [int(p) for p in points.ranked[: -WORST - 1 : -1]], f"Worst {WORST} points")
    return (*shown, worst, *effects)


def points_table(points: Points, places: Iterable[int], title: str, meant: tuple[str, ...] = ()) -> Table:
    """One row a point: the swept values, times, what was lost, cost, and how many runs failed."""
    notes = Notes()
    rows = []
    for place in places:
        values = [key.labels[key.of_point[place]] for key in points.keys]
        rows.append((*values, _time(points, place, notes), *_run_cells(points, place)))
    extra = "; ".join(["network: mean per run", *explained({key.name: key.short for key in points.keys})])
    if points.late[[*places]].any():
        meant = (*meant, _CENSORED)
    columns = (*(key.short for key in points.keys), _HEADLINE.label_with_unit, *_LAST)
    return Table(title, columns, tuple(rows), (*meant, extra, *notes.lines()), len(points.keys))


def _time(points: Points, place: int, notes: Notes) -> str:
    """The mean, or the least that it can be, and of how many replications it is known."""
    found = points.times.estimate(place)
    endings: Collection[str] = ()
    if points.metric("roots_lost").total[place] > 0:
        endings = [LOSSY]
    elif points.metric(HEADLINE).max[place] == 0:
        endings = [UNAFFECTED]
    if found.undefined:
        notes.lossy |= LOSSY in endings
        return with_ending(f"≥ {number(found.mean)} ({found.n - found.undefined} of {found.n})", endings)
    return notes.mean(found, _HEADLINE.label, _HEADLINE, endings)


def _run_cells(points: Points, place: int) -> tuple[str, ...]:
    failed = f"{points.failed[place]}/{points.runs[place]}"
    sums = (points.metric(column).total[place] for column in SUMS)
    counts = (UNDEFINED if np.isnan(found) else number(round(found)) for found in sums)
    return (*counts, size(float(points.metric("network_bytes").mean[place])), failed)


def effects_table(points: Points, most: int = MOST_VALUES) -> Table:
    """For each swept key, and each of its values, the mean time to recover over all points that have it."""
    rows: list[tuple[str, ...]] = []
    left_out = False
    for key in sorted(points.keys, key=lambda one: -points.influence(one)):
        if len(key.labels) < 2:
            continue
        chosen = spread(key, most)
        left_out |= len(chosen) < len(key.labels)
        more = f", {len(chosen)} of {len(key.labels):,} values" if len(chosen) < len(key.labels) else ""
        rows.append((f"{key.short} (means {number(points.influence(key))} s apart{more})",))
        count = len(key.labels)
        counts = [
            np.bincount(key.of_point[some], minlength=count) for some in (..., points.late, points.wrong)
        ]
        means = points.effect(key)
        for place in chosen:
            cells = (f"{of_value[place]:,}" for of_value in counts)
            least = "≥ " if counts[1][place] else ""
            rows.append((key.labels[place], f"{least}{number(float(means[place]))}", *cells))
    notes = [
        "Each mean is over all values of the other keys. Not recovered: points of which a run had not "
        "recovered by its end; it counts with the time until then, so the mean is at least that (≥). Wrong: "
        "points that lose roots or count some twice.",
    ]
    if left_out:
        notes.append("apart: over all values, also those that are not listed")
    columns = ("", "mean, s", "points", "not recovered", "wrong")
    title = "Effect of each swept key on the time to recover"
    return Table(title, columns, tuple(rows), tuple(notes))


def summary(points: Points) -> str:
    """At which points it takes shortest and longest to recover, what else goes wrong, and how many points and
    runs there are.
    """
    runs, failed = int(points.runs.sum()), int(points.failed.sum())
    late, wrong = int(points.late.sum()), int(points.wrong.sum())
    said = [_range(points)]
    if late:
        said.append(f"In {counted(late, 'point')} not every run recovers by its end.")
    if wrong:
        said.append(f"{counted(wrong, 'point')} lose roots or count some twice.")
    ended = f"{failed:,} failed and are left out" if failed else "none failed"
    said.append(f"{counted(len(points), 'point')} of the grid, {counted(runs, 'run')}; {ended}.")
    return " ".join(filter(None, said))


def _range(points: Points) -> str:
    """The shortest and the longest mean time to recover, each with its point; empty if nothing fails."""
    if np.isnan(points.headline).all():
        return ""

    def told(place: int) -> str:
        least = "at least " if points.late[place] else ""
        where = ", ".join(f"{key.short} {key.labels[key.of_point[place]]}" for key in points.varying)
        return f"{least}{number(float(points.headline[place]))} s" + (f" ({where})" if where else "")

    ends = [told(int(find(points.headline))) for find in (np.nanargmin, np.nanargmax)]
    return f"Mean time to recover of a point: {' to '.join(dict.fromkeys(ends))}."
