"""Device profiles. Compilation targets one, host code is told of it, and the roofline models with it.

Those by name are for modelled time. Bandwidths and peaks are vendor data-sheet figures except where a comment says measured. Any
other card has a profile of its own, which is made of its driver's answers (`cards/card_profile.py`) and travels as text.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any


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
    sm_khz: int = 1_980_000
    memory_khz: int = 3_201_000
    bus_bits: int = 6144

    @property
    def text(self) -> str:
        """What stands for this profile in settings and messages: its name, or all of it where no name does."""
        return self.name if PROFILES.get(self.name) == self else json.dumps(asdict(self))

    @property
    def properties(self) -> dict[str, int]:
        """The answer of Triton's driver to a question about the device's properties."""
        return {
            "max_shared_mem": self.shared_bytes,
            "max_num_regs": 65536,
            "multiprocessor_count": self.processors,
            "warpSize": 32,
            "sm_clock_rate": self.sm_khz,
            "mem_clock_rate": self.memory_khz,
            "mem_bus_width": self.bus_bits,
        }


@dataclass(frozen=True, slots=True)
class Room:
    """What a program takes of a processor besides its warps."""

    registers: int = 1
    """The registers of a thread."""
    shared_bytes: int = 0
    """The shared memory of a block, in bytes."""


ANY_ROOM = Room()
"""The room that a binary takes which nobody has seen."""

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
    sm_khz=1_410_000,
    memory_khz=1_593_000,
    bus_bits=5120,
)

H100 = DeviceProfile(  # NVIDIA H100 Tensor Core GPU data sheet, SXM: 3.35 TB/s, 67 TFLOP/s float32, 989 half precision, dense
    name="h100",
    arch=90,
    processors=132,
    memory_bytes=80 * 10**9,
    l2_bytes=50 << 20,
    shared_bytes=232_448,
    dram_bytes_per_us=3.35e6,
    l2_bytes_per_us=1.2e7,
    fp32_flops_per_us=6.7e7,
    matrix_flops_per_us={"tf32": 4.945e8, "fp16": 9.89e8, "bf16": 9.89e8},
    launch_us=2.5,
    sm_khz=1_980_000,
    memory_khz=2_619_000,
    bus_bits=5120,
)

L40S = DeviceProfile(  # NVIDIA L40S data sheet: 864 GB/s, 91.6 TFLOP/s float32, 362 half precision, dense
    name="l40s",
    arch=89,
    processors=142,
    memory_bytes=48 * 10**9,
    l2_bytes=96 << 20,
    shared_bytes=101_376,
    dram_bytes_per_us=8.64e5,
    l2_bytes_per_us=5.0e6,
    fp32_flops_per_us=9.16e7,
    matrix_flops_per_us={"tf32": 1.83e8, "fp16": 3.62e8, "bf16": 3.62e8},
    launch_us=2.5,
    sm_khz=2_520_000,
    memory_khz=9_001_000,
    bus_bits=384,
)

RTX4090 = DeviceProfile(  # NVIDIA Ada GPU architecture white paper: 1008 GB/s, 82.6 TFLOP/s float32, 165.2 with float32 sums
    name="rtx4090",
    arch=89,
    processors=128,
    memory_bytes=24 * 10**9,
    l2_bytes=72 << 20,
    shared_bytes=101_376,
    dram_bytes_per_us=1.008e6,
    l2_bytes_per_us=5.0e6,
    fp32_flops_per_us=8.26e7,
    matrix_flops_per_us={"tf32": 8.26e7, "fp16": 1.652e8, "bf16": 1.652e8},
    launch_us=2.5,
    sm_khz=2_520_000,
    memory_khz=10_501_000,
    bus_bits=384,
)

B200 = DeviceProfile(  # NVIDIA DGX B200 data sheet, an eighth of it: 8 TB/s, 2.25 PFLOP/s half precision, dense
    name="b200",
    arch=100,
    processors=148,
    memory_bytes=180 * 10**9,
    l2_bytes=126 << 20,
    shared_bytes=232_448,
    dram_bytes_per_us=8.0e6,
    l2_bytes_per_us=2.0e7,
    fp32_flops_per_us=7.5e7,
    matrix_flops_per_us={"tf32": 1.12e9, "fp16": 2.25e9, "bf16": 2.25e9},
    launch_us=2.5,
    sm_khz=1_965_000,
    memory_khz=3_996_000,
    bus_bits=8192,
)

PROFILES: dict[str, DeviceProfile] = {profile.name: profile for profile in (H200, A100, H100, L40S, RTX4090, B200)}
OF_THE_CARD = "card"
"""In settings: the profile is made of the answers of the card that is there, also where its model has a name here."""


def profile_of(text: str) -> DeviceProfile:
    """The profile that `DeviceProfile.text` has given. Raises ValueError with one line.

    >>> profile_of("a100").processors
    108
    """
    if text in PROFILES:
        return PROFILES[text]
    try:
        data: Any = json.loads(text)
        return DeviceProfile(**data)
    except (ValueError, TypeError):
        raise ValueError(f"unknown device profile {text[:80]!r}: use one of {', '.join(PROFILES)}") from None
