"""The search for the best configuration of a kernel. `triton_metal.autotune` is the way in; docs/autotuning.md explains it."""
