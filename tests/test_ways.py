"""The two ways that ARCHITECTURE.md tells, a setting's and a tuple's, are those that a run goes.

A way is the files whose functions are handed the value: as a text or a number, in a list, a mapping or an
array, or as a train of tuples. Both values are odd ones, 13.7 s, so that nothing else is taken for them.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import tideover
from tideover.cli import main
from tideover.sim.train import Train

PACKAGE = Path(tideover.__file__).parent
ODD_S, ODD_NS = 13.7, 13_700_000_000
ONE_TUPLE = """\
name: one tuple
topology:
  source: {spout: values, values: [1], repeat: false, rate: 0.05/s}
  work: {bolt: forward, from: {source: shuffle}, service: 13.7 s}
strategy: {kind: source_replay, message_timeout: 60 s}
links: {latency: 0 s, local: 0 s}
failures: []
run: {duration: 60 s, seed: 1}
"""


def told(heading: str) -> list[str]:
    """The files of a way, as ARCHITECTURE.md has them, in their order."""
    page = (PACKAGE.parent / "ARCHITECTURE.md").read_text("utf-8")
    section = page.split(f"## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.(?:py|h))`", section.split("\n\n", 1)[1])


def is_odd(value: object, depth: int = 2) -> bool:
    match value:
        case Train():
            return len(value) > 0
        case str():
            return "13.7s" in value or "13.7 s" in value
        case bool():
            return False
        case int() | float():
            return value == ODD_NS or abs(value - ODD_S) < 1e-9
        case np.ndarray() if value.dtype.kind in "if" and value.size < 1000:
            return bool(np.any((value == ODD_NS) | (abs(value - ODD_S) < 1e-9)))
        case list() | tuple() if depth:
            return any(is_odd(one, depth - 1) for one in value[:40])
        case dict() if depth:
            return any(is_odd(one, depth - 1) for one in list(value.values())[:40])
    return False


def way(arguments: list[str], *, after: tuple[str, str], until: tuple[str, str]) -> set[str]:
    """Files whose functions are handed the value, from one function (file, name) until another."""
    found: set[str] = set()
    state = {"on": after == ("", ""), "over": False}

    def look(frame, event, _):
        code = frame.f_code
        if event != "call" or state["over"] or not code.co_filename.startswith(str(PACKAGE)):
            return
        file = Path(code.co_filename).relative_to(PACKAGE).as_posix()
        state["on"] |= (file, code.co_name) == after
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if state["on"] and any(is_odd(frame.f_locals.get(name)) for name in names if name != "self"):
            found.add(file)
            state["over"] = (file, code.co_name) == until

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["tideover", "run", *arguments])
        sys.setprofile(look)
        try:
            with pytest.raises(SystemExit) as stop:
                main()
        finally:
            sys.setprofile(None)
    assert stop.value.code in (0, None)
    return found


def test_a_settings_way_is_as_told() -> None:
    """From the command line until its first moment is in the kernel."""
    setting = ["--set", "strategy.kind=rsm", "--set", "strategy.checkpoint_interval=13.7s"]
    quick = ["--set", "run.replications=1", "--set", "run.duration=120 s", "--json"]
    found = way(["wordcount", *setting, *quick], after=("", ""), until=("sim/kernel.py", "every"))
    assert found == set(told("A setting's way"))
    assert len(found) <= 15


def test_a_tuples_way_is_as_told(tmp_path: Path) -> None:
    """From the spout until the page has its latency. What the data plane does is told, too, and is there."""
    (tmp_path / "one.yaml").write_text(ONE_TUPLE)
    arguments = [str(tmp_path / "one.yaml"), "--out", str(tmp_path / "out")]
    found = way(arguments, after=("models/world.py", "run"), until=("", ""))
    files = told("A tuple's way")
    assert found == {file for file in files if file.endswith(".py")}
    assert all((PACKAGE / file).exists() for file in files)
    assert len(files) <= 25
