"""Published measurements, and simulated results beside them: error and verdict for each cell.

The figures lie in ``scenarios/published/*.toml``, a file a study, with their citation.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from tideover.reports.estimates import estimate
from tideover.reports.words import is_undefined

if TYPE_CHECKING:
    import pandas as pd

SOURCE_REPLAY_TOLERANCE_S = 1.5
"""Source replay comes from mechanism alone; it has to be this near to the published figure in every cell."""

RISE_TOLERANCE = 0.20
"""The simulated rise of the mean latency has to be this near to the published one, as a part of it."""


@dataclass(frozen=True)
class Group:
    """One published table: ``rows`` of ``keys`` (what was run) and ``values`` (what was measured)."""

    study: str
    name: str
    title: str
    citation: str
    where: str
    unit: str
    keys: tuple[str, ...]
    values: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    log_resolution_s: float | None = None

    @property
    def source(self) -> str:
        """Citation with the place in it."""
        return f"{self.citation}, {self.where}"

    def frame(self) -> pd.DataFrame:
        """One row per published row."""
        import pandas as pd

        return pd.DataFrame(list(self.rows), columns=[*self.keys, *self.values])


@dataclass(frozen=True)
class Range:
    """Simulated values that agree with a published one; ``open_low``/``open_high``: the end does not belong
    to it.
    """

    low: float
    high: float
    open_low: bool
    open_high: bool

    def __contains__(self, value: float) -> bool:
        above = value > self.low if self.open_low else value >= self.low
        below = value < self.high if self.open_high else value <= self.high
        return above and below

    def __str__(self) -> str:
        left, right = "(" if self.open_low else "[", ")" if self.open_high else "]"
        return f"{left}{self.low:g}, {self.high:g}{right}"


@cache
def published() -> tuple[Group, ...]:
    """Every published table that the package carries."""
    folder = files("tideover.scenarios").joinpath("published")
    groups: list[Group] = []
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".toml"):
            study = tomllib.loads(file.read_text(encoding="utf-8"))
            citation = study.pop("citation")
            key = file.name.removesuffix(".toml")
            groups += [_group(key, name, citation, given) for name, given in study.items()]
    return tuple(groups)


def _group(study: str, name: str, citation: str, given: dict[str, Any]) -> Group:
    width = len(given["keys"]) + len(given["values"])
    rows = tuple(tuple(row) for row in given["rows"])
    if any(len(row) != width for row in rows):
        raise ValueError(f"{study}.toml: {name}: a row must have {width} entries")
    texts = {key: given[key] for key in ("title", "where", "unit")}
    keys, values = tuple(given["keys"]), tuple(given["values"])
    cut = given.get("log_resolution_s")
    resolution = None if cut is None else float(cut)
    return Group(
        study,
        name,
        citation=citation,
        keys=keys,
        values=values,
        rows=rows,
        log_resolution_s=resolution,
        **texts,
    )


def group(study: str, name: str) -> Group:
    """One published table, such as ``group("stableford", "recovery")``; ValueError with the known ones
    otherwise.
    """
    for candidate in published():
        if (candidate.study, candidate.name) == (study, name):
            return candidate
    known = ", ".join(f"{g.study}.{g.name}" for g in published())
    raise ValueError(f"no published table {study}.{name} (known: {known})")


def agreeing(published_s: float, resolution_s: float = 1.0) -> Range:
    """Durations that two stamps cut to ``resolution_s`` can show as ``published_s``.

    Cutting moves each stamp by less than one step, so the true duration lies less than one step from the
    difference. 0 means [0, 1), 1 means (0, 2), 2 means (1, 3).
    """
    low = published_s - resolution_s
    return Range(max(0.0, low), published_s + resolution_s, open_low=low >= 0, open_high=True)


def required(strategy: str, published_s: float, resolution_s: float = 1.0) -> Range:
    """What the simulated recovery has to lie in: the log's resolution; for source replay 1.5 s around it."""
    if strategy == "source_replay":
        low, high = published_s - SOURCE_REPLAY_TOLERANCE_S, published_s + SOURCE_REPLAY_TOLERANCE_S
        return Range(max(0.0, low), high, open_low=False, open_high=False)
    return agreeing(published_s, resolution_s)


def into_window(failed_at_s: float, window_s: float) -> float:
    """Seconds from the start of the window to the failure; at the very end of a window it is the window's
    length.

    >>> into_window(65.0, 30.0), into_window(90.0, 30.0)
    (5.0, 30.0)
    """
    nanoseconds, window = round(failed_at_s * 1e9), round(window_s * 1e9)
    return ((nanoseconds - 1) % window + 1) / 1e9


def per_second(rate: str | float) -> float:
    """A rate of a scenario (``"10/s"``, or a number per second) as a number.

    >>> per_second("10/s"), per_second(20)
    (10.0, 20.0)
    """
    from tideover.sim.units import parse_rate

    return parse_rate(rate) if isinstance(rate, str) else float(rate)


def with_cells(recoveries: pd.DataFrame, *, rate: str, window_s: float) -> pd.DataFrame:
    """The recoveries with the published keys: ``tuples_per_s`` (from column ``rate``) and ``fail_at_s``."""
    return recoveries.assign(
        tuples_per_s=[per_second(value) for value in recoveries[rate]],
        fail_at_s=[into_window(value, window_s) for value in recoveries["failed_at_s"]],
    )


PAIR_COLUMNS = (
    "strategy",
    "tuples_per_s",
    "fail_at_s",
    "published_s",
    "logged_s",
    "simulated_s",
    "low_s",
    "high_s",
    "least_s",
    "most_s",
    "n",
    "undefined",
    "error_s",
    "required",
    "within",
    "n_within",
)


def uncut(recoveries: pd.DataFrame) -> pd.Series[float]:
    """Recovery time before ``run.log_resolution`` cuts its two stamps: the stages restore, wait and
    replay together.
    """
    recovery = recoveries["state_recovery_s"].astype(float)
    stages = recoveries[["restore_s", "wait_s", "replay_s"]].astype(float)
    return stages.sum(axis=1).where(recovery.notna())


def pair_recoveries(recoveries: pd.DataFrame, table: Group | None = None) -> pd.DataFrame:
    """Published recovery cells beside the simulated ones, one row a cell.

    ``recoveries`` has the columns of ``with_cells``. ``logged_s`` is the mean recovery time over replications
    as a log of the study's resolution shows it; ``simulated_s`` the mean before that cut, ``low_s`` and
    ``high_s`` its 95 % t-interval, ``least_s`` and ``most_s`` the extremes. ``error_s``: logged minus
    published. ``required`` is the range that agrees with the published figure: for source replay a logged
    one, for the others an uncut one (see ``required``). ``within``: the mean is in it (None if nothing was
    simulated); ``n_within``: so many replications are. Cells of strategies that the study did not measure
    follow, with an undefined published figure.
    """
    import pandas as pd

    table = table or group("stableford", "recovery")
    keys = list(table.keys)
    cells = {tuple(row[: len(keys)]): float(row[-1]) for row in table.rows}
    data = recoveries.assign(_uncut=uncut(recoveries), _logged=recoveries["state_recovery_s"].astype(float))
    parts = data.groupby(keys, sort=False)
    simulated = {_key(key): (list(part["_logged"]), list(part["_uncut"])) for key, part in parts}
    every = [*cells, *(key for key in simulated if key not in cells)]
    rows = [_pair(key, cells.get(key), *simulated.get(key, ([], [])), table) for key in every]
    return pd.DataFrame(rows, columns=list(PAIR_COLUMNS))


def _key(key: Any) -> tuple[Any, ...]:
    return tuple(int(part) if isinstance(part, float) and part == int(part) else part for part in key)


def _pair(
    key: tuple[Any, ...], known: float | None, logged: list[float], exact: list[float], table: Group
) -> tuple[Any, ...]:
    shown, result = estimate(logged), estimate(exact)
    low, high = result.t if result.t else (result.mean, result.mean)
    defined = [value for value in exact if not is_undefined(value)]
    extremes = (min(defined), max(defined)) if defined else (None, None)
    error = within = n_within = wanted = None
    if known is not None:
        wanted = required(str(key[0]), known, table.log_resolution_s or 1.0)
    if known is not None and wanted is not None and shown.mean is not None and result.mean is not None:
        judged = logged if key[0] == "source_replay" else exact
        error = shown.mean - known
        within = (shown.mean if key[0] == "source_replay" else result.mean) in wanted
        n_within = sum(value in wanted for value in judged)
    measured = (shown.mean, result.mean, low, high, *extremes, result.n, result.undefined)
    return (*key, known, *measured, error, None if wanted is None else str(wanted), within, n_within)


def pair_cells(simulated: pd.DataFrame, table: Group) -> pd.DataFrame:
    """Any published table beside simulated rows that have its keys and values as columns; one row per key and
    value.

    Columns: the keys, ``quantity``, ``unit``, ``published``, ``simulated``, ``error``, ``error_percent``.
    Several simulated rows for one key are averaged; a missing one is undefined.
    """
    import pandas as pd

    keys, values = list(table.keys), list(table.values)
    present = [value for value in values if value in simulated.columns]
    means = simulated.groupby(keys, as_index=False, sort=False)[present].mean(numeric_only=True)
    joined = table.frame().merge(means, on=keys, how="left", suffixes=("", "_simulated"))
    rows = []
    for _, row in joined.iterrows():
        for value in values:
            known, found = float(row[value]), float(row.get(f"{value}_simulated", float("nan")))
            percent = 100 * (found - known) / known if known else float("nan")
            head = [row[key] for key in keys]
            rows.append((*head, value, table.unit, known, found, found - known, percent))
    columns = [*keys, "quantity", "unit", "published", "simulated", "error", "error_percent"]
    return pd.DataFrame(rows, columns=columns)


def rise_of_mean(pairs: pd.DataFrame) -> pd.DataFrame:
    """Rise of the mean latency of source replay over R+SM per phase, published and simulated.

    ``pairs`` comes from ``pair_cells`` for the normal latency. ``within``: simulated within 20 % of
    published.
    """
    import pandas as pd

    means = pairs[pairs["quantity"] == "mean_ms"].set_index(["phase", "strategy"])
    rows = []
    for phase in sorted({phase for phase, _ in means.index}):
        slow, fast = means.loc[(phase, "source_replay")], means.loc[(phase, "rsm")]
        known = float(slow["published"] - fast["published"])
        found = float(slow["simulated"] - fast["simulated"])
        error = (found - known) / known
        within = None if is_undefined(found) else abs(error) <= RISE_TOLERANCE
        rows.append((phase, known, found, 100 * error, within))
    return pd.DataFrame(rows, columns=["phase", "published_ms", "simulated_ms", "error_percent", "within"])
