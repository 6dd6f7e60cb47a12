"""What kernels' callers need besides the kernels, as in Triton."""

from .linear_layout import LinearLayout

__all__ = ["LinearLayout"]
