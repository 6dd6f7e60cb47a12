"""Triton's name for triton_metal. ``triton_metal.as_triton`` says how."""

try:
    from triton_metal.as_triton import take_name
except ModuleNotFoundError as error:
    if error.name != "triton_metal":
        raise
    raise ModuleNotFoundError(
        "this triton is triton-metal's, and triton-metal is no longer installed: "
        "install it, or remove this package with pip uninstall triton",
        name="triton_metal",
    ) from None

take_name()
