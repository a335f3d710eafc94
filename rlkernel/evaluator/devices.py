"""Device profiles by name. Compilation targets one, host code is told of it, and the roofline models with it.

Bandwidths and peaks are vendor data-sheet figures except where a comment says measured.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeviceProfile:
    """One model of GPU, with rates in units per microsecond and sizes in bytes."""

    name: str
    arch: int
    """The compute capability as Triton writes it, e.g. 90."""
    processors: int
    memory_bytes: int
    l2_bytes: int
    shared_bytes: int
    """The shared memory that one block may use."""
    dram_bytes_per_us: float
    l2_bytes_per_us: float
    fp32_flops_per_us: float
    matrix_flops_per_us: dict[str, float]
    """The rate of the dense matrix units by operand type: tf32, fp16, bf16."""
    launch_us: float
    """The device time that every launch costs at least: its start, its tail and the gap to the next one."""

    @property
    def properties(self) -> dict[str, int]:
        """The answer of Triton's driver to a question about the device's properties."""
        return {
            "max_shared_mem": self.shared_bytes,
            "max_num_regs": 65536,
            "multiprocessor_count": self.processors,
            "warpSize": 32,
            "sm_clock_rate": 1_980_000,
            "mem_clock_rate": 3_201_000,
            "mem_bus_width": 6144,
        }


H200 = DeviceProfile(
    name="h200",
    arch=90,
    processors=132,
    memory_bytes=141 * 10**9,
    l2_bytes=60 << 20,
    shared_bytes=232_448,
    dram_bytes_per_us=4.3e6,  # measured: device-to-device copy, bytes read and written
    l2_bytes_per_us=1.2e7,
    fp32_flops_per_us=6.7e7,
    matrix_flops_per_us={"tf32": 4.0e8, "fp16": 7.9e8, "bf16": 7.9e8},  # measured for bf16
    launch_us=2.5,
)

A100 = DeviceProfile(
    name="a100",
    arch=80,
    processors=108,
    memory_bytes=80 * 10**9,
    l2_bytes=40 << 20,
    shared_bytes=166_912,
    dram_bytes_per_us=1.9e6,
    l2_bytes_per_us=5.0e6,
    fp32_flops_per_us=1.95e7,
    matrix_flops_per_us={"tf32": 1.56e8, "fp16": 3.12e8, "bf16": 3.12e8},
    launch_us=3.0,
)

PROFILES: dict[str, DeviceProfile] = {profile.name: profile for profile in (H200, A100)}
