"""The backend "metal"."""
