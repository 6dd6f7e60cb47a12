"""Memory-bound kernels as Metal texts on an NVIDIA GPU, beside stock Triton's and a copy. See benchmarks/README.md."""
