"""Where a sweep is to run, as a user says it: what is taken, what is refused, and in which words."""

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tideover
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.spark import settings
from tideover.scenarios.spark.session import spark_session
from tideover.scenarios.spark.settings import LOCAL, SparkNotStarted, check_master, check_remote, reach_server

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
    with pytest.raises(ScenarioError) as caught:
        settings.parse(["spark.cores.max=4", text])
    assert str(caught.value).startswith("--conf: ")
    assert said in str(caught.value)


@pytest.mark.parametrize("master", [LOCAL, "local-cluster[2,1,1024]", "spark://host:7077"])
def test_what_is_required_is_set_and_may_be_said_again(master, tmp_path):
    required = {key: value for key, (value, _) in settings.REQUIRED.items()}
    assert settings.check(required) == required
    assert settings.settings(master, "name", tmp_path).items() >= required.items()


def test_a_setting_given_twice():
    assert settings.parse(["spark.cores.max=4", "spark.cores.max=4"]) == {"spark.cores.max": "4"}
    with pytest.raises(ScenarioError, match=r"spark\.cores\.max: is given twice, with different values"):
        settings.parse(["spark.cores.max=4", "spark.cores.max=5"])


@pytest.mark.parametrize(
    "master",
    [
        *(
            "local",
            "local[*]",
            "local[2, 4]",
            "local-cluster[2,1,1024]",
            "yarn",
            "k8s://https://host:443/path",
        ),
        *("spark://host:7077", "spark://one:7077,two:7077", "spark://[::1]:7077"),
    ],
)
def test_masters(master):
    assert check_master(master, "--master") == master


@pytest.mark.parametrize(
    "master",
    ["", "local[0]", "local-cluster[2]", "spark://host", "spark://", "mesos://host:5050", "sc://host"],
)
def test_what_is_no_master(master):
    with pytest.raises(ScenarioError, match=r"^--master: "):
        check_master(master, "--master")


@pytest.mark.parametrize(
    "remote", ["sc://host", "sc://host:15002", "sc://[::1]:1/", "sc://host:443/;use_ssl=true;token=a%20b"]
)
def test_servers(remote):
    assert check_remote(remote, "--remote") == remote


@pytest.mark.parametrize(
    "remote",
    ["", "host:15002", "sc://", "sc://host:port", "sc://host/path", "sc://host:1/;token", "spark://h:1"],
)
def test_what_is_no_server(remote):
    with pytest.raises(ScenarioError, match=r"^--remote: "):
        check_remote(remote, "--remote")


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
            reach_server(f"sc://127.0.0.1:{port}/;token=secret")
    assert str(caught.value).startswith(
        f"the Spark Connect server sc://127.0.0.1:{port} cannot be reached: 127.0.0.1:{port}: "
    )
    assert "secret" not in str(caught.value)


def test_somebody_else_answers_at_the_address(monkeypatch):
    """Something listens there that is no Spark Connect server: found out within the time allowed."""
    from tideover.scenarios.spark import session

    monkeypatch.setattr(session, "CONNECT_S", 0.2)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        pytest.raises(SparkNotStarted, match="answers, but not as a Spark Connect server"),
        spark_session(remote=f"sc://127.0.0.1:{server.getsockname()[1]}"),
    ):
        pass


def test_without_the_packages_for_connect_it_says_which(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "grpc", None)
    with (
        pytest.raises(SparkNotStarted, match=r'pip install "tideover\[connect\]"'),
        spark_session(remote="sc://h"),
    ):
        pass
