"""Special functions: what a processor begins at a fraction of the rate of a multiply-add, in kernels and in operators."""

from __future__ import annotations

from rlkernel.evaluator.devices import DeviceProfile

PER_CYCLE = 16.0
"""Special functions that a processor begins in a cycle, from compute capability 8.0 to 10.0 (CUDA C++ Programming Guide)."""
OF_OPERATORS = {"gelu": 2, "log_sigmoid_forward": 2, "mish": 5, "sigmoid": 2, "silu": 2, "softplus": 2, "tanh": 2}
"""Operator -> how many special functions take as long as each of its elements at least, of those that need several. In half
precision more than two take longer than the bytes: `mish` is an exponential, a logarithm, and a tanh, which is an exponential
and a division; what stands between them takes as long as one more."""


def special_of(profile: DeviceProfile) -> float:
    """Operations in the time in which a card begins a special function."""
    return profile.fp32_flops_per_us / (profile.processors * profile.sm_khz / 1000 * PER_CYCLE)
