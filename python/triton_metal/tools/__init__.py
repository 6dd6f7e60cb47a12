"""What kernels' callers need besides the kernels, as in Triton."""
