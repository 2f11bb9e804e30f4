"""What the command line refuses: exit code 2, no output, and one line that names the place."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli_worlds import DIAGRAM, LAG, SATURATED, STREAM

Called = Callable[..., tuple[int, str, str]]
MTBF = "--mtbf failures.0=1h"
PAUSES = f"{MTBF} --pauses 3s"
SNAPSHOTS = "wordcount --set strategy.kind=aligned_snapshots"

REFUSED = [
    ("run wordcout", "wordcout:1: (file): neither a file nor a built-in scenario; did you mean 'wordcount'?"),
    ("run no/such.yaml", "no/such.yaml:1: (file): does not exist"),
    ("run wordcount --set strategy.kind=rms", "--set: strategy.kind: unknown strategy 'rms'; did you"),
    ("run wordcount --set run.duration", "--set: run.duration: must be key=value"),
    ("run wordcount --out /dev/null", "--out: /dev/null: is a file, not a directory"),
    ("run wordcount --out /dev/null/x", "--out: /dev/null/x: "),
    ("run wordcount --out .", "--out: .: is not empty and was not written by Tideover"),
    ("run flink-recovery --set 'checkpoint_intervall=60 s'", "…did you mean 'checkpoint_interval'?"),
    ("compare wordcount --strategies rsm,rms", "--strategies: strategy.kind: unknown strategy 'rms'; di"),
    ("compare wordcount --strategies rsm", "--strategies: a comparison needs at least two strategies"),
    ("compare wordcount --strategies rsm,rsm", "--strategies: a strategy is named twice"),
    ("scenarios show wordcout", "…did you mean 'wordcount'"),
    ("sweep no-such-sweep", "no-such-sweep:1: (file): neither a file nor a built-in sweep"),
    ("sweep wordcount", "wordcount:1: (file): neither a file nor a built-in sweep"),
    ("sweep x.yaml --master lokal", "--master: 'lokal': is not one of Spark's masters; allowed: local"),
    ("sweep x.yaml --master spark://host", "--master: 'spark://host': is not one of Spark's masters"),
    (
        "sweep wordcount-sweep --no-spark --data s3a://bucket/sweep",
        "--data: s3a://bucket/sweep: only Spark reaches that; name a directory of this machine\n",
    ),
    ("reproduce stableford-phase2 --master 'local[0]'", "--master: 'local[0]': is not one of"),
    ("reproduce stableford", "PAPER: 'stableford' is not known; did you mean 'stableford-phase2'?"),
    ("reproduce khaos", "--from: is missing; khaos needs its recoveries (khaos_flink"),
    ("reproduce khaos --set rate=1/s --from made.csv", "--set: nothing is simulated in khaos"),
    ("reproduce khaos --from made.csv", "--from: made.csv: has capacities, and khaos has none"),
    (
        "reproduce demeter --from lag.csv",
        "--from: lag.csv: has no column latency_recovered_at_s; demeter",
    ),
    ("reproduce demeter --from none.csv", "none.csv"),
    (
        "reproduce ksafety --from made.csv",
        "--from: goes with demeter and khaos only; ksafety has its",
    ),
    ("reproduce", "PAPER: is missing; name a study, or give --all"),
    ("reproduce khaos --all", "--all: goes without PAPER"),
    ("reproduce --all --set rate=1/s", "--all: goes without --set"),
    ("reproduce --all --from made.csv", "--from: made.csv: --all takes demeter_flink_failures.csv, "),
    ("reproduce --all --from khaos_flink_recovery_calibration.csv", "…there is no such file"),
    ("calibrate", "--out: is missing"),
    ("calibrate --quick --from x.csv", "--quick: goes without --from"),
    ("calibrate --pace 2 --from x.csv", "--pace: goes without --from"),
    ("calibrate --engine flink --pace 2 --out x", "--pace: goes with the engine spark only"),
    ("calibrate --engine flink --stock-jvm --out x", "--stock-jvm: goes with the engine spark only"),
    ("calibrate --engine flink --from x.csv", "--engine: goes without --from"),
    ("calibrate --engine storm --out x", "--engine: 'storm' is not known; spark and flink are"),
    ("audit rsmm", "rsmm: neither a strategy, a file nor a built-in scenario; did you mean 'rsm'?"),
    ("audit rsm --kinds crash_tsk", "--kinds: 'crash_tsk' is not audited; did you mean 'crash_task'?"),
    ("audit rsm --kinds slow_link", "--kinds: 'slow_link' is not audited"),
    ("audit rsm --from '90 s'", "--from: is not within the run, which ends at 80 s"),
    ("audit rsm --from '9 s' --until '8 s'", "--until: must be after --from"),
    ("audit rsm --restart soon", "--restart: "),
    ("audit rsm --set strategy.checkpoint=3s", "…strategy.checkpoint"),
    (f"availability {SNAPSHOTS} --mtbf host", "--mtbf: 'host' is not WHAT=TIME"),
    (f"availability {SNAPSHOTS} {MTBF} --mtbf failures.0=2h", "…given twice"),
    (f"availability {SNAPSHOTS} --mtbf hots=1h", "--mtbf: hots: unknown; did you mean 'host'"),
    (f"availability {SNAPSHOTS} {MTBF} --slo 100%", "--slo: '100%'"),
    (f"availability {SNAPSHOTS} {MTBF} --over 0s", "--over: '0s'"),
    (f"availability {SNAPSHOTS}", "…host=30d"),
    ("check wordcount", "wordcount: slo: has no objectives; give some there, slo: [recovery_p95 <= 20 s"),
    (
        "check wordcount --objective 'lots = 0'",
        "--objective: lots = 0: unknown metric 'lots'; did you mean lost?",
    ),
    (
        "check wordcount --objective 'recovery_p50 <= 1000 s' --set failures=[]",
        "--objective: recovery_p50 <= 1000 s: nothing fails",
    ),
    (
        "check wordcount --objective 'lost = 0' --junit nowhere/x.xml",
        "--junit: nowhere/x.xml: there is no directory",
    ),
    ("check wordcount --objective 'lost = 0' --junit .", "--junit: .: is a directory"),
    (
        "check wordcount --objective 'lost = 0' --junit small.yaml",
        "…is there, and is not what tideover check wrote",
    ),
    ("check wordcount --set 'slo=[lots = 0]'", "--set: slo.0: unknown metric 'lots'"),
    ("check wordcont --objective 'lost = 0'", "…did you mean"),
    ("run small.yaml --diagram d.svg --from 2s --to 1s", "--from: 2 s is not before --to, 1 s"),
    ("run small.yaml --diagram d.svg --from 1s --to 1s", "--from: 1 s is not before --to, 1 s"),
    ("run small.yaml --diagram d.svg --to 7s", "--to: 7 s is after the run's end, 6 s"),
    ("run small.yaml --diagram d.svg --from 6001ms", "--from: 6.001 s is after the run's end, 6 s"),
    ("run small.yaml --diagram d.svg --from soon", "--from: 'soon' is not a duration"),
    ("run small.yaml --diagram d.svg --to 20", "--to: '20'"),
    ("run small.yaml --diagram d.svg --components counts", "--components: 'counts' is no component"),
    ("run small.yaml --diagram d.pdf", "--diagram: d.pdf: the picture is SVG"),
    (
        "run small.yaml --diagram mine.svg",
        "--diagram: mine.svg: is there, and is not a diagram that tideover d",
    ),
    ("run small.yaml --diagram nowhere/d.svg", "--diagram: nowhere/d.svg: there is no directory nowhere"),
    ("run small.yaml --from 1s", "--from: goes with --diagram"),
    ("run small.yaml --components split", "--components: goes with --diagram"),
    ("run small.yaml --diagram d.svg --saturate", "--diagram: goes with a run"),
    ("interval stream.yaml", "--mtbf: (option): is needed"),
    (f"interval stream.yaml {MTBF} {MTBF}", "…given twice"),
    (f"interval stream.yaml {MTBF} --intervals 10s,0s", "--intervals: '0s': more than 0 s is needed"),
    (f"interval stream.yaml {MTBF} --intervals ,", "--intervals: ',': name at least one time"),
    (f"interval stream.yaml {MTBF} --intervals 900d", "…900 d would need too long a run"),
    (
        f"interval stream.yaml {MTBF} --set strategy.snapshot_time=0s",
        "…strategy.checkpoint_interval: checkpoints keep",
    ),
    (
        f"detector stream.yaml {PAUSES} --every 1h --timeouts 1s",
        "…detector: interval (2 s) must not be longer",
    ),
    (f"detector stream.yaml {MTBF} --pauses soon --every 1h", "--pauses: (option): 'soon'"),
    (
        f"detector stream.yaml {MTBF} --pauses '{{kind: exponential' --every 1h",
        "--pauses: (option): is not valid YAML",
    ),
    (f"detector stream.yaml {PAUSES} --every often", "--every: 'often'"),
    (f"detector stream.yaml {PAUSES} --every 0s", "--every: '0s': more than 0 s is needed"),
    (f"detector stream.yaml {PAUSES} --every 1h --set detector=null", "…detector: there is none"),
]
"""Commands, and how what they say begins; after … it may stand anywhere."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the commands are called."""
    monkeypatch.chdir(tmp_path)
    files = {"small.yaml": DIAGRAM, "stream.yaml": STREAM, "made.csv": SATURATED, "lag.csv": LAG}
    for name, text in {**files, "mine.svg": "<svg/>"}.items():
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


@pytest.mark.parametrize(("command", "says"), REFUSED)
def test_bad_input_ends_with_2_and_one_line(tideover: Called, folder: Path, command: str, says: str) -> None:
    """And no file is written, or changed."""
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    code, out, err = tideover(*shlex.split(command))
    assert (code, out) == (2, "")
    assert says.removeprefix("…") in err
    assert err.startswith(says) or says.startswith("…")
    assert err.count("\n") == 1
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    "command", ["frobnicate", "run", "run wordcount --frob", "sweep x.yaml --master", "run a b"]
)
def test_wrong_usage_ends_with_2(tideover: Called, command: str) -> None:
    code, out, err = tideover(*shlex.split(command))
    assert (code, out) == (2, "")
    assert "Error" in err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_cannot_be_written_to(tideover: Called, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    code, _, err = tideover("run", "wordcount", "--out", tmp_path / "out")
    assert code == 2
    assert "cannot be written to: Permission denied" in err
