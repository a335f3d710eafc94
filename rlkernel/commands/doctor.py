"""`rlkernel doctor`: what this machine offers, and what that means for rlkernel."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from rich.console import Console
from rich.table import Table

from rlkernel.checks import check_number, check_weights
from rlkernel.errors import UsageError
from rlkernel.evaluator.cards import card_profile, gpus
from rlkernel.evaluator.cards.gpus import Gpu, Reading
from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.evaluator.devices import DeviceProfile
from rlkernel.evaluator.processes import sandbox

if TYPE_CHECKING:
    from rlkernel.training.memory_ways import Room

PACKAGES = ("torch", "triton", "trl", "transformers", "anyio", "nvidia-ml-py", "wandb", "numpy")


@dataclass(frozen=True, slots=True)
class Finding:
    """One row of the table: what was looked at, what was found, what it means. `ok` None: neither good nor bad."""

    what: str
    found: str
    meaning: str
    ok: bool | None = None


def _or_unknown(value: float | None, unit: str) -> str:
    return "unknown" if value is None else f"{value:.0f} {unit}"


def card(gpu: Gpu, reading: Reading, busy: str | None) -> list[Finding]:
    """The table's rows on one card. busy: what `gpus.busy` said of it."""
    free = "" if reading.free_bytes is None else f" ({reading.free_bytes / 2**30:.0f} free)"
    about = f"{gpu.name}, {gpu.memory_bytes / 2**30:.0f} GiB{free}, driver {gpu.driver}, {gpu.uuid}"
    if busy is not None:
        meaning = f"measured times would not be trustworthy: {busy}"
    elif reading.processes is None:
        meaning = "idle, as far as this driver tells: it does not list processes"
    else:
        meaning = "idle: no process of others, free to measure"
    throttle = "throttling unknown" if reading.throttle is None else ", ".join(reading.throttle) or "not throttled"
    clocks = (
        f"SM {_or_unknown(reading.sm_mhz, 'MHz')}, memory {_or_unknown(reading.memory_mhz, 'MHz')}, "
        f"{_or_unknown(reading.temperature_c, 'C')}, {_or_unknown(reading.power_w, 'W')}, {throttle}"
    )
    return [
        Finding(f"cuda:{gpu.index}", about, meaning, busy is None),
        Finding(f"cuda:{gpu.index} clocks", clocks, ""),
        profile(gpu),
    ]


def profile(gpu: Gpu) -> Finding:
    """The table's row on what a card can do at best: by its name, or from its driver's answers."""
    what, named = f"cuda:{gpu.index} profile", gpus.profile(gpu)
    if named is not None:
        return Finding(what, f"{named.name}: {_rates(named)}", "times below its roofline are implausible", True)
    try:
        answers = card_profile.ask(gpu)
    except gpus.GpuUnavailable as error:
        return Finding(what, str(error), "no measured times on this card", False)
    if (why := card_profile.refusal(answers)) is not None:
        return Finding(what, why, "no measured times on this card", False)
    meaning = "from the driver's answers; bandwidth and launches are measured when the card is first used"
    return Finding(what, f"made of the card: {_rates(card_profile.derive(answers))}", meaning, True)


def _rates(found: DeviceProfile) -> str:
    """A profile in a line: 1 GB/s is 1000 bytes per microsecond, 1 TFLOP/s a million operations."""
    half = found.matrix_flops_per_us["bf16"] / 1e6
    memory = found.dram_bytes_per_us / 1e3
    return f"sm_{found.arch}, {found.processors} processors, {memory:.0f} GB/s, {half:.0f} TFLOP/s in bfloat16"


def torch_build(build: str | None, driver: str | None) -> Finding:
    """On a machine with a GPU: whether torch, built for CUDA `build` (None: without), works with a driver for CUDA `driver`."""
    if build is None:
        return Finding("torch's CUDA", "none: a CPU build", "no measured times: install torch's CUDA build", False)
    if driver is None:
        return Finding("torch's CUDA", build, "the driver does not say which CUDA it supports")
    found = f"{build}, the driver supports {driver}"
    if int(build.split(".")[0]) > int(driver.split(".")[0]):
        return Finding("torch's CUDA", found, "the driver is too old: update it, or install torch for an older CUDA", False)
    return Finding("torch's CUDA", found, "", True)


def _bindings() -> Finding:
    try:
        importlib.import_module("cuda.bindings.driver")
    except ImportError as error:
        return Finding("cuda.bindings", f"missing ({error})", "no measured times: pip install cuda-bindings", False)
    return Finding("cuda.bindings", _version("cuda-bindings") or "present", "loads and launches candidates' kernels", True)


def _gpu_rows() -> list[Finding]:
    modelled = f"times are modelled for {EvaluatorConfig().profile} by a roofline, unless --profile says otherwise"
    try:
        found = gpus.find()
        busy = [gpus.wait_idle(gpu) for gpu in found]
        rows = [row for gpu, reason in zip(found, busy, strict=True) for row in card(gpu, gpus.read(gpu), reason)]
    except gpus.GpuUnavailable as error:
        return [Finding("GPU", str(error), f"without the driver, {modelled}", False)]
    if not found:
        setting = os.environ.get("CUDA_VISIBLE_DEVICES")
        under = "" if setting is None else f" (CUDA_VISIBLE_DEVICES={setting!r})"
        return [Finding("GPU", f"none found{under}", modelled)]
    return [*rows, torch_build(torch.version.cuda, gpus.cuda_version()), _bindings()]


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
    """All rows of the table."""
    rows = [*_gpu_rows(), _sandbox()]
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


def check_flags(given: Any) -> None:
    """Raise UsageError for flags of the command that no run could have, by the rules of `Run` and `sharding`."""
    from rlkernel.training import sharding

    def said(name: str) -> str:
        return f"--{name.replace('_', '-')}"

    check_number(given, "turns", "max_new_tokens", "pieces", least=1, whole=True, said=said)
    check_number(given, "lora_rank", "staleness", "evaluation_gib", least=0, whole=True, said=said)
    check_number(given, "card_gib", "gib", least=0, said=said)
    check_weights(given.weights, given.lora_rank, given.rule, said)
    if given.pieces > 1:
        sharding.check_weights(given.weights, f"--pieces is {given.pieces} and --weights")


def policy_room(*, device: str, evaluation_gib: int, card_gib: float, gib: float, pieces: int) -> Room:
    """The memory that a policy has, by the flags of `rlkernel doctor --model`. Raises UsageError for flags of which one would be
    ignored."""
    from rlkernel.training.preflight import room_here, room_of_card, room_of_policy

    if gib and (evaluation_gib or card_gib):
        raise UsageError("--gib is what the policy alone has: for a card that evaluations share, give --card-gib instead of it")
    if (gib or card_gib) and device != "auto":
        raise UsageError("--device is of this machine, and --gib and --card-gib are of another: leave one of them out")
    if pieces > 1 and (card_gib or evaluation_gib):
        raise UsageError("--pieces: each of these processes has a card without evaluations: give --gib alone")
    if gib:
        return room_of_policy(gib)
    room = room_of_card(card_gib, evaluation_gib) if card_gib else room_here(device, evaluation_gib, "--device")
    if room.limit < 0:
        raise UsageError(f"--card-gib {card_gib:g}: too little for a policy and evaluations")
    if evaluation_gib and not room.others:
        raise UsageError("--evaluation-gib: evaluations share no card with the policy here: name one with --card-gib")
    return room
