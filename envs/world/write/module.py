"""The whole text of a candidate: imports, constants, kernels, and `ModelNew` with the stages in its `forward`."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from envs.world.schedule import TORCH, Schedule, Stage
from envs.world.task import Task
from envs.world.write.flat import flat, pool
from envs.world.write.loops import loop
from envs.world.write.products import product
from envs.world.write.rows import row_whole
from envs.world.write.text import Page, Place, Slip, Written

WRITERS = {
    "flat": flat,
    "pool": pool,
    "row_whole": row_whole,
    "row_loop": loop,
    "row_split": loop,
    "column_loop": loop,
    "column_split": loop,
    "product": product,
    "product_row": product,
    "product_split": product,
}
"""What writes each form."""


class Use(StrEnum):
    """How the results of a candidate's kernels are used."""

    LIVE = "live"
    """They are the input of the next stage, or the output."""
    UNUSED = "unused"
    """The kernels are launched, torch computes everything once more, and torch's result is returned."""
    NONE = "none"
    """There is no kernel; torch does everything."""


def code(task: Task, schedule: Schedule, slips: Sequence[Slip] = (), use: Use = Use.LIVE) -> str:
    """The candidate's source."""
    return _write(task, schedule, tuple(slips), use)[0]


def places(task: Task, schedule: Schedule) -> tuple[Place, ...]:
    """Every place of the candidate where a mistake can go."""
    return _write(task, schedule, (), Use.LIVE)[1]


def _write(task: Task, schedule: Schedule, slips: tuple[Slip, ...], use: Use) -> tuple[str, tuple[Place, ...]]:
    pages, written = [], []
    for number, stage in enumerate(schedule):
        page = Page(number, slips)
        pages.append(page)
        written.append(None if stage.form == TORCH else WRITERS[stage.form](page, task, stage))
    forward = _forward(task, schedule, written, pages, use)
    kernels = [kernel for found in written if found is not None and use is not Use.NONE for kernel in found.kernels]
    parts = [_imports(forward, bool(kernels)), _constants(task), *kernels, _module(task, forward)]
    text = "\n".join(part for part in parts if part)
    return text, tuple(place for page in pages for place in page.places)


def _forward(task: Task, schedule: Schedule, written: Sequence[Written | None], pages: Sequence[Page], use: Use) -> list[str]:
    everything = [step.torch for step in task.steps]
    if use is Use.NONE:
        return [*everything, "return x"]
    lines: list[str] = []
    for stage, found, page in zip(schedule, written, pages, strict=True):
        if found is None:
            lines += (
                [] if use is Use.UNUSED else [page.pick("torch", step.torch) for step in task.steps[stage.first : stage.last]]
            )
            result = "x"
        else:
            lines += found.launch
            if use is Use.UNUSED:
                return [*lines, *everything, "return x"]
            result = "y"
            if stage is not schedule[-1]:
                lines.append(page.pick("hand.over", "x = y"))
                result = "x"
    return [*(line for line in lines if line), f"return {result}"]


def _imports(forward: Sequence[str], kernels: bool) -> str:
    lines = ["import torch", "import torch.nn as nn"]
    lines += ["import torch.nn.functional as F"] if any("F." in line for line in forward) else []
    lines += ["import triton", "import triton.language as tl"] if kernels else []
    return "\n".join(lines) + "\n"


def _constants(task: Task) -> str:
    """The sizes that parameters have."""
    text = ", ".join(task.parameters().values()).split(", ")
    return "".join(f"{name} = {size}\n" for name, size in task.sizes if name in text)


def _module(task: Task, forward: Sequence[str]) -> str:
    kind = f", dtype=torch.{task.dtype}" if task.half else ""
    lines = ["class ModelNew(nn.Module):"]
    if task.parameters():
        lines += ["    def __init__(self):", "        super().__init__()"]
        lines += [f"        self.{name} = nn.Parameter(torch.randn({shape}{kind}))" for name, shape in task.parameters().items()]
        lines.append("")
    lines += [f"    def forward(self, {', '.join(task.inputs())}):", *(f"        {line}" for line in forward)]
    return "\n".join(lines) + "\n"


def stage_names(task: Task, stage: Stage) -> tuple[str, ...]:
    """The names of a stage's operations."""
    return tuple(step.op.name for step in task.steps[stage.first : stage.last])
