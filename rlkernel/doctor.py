"""`rlkernel doctor`: what this machine offers, and what that means for rlkernel."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from dataclasses import dataclass
from pathlib import Path

import pynvml
from rich.console import Console
from rich.table import Table

from rlkernel.evaluator import sandbox

PACKAGES = ("torch", "triton", "trl", "transformers", "anyio", "nvidia-ml-py", "wandb", "tyro", "numpy")


@dataclass(frozen=True, slots=True)
class Gpu:
    name: str
    memory_gib: float
    free_gib: float
    driver: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One row: what was looked at, what was found, what it means. `ok` None: neither good nor bad."""

    what: str
    found: str
    meaning: str
    ok: bool | None = None


def gpus() -> list[Gpu]:
    """NVIDIA GPUs that the driver's management library sees; empty without a driver."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        driver = str(pynvml.nvmlSystemGetDriverVersion())
        found = []
        for index in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
            found.append(Gpu(str(pynvml.nvmlDeviceGetName(handle)), memory.total / 2**30, memory.free / 2**30, driver))
        return found
    finally:
        pynvml.nvmlShutdown()


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _sandbox() -> Finding:
    level = sandbox.level()
    if level.seccomp and level.landlock:
        meaning = "candidates cannot start processes, use the network, signal, write, or read outside the interpreter"
        return Finding("sandbox", level.describe(), meaning, True)
    if level.seccomp:
        meaning = "as above, but candidates can read what this user can read: the kernel has no Landlock"
        return Finding("sandbox", level.describe(), meaning, None)
    return Finding("sandbox", level.describe(), "candidates are limited in time and memory only: use a throw-away machine", False)


def findings() -> list[Finding]:
    rows: list[Finding] = []
    cards = gpus()
    for index, card in enumerate(cards):
        busy = card.free_gib < 0.9 * card.memory_gib
        meaning = "memory is in use by others, so a measured time would not be trustworthy" if busy else "idle"
        found = f"{card.name}, {card.memory_gib:.0f} GiB ({card.free_gib:.0f} free), driver {card.driver}"
        rows.append(Finding(f"cuda:{index}", found, meaning, not busy))
    if not cards:
        rows.append(Finding("GPU", "none found", "times are modelled by a roofline and say so; kernels are compiled and run"))
    rows.append(_sandbox())
    cores = len(os.sched_getaffinity(0))
    rows.append(Finding("cores", str(cores), f"{cores} evaluations at a time by default (--jobs)"))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    rows.append(Finding("memory", f"{memory:.0f} GiB", "6 GiB are enough for the small policy", memory > 5.5))
    rows.append(Finding("python", platform.python_version(), "3.11 or newer is needed", None))
    for package in PACKAGES:
        version = _version(package)
        rows.append(
            Finding(package, version or "missing", "" if version else f"pip install {package}", None if version else False)
        )
    key = bool(os.environ.get("WANDB_API_KEY")) or (Path.home() / ".netrc").exists()
    rows.append(Finding("W&B", "key found" if key else "no key", "runs are uploaded" if key else "runs are logged offline"))
    return rows


def show(console: Console) -> bool:
    """Print the table; returns whether nothing is wrong."""
    table = Table(box=None, pad_edge=False)
    for name in ("", "what", "found", "what it means"):
        table.add_column(name, overflow="fold")
    rows = findings()
    for row in rows:
        mark = {True: "[green]ok[/]", False: "[red]!![/]", None: ""}[row.ok]
        table.add_row(mark, row.what, row.found, row.meaning)
    console.print(table)
    return all(row.ok is not False for row in rows)
