"""A calibration on real runs, as a page and for the terminal: what was measured, and what is predicted.

The input is the tables of ``columns.CALIBRATION``; nothing here depends on how they were made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tideover.reports.calibration import pictures, tables
from tideover.reports.calibration.predictions import frame, judged, summary
from tideover.reports.calibration.verdict import labelled, unexplained, verdict
from tideover.reports.columns import CALIBRATION
from tideover.reports.html import Page, Section

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Group

    from tideover.reports.tables import Table

__all__ = ["calibration_page", "calibration_view", "summary"]

HELD_OUT = "Held-out episodes: how far predictions are off"


def calibration_page(
    frames: Mapping[str, pd.DataFrame],
    provenance: Mapping[str, object],
    *,
    title: str = "calibration",
    profile: str = "",
    warnings: Sequence[str] = (),
) -> Page:
    """Measured and predicted figures of real runs that were really killed.

    ``frames``: the tables of ``columns.CALIBRATION``; one that is missing or empty is left out.
    ``provenance``: where and when it was measured, label by label; ``profile``: its text, shown in full.
    """
    pairs, parameters, timelines, ranking, correctness = (frame(frames, name) for name in CALIBRATION)
    pairs = judged(pairs)
    told = unexplained(pairs) or ("No prediction failed, and the residuals lean to no side.",)
    sections = (
        Section("Measured beside predicted", tables=_summaries(pairs), pictures=pictures.scatter(pairs)),
        Section(
            "What the model does not explain",
            sentences=told if len(pairs) else (),
            pictures=pictures.residuals(pairs),
        ),
        Section("Real and simulated runs on one axis", pictures=pictures.backlogs(timelines, pairs)),
        Section("Which strategy is ahead", tables=(tables.ranking_table(ranking),)),
        Section("Are the counts right?", tables=(tables.correctness_table(correctness),)),
        Section("What the simulator takes from it", tables=(_parameters(parameters),)),
        Section("Every pair", tables=_every_pair(pairs)),
    )
    return Page(
        title=title,
        kind="real runs, really killed, beside what the fitted simulator says of them",
        verdict=verdict(pairs, ranking, correctness),
        setup=labelled(provenance),
        setup_title="What was measured, and where",
        sections=sections,
        warnings=tuple(warnings),
        scenarios=(("profile", profile),) if profile else (),
        scenarios_title="The profile",
        glossary=CALIBRATION,
    )


def calibration_view(frames: Mapping[str, pd.DataFrame], warnings: Sequence[str] = ()) -> Group:
    """What the terminal shows: errors, failed predictions, ranking, counts, parameters, verdict."""
    from rich.console import Group
    from rich.text import Text

    from tideover.reports.terminal import rendered, warnings_view

    pairs, parameters, _, ranking, correctness = (frame(frames, name) for name in CALIBRATION)
    pairs = judged(pairs)
    failed = _placed(pairs[pairs["held_out"] & pairs["failed"]])
    shown = (
        *_summaries(pairs)[:1],
        tables.pairs_table(failed, "Held-out predictions that failed"),
        tables.ranking_table(ranking),
        tables.correctness_table(correctness),
        _parameters(parameters, brief=True),
    )
    sentence = Text(verdict(pairs, ranking, correctness), style="bold")
    return Group(*rendered(shown), sentence, warnings_view(warnings))


def _parameters(parameters: pd.DataFrame, *, brief: bool = False) -> Table:
    by = "strategy" if parameters["profile"].isna().any() else "profile"
    return tables.parameters_table(parameters, by, brief=brief)


def _summaries(pairs: pd.DataFrame) -> tuple[Table, ...]:
    """Of held-out episodes first, if there are any."""
    struck = pairs[pairs["purpose"] == "recovery"]
    found = (
        tables.summary_table(summary(pairs), HELD_OUT),
        tables.summary_table(summary(struck, by_fault=True), "Held-out faults, by what was done"),
        tables.summary_table(summary(pairs, held_out=False), "Episodes that the fit has seen"),
    )
    return tuple(table for table in found if table.rows)


def _every_pair(pairs: pd.DataFrame) -> tuple[Table, ...]:
    placed = _placed(pairs)
    return (
        tables.pairs_table(placed[placed["held_out"]], "Held out: the fit has not seen them"),
        tables.pairs_table(placed[~placed["held_out"]], "Seen by the fit"),
    )


def _placed(pairs: pd.DataFrame) -> pd.DataFrame:
    """In the order in which they are listed: what stands under one heading together."""
    order = ["strategy", "measure", "purpose", "fault", "rate_per_s", "keys"]
    return pairs.sort_values(order, kind="stable")
