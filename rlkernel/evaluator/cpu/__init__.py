"""Execution without a GPU: `runner` replays a Program with modelled time, `interpreter` executes its Triton kernels."""
