"""Triton kernels of the problems that MLX has Metal kernels for, each as a user of Triton would write it."""
