"""Where a sweep is to run, as a user says it, and the archive of what workers there need."""

import os
import socket
import subprocess
import sys
import tarfile

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import from_arrow_schema

import tideover
from tests.scenarios.refused import refused, told
from tideover.cli.output import BadInput, SparkOptions
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.spark import session, settings
from tideover.scenarios.spark.session import spark_session
from tideover.scenarios.spark.settings import (
    LOCAL,
    SparkNotStarted,
    check_master,
    check_remote,
    reach,
    schema_text,
)
from tideover.sim.plane.build import digest

keys = st.from_regex(r"spark\.[a-z]+(\.[a-z]+)?", fullmatch=True).filter(
    lambda key: key not in settings.REQUIRED and not key.startswith(("spark.master", "spark.remote"))
)
values = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1)


@given(st.dictionaries(keys, values, max_size=4))
def test_settings_are_what_was_written(given_settings):
    """Whatever stands behind the first = is the value, further ones included."""
    assert settings.parse(f"{key}={value}" for key, value in given_settings.items()) == given_settings
    assert settings.check(given_settings) == given_settings


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("spark.executor.memory", "is not a setting; allowed: key=value"),
        ("=2g", "(nothing): is no setting of Spark's"),
        ("executor.memory=2g", "names that begin with spark."),
        ("spark.executor.memory=", "has no value"),
        ("spark.master=yarn", "--master"),
        ("spark.remote=sc://here", "--remote"),
        ("spark.sql.session.timeZone=CET", "allowed: UTC"),
        ("spark.sql.files.maxRecordsPerFile=10", "allowed: 0"),
        ("spark.hadoop.outputCommitCoordination.enabled=false", "allowed: true"),
        ("spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version=2", "allowed: 1"),
        ("spark.sql.sources.commitProtocolClass=my.Protocol", "count twice; allowed: org.apache.spark."),
    ],
)
def test_what_no_sweep_could_work_with_is_refused(text, said):
    told(refused(settings.parse, ["spark.cores.max=4", text]), "--conf: ", said)


@pytest.mark.parametrize("master", [LOCAL, "local-cluster[2,1,1024]", "spark://host:7077"])
def test_what_is_required_is_set_and_may_be_said_again(master, tmp_path):
    required = {key: value for key, (value, _) in settings.REQUIRED.items()}
    assert settings.check(required) == required
    assert settings.settings(master, "name", tmp_path).items() >= required.items()


def test_a_setting_given_twice():
    assert settings.parse(["spark.cores.max=4", "spark.cores.max=4"]) == {"spark.cores.max": "4"}
    with pytest.raises(ScenarioError, match=r"spark\.cores\.max: is given twice, with different values"):
        settings.parse(["spark.cores.max=4", "spark.cores.max=5"])


MASTERS = (
    *("local", "local[*]", "local[2, 4]", "local-cluster[2,1,1024]", "yarn", "k8s://https://host:443/path"),
    *("spark://host:7077", "spark://one:7077,two:7077", "spark://[::1]:7077"),
)
NO_MASTERS = (
    "",
    "local[0]",
    "local-cluster[2]",
    "spark://host",
    "spark://",
    "mesos://host:5050",
    "sc://host",
)
SERVERS = ("sc://host", "sc://host:15002", "sc://[::1]:1/", "sc://host:443/;use_ssl=true;token=a%20b")
NO_SERVERS = (
    "",
    "host:15002",
    "sc://",
    "sc://host:port",
    "sc://host/path",
    "sc://host:1/;token",
    "spark://h:1",
)


@pytest.mark.parametrize(
    ("check", "good", "bad"), [(check_master, MASTERS, NO_MASTERS), (check_remote, SERVERS, NO_SERVERS)]
)
def test_addresses(check, good, bad):
    for address in good:
        assert check(address, "--option") == address
    for address in bad:
        with pytest.raises(ScenarioError, match=r"^--option: "):
            check(address, "--option")


def test_the_api_refuses_before_anything_is_started():
    grid = {"scenario": "wordcount", "grid": {"run.seed": [1]}}
    with pytest.raises(ScenarioError, match=r"^conf: spark\.sql\.session\.timeZone: 'CET' would break"):
        tideover.sweep(grid, conf={"spark.sql.session.timeZone": "CET"})
    with pytest.raises(ScenarioError, match=r"^remote: 'spark://host:1': is not the address"):
        tideover.sweep(grid, remote="spark://host:1")
    with pytest.raises(ScenarioError, match=r"^master: 'sc://host': is a Spark Connect server"):
        spark_session("sc://host")


def test_a_server_that_nobody_is():
    """A closed port is told at once; the token in an address is told to nobody."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(SparkNotStarted) as caught:
            reach(f"sc://127.0.0.1:{port}/;token=secret")
    assert str(caught.value).startswith(
        f"the Spark Connect server sc://127.0.0.1:{port} cannot be reached: 127.0.0.1:{port}: "
    )
    assert "secret" not in str(caught.value)


def test_somebody_else_answers_at_the_address(monkeypatch):
    """Something listens there that is no Spark Connect server: found out within the time allowed."""
    monkeypatch.setattr(settings, "CONNECT_S", 0.2)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        pytest.raises(SparkNotStarted, match="answers, but not as a Spark Connect server"),
        spark_session(remote=f"sc://127.0.0.1:{server.getsockname()[1]}"),
    ):
        pass


def test_without_the_packages_for_connect_it_says_which(monkeypatch):
    monkeypatch.setitem(sys.modules, "grpc", None)
    with (
        pytest.raises(SparkNotStarted, match=r'pip install "tideover\[connect\]"'),
        spark_session(remote="sc://h"),
    ):
        pass


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


def unpacked(archive, folder, *asked, path):
    """What its Python prints, wherever it was unpacked."""
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    variables = os.environ | {"TIDEOVER_PYTHON": sys.executable, "PYTHONPATH": path}
    command = [folder / "bin" / "python", "-P", *asked]
    return subprocess.run(
        command, env=variables, stdout=subprocess.PIPE, text=True, check=True
    ).stdout.split()


def test_its_python_has_its_packages(archive, tmp_path):
    """The launcher runs another Python; what PYTHONPATH had comes after its own packages."""
    told = "import os, simpy as s, tideover as t; print(s.__file__, t.__file__, os.environ['PYTHONPATH'])"
    packages = tmp_path / "unpacked" / "packages"
    assert unpacked(archive, tmp_path / "unpacked", "-c", told, path="/elsewhere") == [
        str(packages / "simpy" / "__init__.py"),
        str(packages / "tideover" / "__init__.py"),
        f"{packages}:/elsewhere",
    ]


def test_it_opens_the_data_plane(tmp_path, monkeypatch):
    """Where nothing else is installed, and from the zip that is sent with it, too."""
    monkeypatch.setattr(session, "FOR_RUNS", ("cffi",))
    archive, folder = tmp_path / "workers.tar.gz", tmp_path / "unpacked"
    session.write_archive(archive)
    told = (
        "import tideover as t; from tideover.sim.plane.library import made_by; print(t.__file__, *made_by())"
    )
    for whence in (folder / "packages", session.zipped()):
        code = f"import sys; sys.path.insert(0, {str(whence)!r}); {told}"
        file, *made_by = unpacked(archive, folder, "-S", "-c", code, path="")
        assert file.startswith(str(whence))
        assert made_by[-1] == digest()


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
        SparkOptions(archive=archive).place()
    with pytest.raises(BadInput, match="--archive: does not go with --no-spark"):
        SparkOptions(archive=archive, no_spark=True).place()
    with pytest.raises(ScenarioError, match=r"^archive: "):
        spark_session("local[2]", archive=archive)
    assert SparkOptions("yarn", archive=archive).place().archive == archive.resolve()
    assert SparkOptions(remote="sc://host", archive=archive).place().elsewhere == "sc://host"


NESTED = pa.schema(
    {
        "run": pa.string(),
        "failures.0.at": pa.float64(),
        "a `b`, c:d": pa.bool_(),
        "tasks": pa.list_(pa.struct({"task": pa.int64(), "hosts.of": pa.list_(pa.string())})),
        "found": pa.binary(),
    }
)


def test_a_schema_in_words():
    assert schema_text(pa.schema({"run": pa.string(), "n": pa.int64()})) == "struct<`run`:string,`n`:bigint>"


@pytest.mark.spark
def test_spark_reads_what_was_meant(spark):
    """Spark's parser gives back the very columns, whatever they are called and however nested."""
    rows = spark.range(1).mapInArrow(lambda batches: iter(()), schema_text(NESTED))
    assert rows.schema == from_arrow_schema(NESTED)
