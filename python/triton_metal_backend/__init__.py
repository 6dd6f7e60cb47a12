"""The backend "metal" of stock Triton. Triton finds it through the entry point group ``triton.backends``.

It compiles with triton_metal and launches on torch's tensors: those on "mps" on the Mac's GPU, and CPU tensors on the
host Metal device. Triton imports this package whenever it is imported itself, so the package imports triton_metal only
when something is compiled or launched.
"""
