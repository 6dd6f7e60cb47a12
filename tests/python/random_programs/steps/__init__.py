"""The steps that programs are drawn of: one idea a file."""
