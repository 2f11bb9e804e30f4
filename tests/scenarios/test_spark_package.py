"""The archive of what workers need: what is in it, and for whom it is."""

import os
import subprocess
import sys
import tarfile

import pytest

from tideover.cli.output import BadInput, place
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.spark import session
from tideover.scenarios.spark.session import spark_session
from tideover.sim.plane.build import digest


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """One with a single package, which is written sooner."""
    monkeypatch.setattr(session, "FOR_RUNS", ("simpy",))
    path = tmp_path / "workers.tar.gz"
    assert [name.split()[0] for name in session.write_archive(path)] == ["simpy"]
    return path


def test_the_same_archive_each_time(archive, tmp_path):
    session.write_archive(tmp_path / "again.tar.gz")
    assert (tmp_path / "again.tar.gz").read_bytes() == archive.read_bytes()


def test_its_python_has_its_packages(archive, tmp_path):
    """The launcher runs another Python, wherever it was unpacked; what PYTHONPATH had comes after it."""
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path / "unpacked", filter="data")
    told = "import os, simpy as s, tideover as t; print(s.__file__, t.__file__, os.environ['PYTHONPATH'])"
    done = subprocess.run(
        [tmp_path / "unpacked" / "bin" / "python", "-P", "-c", told],
        env=os.environ | {"TIDEOVER_PYTHON": sys.executable, "PYTHONPATH": "/elsewhere"},
        capture_output=True,
        text=True,
        check=True,
    )
    packages = tmp_path / "unpacked" / "packages"
    assert done.stdout.split() == [
        str(packages / "simpy" / "__init__.py"),
        str(packages / "tideover" / "__init__.py"),
        f"{packages}:/elsewhere",
    ]


def test_it_opens_the_data_plane(tmp_path, monkeypatch):
    """Where nothing else is installed, and from the zip that is sent with it, too."""
    monkeypatch.setattr(session, "FOR_RUNS", ("cffi",))
    session.write_archive(tmp_path / "workers.tar.gz")
    with tarfile.open(tmp_path / "workers.tar.gz") as packed:
        packed.extractall(tmp_path / "unpacked", filter="data")
    python = [tmp_path / "unpacked" / "bin" / "python", "-S", "-P", "-c"]
    told = (
        "import tideover as t; from tideover.sim.plane.library import made_by; print(t.__file__, *made_by())"
    )
    for whence in (tmp_path / "unpacked" / "packages", session.zipped()):
        done = subprocess.run(
            [*python, f"import sys; sys.path.insert(0, {str(whence)!r}); {told}"],
            env=os.environ | {"TIDEOVER_PYTHON": sys.executable, "PYTHONPATH": ""},
            capture_output=True,
            text=True,
        )
        assert done.stdout.startswith(str(whence)), done.stderr
        assert done.stdout.split()[-1] == digest()


def test_what_a_package_needs_comes_with_it():
    """pandas needs numpy and dateutil; what only an extra of it needs, as pytest, stays out."""
    names = {found.name.lower() for found in session._needed(["pandas"])}
    assert {"pandas", "numpy", "python-dateutil"} <= names
    assert not names & {"pytest", "hypothesis", "matplotlib", "pyspark"}


def test_an_archive_for_others_is_refused(archive, tmp_path, monkeypatch):
    assert session.check_archive(archive, "--archive") == archive.resolve()
    (tmp_path / "text").write_text("no archive")
    with tarfile.open(tmp_path / "other.tar", "w") as other:
        other.add(tmp_path / "text", "text")
    monkeypatch.setattr(session, "_python", lambda: "python2.7")
    for name, said in {
        "workers.tar.gz": "was made for python3",
        "text": "cannot be read",
        "missing": "cannot be read",
        "other.tar": "is another archive",
    }.items():
        with pytest.raises(ScenarioError, match=f"^--archive: .*{name}: {said}.*; allowed: an archive that"):
            session.check_archive(tmp_path / name, "--archive")


def test_it_goes_with_a_cluster_only(archive):
    with pytest.raises(BadInput, match="--archive: goes with --remote, or the --master of a cluster"):
        place(None, None, None, archive, no_spark=False)
    with pytest.raises(BadInput, match="--archive: does not go with --no-spark"):
        place(None, None, None, archive, no_spark=True)
    with pytest.raises(ScenarioError, match=r"^archive: "):
        spark_session("local[2]", archive=archive)
    assert place("yarn", None, None, archive, no_spark=False).archive == archive.resolve()
    assert place(None, "sc://host", None, archive, no_spark=False).elsewhere == "sc://host"
