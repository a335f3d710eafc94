"""The device profile of any card: from its driver's answers, and from short measurements where the card can be used.

    peak = processors x operations per clock x clock      bandwidth = memory clock x 2 x bus width / 8, or as measured

Operations per clock are those of an architecture (NVIDIA's tuning guides and white papers); clocks and widths are the card's own.
Source: ours.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import anyio.to_thread
import pynvml

from rlkernel.errors import EvaluatorFailed
from rlkernel.evaluator.cards import gpus
from rlkernel.evaluator.cards.gpu_runner import GpuRunner, RunnerLost
from rlkernel.evaluator.cards.gpus import Gpu
from rlkernel.evaluator.devices import DeviceProfile
from rlkernel.evaluator.messages import codec
from rlkernel.evaluator.messages.gpu import MeasureRates, Rates
from rlkernel.evaluator.shared_rows import SharedRows

OLDEST = 80
"""The oldest compute capability whose tensor cores know bfloat16 and tf32."""
L2_BYTES_PER_CLOCK = 64
"""What a processor takes from L2 per clock at best."""
L2_SHARE = 0.7
"""The share of that which reads reach."""
LAUNCH_US = 2.5
MEASURE_SECONDS = 60.0
"""How long a measurement may take, with the start of the runner."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """What the processors of one compute capability do per clock, and hold. An operation is an addition or a multiplication."""

    float32: int
    half: int
    """Dense products of half precision with sums in float32."""
    shared_bytes: int
    l2_bytes: int
    """The size of a usual card's L2, where the card itself is not asked."""

    @property
    def tf32(self) -> int:
        return self.half // 2


ARCHITECTURES = {
    80: Architecture(128, 2048, 166_912, 40 << 20),
    86: Architecture(256, 512, 101_376, 6 << 20),
    87: Architecture(256, 1024, 166_912, 4 << 20),
    89: Architecture(256, 1024, 101_376, 64 << 20),
    90: Architecture(256, 4096, 232_448, 50 << 20),
    100: Architecture(256, 8192, 232_448, 126 << 20),
    103: Architecture(256, 8192, 232_448, 126 << 20),
    120: Architecture(256, 1024, 101_376, 64 << 20),
}


@dataclass(frozen=True, slots=True)
class Answers:
    """What the driver tells of a card without CUDA."""

    name: str
    arch: int
    processors: int
    memory_bytes: int
    sm_mhz: int
    memory_mhz: int
    bus_bits: int


def ask(gpu: Gpu) -> Answers:
    """Ask the driver. Raises GpuUnavailable, one line, where it does not tell enough."""
    try:
        with gpus.session():
            handle = pynvml.nvmlDeviceGetHandleByUUID(gpu.uuid)
            major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
            arch = 10 * int(major) + int(minor)
            cores = int(pynvml.nvmlDeviceGetNumGpuCores(handle))
            return Answers(
                gpu.name, arch, cores // (_architecture(arch).float32 // 2), gpu.memory_bytes,
                int(pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_SM)),
                int(pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_MEM)),
                int(pynvml.nvmlDeviceGetMemoryBusWidth(handle)),
            )  # fmt: skip
    except pynvml.NVMLError as error:
        raise gpus.GpuUnavailable(f"cuda:{gpu.index} ({gpu.name}): the driver tells too little for a profile: {error}") from error


def _architecture(arch: int) -> Architecture:
    """What is known of a compute capability; of a newer one, as of the newest that is known and not above it."""
    return ARCHITECTURES[max(known for known in ARCHITECTURES if known <= max(arch, OLDEST))]


def refusal(answers: Answers) -> str | None:
    """Why a card cannot be judged on, in one line; None if it can."""
    if answers.arch >= OLDEST:
        return None
    capability = f"{answers.arch // 10}.{answers.arch % 10}"
    return f"{answers.name} has compute capability {capability}; 8.0 or newer is needed for bfloat16 and tf32: use --device cpu"


def derive(answers: Answers, rates: Rates | None = None) -> DeviceProfile:
    """The profile of a card, with what was measured there in place of what its clocks promise."""
    known = _architecture(answers.arch)
    clocks_per_us = answers.processors * answers.sm_mhz
    bandwidth = answers.memory_mhz * 2.0 * answers.bus_bits / 8
    half = float(clocks_per_us * known.half)
    return DeviceProfile(
        name=answers.name.removeprefix("NVIDIA ").lower(),
        arch=answers.arch,
        processors=answers.processors,
        memory_bytes=answers.memory_bytes,
        l2_bytes=known.l2_bytes if rates is None else rates.l2_bytes,
        shared_bytes=known.shared_bytes if rates is None else rates.shared_bytes,
        dram_bytes_per_us=bandwidth if rates is None else rates.dram_bytes_per_us,
        l2_bytes_per_us=L2_SHARE * L2_BYTES_PER_CLOCK * clocks_per_us,
        fp32_flops_per_us=float(clocks_per_us * known.float32),
        matrix_flops_per_us={"tf32": float(clocks_per_us * known.tf32), "fp16": half, "bf16": half},
        launch_us=LAUNCH_US if rates is None else rates.launch_us,
        sm_khz=1000 * answers.sm_mhz,
        memory_khz=1000 * answers.memory_mhz,
        bus_bits=answers.bus_bits,
    )


class RateStore:
    """Measured rates by card and driver, in memory and in the file `path` if one is given; a damaged line is skipped."""

    def __init__(self, path: Path | None) -> None:
        self._file = SharedRows(path)
        self._rates: dict[tuple[str, str], Rates] = {}
        for row in self._file.unread():
            try:
                self._rates[row["uuid"], row["driver"]] = Rates(**row["rates"])
            except (ValueError, KeyError, TypeError):
                continue

    def get(self, gpu: Gpu) -> Rates | None:
        """What was measured of this card under its driver."""
        return self._rates.get((gpu.uuid, gpu.driver))

    def put(self, gpu: Gpu, rates: Rates) -> None:
        """Keep a measurement, and append it to the file."""
        self._rates[gpu.uuid, gpu.driver] = rates
        self._file.append({"uuid": gpu.uuid, "driver": gpu.driver, "name": gpu.name, "rates": asdict(rates)})


async def measured_profile(runner: GpuRunner, store: RateStore) -> DeviceProfile:
    """The profile of a runner's card, which is measured once per card and driver.

    Raises GpuUnavailable, RunnerFailed or EvaluatorFailed.
    """
    gpu = runner.gpu
    answers, rates = await anyio.to_thread.run_sync(ask, gpu), store.get(gpu)
    if rates is None:
        try:
            async with runner.lease():
                found = await runner.ask(codec.pack(MeasureRates()), MEASURE_SECONDS, Rates)
        except RunnerLost as lost:
            raise EvaluatorFailed(f"{gpu.name} ({gpu.uuid}): its runner was lost while the card was measured") from lost
        if not isinstance(found, Rates):
            raise EvaluatorFailed(f"{gpu.name} ({gpu.uuid}) cannot be measured: {found.detail}")
        rates = found
        store.put(gpu, rates)
    return derive(answers, rates)


def check(gpu: Gpu) -> None:
    """Raises ValueError, one line, for a card that has no named profile and of which none can be made."""
    try:
        why = refusal(ask(gpu))
    except gpus.GpuUnavailable as error:
        why = str(error)
    if why is not None:
        raise ValueError(why)
