"""The command line as a process: signals, pipes, terminals, full disks, and what it imports."""

import contextlib
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SHORT = ["--set", "run.duration=100s", "--set", "run.warmup=30s", "--set", "run.replications=2"]


def process(*args, **more):
    """The command line in a process of its own."""
    command = [sys.executable, "-m", "tideover", *map(str, args)]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=120, **more)


TERMINAL = os.environ | {"TERM": "xterm"}
"""Whatever the tests run in, what they start is told that it can draw."""


def read_all(terminal):
    """What is written to a terminal, part by part, until the other end is closed."""
    while True:
        try:
            part = os.read(terminal, 1 << 16)
        except OSError:
            return
        if not part:
            return
        yield part


def test_a_reader_that_goes_away_is_no_error_to_speak_of():
    command = f"{sys.executable} -m tideover scenarios schema | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.strip() in ("0", "1")


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_reader_that_goes_away_leaves_the_files(tmp_path, more):
    read, write = os.pipe()
    os.close(read)
    done = process("run", "wordcount", *SHORT, "--out", tmp_path, *more, stdout=write)
    os.close(write)
    assert (tmp_path / "result.json").exists(), done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize(
    "args", [["run", "wordcount"], ["run", "wordcount", "--json"], ["scenarios", "show", "wordcount"]]
)
def test_a_full_disk_ends_with_1(args):
    with open("/dev/full", "w") as full:
        done = process(*args, stdout=full)
    assert done.returncode == 1
    assert done.stderr.endswith("tideover: [Errno 28] No space left on device\n")
    assert "Traceback" not in done.stderr


LARGE = ["topology.sentences.rate=1200/s", "queues.length=3", "run.duration=50000s", "run.replications=1"]
"""Minutes in the compiled data plane."""


@pytest.mark.parametrize("settings", [["run.replications=90000"], LARGE], ids=["many", "large"])
def test_an_interrupted_run_ends_with_130(settings):
    """The signal is sent as soon as the bar says that the run has begun."""
    controller, terminal = pty.openpty()
    command = [sys.executable, "-m", "tideover", "run", "wordcount"]
    command += [part for setting in settings for part in ("--set", setting)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=terminal, text=True, env=TERMINAL
    ) as running:
        os.close(terminal)
        drawn, sent = b"", False
        for part in read_all(controller):
            drawn += part
            if b"simulating" in drawn and not sent:  # a part may end in the middle of the word
                running.send_signal(signal.SIGINT)
                sent = True
        out = running.stdout.read()
    assert (running.returncode, out) == (130, "")
    assert b"simulating" in drawn
    assert b"Traceback" not in drawn


SMALL_CHUNKS = """
from tideover.cli import main
from tideover.scenarios.sweeps import on_spark, survey
survey.CHUNK_S = on_spark.JOB_S = 1.0
main()
"""
"""The command, with runs on file soon."""


@pytest.mark.long
def test_an_interrupted_sweep_says_only_how_to_go_on(spark, tmp_path):
    out = tmp_path / "out"
    args = ["sweep", "wordcount-sweep", "--master", "local[2]", "--set", "run.replications=500"]
    command = [sys.executable, "-c", SMALL_CHUNKS, *args, "--out", str(out)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as running:
        try:
            while not list(out.glob("dataset/data/*.parquet")) and running.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    running.wait(timeout=0.2)
            for _ in range(2):
                os.killpg(running.pid, signal.SIGINT)
            err = running.communicate(timeout=60)[1]
        finally:
            running.kill()
    assert running.returncode == 130
    assert err.endswith("Interrupted. The same command goes on where it was.\n")
    assert list(out.glob("dataset/data/*.parquet"))


def test_a_bar_appears_on_a_terminal_and_goes_away():
    controller, terminal = pty.openpty()
    args = ["run", "wordcount", "--set", "run.replications=400"]
    with subprocess.Popen(
        [sys.executable, "-m", "tideover", *args], stdout=subprocess.PIPE, stderr=terminal, env=TERMINAL
    ) as running:
        os.close(terminal)
        drawn = b"".join(read_all(controller))
        out = running.stdout.read()
    assert running.returncode == 0
    assert b"simulating" in drawn
    assert out.startswith(b"word count: seed 1, 400 replications\n")
    assert b"\x1b" not in out


def test_a_single_run_needs_neither_spark_nor_what_draws_or_takes_long_to_import():
    code = (
        "import sys; from tideover.cli import main\n"
        "try: main()\n"
        "finally: print([m for m in ('pyspark', 'py4j', 'matplotlib', 'seaborn', 'scipy', 'pandas',"
        " 'tideover.reports.figures') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "run", "wordcount", *SHORT], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "[]"


INTERVAL = ("interval", "flink-recovery", "--mtbf", "failures.0=1d", "--json")
SHOP = str(Path(__file__).parents[1] / "examples" / "shop.yaml")
HOURS = ("hours", SHOP, "--at", "4", "--replications", "1", "--set", "run.duration=20min", "--json")


@pytest.mark.parametrize(
    ("arguments", "without"),
    [
        (["--version"], {"numpy", "pydantic", "rich"}),
        (["run", "wordcount", "--json", "--set", "run.replications=1"], {"rich", "pandas", "matplotlib"}),
        ([*INTERVAL, "--intervals", "30s,1min", "--replications", "2"], {"matplotlib"}),
        (HOURS, {"matplotlib", "pandas"}),
    ],
    ids=["--version", "run --json", "interval --json", "hours --json"],
)
def test_a_command_imports_no_more_than_it_needs(arguments, without):
    """What a command does not need would cost each call up to a second."""
    code = (
        "import atexit, sys; from tideover.cli import main; sys.argv[0] = 'tideover';"
        "said = lambda: print(*{name.split('.')[0] for name in sys.modules}, file=sys.stderr);"
        "atexit.register(said); main()"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert set(done.stderr.splitlines()[-1].split()) & without == set()
