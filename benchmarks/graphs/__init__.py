"""What `mlx_graphs.py` times: kernels as users of Triton write them, and MLX's functions that do the same."""
