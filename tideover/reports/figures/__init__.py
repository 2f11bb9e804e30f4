"""Figures, one in each file: a DataFrame in, Axes out. Nothing here fits, prints or saves.

matplotlib and seaborn are imported inside the functions that draw.
"""

from tideover.reports.figures.by_hour import by_hour
from tideover.reports.figures.calibration import backlogs, predictions, residuals
from tideover.reports.figures.cost import RESOURCES, cost, relative_to
from tideover.reports.figures.costs_over import costs_over
from tideover.reports.figures.differences import paired_differences
from tideover.reports.figures.effects import main_effects
from tideover.reports.figures.glance import glance
from tideover.reports.figures.heat_maps import heat_maps
from tideover.reports.figures.hosts import hosts
from tideover.reports.figures.intervals import checkpoint_intervals
from tideover.reports.figures.lost_time import lost_time
from tideover.reports.figures.multiples import small_multiples
from tideover.reports.figures.pareto import pareto_front
from tideover.reports.figures.published import published
from tideover.reports.figures.race import race
from tideover.reports.figures.ranges import ranges
from tideover.reports.figures.recoveries import recoveries_over_rate
from tideover.reports.figures.recovery import recovery
from tideover.reports.figures.roots import roots
from tideover.reports.figures.stages import recovery_stages
from tideover.reports.figures.timeline import timeline, timelines
from tideover.reports.figures.topology import topology
from tideover.reports.figures.tornado import tornado
from tideover.reports.figures.traffic import traffic
from tideover.reports.figures.usage import usage_over_time
from tideover.reports.figures.waterfall import waterfall

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
