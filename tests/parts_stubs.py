"""The stubs of ``tideover.parts``, made from the classes themselves: ``python tests/parts_stubs.py`` writes
them.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from importlib import import_module
from pathlib import Path

from tideover.parts.typed import Typed
from tideover.scenarios.part_builder import REGISTRIES

ROOT = Path(__file__).parents[1]
MODULES = ("failures", "settings", "strategies", "topology")
WIDTH = 110
CALLED = {"window": "windows"}
"""Modules that are called otherwise in a stub: parameters have their names."""


def file_of(module: str) -> Path:
    return ROOT / "tideover" / "parts" / f"{module}.pyi"


def stub(module: str) -> str:
    """The text of a module's stub: every class with its docstring, its parameters, and the signature."""
    classes = [part for part in vars(import_module(f"tideover.parts.{module}")).values() if is_typed(part)]
    needed = sorted(imports(classes).items())
    own = [import_of(*entry) for entry in needed if entry[0].startswith("tideover")]
    standard = [import_of(*entry) for entry in needed if not entry[0].startswith("tideover")]
    head = "# Made by `python tests/parts_stubs.py`; change the classes instead."
    blocks = [[head], standard, own, *(class_of(part) for part in classes)]
    return "\n".join("\n".join([*block, ""]) for block in blocks if block)


def is_typed(part: object) -> bool:
    return type(part) is Typed


def imports(classes: list[Typed]) -> dict[str, set[str]]:
    """What a stub imports, by module: the classes' own modules, and the names in their signatures."""
    known = {base.__name__: base.__module__ for base in REGISTRIES}
    known |= dict.fromkeys(("Duration", "Size", "Bandwidth", "Rate", "Percent"), "tideover.parts.typed")
    known |= {"Mapping": "collections.abc", "Sequence": "collections.abc", "Literal": "typing"}
    found: dict[str, set[str]] = {}
    for part in classes:
        package, _, name = part.part.__module__.rpartition(".")
        found.setdefault(package, set()).add(name)
        for parameter in inspect.signature(part).parameters.values():
            for name in set(re.findall(r"[A-Z]\w+", parameter.annotation)) & known.keys():
                found.setdefault(known[name], set()).add(name)
    return found


def import_of(package: str, names: set[str]) -> str:
    others = [f"from {package} import {name} as {CALLED[name]}" for name in sorted(names & CALLED.keys())]
    plain = sorted(names - CALLED.keys())
    short = f"from {package} import {', '.join(plain)}"
    long = "\n".join([f"from {package} import (", *(f"    {name}," for name in plain), ")"])
    return "\n".join([short if len(short) <= WIDTH else long] * bool(plain) + others)


def class_of(part: Typed) -> list[str]:
    real = part.part
    module = real.__module__.rpartition(".")[2]
    lines = [f"class {real.__name__}({CALLED.get(module, module)}.{real.__name__}):"]
    lines += [*textwrap.indent(docstring(part), "    ").splitlines(), ""]
    parameters = [parameter_of(p) for p in inspect.signature(part).parameters.values()]
    star = ["*"] if parameters else []
    short = f"    def __init__({', '.join(['self', *star, *parameters])}) -> None: ..."
    if len(short) > WIDTH:
        lines += ["    def __init__(", "        self,", "        *,"]
        lines += [*(f"        {text}," for text in parameters), "    ) -> None: ..."]
    else:
        lines.append(short)
    return lines


def parameter_of(parameter: inspect.Parameter) -> str:
    kind = re.sub(r"\bWindow\b", "windows.Window", parameter.annotation)
    if kind in {base.__name__ for base in REGISTRIES} and isinstance(parameter.default, str):
        kind += " | str"  # the name of a part without keys stands for it
    text = f"{parameter.name}: {kind}".replace("'", '"')
    given = parameter.default
    return text if given is parameter.empty else f"{text} = {given!r}".replace("'", '"')


def docstring(part: Typed) -> str:
    text = "\n".join(wrapped(line) for line in str(part.__doc__).splitlines())
    return f'"""{text}\n"""' if "\n" in text else f'"""{text}"""'


def wrapped(line: str) -> str:
    return textwrap.fill(line, WIDTH - 4, subsequent_indent="    ")


if __name__ == "__main__":
    for name in MODULES:
        file_of(name).write_text(stub(name))
