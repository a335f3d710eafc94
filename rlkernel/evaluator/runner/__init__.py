"""Executes Programs: on a GPU, or by the Triton interpreter."""
