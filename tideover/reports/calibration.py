"""What a calibration on real runs comes to, as a page and for the terminal: measured beside predicted.

It takes plain tables (``columns.CALIBRATION``) and knows nothing of how they came about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tideover import __version__
from tideover.reports.columns import CALIBRATION
from tideover.reports.fits import pictures, tables
from tideover.reports.fits.pairs import frame, judged, summary
from tideover.reports.fits.words import labelled, unexplained, verdict
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
    """Measured beside predicted, for real runs that were killed for real.

    ``frames``: the tables of ``columns.CALIBRATION``; one that is missing or empty is left out.
    ``provenance``: where and when it was measured, label by label; ``profile``: its text, shown in full.
    """
    pairs, parameters, timelines, ranking, correctness = (frame(frames, name) for name in CALIBRATION)
    pairs = judged(pairs)
    sections = (
        _predictions(pairs),
        _residuals(pairs),
        Section(
            "Real and simulated runs on one axis",
            pictures=pictures.backlogs(timelines, pairs) if len(timelines) else (),
        ),
        Section("Which strategy is ahead", tables=(tables.ranking_table(ranking),) if len(ranking) else ()),
        Section(
            "Are the counts right?",
            tables=(tables.correctness_table(correctness),) if len(correctness) else (),
        ),
        Section(
            "What the simulator takes from it",
            tables=_parameters(parameters),
        ),
        Section("Every pair", tables=_every_pair(pairs)),
    )
    return Page(
        title=title,
        kind="real runs, really killed, beside what the fitted simulator says of them",
        verdict=verdict(pairs, ranking, correctness),
        asked=labelled(provenance),
        asked_title="What was measured, and where",
        tables=(),
        sections=tuple(section for section in sections if _filled(section)),
        version=__version__,
        warnings=tuple(warnings),
        scenarios=(("profile", profile),) if profile else (),
        scenarios_title="The profile",
        glossary=tuple(CALIBRATION.items()),
    )


def calibration_view(frames: Mapping[str, pd.DataFrame], warnings: Sequence[str] = ()) -> Group:
    """What the terminal shows: errors, failed predictions, ranking, counts, parameters, verdict."""
    from rich.console import Group
    from rich.text import Text

    from tideover.reports.terminal import render, warnings_view

    pairs, parameters, _, ranking, correctness = (frame(frames, name) for name in CALIBRATION)
    pairs = judged(pairs)
    failed = _placed(pairs[pairs["held_out"] & pairs["failed"]])
    shown: list[Table] = []
    shown += _summaries(pairs)[:1]
    if len(failed):
        shown.append(tables.pairs_table(failed, "Held-out predictions that failed"))
    if len(ranking):
        shown.append(tables.ranking_table(ranking))
    if len(correctness):
        shown.append(tables.correctness_table(correctness))
    shown += _parameters(parameters, brief=True)
    sentence = Text(verdict(pairs, ranking, correctness), style="bold")
    return Group(*map(render, shown), sentence, warnings_view(warnings))


def _parameters(parameters: pd.DataFrame, *, brief: bool = False) -> tuple[Table, ...]:
    by = "strategy" if parameters["profile"].isna().any() else "profile"
    return (tables.parameters_table(parameters, by, brief=brief),) if len(parameters) else ()


def _predictions(pairs: pd.DataFrame) -> Section:
    return Section("Measured beside predicted", tables=_summaries(pairs), pictures=pictures.scatter(pairs))


def _summaries(pairs: pd.DataFrame) -> tuple[Table, ...]:
    """Of held-out episodes first, if there are any."""
    struck = pairs[pairs["purpose"] == "recovery"]
    shown = [
        (summary(pairs), HELD_OUT),
        (summary(struck, by_fault=True), "Held-out faults, by what was done"),
        (summary(pairs, held_out=False), "Episodes that the fit has seen"),
    ]
    return tuple(tables.summary_table(found, title) for found, title in shown if len(found))


def _residuals(pairs: pd.DataFrame) -> Section:
    told = unexplained(pairs)
    if len(pairs) and not told:
        told = ("No prediction failed, and the residuals lean to no side.",)
    return Section("What the model does not explain", sentences=told, pictures=pictures.residuals(pairs))


def _every_pair(pairs: pd.DataFrame) -> tuple[Table, ...]:
    placed = _placed(pairs)
    parts = [
        (placed[placed["held_out"]], "Held out: the fit has not seen them"),
        (placed[~placed["held_out"]], "Seen by the fit"),
    ]
    return tuple(tables.pairs_table(part, title) for part, title in parts if len(part))


def _placed(pairs: pd.DataFrame) -> pd.DataFrame:
    """In the order in which they are listed: what stands under one heading together."""
    order = ["strategy", "measure", "purpose", "fault", "rate_per_s", "keys"]
    return pairs.sort_values(order, kind="stable")


def _filled(section: Section) -> bool:
    return bool(section.sentences or section.tables or section.pictures)
