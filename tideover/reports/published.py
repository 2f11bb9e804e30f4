"""Published measurements and simulated results, with error and verdict for each cell.

The figures lie in ``scenarios/published/*.toml``, a file a study, with their citation.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from tideover.reports.formatting import is_undefined
from tideover.scenarios.statistics.estimates import estimate

if TYPE_CHECKING:
    import pandas as pd

SOURCE_REPLAY_TOLERANCE_S = 1.5
"""Source replay comes from mechanism alone; it has to be this near to the published figure in every cell."""


@dataclass(frozen=True)
class Group:
    """One published table: ``rows`` of ``keys`` (what was run) and ``values`` (what was measured).

    Raises ValueError for a row that is too long or too short.
    """

    study: str
    name: str
    title: str
    citation: str
    where: str
    unit: str
    keys: Sequence[str]
    values: Sequence[str]
    rows: Sequence[Sequence[Any]]
    log_resolution_s: float = 1.0

    def __post_init__(self) -> None:
        width = len(self.keys) + len(self.values)
        if any(len(row) != width for row in self.rows):
            raise ValueError(f"{self.study}.toml: {self.name}: a row must have {width} entries")

    @property
    def source(self) -> str:
        """Citation with the place in it."""
        return f"{self.citation}, {self.where}"

    def frame(self) -> pd.DataFrame:
        """One row per published row."""
        import pandas as pd

        return pd.DataFrame(self.rows, columns=[*self.keys, *self.values])


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
            citation, key = study.pop("citation"), file.name.removesuffix(".toml")
            groups += [Group(key, name, citation=citation, **given) for name, given in study.items()]
    return tuple(groups)


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


def uncut(recoveries: pd.DataFrame) -> pd.Series[float]:
    """Recovery time before ``run.log_resolution`` cuts its two stamps: the stages restore, wait and
    replay together.
    """
    recovery = recoveries["state_recovery_s"].astype(float)
    stages = recoveries[["restore_s", "wait_s", "replay_s"]].astype(float)
    return stages.sum(axis=1).where(recovery.notna())


def pair_recoveries(recoveries: pd.DataFrame, table: Group | None = None) -> pd.DataFrame:
    """Published and simulated recovery times, one row for each cell.

    ``recoveries`` has the columns of ``with_cells``. ``logged_s`` is the mean recovery time over replications
    as a log of the study's resolution shows it; ``simulated_s`` is the mean of the exact times, ``low_s`` and
    ``high_s`` its 95 % t-interval, ``least_s`` and ``most_s`` the extremes. ``error_s``: logged minus
    published. ``required`` is the range that agrees with the published figure: for source replay a logged
    one, for the others an uncut one (see ``required``). ``within``: the mean is in it (None if nothing was
    simulated); ``n_within``: so many replications are. Cells of strategies that the study did not measure
    follow, with an undefined published figure.
    """
    import pandas as pd

    table = table or group("stableford", "recovery")
    cells = {tuple(row[: len(table.keys)]): float(row[-1]) for row in table.rows}
    data = recoveries.assign(_uncut=uncut(recoveries), _logged=recoveries["state_recovery_s"].astype(float))
    simulated = {_key(key): part for key, part in data.groupby(list(table.keys), sort=False)}
    every = [*cells, *(key for key in simulated if key not in cells)]
    rows = []
    for key in every:
        part = simulated.get(key, data[:0])
        figures = _pair(str(key[0]), cells.get(key), list(part["_logged"]), list(part["_uncut"]), table)
        rows.append(dict(zip(table.keys, key, strict=True)) | figures)
    return pd.DataFrame(rows)


def _key(key: Any) -> tuple[Any, ...]:
    return tuple(int(part) if isinstance(part, float) and part == int(part) else part for part in key)


def _pair(
    strategy: str, known: float | None, logged: list[float], exact: list[float], table: Group
) -> dict[str, Any]:
    """The figures of one cell; ``known``: the published one, if there is one."""
    shown, result = estimate(logged), estimate(exact)
    low, high = result.t or (result.mean, result.mean)
    defined = [value for value in exact if not is_undefined(value)]
    wanted = None if known is None else required(strategy, known, table.log_resolution_s)
    error = within = n_within = None
    if known is not None and wanted is not None and shown.mean is not None and result.mean is not None:
        as_logged = strategy == "source_replay"
        error = shown.mean - known
        within = (shown.mean if as_logged else result.mean) in wanted
        n_within = sum(value in wanted for value in (logged if as_logged else exact))
    return {
        "published_s": known,
        "logged_s": shown.mean,
        "simulated_s": result.mean,
        "low_s": low,
        "high_s": high,
        "least_s": min(defined, default=None),
        "most_s": max(defined, default=None),
        "n": result.n,
        "undefined": result.undefined,
        "error_s": error,
        "required": None if wanted is None else str(wanted),
        "within": within,
        "n_within": n_within,
    }
