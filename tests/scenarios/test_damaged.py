"""What a disk or a copy has damaged in a dataset is found and named, and made anew with the same bytes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.sweeps import SHORT, content, done
from tideover.scenarios.sweeps import engine, files, sweep_file
from tideover.scenarios.sweeps.dataset import Sweep
from tideover.scenarios.sweeps.files import Damaged, LocalFiles, NoDataset
from tideover.scenarios.sweeps.in_process import InProcess
from tideover.scenarios.sweeps.recipe import Recipe
from tideover.scenarios.sweeps.sweep import complete

RATE = "topology.sentences.rate"


def recipe(*rates: str, **more: str) -> Recipe:
    spec = {"scenario": "wordcount", "set": SHORT | {"strategy.kind": "none"} | more, "replications": 1}
    return sweep_file.read(spec | {"grid": {RATE: list(rates)}})


TWO = ("10/s", "11/s")


@pytest.fixture(autouse=True, scope="module")
def small_chunks() -> Iterator[None]:
    """One run in each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tideover.scenarios.sweeps.survey.CHUNK_S", 0.01)
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("whole")
    done(recipe(*TWO), place)
    return place


@pytest.fixture
def place(whole: Path, tmp_path: Path) -> Path:
    """A copy."""
    shutil.copytree(whole, tmp_path / "place")
    return tmp_path / "place"


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The runs that were simulated."""
    made: list[Any] = []
    really = engine.simulate
    monkeypatch.setattr(engine, "simulate", lambda *given: made.append(given) or really(*given))
    return made


def flip(path: Path, at: int) -> None:
    """Change one byte."""
    found = bytearray(path.read_bytes())
    found[at] ^= 0x10
    path.write_bytes(found)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def change_a_value(path: Path) -> None:
    """Change a byte such that a reader finds another number there, and no fault."""
    group = pq.ParquetFile(path).metadata.row_group(0)
    columns = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    before = pq.read_table(path)["emitted"]
    flip(path, columns["emitted"].data_page_offset - 8)  # where its page of distinct values ends: an int64
    assert pq.read_table(path)["emitted"] != before


def test_any_changed_byte_of_any_file_is_found_and_the_file_named(place: Path) -> None:
    """Each file at twelve places from its first to its last byte, headers, pages and footers."""
    files = sorted(place.rglob("*.parquet"))
    assert {path.parent.name for path in files} == {"data", "points", "summary"}
    for path in files:
        before = path.read_bytes()
        for part in range(12):
            flip(path, (len(before) - 1) * part // 11)
            with pytest.raises(Damaged, match=f"{path.parent.name}/{path.name}"):
                Sweep.open(place)
            path.write_bytes(before)
    assert Sweep.open(place).manifest.complete


@pytest.mark.parametrize(
    ("folder", "runs"), [("data", 1), ("summary", 0), ("points", 0)], ids=lambda v: str(v)
)
@pytest.mark.parametrize(
    "damage", [cut, lambda path: flip(path, 100), Path.unlink], ids=["cut", "changed", "gone"]
)
def test_what_is_damaged_is_named_and_alone_made_anew(
    whole: Path, place: Path, simulated: list[Any], folder: str, runs: int, damage: Callable[[Path], None]
) -> None:
    path = next((place / folder).iterdir())
    damage(path)
    with pytest.raises(Damaged, match=f"{folder}/{path.name}"):
        Sweep.open(place)
    if path.exists():
        with pytest.warns(UserWarning, match=f"damaged: {folder}/{path.name}"):
            done(recipe(*TWO), place)
    else:
        done(recipe(*TWO), place)
    assert len(simulated) == runs
    assert content(place) == content(whole)


@pytest.mark.parametrize("folder", ["data", "summary"])
def test_a_file_in_the_place_of_a_folder_is_damage(place: Path, folder: str) -> None:
    """As a copy leaves it that knows no folders: what was in it is missing."""
    shutil.rmtree(place / folder)
    (place / folder).touch()
    with pytest.raises(Damaged, match=f"damaged or missing: {folder}/"):
        Sweep.open(place)


def test_a_manifest_that_is_cut_is_named_and_made_anew_from_the_data(
    whole: Path, place: Path, simulated: list[Any]
) -> None:
    cut(place / files.NAME)  # the line end: it still is one
    assert Sweep.open(place).manifest.complete
    cut(place / files.NAME)
    with pytest.raises(Damaged, match=r"manifest\.json: is cut or damaged"):
        Sweep.open(place)
    with pytest.warns(UserWarning, match=r"manifest\.json: is cut or damaged .* is made anew"):
        done(recipe(*TWO), place)
    assert not simulated
    assert content(place) == content(whole)


def test_another_programs_manifest_is_left_alone(place: Path) -> None:
    (place / files.NAME).write_text("[]\n")
    with pytest.raises(NoDataset, match="is not a manifest of Tideover; give another directory"):
        done(recipe(*TWO), place)
    assert (place / files.NAME).read_text() == "[]\n"


def test_without_a_manifest_the_pages_own_checksums_tell(
    whole: Path, place: Path, simulated: list[Any]
) -> None:
    (place / files.NAME).unlink()
    path = next((place / "data").iterdir())
    change_a_value(path)
    with pytest.warns(UserWarning, match=f"damaged: data/{path.name}; its runs are simulated anew"):
        done(recipe(*TWO), place)
    assert len(simulated) == 1
    assert content(place) == content(whole)


def test_a_sweep_that_was_interrupted_knows_what_it_has_written(
    whole: Path, tmp_path: Path, simulated: list[Any]
) -> None:
    """Its manifest has the checksum of the one chunk that was done, so a changed footer is found, too."""

    def end(what: str, runs: float, total: int) -> None:
        if list(tmp_path.glob("data/*.parquet")):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        complete(recipe(*TWO), InProcess(LocalFiles(tmp_path)), report=end)
    known = json.loads((tmp_path / files.NAME).read_text())
    (path,) = (tmp_path / "data").iterdir()
    assert {chunk["file"]: bool(chunk["sha256"]) for chunk in known["chunks"]}[f"data/{path.name}"]
    assert sum(bool(chunk["sha256"]) for chunk in known["chunks"]) == 1
    flip(path, path.stat().st_size - 200)
    simulated.clear()
    with pytest.warns(UserWarning, match=f"damaged: data/{path.name}"):
        done(recipe(*TWO), tmp_path)
    assert len(simulated) == 2
    assert content(tmp_path) == content(whole)


def test_no_run_is_taken_over_from_a_damaged_file(place: Path, simulated: list[Any], tmp_path: Path) -> None:
    """Another grid, which shares one run with the one that is there: a page of it was changed."""
    for path in (place / "data").iterdir():
        change_a_value(path)
    (place / files.NAME).unlink()
    asked = recipe("12/s", "10/s", name="another")
    with pytest.warns(UserWarning, match="damaged: data/"):
        found = done(asked, place)
    assert len(simulated) == 2
    assert found.runs.equals(done(asked, tmp_path / "fresh").runs)
