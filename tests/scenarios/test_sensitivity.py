"""Sensitivity indices against closed forms, and on simulated scenarios whose answer is known."""

import importlib.util
from typing import Any

import numpy as np
import pytest

from tideover.models.simulation import simulate
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.statistics.sensitivity import indices
from tideover.scenarios.sweeps.sweep_file import Recipe, read

KEYS = ("topology.a.x", "topology.a.y", "topology.a.z")
ENDS = {"from": -np.pi, "to": np.pi}


def sampled(design: str, size: int, factors: dict[str, Any], **blocks: Any) -> Recipe:
    block = {"design": design, "size": size, "seed": 3, "factors": factors}
    return read({"scenario": "wordcount", "sample": block, **blocks})


def values(recipe: Recipe, keys: tuple[str, ...]) -> np.ndarray:
    return np.array([[recipe.values(n)[key] for key in keys] for n in range(recipe.total)])


def ishigami(recipe: Recipe) -> dict[int, float]:
    x, y, z = values(recipe, KEYS).T
    return dict(enumerate(np.sin(x) + 7 * np.sin(y) ** 2 + 0.1 * z**4 * np.sin(x)))


def test_sobol_indices_of_ishigamis_function():
    """Ishigami and Homma (1990), a = 7, b = 0.1: V1 = (1 + b π⁴/5)²/2, V2 = a²/8, V13 = b² π⁸ (1/18 - 1/50),
    all others 0; each estimate, and its interval, holds the closed form.
    """
    recipe = sampled("saltelli", 1024, dict.fromkeys(KEYS, ENDS))
    assert recipe.total == 1024 * 5
    found = indices(recipe, ishigami(recipe)).set_index("factor")
    v1, v2 = (1 + 0.1 * np.pi**4 / 5) ** 2 / 2, 49 / 8
    v13 = 0.01 * np.pi**8 * (1 / 18 - 1 / 50)
    whole = v1 + v2 + v13
    for key, first, total in zip(KEYS, (v1, v2, 0), (v1 + v13, v2, v13), strict=True):
        row = found.loc[key]
        assert row["first_order"] == pytest.approx(first / whole, abs=0.03)
        assert row["total"] == pytest.approx(total / whole, abs=0.03)
        assert row["first_order_low"] - 0.01 <= first / whole <= row["first_order_high"] + 0.01
        assert row["total_low"] - 0.01 <= total / whole <= row["total_high"] + 0.01


def test_elementary_effects_of_a_linear_function_are_its_coefficients():
    """Law: of 3x - 2y + 0z over [-π, π] each effect over the whole range is 2π times the coefficient, and
    does not vary; x z has effects that do.
    """
    recipe = sampled("morris", 10, dict.fromkeys(KEYS, ENDS))
    assert recipe.total == 10 * 4
    x, y, z = values(recipe, KEYS).T
    found = indices(recipe, dict(enumerate(3 * x - 2 * y))).set_index("factor")
    assert found["mu_star"].to_list() == pytest.approx([6 * np.pi, 4 * np.pi, 0], abs=1e-4)
    assert found["mu"].to_list() == pytest.approx([6 * np.pi, -4 * np.pi, 0], abs=1e-4)
    assert found["sigma"].to_list() == pytest.approx([0, 0, 0], abs=1e-4)
    found = indices(recipe, dict(enumerate(x * z + y))).set_index("factor")
    assert found["sigma"][KEYS[0]] > 1 < found["sigma"][KEYS[2]]
    assert found["sigma"][KEYS[1]] == pytest.approx(0, abs=1e-4)


SHORT = {
    "run.duration": "30 s",
    "run.warmup": "5 s",
    "topology.count.window": "5 s",
    "failures.0.at": "10 s",
    "failures.0.within": "0 s",
    "failures.0.kind": "crash_task",
    "strategy.kind": "none",
    "run.replications": 1,
}
DOWN = {
    "failures.0.detection": {"from": "1 s", "to": "3 s"},
    "failures.0.restart": {"from": "1 s", "to": "5 s"},
}


def test_what_adds_up_in_a_simulated_failure_shares_the_variance():
    """A crashed task is ready again after detection, uniform over 2 s, and restart, over 4 s: of the
    variance 2² and 4² parts, so 1/5 and 4/5. Nothing interacts: first order = total, and the sum is 1.
    """
    recipe = sampled("saltelli", 32, DOWN, set=SHORT)
    ready = {}
    for number in range(recipe.total):
        (recovery,) = simulate(recipe.point(number).scenario).recoveries
        ready[number] = recovery["ready_at_s"] - recovery["failed_at_s"]
    found = indices(recipe, ready).set_index("factor")
    for key, part in zip(DOWN, (0.2, 0.8), strict=True):
        assert found["first_order"][key] == pytest.approx(part, abs=0.1)
        assert found["total"][key] == pytest.approx(part, abs=0.1)
        assert found["first_order"][key] == pytest.approx(found["total"][key], abs=0.1)
    assert found["total"].sum() == pytest.approx(1, abs=0.1)


def test_each_combination_of_other_factors_has_its_own_indices():
    """Of x under seed 1 and of y under seed 2, first order and total are 1, and 0 of the other."""
    recipe = sampled("saltelli", 64, dict.fromkeys(KEYS[:2], ENDS), grid={"run.seed": [1, 2]})
    metric = {}
    for number in range(recipe.total):
        row = recipe.values(number)
        metric[number] = row[KEYS[0]] if row["run.seed"] == 1 else row[KEYS[1]]
    found = indices(recipe, metric).set_index(["run.seed", "factor"])
    for seed, own, other in ((1, *KEYS[:2]), (2, *KEYS[1::-1])):
        assert found.loc[(seed, own), "total"] == pytest.approx(1, abs=0.05)
        assert found.loc[(seed, other), "total"] == pytest.approx(0, abs=1e-9)


def test_a_metric_that_is_the_same_everywhere_has_no_indices():
    recipe = sampled("saltelli", 4, dict.fromkeys(KEYS, ENDS))
    found = indices(recipe, dict.fromkeys(range(recipe.total), 3.0))
    assert found["total"].isna().all()


def test_what_cannot_be_said():
    recipe = sampled("morris", 4, dict.fromkeys(KEYS, ENDS))
    with pytest.raises(ValueError, match="2 of 16 points have no value"):
        indices(recipe, dict.fromkeys(range(14), 1.0))
    with pytest.raises(ValueError, match="indices need a sample of design saltelli or morris"):
        indices(sampled("sobol", 4, dict.fromkeys(KEYS, ENDS)), {})
    with pytest.raises(ScenarioError, match="where: does not go with design: morris"):
        sampled("morris", 4, dict.fromkeys(KEYS, ENDS), where=["x < y"])


def test_without_salib_a_sweep_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ScenarioError, match=r"design: morris needs SALib, .* tideover\[sensitivity\]"):
        sampled("morris", 4, dict.fromkeys(KEYS, ENDS))
    assert sampled("sobol", 4, dict.fromkeys(KEYS, ENDS)).total == 4
