"""``doctor --quirks``: which known defects of Apple's Metal compiler and GPUs this machine has."""
