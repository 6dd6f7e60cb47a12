"""What a launch costs at least on one of Apple's chips, by a model that needs no GPU: see docs/cost.md."""

from __future__ import annotations

from .chips import CHIPS, Chip, Units, chip, full_name, ranking_chip
from .measure import Counted, cost_of, counting, work_of
from .model import Cost, Part, Work, bound
from .sampling import Sampled, sampled, scaled

__all__ = [
    "CHIPS",
    "Chip",
    "Cost",
    "Counted",
    "Part",
    "Sampled",
    "Units",
    "Work",
    "bound",
    "chip",
    "cost_of",
    "counting",
    "full_name",
    "ranking_chip",
    "sampled",
    "scaled",
    "work_of",
]
