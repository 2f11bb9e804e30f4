"""Every published figure beside what the simulator says of it, and beside the simplest law that could.

The input is figures, however they were made (`tideover.cli.validation` makes them). ``tideover reproduce
--all`` shows them, and writes the page that stands in the documentation as docs/validation.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tideover.models.results import counted
from tideover.reports.calibration.tables import percent
from tideover.reports.formatting import UNDEFINED, is_undefined, number
from tideover.reports.html import Page, Section
from tideover.reports.tables import Table

PREDICTED, FITTED, FAILED = "predicted", "fitted", "failed"
MEANT = {
    PREDICTED: "it comes out of the mechanism, with constants that were not chosen on it",
    FITTED: "a constant was chosen so that it comes out",
    FAILED: "it was attempted, and is off by more than the tolerance of its table",
}
_LIKE = 0.02
"""Errors that differ by less are the same."""


@dataclass(frozen=True)
class Figure:
    """A published value, ``simulated`` beside it, and what a ``law`` of one line says of it.

    of         what was measured where: texts of the columns of the study
    verdict    one of ``MEANT``
    law_says   NaN: there is none
    """

    of: tuple[str, ...]
    unit: str
    published: float
    simulated: float
    verdict: str
    law: str = UNDEFINED
    law_says: float = float("nan")

    @property
    def errors(self) -> tuple[float, float]:
        """Of the simulation and of the law: relative; where 0 was published, the difference."""
        scale = self.published or 1.0
        mine, law = ((value - self.published) / scale for value in (self.simulated, self.law_says))
        return mine, law


@dataclass(frozen=True)
class LeftOut:
    """How far off predictions of ``points`` measured values are, each by a fit that had not seen it: the mean
    error (``off``, relative; ``off_s`` in s), the worst, how many are ``inside`` their 90 % intervals, and
    the mean ``width`` of these. ``law_off``: the mean error of the ``law``.
    """

    of: tuple[str, ...]
    points: int
    off: float
    off_s: float | None
    worst: float
    inside: float
    width: float
    aim: str
    verdict: str
    law: str
    law_off: float

    @property
    def errors(self) -> tuple[float, float]:
        return self.off, self.law_off


@dataclass(frozen=True)
class Study:
    """One published table: the names of the columns that tell its figures apart, the figures, and what was
    found about them. ``lacks``: why there are no figures, if there are none.
    """

    title: str
    source: str
    columns: tuple[str, ...]
    figures: Sequence[Figure | LeftOut]
    findings: Sequence[str] = ()
    lacks: str = ""

    @property
    def verdicts(self) -> Counter[str]:
        return Counter(figure.verdict for figure in self.figures)

    @property
    def nearer(self) -> tuple[int, int]:
        """How many figures the mechanism is nearer to than the law, and the law than the mechanism."""
        known = [[abs(error) for error in figure.errors] for figure in self.figures]
        judged = [(mine, law) for mine, law in known if not is_undefined(law)]
        mine_nearer = sum(mine < law - _LIKE for mine, law in judged)
        return mine_nearer, sum(law < mine - _LIKE for mine, law in judged)

    @property
    def table(self) -> Table:
        given = {name: _of(place) for place, name in enumerate(self.columns)}
        rest = _LEFT_OUT if isinstance(self.figures[0], LeftOut) else _FIGURES
        columns = {**given, **rest}
        return Table.of(self.title, self.figures, columns, text_columns=len(given))


def _of(place: int) -> Callable[[Any], str]:
    return lambda figure: figure.of[place]


def _valued(value: float, unit: str) -> str:
    text = f"{value:,.0f}" if abs(value) >= 1000 else number(value)
    return UNDEFINED if is_undefined(value) else f"{text} {unit}".strip()


def _off(value: float) -> str:
    return UNDEFINED if is_undefined(value) else percent(value, sign=True)


_FIGURES: Mapping[str, Callable[[Any], str]] = {
    "published": lambda f: _valued(f.published, f.unit),
    "simulated": lambda f: _valued(f.simulated, f.unit),
    "error": lambda f: _off(f.errors[0]) if f.published else _valued(f.errors[0], f.unit),
    "verdict": lambda f: f.verdict,
    "simplest law": lambda f: f.law,
    "it says": lambda f: _valued(f.law_says, f.unit),
    "its error": lambda f: _off(f.errors[1]) if f.published else _valued(f.errors[1], f.unit),
}
_LEFT_OUT: Mapping[str, Callable[[Any], str]] = {
    "points": lambda f: str(f.points),
    "mean error": lambda f: percent(f.off) + ("" if f.off_s is None else f" ({f.off_s:.1f} s)"),
    "worst": lambda f: percent(f.worst),
    "in 90 % interval": lambda f: f"{f.inside:.0f}",
    "its mean width": lambda f: percent(f.width),
    "aim": lambda f: f.aim,
    "verdict": lambda f: f.verdict,
    "simplest law": lambda f: f.law,
    "its mean error": lambda f: UNDEFINED if is_undefined(f.law_off) else percent(f.law_off),
}


def summary(studies: Iterable[Study]) -> Table:
    """How many figures of each study are predicted, fitted, failed, and whether the law does as well."""
    columns: dict[str, Callable[[Study], str]] = {
        "study": lambda study: study.title,
        **{verdict: _number_of(verdict) for verdict in MEANT},
        "nearer than the law": lambda study: str(study.nearer[0]),
        "law nearer": lambda study: str(study.nearer[1]),
        "alike": lambda study: str(len(study.figures) - sum(study.nearer)),
    }
    notes = [f"{verdict}: {meant}." for verdict, meant in MEANT.items()]
    notes.append(f"alike: errors differ by less than {percent(_LIKE)}, or there is no law.")
    return Table.of("Predicted, fitted, failed", [s for s in studies if s.figures], columns, notes)


def _number_of(verdict: str) -> Callable[[Study], str]:
    return lambda study: str(study.verdicts[verdict])


def answer(studies: Iterable[Study]) -> str:
    total: Counter[str] = sum((study.verdicts for study in studies), Counter())
    judged = sum(total[verdict] for verdict in MEANT)
    told = ", ".join(f"{total[verdict]} {verdict}" for verdict in MEANT)
    return f"Of {counted(judged, 'published figure')}: {told}."


def page(studies: Sequence[Study]) -> Page:
    return Page(
        title="Validation",
        kind="published figures beside simulated ones",
        verdict=answer(studies),
        setup=(),
        sections=(
            Section("Predicted, fitted, failed", tables=(summary(studies),)),
            *(
                Section(
                    study.title,
                    sentences=(study.lacks,) if study.lacks else (),
                    tables=(study.table,) if study.figures else (),
                    steps=tuple(study.findings),
                    sources=(study.source,),
                )
                for study in studies
            ),
        ),
        glossary={},
    )


_HEAD = """\
<!-- Made by `tideover reproduce --all --out DIR`, which writes it there; what it says is changed in
tideover/scenarios/published and tideover/cli/validation.py. -->

# Validation: published figures beside simulated ones

"""


def markdown(studies: Sequence[Study]) -> str:
    return "\n\n".join((_HEAD + answer(studies), _table(summary(studies)), *map(section, studies))) + "\n"


def section(study: Study) -> str:
    told = study.lacks or _table(study.table)
    findings = "\n".join(f"- {finding}" for finding in study.findings)
    return "\n\n".join((f"## {study.title}", f"{study.source}.", told, findings))


def _table(table: Table) -> str:
    sides = ["---"] * table.text_columns + ["---:"] * (len(table.columns) - table.text_columns)
    lines = ["| " + "|".join(row) + "|" for row in (table.columns, sides, *table.rows)]
    return "\n".join([*lines, *([""] if table.notes else []), *(f"- {note}" for note in table.notes)])


def record(studies: Iterable[Study]) -> list[dict[str, Any]]:
    return [
        {"study": study.title, **asdict(figure), "verdict": figure.verdict, "error": figure.errors[0]}
        for study in studies
        for figure in study.figures
    ]
