"""Random worlds on a data plane that checks memory and undefined behaviour: it ends at the first fault."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import sanitized

ROOT = Path(__file__).parents[2]
STRATEGIES = "(none or source_replay)"
WORLDS = {
    "test_exactness.py": f"equals_the_reference and {STRATEGIES}",
    "test_plane_worlds.py": "none or source_replay or queues or long_runs",
    "test_plane_by_hand.py": "",
    "test_plane_cores.py": "",
    "test_plane_laws.py": "replays",
    "test_sources.py": "",
}
"""Files of tests, and which of them: those that are run always, some hundred worlds together."""


@pytest.fixture(scope="session")
def checked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return sanitized.environment(tmp_path_factory.mktemp("checked"))


@pytest.mark.long
@pytest.mark.parametrize("file", WORLDS)
def test_no_fault_is_found_in_random_worlds(file: str, checked: dict[str, str]) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-x", f"tests/models/{file}", "-k", WORLDS[file]]
    done = subprocess.run(command, cwd=ROOT, env=checked, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
