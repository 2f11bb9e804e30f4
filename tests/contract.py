"""What the command line prints as JSON keeps this contract."""

import json

LATENCY = dict.fromkeys(("median", "mean", "std", "p95", "p99", "max"), float)
MOMENTS = ("failed_at_s", "detected_at_s", "ready_at_s", "state_recovery_s", "catch_up_s", "throughput_90_s")
CONTRACT = {
    "schema": int,
    "scenario": dict,
    "strategy": str,
    "seed": int,
    "replications": int,
    "warnings": [str],
    "recoveries": [
        {
            "replication": int,
            "kind": str,
            "component": str,
            "ended": str,
            "roots_lost": int,
            **dict.fromkeys((*MOMENTS, "output_gap_s", "sink_spacing_s"), float),
            "stages_s": dict.fromkeys(("detect", "restart", "restore", "replay", "catch_up"), float),
            "state": dict.fromkeys(("restored", "replayed", "dropped", "missing", "extra"), int),
            "latency_ms": LATENCY,
        }
    ],
    "latency_ms": LATENCY,
    "throughput_per_s": dict.fromkeys(("mean", "min", "max"), float),
    "ledger": dict.fromkeys(
        ("emitted", "completed", "in_flight", "lost", "replayed", "duplicated", "false_timeouts", "late"), int
    ),
    "windows": dict.fromkeys(("emitted", "correct", "wrong", "missing"), int),
    "cost": dict.fromkeys(
        [
            *("cpu_s", "network_bytes", "normal_cpu_s", "normal_network_bytes", "store_bytes"),
            *("peak_buffered_tuples", "hosts"),
        ],
        float,
    ),
    "utilisation": {"tasks": dict, "busiest": str, "peak": float},
    "version": str,
}
"""What a result has at least; a float may be null."""


def check(value, form, path="result"):
    if isinstance(form, dict):
        assert isinstance(value, dict), path
        assert form.keys() <= value.keys(), f"{path}: {form.keys() - value.keys()}"
        for key, inner in form.items():
            check(value[key], inner, f"{path}.{key}")
    elif isinstance(form, list):
        assert isinstance(value, list), path
        for number, item in enumerate(value):
            check(item, form[0], f"{path}.{number}")
    elif form is float:
        assert value is None or type(value) in (int, float), path
    else:
        assert type(value) is form, path


def strict(text):
    """JSON as it is defined: no NaN, no infinity."""

    def refuse(name):
        raise AssertionError(name)

    return json.loads(text, parse_constant=refuse)
