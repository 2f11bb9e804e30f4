"""Failures as a file lists them.

Scenarios name the file; it becomes failures of the other kinds. What a row may say is changed here.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field, ValidationError, ValidationInfo, field_validator

from tideover.sim.draws import Draws
from tideover.sim.faults import FAULTS, Fault, Site
from tideover.sim.text_files import Unreadable, read_text


@FAULTS.register("events")
class Events(Fault):
    """The failures of a CSV file: columns ``time`` and ``kind``, and keys of the kinds as needed.

    ``time,kind,component,host,restart`` on the first line, then ``75 s,crash_task,count,,4 s`` and so on; an
    empty cell gives nothing. A relative path starts from the scenario's folder.
    """

    expands: ClassVar[bool] = True

    file: Annotated[str, Field(description="CSV file with the columns time, kind, and keys of failures")]

    @field_validator("file")
    @classmethod
    def _readable(cls, file: str, info: ValidationInfo) -> str:
        path = str((info.context or {}).get("directory", Path()) / file)
        read_events(path)
        return path

    @property
    def where(self) -> str:
        return Path(self.file).name

    @property
    def inner(self) -> dict[str, Fault]:
        return {f"{self.where}:{line}": fault for line, fault in read_events(self.file)}

    def strikes(self, index: int, draws: Draws, site: Site) -> Iterator[tuple[int, Fault]]:
        found = [(fault.at or 0, fault) for fault in self.inner.values()]
        yield from sorted(found, key=lambda strike: strike[0])


@lru_cache(maxsize=64)
def read_events(file: str) -> tuple[tuple[int, Fault], ...]:
    """Lines, and the failures that stand there; ValueError says which line and column is wrong."""
    path = Path(file)
    try:
        rows = list(csv.reader(read_text(path).splitlines()))
    except Unreadable as error:
        raise ValueError(f"cannot read {path.name!r}: it {error}; a CSV file is needed") from None
    except csv.Error as error:
        raise ValueError(f"{path.name}: is no CSV file: {error}") from None
    columns = [cell.strip() for cell in rows[0]] if rows else []
    if columns[:2] != ["time", "kind"]:
        raise ValueError(f"{path.name}:1: the first line must begin with time,kind")
    found = []
    for line, row in enumerate(rows[1:], 2):
        if row:
            cells = [cell.strip() for cell in row]
            if len(cells) > len(columns):
                raise ValueError(f"{path.name}:{line}: has {len(cells)} cells for {len(columns)} columns")
            given = {name: cell for name, cell in zip(columns, cells, strict=False) if cell}
            found.append((line, _fault(f"{path.name}:{line}", given)))
    if not found:
        raise ValueError(f"{path.name}: at least one row is needed")
    return tuple(found)


def _fault(place: str, given: dict[str, str]) -> Fault:
    kind = given.pop("kind", "")
    known = [name for name, part in FAULTS.items() if not part.expands]
    if kind not in known:
        raise ValueError(f"{place}: kind: {kind[:40]!r} is none of {', '.join(known)}")
    if "time" not in given:
        raise ValueError(f"{place}: time: is missing; {Fault.model_fields['at'].description}")
    values = {"at" if name == "time" else name: cell for name, cell in given.items()}
    try:
        return FAULTS[kind].model_validate(values, context={"border": True})
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        first = min(found, key=lambda one: one["type"] != "extra_forbidden")  # else its own name is missing
        column = str(first["loc"][0]) if first["loc"] else ""
        where = f"{place}: {'time' if column == 'at' else column}" if column else place
        fields = FAULTS[kind].model_fields
        message = str(first.get("ctx", {}).get("error", first["msg"]))
        message = message[:1].lower() + message[1:]
        if first["type"] == "extra_forbidden":
            message = f"unknown column; known: {', '.join('time' if n == 'at' else n for n in fields)}"
        elif first["type"] == "missing":
            message = f"is missing; {fields[column].description}"
        raise ValueError(f"{where}: {message}") from None
