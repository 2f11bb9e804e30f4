"""The table that a page sorts and filters: what the script decides, run by node where there is one."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib.resources import files

import pytest

from tideover.reports.html import MOST_PLAIN, GridColumn, grid

SCRIPT = files("tideover.reports").joinpath("templates", "grid.js")
AT = {"name": "at", "values": ["30 s", "1m30s", "200 ms"], "numbers": [30, 90, 0.2]}
NAME = {"name": "strategy", "values": ["R+SM", "none", "a k=2"]}
PLAIN = {"name": "time"}
SIZE = {"name": "network", "bytes": True}

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


def ask(expression, **given):
    """What an expression over the script's functions (``grid``) and ``given`` is."""
    code = f"""const grid = require(process.argv[1]), given = JSON.parse(process.argv[2]);
    console.log(JSON.stringify({expression}));"""
    command = ["node", "-e", code, "--", str(SCRIPT), json.dumps(given)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


CONDITIONS = [
    (AT, "> 30 s", [0, 1, 2, None], [1]),
    (AT, ">= 30 < 1m30s", [0, 1, 2, None], [0]),
    (AT, "<= 200 ms", [0, 1, 2, None], [2]),
    (AT, "200", [0, 1, 2, None], [2]),
    (PLAIN, "10..20", [5, 10, 20, 20.5, None], [10, 20]),
    (PLAIN, "!= 5", [5, 6, None], [6, None]),
    (PLAIN, "=1,000", [1000, 1], [1000]),
    (PLAIN, "-", [-1, 1], [-1]),
    (PLAIN, "–", [None, 1], [None]),
    (PLAIN, "", [None, 1], [None, 1]),
    (SIZE, "> 1 kB", [999, 1001, None], [1001]),
    (SIZE, "mb", [999, 2_000_000], [2_000_000]),
    (NAME, "r+s", [0, 1, 2], [0]),
    (NAME, "k=2", [0, 1, 2], [2]),
    (NAME, "= NONE", [0, 1, 2], [1]),
    (NAME, "!= none", [0, 1, 2], [0, 2]),
]


@needs_node
def test_what_is_typed_into_a_box_decides_which_cells_stay():
    cases = [(column, text, cells) for column, text, cells, _ in CONDITIONS]
    kept = ask("given.cases.map(([c, t, cells]) => cells.filter(grid.condition(c, t)))", cases=cases)
    assert kept == [stay for *_, stay in CONDITIONS]


@needs_node
@pytest.mark.parametrize("text", [">", "> abc", "> 3 apples", "1..x", "< 3 >", "=="])
def test_what_cannot_be_read_is_no_condition(text):
    assert ask("grid.condition(given.column, given.text)", column=PLAIN, text=text) is None


@needs_node
def test_whole_numbers_are_written_in_full_and_others_to_four_digits():
    shown = ask(
        "given.cells.map(v => grid.shown(given.column, v))", column=PLAIN, cells=[11051, 0.123456, None]
    )
    assert shown == ["11,051", "0.1235", "–"]


@needs_node
def test_rows_are_sorted_by_numbers_and_undefined_ones_come_last():
    """By the moment: 0.2, 30, 90 s; downwards the undefined one is last again; equal ones stay."""
    rows = [[0, 5], [1, 5], [2, None], [None, 7]]
    order = "grid.chosen(given.columns, given.rows, given.texts, {by}, {sign})"
    given = {"columns": [AT, PLAIN], "rows": rows, "texts": ["", ""]}
    assert ask(order.format(by=0, sign=1), **given) == [2, 0, 1, 3]
    assert ask(order.format(by=0, sign=-1), **given) == [1, 0, 2, 3]
    assert ask(order.format(by=1, sign=-1), **given) == [3, 0, 1, 2]
    filtered = given | {"texts": ["> 1 s", "5"]}
    assert ask(order.format(by=0, sign=-1), **filtered) == [1, 0]
    unread = given | {"texts": ["> what", ""]}
    assert ask(order.format(by=0, sign=1), **unread) == [2, 0, 1, 3]


def test_readers_without_scripts_have_the_first_rows():
    """Texts, sizes and dashes as the script writes them; 200 of them, and a note that there are more."""
    columns = [
        GridColumn("point", list(range(250))),
        GridColumn("at", [0, 1] * 125, ("30 s", "1m30s"), (30.0, 90.0)),
        GridColumn("network", [1500, None] * 125, is_size=True),
    ]
    plain = grid(columns, "points").plain
    assert len(plain.rows) == MOST_PLAIN
    assert plain.rows[:2] == (("0", "30 s", "1.50 kB"), ("1", "1m30s", "–"))
    assert plain.notes == ("The first 200 of 250; a script shows all.",)
    assert plain.text_columns == 2
