"""The GPUs of this machine and their state, through the driver's management library (NVML) alone.

CUDA is never initialised here, so a process that forks, and a test without a GPU, may use all of this file.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pynvml

from rlkernel.evaluator.devices import PROFILES, DeviceProfile

MIN_FREE_BYTES = 4 << 30
"""The free memory without which a card counts as busy."""
MAX_UTILISATION = 5
"""The utilisation, in percent of NVML's last sample (up to one second), up to which a card counts as idle."""
SETTINGS = 0x1 | 0x2
"""The clock-event reasons that are no throttling: an idle card, and clocks that somebody set."""
THROTTLES = {
    0x004: "power cap",
    0x008: "hardware slowdown",
    0x010: "sync boost",
    0x020: "thermal slowdown (software)",
    0x040: "thermal slowdown (hardware)",
    0x080: "power brake",
    0x100: "display clock setting",
    0x200: "board limit",
    0x400: "reliability limit",
}
"""The clock-event reasons that slow the clock, by their bit in what nvmlDeviceGetCurrentClocksEventReasons returns."""
ABSENT = (
    pynvml.NVMLError_NotSupported,
    pynvml.NVMLError_NoPermission,
    pynvml.NVMLError_FunctionNotFound,
    pynvml.NVMLLibraryMismatchError,
)
"""The errors of NVML for a field that this driver, or a virtual machine's view of the card, does not have."""


OTHER_VERSIONS = {"pcie", "nvl", "40gb", "d", "laptop", "mig"}
"""Words of names of cards that share a word with a known model, and differ from it in clocks or memory."""


class GpuUnavailable(RuntimeError):
    """A driver is there and does not answer for the card. The message is one line."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """One card that CUDA may use."""

    index: int
    """The N of `cuda:N`, which is the card's place among the visible ones, in PCI order. To be independent of
    CUDA_DEVICE_ORDER, give a process its card as CUDA_VISIBLE_DEVICES=<uuid>."""
    uuid: str
    name: str
    memory_bytes: int
    driver: str


@dataclass(frozen=True, slots=True)
class Reading:
    """A card's state at one time. A field is None if this driver or virtual machine does not tell."""

    time: float
    """The time of the reading, in seconds since the epoch."""
    sm_mhz: int | None
    memory_mhz: int | None
    temperature_c: int | None
    power_w: float | None
    throttle: tuple[str, ...] | None
    """The active reasons that slow the clock, in words; idleness and clocks that somebody set are none."""
    used_bytes: int | None
    free_bytes: int | None
    processes: tuple[tuple[int, int | None], ...] | None
    """The pid and bytes of every compute process on the card. In a container the pids may be the host's."""
    utilisation: int | None
    """The percentage of the last sample period in which a kernel ran."""


@contextmanager
def session() -> Iterator[None]:
    """Keep NVML open. Sessions nest; without one around it, every call here opens its own, which takes longer."""
    pynvml.nvmlInit()
    try:
        yield
    finally:
        pynvml.nvmlShutdown()


def find() -> tuple[Gpu, ...]:
    """Return the cards that CUDA may use, as CUDA_VISIBLE_DEVICES shows them. Without a driver there are none.

    Raises GpuUnavailable if there is a driver that does not answer (after an upgrade without a restart, for instance).
    """
    try:
        with session():
            driver = str(pynvml.nvmlSystemGetDriverVersion())
            cards = [_gpu(index, driver) for index in range(pynvml.nvmlDeviceGetCount())]
    except (pynvml.NVMLError_LibraryNotFound, pynvml.NVMLError_DriverNotLoaded):
        return ()
    except pynvml.NVMLError as error:
        raise GpuUnavailable(f"the NVIDIA driver does not answer: {error}") from error
    return visible(cards, os.environ.get("CUDA_VISIBLE_DEVICES"))


def _gpu(index: int, driver: str) -> Gpu:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    memory = _field(lambda: pynvml.nvmlDeviceGetMemoryInfo(handle))
    return Gpu(
        index=index,
        uuid=str(pynvml.nvmlDeviceGetUUID(handle)),
        name=str(pynvml.nvmlDeviceGetName(handle)),
        memory_bytes=0 if memory is None else int(memory.total),
        driver=driver,
    )


def visible(cards: Sequence[Gpu], setting: str | None) -> tuple[Gpu, ...]:
    """Return `cards` as CUDA_VISIBLE_DEVICES=`setting` shows them, numbered anew, by CUDA's rules.

    Entries are indices or UUIDs (or their beginnings). They count up to the first one that names no card, and none counts if a
    card is named twice. A `setting` of None, for a variable that is not set, shows all cards.
    """
    if setting is None:
        return tuple(cards)
    chosen: list[Gpu] = []
    for entry in (part.strip() for part in setting.split(",")):
        if entry.isdecimal():
            matches = [card for card in cards if card.index == int(entry)]
        else:
            matches = [card for card in cards if entry.startswith("GPU-") and card.uuid.startswith(entry)]
        if len(matches) != 1:
            break
        chosen += matches
    if len(set(chosen)) != len(chosen):
        return ()
    return tuple(Gpu(place, card.uuid, card.name, card.memory_bytes, card.driver) for place, card in enumerate(chosen))


def select(device: str, found: Sequence[Gpu] | None = None) -> tuple[Gpu, ...]:
    """Return the cards that `device` asks for.

    auto: all, or none without a GPU; cpu: none; cuda: all; cuda:N: that one; cuda:N,M: both. `found` is what `find()` returned,
    if it was called before. Raises ValueError with one line.
    """
    number = re.fullmatch(r"cuda:(\d+(?:,\d+)*)", device)
    if device == "cpu":
        return ()
    if device not in ("auto", "cuda") and number is None:
        raise ValueError(f"device {device!r} is unknown: use auto, cpu, cuda, cuda:N or ray")
    try:
        cards = tuple(find() if found is None else found)
    except GpuUnavailable as error:
        raise ValueError(f"device {device!r}: {error}; use cpu for modelled time") from error
    if device == "auto":
        return cards
    setting = os.environ.get("CUDA_VISIBLE_DEVICES")
    under = "" if setting is None else f" (CUDA_VISIBLE_DEVICES={setting!r})"
    if not cards:
        raise ValueError(f"device {device!r}: no NVIDIA GPU was found{under}; use auto or cpu (modelled time)")
    if number is None:
        return cards
    wanted = {int(text) for text in number[1].split(",")}
    chosen = tuple(card for card in cards if card.index in wanted)
    if len(chosen) < len(wanted):
        there = ", ".join(f"cuda:{card.index} ({card.name})" for card in cards)
        raise ValueError(f"device {device!r} is not there{under}: use one of {there}")
    return chosen


def models(cards: Sequence[Gpu]) -> str:
    """The names of the models among `cards`, each once, in order. It is a part of a verdict's key: equal cards, also those of
    other commands, share verdicts."""
    return " + ".join(dict.fromkeys(card.name for card in cards))


def profile(gpu: Gpu) -> DeviceProfile | None:
    """Return the profile of the card's model, by a word of its name (a GH200 is no H200); None if the model has none."""
    words = re.split(r"[\s-]+", gpu.name.lower().replace("rtx ", "rtx"))
    if OTHER_VERSIONS & set(words):
        return None
    return next((known for name, known in PROFILES.items() if name in words), None)


def cuda_version() -> str | None:
    """Return the newest version of CUDA that the driver supports, e.g. `13.0`; None without a driver."""
    try:
        with session():
            number = int(pynvml.nvmlSystemGetCudaDriverVersion_v2())
    except pynvml.NVMLError:  # without an answer there is no version to show; `find` says what is wrong
        return None
    return f"{number // 1000}.{number % 1000 // 10}"


def _field(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except ABSENT:
        return None


def throttles(mask: int) -> tuple[str, ...]:
    """Return the reasons in NVML's `mask` that slow the clock, in words.

    >>> throttles(0x1 | 0x2), throttles(0x4 | 0x20), throttles(0x800)
    ((), ('power cap', 'thermal slowdown (software)'), ('reason 0x800',))
    """
    bits = (1 << place for place in range(64) if mask & ~SETTINGS & 1 << place)
    return tuple(THROTTLES.get(bit, f"reason {bit:#x}") for bit in bits)


def read(gpu: Gpu) -> Reading:
    """Return the card's state now, which takes milliseconds. Raises GpuUnavailable if the card or the driver is lost."""
    try:
        with session():
            return _read(pynvml.nvmlDeviceGetHandleByUUID(gpu.uuid))
    except pynvml.NVMLError as error:
        raise GpuUnavailable(f"cuda:{gpu.index} ({gpu.name}) does not answer: {error}") from error


def _read(handle: Any) -> Reading:
    memory = _field(lambda: pynvml.nvmlDeviceGetMemoryInfo(handle))
    power_mw = _field(lambda: pynvml.nvmlDeviceGetPowerUsage(handle))
    reasons = _field(lambda: pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle))
    processes = _field(lambda: pynvml.nvmlDeviceGetComputeRunningProcesses(handle))
    rates = _field(lambda: pynvml.nvmlDeviceGetUtilizationRates(handle))
    return Reading(
        time=time.time(),
        sm_mhz=_field(lambda: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)),
        memory_mhz=_field(lambda: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM)),
        temperature_c=_field(lambda: pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)),
        power_w=None if power_mw is None else power_mw / 1000,
        throttle=None if reasons is None else throttles(int(reasons)),
        used_bytes=None if memory is None else int(memory.used),
        free_bytes=None if memory is None else int(memory.free),
        processes=None if processes is None else tuple((int(row.pid), row.usedGpuMemory) for row in processes),
        utilisation=None if rates is None else int(rates.gpu),
    )


def _known_here(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def foreign(
    reading: Reading, own_pids: Collection[int], known_here: Callable[[int], bool] = _known_here
) -> tuple[tuple[int, int | None], ...]:
    """Return the pid and bytes of each process on the card that is not ours.

    `own_pids` are those of our processes that may hold the card. A container's NVML may list the host's pids: as many unknown
    pids as we have unlisted processes may be ours, and the largest are given the benefit of the doubt.
    """
    own = set(own_pids)
    listed = reading.processes or ()
    others = [row for row in listed if row[0] not in own]
    hidden = sorted((row for row in others if not known_here(row[0])), key=lambda row: row[1] or 0, reverse=True)
    ours = hidden[: len(own - {pid for pid, _ in listed})]
    return tuple(row for row in others if row not in ours)


def busy(reading: Reading, own_pids: Collection[int] = ()) -> str | None:
    """Say in one line why a time measured on this card would not be trustworthy; None if nothing speaks against it.

    This is meant for a card that we have not loaded yet: our own work counts as utilisation too. See `foreign` for `own_pids`.
    """
    reasons = [
        f"process {pid} holds {'memory' if held is None else f'{held >> 20} MiB'}" for pid, held in foreign(reading, own_pids)
    ]
    if reading.utilisation is not None and reading.utilisation > MAX_UTILISATION:
        reasons.append(f"kernels ran {reading.utilisation} % of the last second")
    if reading.free_bytes is not None and reading.free_bytes < MIN_FREE_BYTES:
        reasons.append(f"only {reading.free_bytes >> 20} MiB are free, {MIN_FREE_BYTES >> 20} MiB are needed")
    if reading.throttle:
        reasons.append(f"the clock is slowed by {', '.join(reading.throttle)}")
    return "; ".join(reasons) or None


def wait_idle(gpu: Gpu, own_pids: Collection[int] = (), seconds: float = 3.0) -> str | None:
    """Ask `busy` again for up to `seconds`, because NVML looks back: a process that has just ended still shows.

    This blocks, so async code calls it in a worker thread.
    """
    deadline = time.monotonic() + seconds
    while True:
        reason = busy(read(gpu), own_pids)
        if reason is None or time.monotonic() >= deadline:
            return reason
        time.sleep(0.5)
