"""Windows that a strategy does not go with are refused, at their key."""

from __future__ import annotations

from pathlib import Path

import pytest

from tideover.models.strategies.base import STRATEGIES
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load

WINDOWS = Path(__file__).parents[2] / "docs" / "windows.md"
FIELDS = "{fields: [key]}"


def refused(folder: Path, window: str, strategy: str, bolt: str = "windowed_count", up: str = "a") -> str:
    """What is said of c, which reads ``up`` (or a and b, if it joins)."""
    streams = f"a: {FIELDS}, b: {FIELDS}" if bolt == "windowed_join" else f"{up}: {FIELDS}"
    text = f"""\
name: refused
topology:
  a: {{spout: keys, keys: 3, rate: 10/s}}
  b: {{spout: keys, keys: 3, rate: 10/s}}
  d: {{bolt: windowed_count, from: {{a: {FIELDS}, b: {FIELDS}}}, service: 1 ms, window: 5 s}}
  c:
    bolt: {bolt}
    from: {{{streams}}}
    service: 1 ms
    window: {window}
strategy: {{kind: {strategy}}}
run: {{duration: 60 s}}
"""
    file = folder / "refused.yaml"
    file.write_text(text, "utf-8")
    with pytest.raises(ScenarioError) as error:
        load(file)
    return str(error.value)


@pytest.mark.parametrize(
    ("window", "strategy", "says"),
    [
        (
            "{length: 9 s, by: event}",
            "trident",
            "10: topology.c.window.by: does not go with the strategy trident",
        ),
        (
            "{gap: 9 s, by: event}",
            "trident",
            "10: topology.c.window.gap: does not go with the strategy trident",
        ),
        ("{length: 9 s, by: event, late: aside}", "estorm", "told for none, source_replay"),
        (
            "{gap: 9 s}",
            "changelog",
            "10: topology.c.window.gap: does not go with the strategy changelog: what it reads again in a "
            "log comes at another time, so sessions by arrival would not be put out again as they were; add "
            "by: event; they go with active_replication, active_standby, ",
        ),
        ("{length: 9 s, slide: 3 s}", "upstream_backup", "what is sent again would fall into other panes"),
        ("{tuples: 9, slide_tuples: 3}", "upstream_backup", "what is sent again would fall into other panes"),
        ("{gap: 9 s, by: event}", "upstream_backup", "what becomes of sessions by event after a failure is"),
        ("{gap: 9 s}", "upstream_backup", "what becomes of sessions by arrival after a failure is told for"),
        (
            "{length: 9 s, saved: ids}",
            "source_replay",
            "10: topology.c.window.saved: does not go with the strategy",
        ),
    ],
)
def test_a_strategy_says_which_windows_it_goes_with(
    tmp_path: Path, window: str, strategy: str, says: str
) -> None:
    assert says in refused(tmp_path, window, strategy)


def test_windows_put_out_no_events(tmp_path: Path) -> None:
    assert "10: topology.c.window.by: is of what spouts emit" in refused(
        tmp_path, "{length: 9 s, by: event}", "none", up="d"
    )


def test_the_page_says_the_same() -> None:
    """docs/windows.md: a row for each strategy that comes with the package."""
    columns = ("sliding", "event", "session", "arrival session", "aside", "join", "ids")
    rows = {}
    for line in WINDOWS.read_text("utf-8").splitlines():
        if line.startswith("| `"):
            name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
            rows[name.strip("`")] = {sort for sort, cell in zip(columns, cells, strict=True) if cell != "–"}
            assert set(cells) <= {"yes", "–", "by marker"}
    built_in = {kind: cls for kind, cls in STRATEGIES.items() if cls.__module__.startswith("tideover.")}
    assert rows == {kind: set(cls.windows) for kind, cls in built_in.items()}
