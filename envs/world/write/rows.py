"""Kernels whose programs hold whole rows, one or several, in one tile."""

from __future__ import annotations

from envs.world.ops import Kind
from envs.world.schedule import Stage
from envs.world.task import Task
from envs.world.write.elements import Reach, element_lines, kernel_name, operands, passed, widen
from envs.world.write.reductions import AT_ONCE, Fill, filled, neutral
from envs.world.write.text import Page, Written, kernel_text

ONE_ROW, SEVERAL_ROWS = "axis=0", "axis=1, keep_dims=True"


def row_whole(page: Page, task: Task, stage: Stage) -> Written:
    """A row operator with the elementwise operations around it; `rows` rows per program."""
    steps = task.steps[stage.first : stage.last]
    core = next(k for k, step in enumerate(steps) if step.op.kind is not Kind.ELEMENT)
    op, count, name, names = steps[core].op, stage["rows"], kernel_name(steps), operands(steps)
    folds, several = op.kind is Kind.FOLD, count > 1
    beyond, reach = neutral(op.name), Reach("c", "c < cols", "i", "m", "row")
    if core:
        other, fill = ", other=0.0", [page.pick("neutral", f"x = tl.where(m, x, {beyond})", other="0.0")]
    else:
        other, fill = page.pick("load.other", f", other={page.pick('neutral.load', beyond)}"), []
    index = f"row * {page.pick('row.stride', 'cols')} + c"
    body = [
        *_places(page, several),
        f"i = {index}",
        f"x = tl.load(x_ptr + i, mask=m{other}){widen(page, task)}",
        *element_lines(page, steps[:core], reach),
        *fill,
        *filled(page, AT_ONCE[op.name], Fill(op.name, SEVERAL_ROWS if several else ONE_ROW, "cols", "BLOCK")),
        *element_lines(page, steps[core + 1 :], None if folds else reach),
        _store(page, folds=folds, several=several),
    ]
    parameters = ["x_ptr", *(f"{n}_ptr" for n in names), "y_ptr", *(["rows"] if several else []), "cols"]
    constants = ["ROWS_EACH", "BLOCK"] if several else ["BLOCK"]
    grid = page.pick("row.grid", f"triton.cdiv(rows, {count})", rows=count) if several else "rows"
    shape = "x.shape[:-1], device=x.device, dtype=x.dtype"
    arguments = ["x", *passed(names), "y", *(["rows"] if several else []), page.pick("cols", "cols")]
    settings = [*([f"ROWS_EACH={count}"] if several else []), "BLOCK=triton.next_power_of_2(cols)", f"num_warps={stage['warps']}"]
    launch = [
        "cols = x.shape[-1]",
        "rows = x.numel() // cols",
        f"y = torch.empty({shape})" if folds else "y = torch.empty_like(x)",
        f"{name}[({grid},)]({', '.join([*arguments, *settings])})",
    ]
    return Written((kernel_text(page, name, parameters, constants, body),), tuple(launch))


def _places(page: Page, several: bool) -> list[str]:
    program = page.pick("program", "tl.program_id(0)")
    if not several:
        return [f"row = {program}", "c = tl.arange(0, BLOCK)", page.pick("row.mask", "m = c < cols")]
    return [
        f"row = ({program}{page.pick('row.start', ' * ROWS_EACH')} + tl.arange(0, ROWS_EACH))[:, None]",
        "c = tl.arange(0, BLOCK)[None, :]",
        page.pick("rows.mask", "m = (row < rows) & (c < cols)"),
    ]


def _store(page: Page, *, folds: bool, several: bool) -> str:
    if folds and not several:
        return "tl.store(y_ptr + row, x)"
    if folds:
        return f"tl.store(y_ptr + row, x{page.pick('fold.mask', ', mask=row < rows')})"
    return f"tl.store(y_ptr + i, x{page.pick('store.mask', ', mask=m')})"
