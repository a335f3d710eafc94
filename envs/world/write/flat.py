"""Kernels with one program per block of a flat output: elementwise operations, windows, and the sum of partial products."""

from __future__ import annotations

from envs.world.ops import Kind
from envs.world.schedule import Stage
from envs.world.task import Task
from envs.world.write.elements import Reach, element_lines, kernel_name, operands, passed, widen
from envs.world.write.text import Page, Written, kernel_text


def _launch(page: Page, stage: Stage, name: str, arguments: list[str]) -> str:
    block = stage["block"]
    grid = page.pick("flat.grid", f"triton.cdiv(n, {block})", block=block)
    return f"{name}[({grid},)]({', '.join(arguments)}, BLOCK={block}, num_warps={stage['warps']})"


def _offsets(page: Page) -> list[str]:
    start = page.pick("program", "tl.program_id(0)") + page.pick("flat.start", " * BLOCK")
    return [f"i = {start} + tl.arange(0, BLOCK)", page.pick("flat.mask", "m = i < n")]


def _store(page: Page) -> str:
    return f"tl.store(y_ptr + i, x{page.pick('store.mask', ', mask=m')})"


def flat(page: Page, task: Task, stage: Stage) -> Written:
    """Elementwise operations on all elements, whatever the shape."""
    steps = task.steps[stage.first : stage.last]
    name, names = kernel_name(steps), operands(steps)
    columns = any(step.op.vector for step in steps)
    reach = Reach("i % cols", "m", "i", "m", "i // cols")
    load = f"x = tl.load(x_ptr + i{page.pick('load.mask', ', mask=m')}){widen(page, task)}"
    body = [*_offsets(page), load, *element_lines(page, steps, reach), _store(page)]
    parameters = ["x_ptr", *(f"{n}_ptr" for n in names), "y_ptr", "n", *(["cols"] if columns else [])]
    arguments = ["x", *passed(names), "y", "n", *([page.pick("cols", "x.shape[-1]")] if columns else [])]
    launch = ["y = torch.empty_like(x)", "n = x.numel()", _launch(page, stage, name, arguments)]
    return Written((kernel_text(page, name, parameters, ["BLOCK"], body),), tuple(launch))


def pool(page: Page, task: Task, stage: Stage) -> Written:
    """Windows side by side along the row, with elementwise operations before and after."""
    steps = task.steps[stage.first : stage.last]
    core = next(k for k, step in enumerate(steps) if step.op.kind is Kind.POOL)
    window, name = int(steps[core].constants[0]), kernel_name(steps)
    average = steps[core].op.name == "avg_pool"
    index = f"(i // out) * {page.pick('pool.row', 'cols')} + (i % out) * {page.pick('pool.stride', 'WINDOW')}"
    start = "0.0" if average else page.pick("pool.low", '-float("inf")')
    update = "total + x" if average else page.pick("pool.update", "tl.maximum(total, x)")
    body = [
        *_offsets(page),
        f"first = {index}",
        f"total = tl.full((BLOCK,), {start}, dtype=tl.float32)",
        f"for k in range({page.pick('pool.range', 'WINDOW')}):",
        f"    x = tl.load(x_ptr + first + k{page.pick('load.mask', ', mask=m')}, other=0.0){widen(page, task)}",
        *(f"    {line}" for line in element_lines(page, steps[:core], None)),
        f"    total = {update}",
        f"x = total{page.pick('pool.divide', ' / WINDOW') if average else ''}",
        *element_lines(page, steps[core + 1 :], None),
        _store(page),
    ]
    launch = [
        "cols = x.shape[-1]",
        f"out = cols // {window}",
        f"y = torch.empty((*x.shape[:-1], out), device=x.device, dtype={page.pick('dtype', 'x.dtype')})",
        "n = y.numel()",
        _launch(page, stage, name, ["x", "y", "n", "cols", "out", f"WINDOW={window}"]),
    ]
    parameters = ["x_ptr", "y_ptr", "n", "cols", "out"]
    return Written((kernel_text(page, name, parameters, ["WINDOW", "BLOCK"], body),), tuple(launch))


def combine_products(page: Page, task: Task, first: int, last: int, splits: int) -> tuple[str, list[str]]:
    """The kernel that adds partial products `p` of shape (splits, n) and applies steps `first` to `last`, and its launch."""
    steps = task.steps[first:last]
    names = operands(steps)
    columns = any(step.op.vector for step in steps)
    body = [
        "i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)",
        "m = i < n",
        "x = tl.zeros((BLOCK,), dtype=tl.float32)",
        f"for split in range({page.pick('combine.range', 'SPLITS')}):",
        "    x += tl.load(p_ptr + split * n + i, mask=m, other=0.0)",
        *element_lines(page, steps, Reach("i % cols", "m", "i", "m", "i // cols")),
        "tl.store(y_ptr + i, x, mask=m)",
    ]
    parameters = ["p_ptr", *(f"{n}_ptr" for n in names), "y_ptr", "n", *(["cols"] if columns else [])]
    arguments = ["p", *passed(names), "y", "y.numel()", *(["y.shape[-1]"] if columns else [])]
    text = kernel_text(page, "add_parts_kernel", parameters, ["SPLITS", "BLOCK"], body)
    launch = f"add_parts_kernel[(triton.cdiv(y.numel(), 1024),)]({', '.join(arguments)}, SPLITS={splits}, BLOCK=1024)"
    return text, [launch]
