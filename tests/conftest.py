"""What all tests share: one Spark session for the whole run, a machine left to tests that measure it, and how
hypothesis draws.
"""

import fcntl
import shutil
import signal
import sys
import threading
import warnings
from pathlib import Path

import pytest
from hypothesis import settings

from tideover.cli import output

output.LINE_EVERY_S = threading.TIMEOUT_MAX  # what a slow machine would write there is in no test's answer
settings.load_profile("ci")  # everywhere: the same examples each time, and none of them has a time limit

# In the background of a shell interrupts may be ignored, and so would they be by all that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def spark():
    """Code under test that calls ``spark_session`` gets this one too, and leaves it running."""
    from tideover.scenarios.spark.session import spark_session

    with spark_session("local[2,4]") as session:
        yield session


@pytest.fixture
def tideover(monkeypatch, capsys):
    """Calls the command line in this process: exit code, standard output, standard error."""
    from tideover.cli import main

    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)

    def call(*args):
        monkeypatch.setattr(sys, "argv", ["tideover", *map(str, args)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return ended.value.code or 0, said.out, said.err

    return call


@pytest.fixture(scope="session")
def package(tmp_path_factory):
    """A copy of the package and its tests, in which bugs are planted, one at a time."""
    copy, root = tmp_path_factory.mktemp("package"), Path(__file__).parents[1]
    for name in ("tideover", "tests"):
        shutil.copytree(root / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(root / "pyproject.toml", copy)
    return copy


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests with Spark go to one worker of pytest-xdist (``--dist loadgroup``): one session will do. So
    go those of a module that share what it has made for them (a fixture of the module): it is made once.
    """
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))
        elif _shares_with_its_module(item):
            item.add_marker(pytest.mark.xdist_group(str(item.path)))


def _shares_with_its_module(item: pytest.Item) -> bool:
    fixtures = item._fixtureinfo.name2fixturedefs if isinstance(item, pytest.Function) else {}
    return any(each[-1].scope == "module" for each in fixtures.values())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item):
    """While a test marked ``alone`` runs, the other workers of pytest-xdist wait: it measures the machine."""
    if not hasattr(item.config, "workerinput"):
        return (yield)
    shared = Path(item.config.option.basetemp).parent
    alone = item.get_closest_marker("alone") is not None
    with (shared / "door").open("w") as door, (shared / "room").open("w") as room:
        fcntl.flock(door, fcntl.LOCK_EX)  # whoever waits in it for an empty room is the next to get one
        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(door, fcntl.LOCK_UN)
        return (yield)
