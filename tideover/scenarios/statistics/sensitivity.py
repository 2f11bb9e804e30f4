"""Sensitivity: which of the factors of a sweep a metric depends on, and how much. `tideover sweep` calls it.

Another analysis goes with another design of `factors.DESIGNS`, and is one more function here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tideover.scenarios.statistics.intervals import BOOTSTRAP_SEED, LEVEL
from tideover.scenarios.sweeps import factors
from tideover.scenarios.sweeps.factors import Sampled

if TYPE_CHECKING:
    import pandas as pd

    from tideover.scenarios.sweeps.sweep_file import Recipe

RESAMPLES = 300


def sample_of(recipe: Recipe) -> Sampled | None:
    """The axis of a sweep whose points were chosen so that indices can be found; None: there is none."""
    axis = recipe.axes[-1] if recipe.axes else None
    return axis if isinstance(axis, Sampled) and axis.design in factors.FOR_INDICES else None


def indices(recipe: Recipe, metric: Mapping[int, float]) -> pd.DataFrame:
    """How much each factor of a sweep's sample matters for a metric, given by the number of the point.

    One row a factor, or, if the sample is combined with other factors, one for each of their combinations (in
    columns by their keys) and factor:

    - of a ``saltelli`` sample Sobol' indices: ``first_order``, the part of the metric's variance that a
      factor explains alone, and ``total``, the part that it explains alone or with others (estimators of
      Saltelli et al. 2010, Computer Physics Communications 181, by SALib). NaN if the metric is constant.
    - of a ``morris`` sample ``mu_star``, the mean absolute effect of the factor over its whole range, in the
      metric's unit; ``mu``, with its sign; ``sigma``, how much the effect varies: large if it depends on
      other factors or is not linear (Morris 1991; Campolongo et al. 2007).

    ``_low`` and ``_high`` are the ends of 95 % bootstrap intervals. Raises ValueError if the sweep has no
    such sample, or a point no value.
    """
    import pandas as pd

    if (axis := sample_of(recipe)) is None:
        known = " or ".join(factors.FOR_INDICES)
        raise ValueError(f"{recipe.name}: indices need a sample of design {known}")
    values = np.array([metric.get(number, np.nan) for number in range(recipe.total)], float)
    if missing := int(np.isnan(values).sum()):
        raise ValueError(f"{missing} of {values.size} points have no value; indices need all of them")
    keys = [factor.key for factor in axis.factors]
    rows = []
    for first in range(0, recipe.total, len(axis)):
        found = _ANALYSES[axis.design](axis, values[first : first + len(axis)])
        others = {key: value for key, value in recipe.values(first).items() if key not in keys}
        for number, key in enumerate(keys):
            figures = {name: float(column[number]) for name, column in found.items()}
            rows.append(others | {"factor": key} | figures)
    return pd.DataFrame(rows)


def _sobol(axis: Sampled, values: np.ndarray) -> dict[str, np.ndarray]:
    from SALib.analyze import sobol

    count = len(axis.factors)
    if np.ptp(values) == 0:
        found = {name: np.full(count, np.nan) for name in ("S1", "S1_conf", "ST", "ST_conf")}
    else:
        found = sobol.analyze(
            factors.problem(count),
            values,
            calc_second_order=False,
            num_resamples=RESAMPLES,
            conf_level=LEVEL,
            seed=BOOTSTRAP_SEED,
        )
    first = _interval("first_order", found["S1"], found["S1_conf"])
    return first | _interval("total", found["ST"], found["ST_conf"])


def _morris(axis: Sampled, values: np.ndarray) -> dict[str, np.ndarray]:
    from SALib.analyze import morris

    count = len(axis.factors)
    found = morris.analyze(
        factors.problem(count),
        np.array(axis.draws).reshape(-1, count),
        values,
        num_resamples=RESAMPLES,
        conf_level=LEVEL,
        num_levels=factors.MORRIS_LEVELS,
        seed=BOOTSTRAP_SEED,
    )
    star = _interval("mu_star", found["mu_star"], found["mu_star_conf"])
    return star | {"mu": np.asarray(found["mu"]), "sigma": np.asarray(found["sigma"])}


def _interval(name: str, value: Any, half: Any) -> dict[str, np.ndarray]:
    mean, width = np.asarray(value, float), np.asarray(half, float)
    return {name: mean, f"{name}_low": mean - width, f"{name}_high": mean + width}


_ANALYSES = {"saltelli": _sobol, "morris": _morris}
