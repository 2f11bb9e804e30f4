"""Figures, a family in each file: a DataFrame in, Axes out. Nothing here fits, prints or saves.

matplotlib and seaborn are imported inside the functions that draw.
"""

from tideover.reports.figures.calibration import backlogs as backlogs
from tideover.reports.figures.calibration import catch_up as catch_up
from tideover.reports.figures.calibration import predictions as predictions
from tideover.reports.figures.calibration import residuals as residuals
from tideover.reports.figures.cluster import hosts as hosts
from tideover.reports.figures.cluster import topology as topology
from tideover.reports.figures.cluster import traffic as traffic
from tideover.reports.figures.logs import log_recoveries as log_recoveries
from tideover.reports.figures.logs import log_stages as log_stages
from tideover.reports.figures.strategies import RESOURCES as RESOURCES
from tideover.reports.figures.strategies import cost as cost
from tideover.reports.figures.strategies import glance as glance
from tideover.reports.figures.strategies import published as published
from tideover.reports.figures.strategies import ranges as ranges
from tideover.reports.figures.strategies import recoveries_over_rate as recoveries_over_rate
from tideover.reports.figures.strategies import recovery as recovery
from tideover.reports.figures.strategies import recovery_stages as recovery_stages
from tideover.reports.figures.strategies import relative_to as relative_to
from tideover.reports.figures.sweeps import by_hour as by_hour
from tideover.reports.figures.sweeps import checkpoint_intervals as checkpoint_intervals
from tideover.reports.figures.sweeps import costs_over as costs_over
from tideover.reports.figures.sweeps import heat_maps as heat_maps
from tideover.reports.figures.sweeps import lost_time as lost_time
from tideover.reports.figures.sweeps import main_effects as main_effects
from tideover.reports.figures.sweeps import paired_differences as paired_differences
from tideover.reports.figures.sweeps import pareto_front as pareto_front
from tideover.reports.figures.sweeps import race as race
from tideover.reports.figures.sweeps import small_multiples as small_multiples
from tideover.reports.figures.sweeps import tornado as tornado
from tideover.reports.figures.timeline import roots as roots
from tideover.reports.figures.timeline import timeline as timeline
from tideover.reports.figures.timeline import timelines as timelines
from tideover.reports.figures.timeline import usage_over_time as usage_over_time
from tideover.reports.figures.timeline import waterfall as waterfall
