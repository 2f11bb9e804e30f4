"""Fits to what others measured, as pages and for the terminal.

The input is the tables of ``columns.CAPACITY_FITS`` and ``columns.RECOVERY_FITS``, however they were made.
`tideover.cli.calibrate` and `tideover.cli.reproduce` show them. Points, parameters and errors are told apart
by their workload; what failed stays in the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Group
from rich.text import Text

from tideover.models.results import counted
from tideover.reports import figures, published
from tideover.reports.calibration import tables as shared
from tideover.reports.calibration.page import measured_page
from tideover.reports.calibration.tables import FAILED_BEYOND, Frames, Row, frame, interval, percent
from tideover.reports.columns import CAPACITY_FITS, RECOVERY_FITS
from tideover.reports.figures.style import picture
from tideover.reports.formatting import UNDEFINED, amount, fixed, is_undefined, number
from tideover.reports.html import Page, Picture, Section
from tideover.reports.tables import Table
from tideover.reports.terminal import rendered, warnings_view
from tideover.scenarios import runs
from tideover.scenarios.errors import listed
from tideover.scenarios.loader import load

if TYPE_CHECKING:
    import pandas as pd

CAPACITY_TABLES = ("capacities", "fit_parameters", "errors", "catch_up")
"""The last has rows if processes were killed, too."""


def _workload(row: Row) -> str:
    return str(row["workload"])


def capacities_page(frames: Frames, provenance: Mapping[str, object], **more: Any) -> Page:
    """Capacities that others measured, and what a law says of them; with ``catch_up`` recoveries, too."""
    runs, parameters, errors, failed = (frame(frames, name) for name in CAPACITY_TABLES)
    tables = (errors_table(errors), runs_table(runs), *_catch_up_tables(failed))
    drawable = (failed["ended"] & failed["predicted_s"].notna()).any()
    pictures = (picture("catch-up", figures.catch_up(failed)),) if drawable else ()
    measured = Section("Measured beside predicted", tables=tables, pictures=pictures)
    law = Section("The law", tables=(shared.parameters_table(parameters, by="workload"),))
    kind, verdict = "measured capacities, and a law fitted to them", _capacities(runs, parameters, errors)
    return measured_page(kind, verdict, (measured, law), CAPACITY_FITS, provenance, **more)


def capacities_view(frames: Frames, warnings: Sequence[str] = ()) -> Group:
    runs, parameters, errors, failed = (frame(frames, name) for name in CAPACITY_TABLES)
    law = shared.parameters_table(parameters, by="workload", brief=True)
    asked_or_seen = _catch_up_tables(failed)[0] if len(failed) else runs_table(runs)
    verdict = Text(_capacities(runs, parameters, errors), style="bold")
    return Group(*rendered((law, asked_or_seen, errors_table(errors))), verdict, warnings_view(warnings))


def _capacities(runs: pd.DataFrame, parameters: pd.DataFrame, errors: pd.DataFrame) -> str:
    told = (capacities_verdict(runs, errors), catch_up_verdict(parameters, errors))
    return "\n".join(filter(None, told))


def _catch_up_tables(found: pd.DataFrame) -> tuple[Table, Table]:
    """What was asked, and every recovery, beside the fluid law with profiled capacities."""

    def ends(row: Row) -> str:
        known = is_undefined(row["low_s"]) or not is_undefined(row["high_s"])
        return interval(row["low_s"], row["high_s"]) if known else f"{number(row['low_s'])} or more"

    columns: dict[str, Callable[[Row], str]] = {
        "": lambda row: f"every {row['checkpoint_interval_s']:g} s",
        "cores": lambda row: number(row["cores"]),
        "slots a core": lambda row: number(row["slots_per_core"]),
        "MB a slot": lambda row: fixed(row["memory_per_slot_mb"], 0),
        "tuples/s": lambda row: _rate(row["rate_per_s"]),
        "profiled/s": lambda row: _rate(row["profiled_per_s"]),
        "measured, s": lambda row: f"{'' if row['ended'] else 'over '}{number(row['measured_s'])}",
        "predicted, s": lambda row: number(row["predicted_s"]),
        "90 % interval": ends,
        "fluid law, s": lambda row: number(row["fluid_s"]),
    }
    short = {name: column for name, column in columns.items() if name != "measured, s"}
    law = "fluid law: with the profiled capacity, which is what such a job processes when it is saturated."
    unseen = "predicted: by a fit that had seen no run with these settings."
    never = "–: the backlog never drains."
    known = found["measured_s"].notna()
    asked, seen = (found[those].to_dict("records") for those in (~known, known))
    return (
        Table.of("What you asked for", asked, short, (law, never), heading=_workload),
        Table.of("Every recovery", seen, columns, (unseen, law, never), heading=_workload),
    )


def catch_up_verdict(parameters: pd.DataFrame, errors: pd.DataFrame) -> str:
    """One line a workload: catch-up capacity beside the profiled one, and what that is worth."""
    lines = []
    mine = errors[errors["kind"] == "leave_third_out"]
    for workload, part in parameters.groupby("workload", sort=False):
        found = {row["parameter"]: row for row in part.to_dict("records")}
        told = {row["model"]: row for row in mine[mine["workload"] == workload].to_dict("records")}
        if "catch_up_ratio" not in found:
            continue
        ratio, limit = found["catch_up_ratio"], found["catch_up_limit"]
        text = (
            f"{workload}: after a failure a small job catches up at {number(ratio['value'])} times its "
            f"profiled capacity ({interval(ratio['low'], ratio['high'])})"
        )
        if limit["identified"]:
            text += (
                f", and no job at more than {_rate(limit['value'])}/s ({_rate(limit['low'])} to "
                f"{_rate(limit['high'])})"
            )
        if not told:
            lines.append(f"{text}; with more settings, some could be left out and predicted.")
            continue
        law, plain = told["mechanism"], told["fluid"]
        lines.append(
            f"{text}; recoveries under settings that the fit has not seen are off by "
            f"{percent(law['mean_error'])} in the mean, those of the fluid law with the profiled capacity by "
            f"{percent(plain['mean_error'])} (n = {amount(law['n'])})."
        )
    return "\n".join(lines)


def capacities_verdict(runs: pd.DataFrame, errors: pd.DataFrame) -> str:
    """One line a workload: how far off unseen capacities are, and how many other runs are beyond the law."""
    lines = []
    for row in errors[errors["kind"] == "leave_one_out"].to_dict("records"):
        others = runs[(runs["workload"] == row["workload"]) & ~runs["saturated"].astype(bool)]
        beyond = int((others["rate_per_s"] > others["fitted_per_s"]).sum())
        lines.append(
            f"{row['workload']}: capacities that the fit has not seen are off by "
            f"{percent(row['mean_error'])} in the mean (worst {percent(row['worst_error'])}, "
            f"n = {amount(row['n'])}); of {len(others)} runs that were not saturated, {beyond} had a rate "
            "above the law's capacity."
        )
    return "\n".join(lines) or "No capacity was predicted by a fit that had not seen it."


def runs_table(runs: pd.DataFrame) -> Table:
    """Every saturated run, and its prediction by a fit that had not seen it."""
    columns: dict[str, Callable[[Row], str]] = {
        "cores": lambda row: number(row["cores"]),
        "slots a core": lambda row: number(row["slots_per_core"]),
        "MB a slot": lambda row: fixed(row["memory_per_slot_mb"], 0),
        "capacity/s": lambda row: fixed(row["rate_per_s"], 0),
        "left out/s": lambda row: fixed(row["left_out_per_s"], 0),
        "90 % interval": lambda row: f"{fixed(row['low_per_s'], 0)} to {fixed(row['high_per_s'], 0)}",
        "error": lambda row: percent(row["left_out_per_s"] / row["rate_per_s"] - 1, sign=True),
    }
    shown = runs[runs["saturated"].astype(bool)].to_dict("records")
    notes = ("left out: by a fit that had not seen this run.",)
    return Table.of("Every saturated run", shown, columns, notes, heading=_workload)


# Studies whose figures are fitted and then predicted, each left out in turn: a row each, with its aim.


class Aim(NamedTuple):
    """How near predictions of figures that no fit has seen are to come in the mean: a ratio, or seconds."""

    error: float
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.error:g} s" if self.unit == "s" else percent(self.error)


def left_out_rows(
    errors: pd.DataFrame, quantities: Mapping[str, str], aims: Mapping[tuple[str, str], Aim]
) -> list[dict[str, Any]]:
    """One a workload and quantity (by kind of errors); ``aims``: by workload (``""``: all) and quantity."""
    mine = errors[(errors["model"] == "mechanism") & errors["kind"].isin(list(quantities))]
    found = []
    for row in mine.to_dict("records"):
        quantity, workload = quantities[row["kind"]], str(row["workload"])
        aim = aims.get((workload, quantity)) or aims.get(("", quantity))
        off = float(row["mean_error_s" if aim is not None and aim.unit == "s" else "mean_error"])
        verdict = "no aim" if aim is None else "predicted" if off <= aim.error else "failed"
        told: dict[str, Any] = {"workload": workload, "quantity": quantity, "points": int(row["n"])}
        told["mean_error_s"] = None if is_undefined(row.get("mean_error_s")) else row["mean_error_s"]
        told |= {name: row[name] for name in ("mean_error", "worst_error", "coverage", "mean_width")}
        found.append(told | {"aim": UNDEFINED if aim is None else str(aim), "verdict": verdict})
    return found


def left_out_table(found: Sequence[Row], title: str) -> Table:
    columns: dict[str, Callable[[Row], str]] = {
        "workload": lambda row: row["workload"],
        "quantity": lambda row: row["quantity"],
        "points": lambda row: str(row["points"]),
        "mean error, s": lambda row: fixed(row["mean_error_s"], 1),
        "mean error": lambda row: percent(row["mean_error"]),
        "worst": lambda row: percent(row["worst_error"]),
        "in 90 % interval": lambda row: f"{row['coverage'] * row['points']:.0f} ({percent(row['coverage'])})",
        "its mean width": lambda row: percent(row["mean_width"]),
        "aim": lambda row: row["aim"],
        "verdict": lambda row: row["verdict"],
    }
    note = "Each figure was predicted by a fit that had not seen it; the verdict is on the mean error."
    return Table.of(title, found, columns, (note,), text_columns=2)


def left_out_verdict(found: Sequence[Row]) -> str:
    judged = [row for row in found if row["verdict"] != "no aim"]
    missed = [f"{row['workload']}, {row['quantity']}" for row in judged if row["verdict"] == "failed"]
    told = f"{len(judged) - len(missed)} of {len(judged)} quantities are predicted within their aims"
    return f"{told}; not {'; not '.join(missed)}." if missed else f"{told}."


# How long a lost TaskManager goes unnoticed: published and simulated, with nothing fitted.


def detection_rows(settings: Sequence[str] = ()) -> list[Row]:
    """Mean, least and greatest, s. The log has whole seconds, so figures agree within one."""
    interval, timeout, *known = published.group("demeter", "detection").rows[0]
    asked = [f"detector.interval={interval}s", f"heartbeat_timeout={timeout}s"]
    # Long enough for a loss at 120 s to be noticed.
    scenario = load("demeter-ads", ["run.replications=40", "run.duration=160s", *asked, *settings])
    # Its profile has given its values, and would be asked for predictions of other figures.
    rows = runs.run(scenario.model_copy(update={"profile": None})).rows("recoveries")
    found = [float(row["detect_s"]) for row in rows]
    simulated = (sum(found) / len(found), min(found), max(found))
    return [
        {
            "interval_s": interval,
            "timeout_s": timeout,
            "figure": name,
            "published_s": there,
            "simulated_s": here,
            "verdict": "predicted" if abs(here - there) <= 1 else "failed",
        }
        for name, there, here in zip(("mean", "least", "greatest"), known, simulated, strict=True)
    ]


def detection_table(found: Sequence[Row]) -> Table:
    columns: dict[str, Callable[[Row], str]] = {
        "heartbeats": lambda row: f"every {row['interval_s']} s, timeout {row['timeout_s']} s",
        "": lambda row: row["figure"],
        "published": lambda row: f"{row['published_s']:g} s",
        "simulated": lambda row: f"{row['simulated_s']:.1f} s",
        "verdict": lambda row: row["verdict"],
    }
    title = published.group("demeter", "detection").title
    note = "Nothing is fitted: it is the timeout less the age of the last heartbeat."
    return Table.of(title, found, columns, (note,), text_columns=2)


# A fit to recoveries that others measured.

_MODELS = {"mechanism": "by mechanism", "fluid": "plain fluid law"}
_NEARER = {"mechanism": "the mechanism", "fluid": "the plain fluid law"}
_KINDS = {
    "fit": "seen by the fit",
    "leave_one_out": "each point left out",
    "leave_setting_out": "each setting left out",
    "leave_interval_out": "each interval left out",
    "leave_top_rate_out": "highest rates left out",
    "leave_third_out": "a third of the settings left out",
    "outage_end": "end of outage, each left out",
}

_STEEP = 3
"""A line that rises by this factor comes near saturation."""


def recoveries_page(frames: Frames, provenance: Mapping[str, object], **more: Any) -> Page:
    """Recoveries that others measured, and what the fitted mechanism predicts for them."""
    points, parameters, errors, curves = (frame(frames, name) for name in RECOVERY_FITS)
    sections = (
        Section(
            "Measured beside predicted",
            sentences=_misses(points),
            tables=(errors_table(errors), points_table(points)),
            pictures=_pictures(points, curves, parameters),
        ),
        Section(
            "What a profile holds",
            sentences=unidentified(parameters),
            tables=(shared.parameters_table(parameters, by="workload"),),
        ),
    )
    kind, answer = "measured recoveries, and a mechanism fitted to them", recoveries_verdict(errors)
    return measured_page(kind, answer, sections, RECOVERY_FITS, provenance, **more)


def recoveries_view(frames: Frames, warnings: Sequence[str] = ()) -> Group:
    points, parameters, errors, _ = (frame(frames, name) for name in RECOVERY_FITS)
    fitted = shared.parameters_table(parameters, by="workload", brief=True)
    return Group(
        Text(recoveries_verdict(errors), style="bold"),
        *map(Text, _misses(points)),
        Text(""),
        *rendered((fitted,)),
        Text("Every point, and how far off each model is, drawn and as tables: --out DIR."),
        warnings_view(warnings),
    )


def recoveries_verdict(errors: pd.DataFrame) -> str:
    """One line a workload: how far off predictions of unseen points are, and those of the plain fluid law."""
    lines = []
    for workload, part in errors.groupby("workload", sort=False):
        found = {(row["model"], row["kind"]): row for row in part.to_dict("records")}
        ours, plain_law = (found.get((model, "leave_one_out")) for model in ("mechanism", "fluid"))
        if ours is None:
            continue
        text = (
            f"{workload}: predictions of points that the fit has not seen are off by "
            f"{percent(ours['mean_error'])} in the mean (worst {percent(ours['worst_error'])}, "
            f"n = {amount(ours['n'])})"
        )
        if plain_law is not None:
            text += f"; those of the plain fluid law by {percent(plain_law['mean_error'])}"
        # Which of the two is nearer, with repetitions left out together if there are any.
        kind = "leave_setting_out" if ("mechanism", "leave_setting_out") in found else "leave_one_out"
        rows = {model: found.get((model, kind), {}) for model in _MODELS}
        if not any(is_undefined(row.get("better")) for row in rows.values()):
            if kind == "leave_setting_out":
                mine, law = (percent(row["mean_error"]) for row in rows.values())
                text += f" (with repetitions left out together by {mine}, and by {law})"
            nearer = [_NEARER[model] for model, row in rows.items() if row["better"]]
            text += f": {nearer[0]} is the better one" if nearer else ": neither is better beyond chance"
        lines.append(f"{text}.")
    return "\n".join(lines) or "No point was predicted by a fit that had not seen it."


def points_table(points: pd.DataFrame) -> Table:
    """Every measured point and its predictions; those that are off by more than 30 % are marked."""

    def setting(row: Row) -> str:
        told = [f"every {row['checkpoint_interval_s']:g} s"]
        for column, text in (("heartbeat_timeout_s", "{:g} s timeout"), ("parallelism", "{:g} tasks")):
            if column in points and points[column].nunique() > 1 and not is_undefined(row[column]):
                told.append(text.format(row[column]))
        return ", ".join(told)

    def left_out(row: Row) -> float:
        return _error(row["left_out_s"], row["measured_s"])

    def fluid(row: Row) -> float:
        if is_undefined(row["fluid_s"]):
            return float("nan")
        return _error(row["fluid_left_out_s"], row["measured_s"])

    columns: dict[str, Callable[[Row], str]] = {
        "": setting,
        "tuples/s": lambda row: _rate(row["rate_per_s"]),
        "measured, s": lambda row: number(row["measured_s"]),
        "fitted, s": lambda row: number(row["fitted_s"]),
        "left out, s": lambda row: number(row["left_out_s"]),
        "error": lambda row: percent(left_out(row), sign=True),
        "within 30 %": lambda row: "NO" if abs(left_out(row)) > FAILED_BEYOND else "yes",
        "fluid law": lambda row: percent(fluid(row), sign=True),
    }
    notes = (
        "left out: predicted by a fit that had not seen this point; error: of that prediction.",
        "fluid law: error of a plain fluid law with three parameters, fitted without this point too.",
        "∞: predicted that the backlog never drains.",
    )
    rows = points.to_dict("records")
    return Table.of("Every point", rows, columns, notes, heading=_workload)


def _rate(value: Any) -> str:
    """Whole tuples per second; a rate under ten keeps its decimals."""
    return fixed(value, 0) if value >= 10 else number(value)


def _error(predicted: Any, measured: Any) -> float:
    """Relative; infinite for a recovery that is predicted never to end, NaN if nothing was measured."""
    if not measured > 0:
        return float("nan")
    return float("inf") if is_undefined(predicted) else float(predicted / measured - 1)


def errors_table(errors: pd.DataFrame) -> Table:
    columns: dict[str, Callable[[Row], str]] = {
        "": lambda row: _MODELS.get(row["model"], str(row["model"])),
        "points": lambda row: _KINDS.get(row["kind"], str(row["kind"]).replace("_", " ")),
        "n": lambda row: amount(row["n"]),
        "mean error": lambda row: percent(row["mean_error"]),
        "median": lambda row: percent(row["median_error"]),
        "worst": lambda row: percent(row["worst_error"]),
        "mean, s": lambda row: number(row["mean_error_s"]),
        "in 90 % interval": lambda row: percent(row["coverage"]),
        "its width": lambda row: percent(row["mean_width"]),
    }
    note = "its width: mean of the intervals, in predictions."
    rows = errors.to_dict("records")
    return Table.of("How far off", rows, columns, (note,), 2, _workload)


def unidentified(parameters: pd.DataFrame) -> tuple[str, ...]:
    """Which parameters the data do not determine, by workload."""
    told = []
    for workload, part in parameters.groupby("workload", sort=False):
        names = [str(name) for name in part[~part["identified"]]["parameter"]]
        if names:
            told.append(
                f"{workload}: the measurements do not determine {listed(names)}. Predictions that hang on "
                f"{'its value' if len(names) == 1 else 'their values'} are only as good as an assumption."
            )
    return tuple(told)


def _misses(points: pd.DataFrame) -> tuple[str, ...]:
    rows = points.to_dict("records")
    wrong = [row for row in rows if abs(_error(row["left_out_s"], row["measured_s"])) > FAILED_BEYOND]
    if not wrong:
        return ()
    named = [
        f"{row['workload']} every {row['checkpoint_interval_s']:g} s at {_rate(row['rate_per_s'])}/s "
        f"(measured {number(row['measured_s'])} s, predicted {number(row['left_out_s'])} s)"
        for row in wrong
    ]
    count = f"{len(wrong)} of {counted(len(rows), 'point')}"
    return (f"Off by more than {percent(FAILED_BEYOND)} when left out, {count}: {'; '.join(named)}.",)


def _pictures(points: pd.DataFrame, curves: pd.DataFrame, parameters: pd.DataFrame) -> tuple[Picture, ...]:
    if points.empty and curves.empty:
        return ()
    comparable = points
    if "usual_rate_per_s" in points:
        rates = points["usual_rate_per_s"].fillna(points["rate_per_s"])
        comparable = points.assign(rate_per_s=rates)
    workloads = list(dict.fromkeys(curves["workload"]))
    steep = []
    for workload in workloads:
        lines = curves[curves["workload"] == workload].groupby("checkpoint_interval_s")["predicted_s"]
        if any(line.isna().any() or line.max() > _STEEP * line.min() for _, line in lines):
            steep.append(str(workload))
    also, where = ["steep" if steep else "flat"], ""
    if steep and len(steep) < len(workloads):
        where = f" of {listed(steep)}"
    if "parallelism" in points and (points["rate_per_s"] != comparable["rate_per_s"]).any():
        also.append("tasks")
    if "heartbeat_timeout_s" in points and points["heartbeat_timeout_s"].nunique() > 1:
        also.append("heartbeats")
    windows = parameters[parameters["parameter"] == "lag_window"]["value"]
    if (windows > 0).any():
        also.append("steps")
    drawn = figures.recoveries_over_rate(comparable, curves)
    return (picture("recoveries", drawn, also=also, where=where, window=windows.max()),)
