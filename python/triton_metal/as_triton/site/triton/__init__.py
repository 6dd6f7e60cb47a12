"""Triton's name for triton_metal. ``triton_metal.as_triton`` says how."""

from triton_metal.as_triton import take_name

take_name()
