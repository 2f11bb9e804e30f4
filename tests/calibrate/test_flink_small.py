"""A real Flink, end to end: a real kill, exact counts, nothing beyond the loopback, nobody left behind."""

import json
import signal
import subprocess
import sys
from importlib.util import find_spec

import psutil
import pytest

from tideover.calibrate.flink.plan import tiny
from tideover.calibrate.flink.supervisor import ENGINE
from tideover.calibrate.real import sessions
from tideover.calibrate.real.processes import tagged

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(find_spec("pyflink") is None, reason="the extra flink (330 MB) is not installed"),
]


def tags(out):
    path = out / "processes.json"
    return {entry["tag"] for entry in json.loads(path.read_text())} if path.exists() else set()


def test_a_taskmanager_is_killed_and_replaced(tmp_path):
    """Every row is counted once, and is out by the end; stages come in their order; and whatever listens does
    so on 127.0.0.1.
    """
    listening, known = set(), set()

    def look(fraction, text):
        known.update(tags(tmp_path))
        for process in tagged(known) if "killed" in text and not listening else []:
            found = process.net_connections(kind="inet")
            listening.update(c.laddr.ip for c in found if c.status == psutil.CONN_LISTEN)

    found = sessions.run(ENGINE, tiny(), tmp_path, look)
    assert found["sessions"].error.tolist() == [""]
    (kill,) = found["kills"].to_dict("records")
    assert (kill["few"], kill["many"]) == (0, 0)
    order = ("triggered_s", "at_s", "detected_s", "given_up_s", "slots_s", "running_s")
    stages = [kill[name] for name in order]
    assert stages == sorted(stages)
    assert kill["restarts"] > 1  # the first is on the TaskManager that is no more
    rows = tiny().sessions[0].split_rows * 2
    assert found["outputs"].rows.max() == pytest.approx(rows, abs=200)  # the last of each channel tell
    assert {address.removeprefix("::ffff:") for address in listening} == {"127.0.0.1"}
    assert len(known) >= 4
    assert tagged(known) == []


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM], ids=lambda sign: sign.name)
def test_a_command_that_is_ended_leaves_nobody_behind(sign, tmp_path):
    command = [sys.executable, "-m", "tideover", "calibrate", "--engine", "flink", "--quick"]
    with subprocess.Popen([*command, "--out", str(tmp_path)], stderr=subprocess.PIPE) as running:
        while not list(tmp_path.glob("sessions/*/go")):
            assert running.poll() is None
        known = tags(tmp_path)
        assert len(tagged(known)) == 3
        running.send_signal(sign)
        assert running.wait(60) != 0
    assert tagged(known) == []
