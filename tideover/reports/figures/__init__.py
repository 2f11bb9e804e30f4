"""Figures, a family in each file: a DataFrame in, Axes out. Nothing here fits, prints or saves.

matplotlib and seaborn are imported inside the functions that draw.
"""

from tideover.reports.figures.calibration import backlogs, predictions, residuals
from tideover.reports.figures.cluster import hosts, topology, traffic
from tideover.reports.figures.strategies import (
    RESOURCES,
    cost,
    glance,
    published,
    ranges,
    recoveries_over_rate,
    recovery,
    recovery_stages,
    relative_to,
)
from tideover.reports.figures.sweeps import (
    by_hour,
    checkpoint_intervals,
    costs_over,
    heat_maps,
    lost_time,
    main_effects,
    paired_differences,
    pareto_front,
    race,
    small_multiples,
    tornado,
)
from tideover.reports.figures.timeline import roots, timeline, timelines, usage_over_time, waterfall

__all__ = [
    "RESOURCES",
    "backlogs",
    "by_hour",
    "checkpoint_intervals",
    "cost",
    "costs_over",
    "glance",
    "heat_maps",
    "hosts",
    "lost_time",
    "main_effects",
    "paired_differences",
    "pareto_front",
    "predictions",
    "published",
    "race",
    "ranges",
    "recoveries_over_rate",
    "recovery",
    "recovery_stages",
    "relative_to",
    "residuals",
    "roots",
    "small_multiples",
    "timeline",
    "timelines",
    "topology",
    "tornado",
    "traffic",
    "usage_over_time",
    "waterfall",
]
