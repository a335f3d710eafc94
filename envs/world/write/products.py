"""Matrix products in tiles with elementwise operations around them, whole rows in one tile, or a split inner dimension."""

from __future__ import annotations

from envs.world.ops import Kind
from envs.world.schedule import Stage
from envs.world.task import Task
from envs.world.write.elements import Reach, element_lines, kernel_name, operands, passed
from envs.world.write.flat import combine_products
from envs.world.write.reductions import AT_ONCE, Fill, filled, neutral
from envs.world.write.rows import SEVERAL_ROWS
from envs.world.write.text import Page, Written, kernel_text

_TYPES = {"float16": ".to(tl.float16)", "bfloat16": ".to(tl.bfloat16)", "float32": ""}


def _program(page: Page, stage: Stage, batched: bool) -> list[str]:
    """Which tile is the program's: row by row, or in groups of row blocks that share columns of the second factor."""
    if stage.form == "product_row":
        lines = [f"pm = {page.pick('program', 'tl.program_id(0)')}", "pn = 0"]
    elif stage["group"] == 1:
        lines = [f"pm = {page.pick('program', 'tl.program_id(0)')}", "pn = tl.program_id(1)"]
    else:
        lines = [
            f"pid = {page.pick('program', 'tl.program_id(0)')}",
            "in_group = GROUP * tl.cdiv(n, BN)",
            "first = (pid // in_group) * GROUP",
            "size = tl.minimum(tl.cdiv(m, BM) - first, GROUP)",
            f"pm = {page.pick('group.first', 'first + ')}pid % in_group % size",
            "pn = pid % in_group // size",
        ]
    axis = 1 if stage.form == "product_row" or stage["group"] > 1 else 2
    if batched:
        lines += [f"batch = tl.program_id({axis})", "x_ptr += batch * m * k", page.pick("batch.second", "w_ptr += batch * k * n")]
    if stage.form == "product_split":
        lines += [f"split = tl.program_id({axis})"]
    return lines


def _multiply(page: Page, task: Task, stage: Stage, core: int) -> list[str]:
    """The loop over the inner dimension."""
    linear = task.steps[core].op.name == "linear"
    before = task.steps[stage.first : core]
    transposed = "rn[None, :] * k + rk[:, None]"
    stride = page.pick(
        "weight.stride", transposed if linear else "rk[:, None] * n + rn[None, :]", other="rk[:, None] * k + rn[None, :]"
    )
    split = stage.form == "product_split"
    end = "end" if split else "k"
    mask = page.pick("inner.mask", f"(rm[:, None] < m) & (rk[None, :] < {end})")
    precision = f', input_precision="{stage.precision}"' if stage.precision else ""
    dot = page.pick("accumulate", f"acc = tl.dot(a, b, acc{precision})", precision=precision)
    prologue: list[str] = []
    if before:
        prologue = ["x = a.to(tl.float32)" if task.half else "x = a"]
        prologue += [*element_lines(page, before, None), f"a = x{_TYPES[task.dtype]}"]
    lines = []
    if split:
        chunk = page.pick("chunk", "tl.cdiv(k, SPLITS)", extent="k")
        lines = [f"begin = split * {chunk}", f"end = tl.minimum(begin + {chunk}, k)"]
    span = "begin, end, BK" if split else page.pick("inner.range", "0, k, BK")
    loop = [
        "rk = start + tl.arange(0, BK)",
        f"a = tl.load(x_ptr + rm[:, None] * k + rk[None, :], mask={mask}{page.pick('inner.other', ', other=0.0')})",
        f"b = tl.load(w_ptr + {stride}, mask=(rk[:, None] < {end}) & (rn[None, :] < n){page.pick('inner.other', ', other=0.0')})",
        *prologue,
        dot,
    ]
    return [
        *lines,
        "acc = tl.zeros((BM, BN), dtype=tl.float32)",
        f"for start in range({span}):",
        *(f"    {line}" for line in loop),
    ]


def _after(page: Page, task: Task, stage: Stage, core: int, batched: bool) -> list[str]:
    """What follows the loop: elementwise operations, a row operator where the tile holds whole rows, and the store."""
    reach = Reach("rn[None, :]", "rn[None, :] < n", "i", "mask", "rm[:, None]")
    offset = page.pick("batch.out", "batch * m * n + ") if batched else ""
    lines = [
        f"i = {offset}rm[:, None] * n + rn[None, :]",
        page.pick("tile.mask", "mask = (rm[:, None] < m) & (rn[None, :] < n)"),
    ]
    store = f"tl.store(y_ptr + i, x{page.pick('store.mask', ', mask=mask')})"
    if stage.form == "product_split":
        return [*lines, f"tl.store(p_ptr + {page.pick('partial.product', 'split * m * n + ')}i, acc, mask=mask)"]
    steps, lines = task.steps[core + 1 : stage.last], [*lines, "x = acc"]
    row = next((k for k, step in enumerate(steps) if step.op.kind is not Kind.ELEMENT), None)
    if row is None:
        return [*lines, *element_lines(page, steps, reach), store]
    op = steps[row].op
    lines += [
        *element_lines(page, steps[:row], reach),
        page.pick("neutral", f"x = tl.where(mask, x, {neutral(op.name)})", other="0.0"),
    ]
    lines += filled(page, AT_ONCE[op.name], Fill(op.name, SEVERAL_ROWS, "n", "BN", "mask"))
    if op.kind is Kind.FOLD:
        out = "batch * m + rm[:, None]" if batched else "rm[:, None]"
        return [*lines, *element_lines(page, steps[row + 1 :], None), f"tl.store(y_ptr + {out}, x, mask=rm[:, None] < m)"]
    return [*lines, *element_lines(page, steps[row + 1 :], reach), store]


def product(page: Page, task: Task, stage: Stage) -> Written:
    """The forms product, product_row and product_split."""
    core = next(k for k in range(stage.first, stage.last) if task.steps[k].op.kind is Kind.PRODUCT)
    batched, split = task.steps[core].op.name == "bmm", stage.form == "product_split"
    last = core + 1 if split else stage.last
    steps = task.steps[stage.first : last]
    name, names = kernel_name(steps), operands(steps)
    grouped = stage.form != "product_row" and stage["group"] > 1
    constants = ["BM", "BN", "BK", *(["GROUP"] if grouped else []), *(["SPLITS"] if split else [])]
    body = [
        *_program(page, stage, batched),
        f"rm = pm * BM + {page.pick('tile.rows', 'tl.arange(0, BM)')}",
        "rn = pn * BN + tl.arange(0, BN)",
        *_multiply(page, task, stage, core),
        *_after(page, task, stage, core, batched),
    ]
    result = "p" if split else "y"
    parameters = ["x_ptr", "w_ptr", *(f"{n}_ptr" for n in names), f"{result}_ptr", "m", "n", "k"]
    kernel = kernel_text(page, name, parameters, constants, body)
    arguments = ["x", "w" if batched else "self.w", *passed(names), result, "m", "n", "k"]
    launch = [*_shapes(page, task, stage, core), *_launches(page, stage, name, arguments, batched)]
    if not split:
        return Written((kernel,), tuple(launch))
    combine, call = combine_products(page, task, core + 1, stage.last, stage["splits"])
    return Written((kernel, combine), (*launch, *call))


def _shapes(page: Page, task: Task, stage: Stage, core: int) -> list[str]:
    op = task.steps[core].op.name
    inner = "m, k = x.shape[-2:]" if op == "bmm" else "k = x.shape[-1]"
    rows = [] if op == "bmm" else ["m = x.numel() // k"]
    n = {"matmul": "self.w.shape[1]", "linear": "self.w.shape[0]", "bmm": "w.shape[-1]"}[op]
    folds = any(step.op.kind is Kind.FOLD for step in task.steps[core + 1 : stage.last])
    shape = "x.shape[:-1]" if folds else page.pick("out.shape", "(*x.shape[:-1], n)")
    return [inner, *rows, f"n = {n}", f"y = torch.empty({shape}, device=x.device, dtype=x.dtype)"]


def _launches(page: Page, stage: Stage, name: str, arguments: list[str], batched: bool) -> list[str]:
    whole = stage.form == "product_row"
    bm = stage["bm"]
    blocks = page.pick("product.grid", f"triton.cdiv(m, {bm})", bm=bm)
    if whole:
        grid, bn = [blocks], "max(16, triton.next_power_of_2(n))"
    else:
        bn = str(stage["bn"])
        grid = [f"{blocks} * triton.cdiv(n, {bn})"] if stage["group"] > 1 else [blocks, f"triton.cdiv(n, {bn})"]
    lines, settings = [], [f"BM={bm}", f"BN={bn}", f"BK={stage['bk']}"]
    if not whole and stage["group"] > 1:
        settings.append(f"GROUP={stage['group']}")
    if batched:
        grid.append("x.shape[0]")
    if stage.form == "product_split":
        grid.append(str(stage["splits"]))
        settings.append(f"SPLITS={stage['splits']}")
        lines.append(f"p = torch.empty(({stage['splits']}, m, n), device=x.device, dtype=torch.float32)")
    settings += [f"num_warps={stage['warps']}", f"num_stages={stage['stages']}"]
    comma = "," if len(grid) == 1 else ""
    return [*lines, f"{name}[({', '.join(grid)}{comma})]({', '.join([*arguments, *settings])})"]
