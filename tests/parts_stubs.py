"""The stub of ``tideover.parts``, made from the classes: ``python tests/parts_stubs.py`` writes it.

It has signatures only: what type checkers need to know is that parameters take texts with units, though the
fields of the same names are numbers. Docstrings and fields are those of the classes.
"""

from __future__ import annotations

import inspect
import itertools
import re
import textwrap
from collections.abc import Iterable
from pathlib import Path

from tideover import parts
from tideover.models.job.components import QueueSettings
from tideover.parts.typed import Typed, typed
from tideover.scenarios.part_builder import REGISTRIES
from tideover.sim.faults import Fault

FILE = Path(__file__).parents[1] / "tideover" / "parts" / "__init__.pyi"
WIDTH = 110
HEAD = """\
# Made by `python tests/parts_stubs.py`; change the classes instead.
# fmt: off
# ruff: noqa: F401, I001
from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict, Unpack

from tideover.parts.typed import Bandwidth, Duration, Percent, Rate, Size"""
BASES = {base.__name__: base for base in REGISTRIES}
CONCRETE = {name: getattr(parts, name).part for name in parts.__all__} | {"QueueSettings": QueueSettings}
"""Classes whose names are those of typed objects here: annotations name them with their modules."""
PARAMETERS = {name for part in CONCRETE.values() for name in part.model_fields}


def stub() -> str:
    """The text of the stub: a class for each typed object, with its signature."""
    modules = sorted({part.__module__ for part in (*CONCRETE.values(), *BASES.values())})
    packages = itertools.groupby(modules, lambda name: name.rpartition(".")[0])
    found = [HEAD, *(line for package, names in packages for line in import_of(package, names)), ""]
    common = parameters_of(typed(Fault))
    found += [
        "class _Fault(TypedDict, total=False):",
        *(f"    {text.partition(' = ')[0]}" for text in common),
    ]
    for name in parts.__all__:
        found += ["", *class_of(getattr(parts, name), common)]
    return "\n".join([*found, ""])


def import_of(package: str, modules: Iterable[str]) -> list[str]:
    """The statement that imports modules of a package."""
    names = ", ".join(map(called, modules))
    if len(short := f"from {package} import {names}") <= WIDTH:
        return [short]
    lines = textwrap.wrap(names, WIDTH, initial_indent=4 * " ", subsequent_indent=4 * " ")
    return [f"from {package} import (", *lines, ")"]


def called(module: str) -> str:
    """The last part of a module's name, and what it is called here, if a parameter has the same name, or it
    is ``base``.
    """
    package, _, name = module.rpartition(".")
    return f"{name} as {package.rpartition('.')[2]}_{name}" if name in {"base"} | PARAMETERS else name


def qualified(part: type) -> str:
    """A class with its module."""
    return f"{called(part.__module__).rpartition(' ')[2]}.{part.__name__}"


def class_of(part: Typed, common: list[str]) -> list[str]:
    given = parameters_of(part)
    if issubclass(part.part, Fault):  # the moments and the repair that all failures have are said once
        given = [text for text in given if text not in common] + ["**common: Unpack[_Fault]"]
    star = ["*"] * bool([text for text in given if not text.startswith("**")])
    whole = [text.replace(" ", "\0") for text in given]  # a line ends behind a parameter
    signature = f"def\0__init__({', '.join(['self', *star, *whole])})\0->\0None:\0..."
    lines = textwrap.wrap(signature, WIDTH - 8, subsequent_indent="    ", break_on_hyphens=False)
    head = f"class {part.__name__}({qualified(part.part)}):"
    return [head, *("    " + line.replace("\0", " ") for line in lines)]


def parameters_of(part: Typed) -> list[str]:
    return [parameter_of(each) for each in inspect.signature(part).parameters.values()]


def parameter_of(parameter: inspect.Parameter) -> str:
    """The text of a parameter with its annotation and its default."""
    kind = re.sub(
        "|".join(rf"\b{name}\b" for name in BASES | CONCRETE),
        lambda found: qualified((BASES | CONCRETE)[found[0]]),
        parameter.annotation,
    )
    given = parameter.default
    if parameter.annotation in BASES and isinstance(given, str):
        kind += " | str"  # the name of a part without keys stands for it
    text = f"{parameter.name}: {kind}"
    return (text if given is parameter.empty else f"{text} = {given!r}").replace("'", '"')


if __name__ == "__main__":
    FILE.write_text(stub())
