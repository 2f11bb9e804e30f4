"""Which runs the compiled data plane moves: the one place where that is chosen."""

from __future__ import annotations

import os

from tideover.models.config import Scenario
from tideover.models.job.components import BoltConfig
from tideover.models.mechanisms.acking.acks import Acks
from tideover.models.mechanisms.acking.rotation import Rotation
from tideover.models.mechanisms.buffers.output_queues import OutputQueues
from tideover.models.mechanisms.buffers.progress import Progress
from tideover.models.mechanisms.buffers.recovery import UpstreamBuffers
from tideover.models.mechanisms.checkpoint_messages import CheckpointMessages
from tideover.models.mechanisms.duplicate_filter import DuplicateFilter
from tideover.models.mechanisms.standbys import Standbys
from tideover.models.mechanisms.state_transfer import StateTransfer
from tideover.models.mechanisms.task_checkpoints import RegularCheckpoints

SHOWN = (
    *(Acks, Rotation, UpstreamBuffers, OutputQueues, Progress, DuplicateFilter, StateTransfer),
    *(RegularCheckpoints, CheckpointMessages, Standbys),
)
"""Mechanisms of which the data plane tells every message."""


def moves_compiled(scenario: Scenario, closely: bool = False) -> bool:
    """Whether all that the scenario asks for is there; ``closely``: and who looks at each tuple."""
    strategy = scenario.strategy
    if os.environ.get("TIDEOVER_TRAINS"):
        return False
    states = any(isinstance(c, BoltConfig) and c.state is not None for c in scenario.topology.values())
    if strategy.looks_up and states:
        return False  # what they look up in a store is not there yet
    if closely and not all(issubclass(mechanism, SHOWN) for mechanism in strategy.composed_of):
        return False
    return strategy.goes_compiled() == "always"
