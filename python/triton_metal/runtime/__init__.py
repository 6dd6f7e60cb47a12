"""What surrounds kernels at run time, under the names that Triton gives it."""

from .autotuner import Autotuner, Config, Heuristics, autotune, heuristics

__all__ = ["Autotuner", "Config", "Heuristics", "autotune", "heuristics"]
