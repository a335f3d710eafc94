"""Kernels that reduce in loops over tiles: one row per program, or one block of columns; chunks of it where it is split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from envs.world.ops import Kind, Op, Step
from envs.world.schedule import Stage
from envs.world.task import Task
from envs.world.write.elements import Reach, element_lines, kernel_name, operands, passed, widen
from envs.world.write.reductions import PARTIAL, PLAIN_NAME, Fill, filled, formula, neutral
from envs.world.write.text import Page, Written, kernel_text


@dataclass(frozen=True, slots=True)
class Geometry:
    """How a program walks: along its row, or down its columns."""

    place: tuple[str, ...]
    """Lines that say which row or columns are the program's."""
    extent: str
    """The number of elements along the walk."""
    step: str
    tile: str
    """The line that says which elements along the walk a tile holds."""
    mask: str
    """The line that says which elements of a tile exist, with `{end}` for where the walk ends."""
    index: str
    reach: Reach
    axis: str
    low: str
    zero: str
    result: str
    """Where the result of a reduction is stored, as pointer and mask."""
    partial: str
    """Where the partial result of chunk `split` is stored."""


def _rows(page: Page) -> Geometry:
    return Geometry(
        place=(f"row = {page.pick('program', 'tl.program_id(0)')}",),
        extent="cols",
        step="BLOCK",
        tile="c = start + tl.arange(0, BLOCK)",
        mask="m = c < {end}",
        index=f"row * {page.pick('row.stride.loop', 'cols')} + c",
        reach=Reach("c", "m", "row * cols + c", "m", "row"),
        axis="axis=0",
        low='-float("inf")',
        zero="0.0",
        result="y_ptr + row, x",
        partial=f"p_ptr + row * SPLITS{page.pick('partial.row', ' + split')}, x",
    )  # fmt: skip


def _columns(page: Page) -> Geometry:
    first = page.pick("program", "tl.program_id(0)") + page.pick("column.start", " * BC")
    return Geometry(
        place=(f"c = ({first} + tl.arange(0, BC))[None, :]",),
        extent="rows",
        step="BR",
        tile="r = (start + tl.arange(0, BR))[:, None]",
        mask=page.pick("column.mask", "m = (r < {end}) & (c < cols)"),
        index=f"r * {page.pick('column.stride', 'cols')} + c",
        reach=Reach("c", "c < cols", "r * cols + c", "m", "r"),
        axis="axis=0, keep_dims=True",
        low='tl.full((1, BC), -float("inf"), tl.float32)',
        zero="tl.zeros((1, BC), tl.float32)",
        result=f"y_ptr + c, x{page.pick('fold.mask', ', mask=c < cols')}",
        partial=f"p_ptr + {page.pick('partial.column', 'split * cols')} + c, x, mask=c < cols",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Body:
    """What the loops of a kernel do."""

    before: Sequence[Step]
    op: Op
    after: Sequence[Step]
    passes: int
    widen: str
    chunked: bool = False
    """Whether the program walks over its chunk alone and stores a partial result."""


def _walk(page: Page, body: Body, at: Geometry, inner: Sequence[str], *, mask: bool = True) -> list[str]:
    """One loop over the tiles with the operations before the operator, then `inner` per tile."""
    beyond = neutral(body.op.name)
    end = "end" if body.chunked else at.extent
    until = end if body.chunked else page.pick("loop.end", at.extent, extent=at.extent, step=at.step)
    bounds = f"{'begin' if body.chunked else '0'}, {until}, {at.step}"
    other = ", other=0.0" if body.before else page.pick("load.other", f", other={page.pick('neutral.load', beyond)}")
    fill = [page.pick("neutral", f"x = tl.where(m, x, {beyond})", other="0.0")] if body.before and mask else []
    lines = [
        at.tile,
        at.mask.format(end=end),
        f"x = tl.load(x_ptr + {at.index}, mask=m{other}){body.widen}",
        *element_lines(page, body.before, at.reach),
        *fill,
        *inner,
    ]
    return [f"for start in range({bounds}):", *(f"    {line}" for line in lines if line)]


def _lines(page: Page, body: Body, at: Geometry) -> list[str]:
    """The kernel's body, with the second loop that writes a normalised tile where the shape stays."""
    scheme = formula(body.op.name, body.passes)

    blanks = Fill(body.op.name, at.axis, at.extent, at.step, low=at.low, zero=at.zero)

    def fill(lines: Sequence[str]) -> list[str]:
        return filled(page, lines, blanks)

    lines = list(at.place)
    if body.chunked:
        chunk = page.pick("chunk", f"tl.cdiv({at.extent}, SPLITS)", extent=at.extent)
        lines += ["split = tl.program_id(1)", f"begin = split * {chunk}", f"end = tl.minimum(begin + {chunk}, {at.extent})"]
    for loop in scheme.loops:
        lines += [*fill(loop.before), *_walk(page, body, at, fill(loop.each)), *fill(loop.after)]
    if body.op.kind in (Kind.FOLD, Kind.COLUMN):
        short = PLAIN_NAME.get(body.op.name, body.op.name)
        last = (PARTIAL[short],) if body.chunked and short in PARTIAL else scheme.apply
        where = at.partial if body.chunked else at.result
        return [*lines, *fill(last), *element_lines(page, body.after, None), f"tl.store({where})"]
    lines += ["total = 0.0"] if body.op.kind is Kind.SCAN else []
    store = f"tl.store(y_ptr + {at.reach.element}, x{page.pick('store.mask', ', mask=m')})"
    applied = [*fill(scheme.apply), *element_lines(page, body.after, at.reach), store]
    return lines + _walk(page, body, at, applied, mask=body.op.kind is Kind.SCAN)


def _split(stage: Stage) -> bool:
    return stage.form.endswith("split")


def _is_row(stage: Stage) -> bool:
    return stage.form.startswith("row")


def loop(page: Page, task: Task, stage: Stage) -> Written:
    """The forms row_loop, row_split, column_loop and column_split."""
    steps = task.steps[stage.first : stage.last]
    core = next(k for k, step in enumerate(steps) if step.op.kind is not Kind.ELEMENT)
    op, rows = steps[core].op, _is_row(stage)
    at = _rows(page) if rows else _columns(page)
    passes = stage["passes"] if "passes" in dict(stage.knobs) else 1
    inside = steps[: core + 1] if _split(stage) else steps
    body = Body(steps[:core], op, inside[core + 1 :], passes, widen(page, task), chunked=_split(stage))
    name, names = kernel_name(inside), operands(inside)
    sizes = ["cols"] if rows else ["rows", "cols"]
    tiles = ["BLOCK"] if rows else ["BR", "BC"]
    result = "p_ptr" if _split(stage) else "y_ptr"
    parameters = ["x_ptr", *(f"{n}_ptr" for n in names), result, *sizes]
    constants = [*tiles, *(["SPLITS"] if _split(stage) else [])]
    kernel = kernel_text(page, name, parameters, constants, _lines(page, body, at))
    arguments = ["x", *passed(names), result[0], *(page.pick("cols", s) if s == "cols" else s for s in sizes)]
    launch = [*_shapes(op, rows), *_launches(page, stage, name, arguments)]
    if not _split(stage):
        return Written((kernel,), tuple(launch))
    combine, call = _combine(page, stage, op, steps[core + 1 :])
    return Written((kernel, combine), (*launch, call))


def _shapes(op: Op, rows: bool) -> list[str]:
    sizes = ["cols = x.shape[-1]", "rows = x.numel() // cols"]
    if op.kind is Kind.FOLD:
        return [*sizes, "y = torch.empty(x.shape[:-1], device=x.device, dtype=x.dtype)"]
    return [
        *sizes,
        "y = torch.empty(x.shape[1:], device=x.device, dtype=x.dtype)" if op.kind is Kind.COLUMN else "y = torch.empty_like(x)",
    ]


def _launches(page: Page, stage: Stage, name: str, arguments: list[str]) -> list[str]:
    rows = _is_row(stage)
    tiles = [f"BLOCK={stage['block']}"] if rows else [f"BR={stage['br']}", f"BC={stage['bc']}"]
    grid = "rows" if rows else page.pick("column.grid", f"triton.cdiv(cols, {stage['bc']})", bc=stage["bc"])
    settings = ", ".join([*tiles, *([f"SPLITS={stage['splits']}"] if _split(stage) else []), f"num_warps={stage['warps']}"])
    if not _split(stage):
        return [f"{name}[({grid},)]({', '.join(arguments)}, {settings})"]
    splits = stage["splits"]
    shape = f"rows, {splits}" if rows else f"{splits}, cols"
    return [
        f"p = torch.empty(({shape}), device=x.device, dtype=torch.float32)",
        f"{name}[({grid}, {page.pick('split.grid', str(splits))})]({', '.join(arguments)}, {settings})",
    ]


def _combine(page: Page, stage: Stage, op: Op, after: Sequence[Step]) -> tuple[str, str]:
    """The kernel that reduces the partial results, and its launch."""
    rows, splits = _is_row(stage), stage["splits"]
    short = PLAIN_NAME.get(op.name, op.name)
    reduce = {
        "max": "x = tl.max(x, axis=0)",
        "logsumexp": page.pick(
            "combine.logsumexp", "x = tl.max(x, axis=0) + tl.log(tl.sum(tl.exp(x - tl.max(x, axis=0)), axis=0))"
        ),
        "norm": f"x = {page.pick('norm.root', 'tl.sqrt')}(tl.sum(x, axis=0))",
    }.get(short, "x = tl.sum(x, axis=0)")
    if rows:
        body = ["row = tl.program_id(0)", "x = tl.load(p_ptr + row * SPLITS + tl.arange(0, SPLITS))", reduce]
        body += [*element_lines(page, after, None), "tl.store(y_ptr + row, x)"]
        return (
            kernel_text(page, "combine_kernel", ["p_ptr", "y_ptr"], ["SPLITS"], body),
            f"combine_kernel[(rows,)](p, y, SPLITS={splits}, num_warps=1)",
        )
    body = [
        "c = tl.program_id(0) * BC + tl.arange(0, BC)",
        "split = tl.arange(0, SPLITS)",
        "x = tl.load(p_ptr + split[:, None] * cols + c[None, :], mask=(c < cols)[None, :], other=0.0)",
        reduce,
        *element_lines(page, after, None),
        "tl.store(y_ptr + c, x, mask=c < cols)",
    ]
    return (
        kernel_text(page, "combine_kernel", ["p_ptr", "y_ptr", "cols"], ["SPLITS", "BC"], body),
        f"combine_kernel[(triton.cdiv(cols, 128),)](p, y, cols, SPLITS={splits}, BC=128)",
    )
