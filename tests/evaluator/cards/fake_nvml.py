"""An NVML with one card, in memory."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from rlkernel.evaluator.cards import gpus

GIB = 1 << 30


class FakeNvml:
    """The functions that `gpus` uses, for one card. Fields in `absent` are not supported, as in some virtual machines."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = pynvml.NVML_CLOCK_SM, pynvml.NVML_CLOCK_MEM, pynvml.NVML_TEMPERATURE_GPU
    NVMLError = pynvml.NVMLError
    NVMLError_LibraryNotFound = pynvml.NVMLError_LibraryNotFound
    NVMLError_DriverNotLoaded = pynvml.NVMLError_DriverNotLoaded

    def __init__(self, absent: frozenset[str] = frozenset(), error: int = pynvml.NVML_ERROR_NOT_SUPPORTED) -> None:
        self.open = 0
        self.reads = 0
        self.utilisation = 50
        self.reasons = 0x1 | 0x2 | 0x4 | 0x40
        self.absent = absent
        self._error = error

    def nvmlInit(self) -> None:
        self._value("Init", None)
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def _value(self, name: str, value: Any) -> Any:
        if name in self.absent:
            raise pynvml.NVMLError(self._error)
        return value

    def nvmlSystemGetDriverVersion(self) -> str:
        return "580.1"

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:
        return 12080

    def nvmlDeviceGetCount(self) -> int:
        return 1

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        return f"handle {index}"

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        self.reads += 1
        return str(self._value("HandleByUUID", "handle 0"))

    def nvmlDeviceGetUUID(self, handle: str) -> str:
        return "GPU-aa-11"

    def nvmlDeviceGetName(self, handle: str) -> str:
        return "NVIDIA H200"

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> Any:
        return self._value("MemoryInfo", SimpleNamespace(total=140 * GIB, used=GIB, free=139 * GIB))

    def nvmlDeviceGetClockInfo(self, handle: str, kind: int) -> Any:
        return self._value("ClockInfo", {pynvml.NVML_CLOCK_SM: 1980, pynvml.NVML_CLOCK_MEM: 3201}[kind])

    def nvmlDeviceGetTemperature(self, handle: str, sensor: int) -> Any:
        return self._value("Temperature", 41)

    def nvmlDeviceGetPowerUsage(self, handle: str) -> Any:
        return self._value("PowerUsage", 120_500)

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: str) -> Any:
        return self._value("CurrentClocksEventReasons", self.reasons)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> Any:
        return self._value("ComputeRunningProcesses", [SimpleNamespace(pid=os.getpid(), usedGpuMemory=None)])

    def nvmlDeviceGetUtilizationRates(self, handle: str) -> Any:
        return self._value("UtilizationRates", SimpleNamespace(gpu=self.utilisation, memory=3))


def use(fake: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    """Let `gpus` see only the fake card, and all of it."""
    monkeypatch.setattr(gpus, "pynvml", fake)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return fake
