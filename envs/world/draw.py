"""Draws tasks from a seed: which operations, which sizes, which dtype; and refuses those in which an operation hardly matters."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch

from envs.world.ops import OPS, Kind, Op, Step
from envs.world.task import Sizes, Task
from rlkernel.evaluator.judging.degenerate import degenerate
from rlkernel.reference import load_reference

LEAST_US, MOST_US = 22.0, 1600.0
"""Modelled eager times between which a problem's lies, in us; measured ones were meant to lie between 20 and 2000, and were
25 to 9576. A softmax of columns takes torch longer than is modelled: it gives each column to one thread, which takes 1.0 us a
row on an H200."""
MATTERS = 0.03
"""Share of the output's norm by which leaving out an operation must move the output."""
FOLLOWS, FOLD_FOLLOWS = 0.1, 0.003
"""Share of the output's norm by which another `x` must move the output; the second is for reductions in float32, most of which
are near a constant, and of which the evaluator still tells a hundredth of that apart."""

_BY_KIND = {kind: tuple(op for op in OPS if op.kind is kind) for kind in Kind}
_PLAIN = tuple(op for op in _BY_KIND[Kind.ELEMENT] if not op.vector and not op.tensor)
_ELEMENTS = (*_BY_KIND[Kind.ELEMENT], *(op for op in _BY_KIND[Kind.ELEMENT] if op.vector or op.tensor))
"""Elementwise operations; those with operands are drawn twice as often."""

_LINEAR = tuple(op for op in _PLAIN if op.name in ("scale", "shift", "drop", "abs", "leaky"))
"""What follows a reduction: its results are few and may be large, so that what saturates leaves nothing of them."""

COLUMNS = (512, 768, 1000, 1024, 1536, 2048, 3000, 4096, 5000, 6144, 8192, 12000, 16384, 20000, 32768)
ROWS = (256, 500, 1024, 1500, 2048, 3000, 4096, 6000, 8192, 12000, 16384, 32768, 65536)
LONG_COLUMNS = (16384, 32768, 50000, 65536, 131072, 262144)
TALLEST = 8192
"""Rows of a column operator's input at most: without a GPU, time is modelled by following whole programs."""
FEW_ROWS = (16, 32, 64, 100, 128, 256)
SIDES = (512, 768, 1000, 1024, 1536, 2048, 3000, 4096)
NEW_COLUMNS, NEW_ROWS, NEW_SIDES = (
    (640, 1280, 2560, 3584, 7168, 10000),
    (384, 768, 3072, 5120, 10240, 20480),
    (640, 896, 1280, 2560, 3584),
)
"""Sizes that no training problem has."""


@dataclass(frozen=True, slots=True)
class Ranges:
    """The sizes that tasks are drawn from."""

    rows: tuple[int, ...] = ROWS
    columns: tuple[int, ...] = COLUMNS
    sides: tuple[int, ...] = SIDES


NEW = Ranges(NEW_ROWS, NEW_COLUMNS, NEW_SIDES)


def _some(rng: random.Random, ops: tuple[Op, ...], low: int, high: int, taken: tuple[Step, ...] = ()) -> tuple[Step, ...]:
    """Between `low` and `high` different operations, none of them among `taken`."""
    used = {step.op.name for step in taken}
    found: list[Step] = []
    for _ in range(rng.randint(low, high)):
        left = [op for op in ops if op.name not in used]
        op = rng.choice(left)
        used.add(op.name)
        found.append(_step(rng, op))
    return tuple(found)


def _step(rng: random.Random, op: Op) -> Step:
    return Step(op, rng.choice(op.constants) if op.constants else ())


def _around(rng: random.Random, kind: Kind, before: tuple[int, int], after: tuple[int, int]) -> tuple[Step, ...]:
    """An operator of that kind between elementwise operations. What follows a reduction takes no operand."""
    core = _step(rng, rng.choice(_BY_KIND[kind]))
    follows = _LINEAR if kind in (Kind.FOLD, Kind.COLUMN) else _PLAIN if kind is Kind.POOL else _ELEMENTS
    first = _some(rng, _PLAIN if kind in (Kind.POOL, Kind.PRODUCT) else _ELEMENTS, *before)
    return (*first, core, *_some(rng, follows, *after, taken=first))


def _grid(rng: random.Random, ranges: Ranges) -> tuple[Sizes, Sizes]:
    columns = rng.choice(ranges.columns)
    full = (("ROWS", rng.choice(ranges.rows)), ("COLS", columns))
    small = rng.choice((2100, 2300, 2500)) if columns > 2500 else columns * 5 // 8 - 20
    return full, (("ROWS", rng.choice((3, 4))), ("COLS", small))


def _long(rng: random.Random, ranges: Ranges) -> tuple[Sizes, Sizes]:
    """Few long rows half of the time, so that a split pays."""
    if rng.random() < 0.5 or ranges is NEW:
        return _grid(rng, ranges)
    return (("ROWS", rng.choice(FEW_ROWS)), ("COLS", rng.choice(LONG_COLUMNS))), (("ROWS", 3), ("COLS", 2300))


def _tall(rng: random.Random, ranges: Ranges) -> tuple[Sizes, Sizes]:
    rows = rng.choice([rows for rows in ranges.rows if rows <= TALLEST])
    full = (("ROWS", rows), ("COLS", rng.choice(ranges.columns)))
    return full, (("ROWS", rng.choice((70, 90))), ("COLS", rng.choice((76, 84))))


def _sides(rng: random.Random, ranges: Ranges) -> tuple[Sizes, Sizes]:
    """A product's sizes: square ones, skinny ones, or few columns under many rows."""
    kind = rng.random()
    m, n, k = (rng.choice(ranges.sides) for _ in range(3))
    small_n = rng.choice((70, 100))
    if kind < 0.25:
        m, n, k = rng.choice((16, 32, 64, 100)), 2 * n, 2 * k
    elif kind < 0.5:
        m, n, small_n = 8 * m, rng.choice((64, 128, 200, 256)), 40
    return (("M", m), ("K", k), ("N", n)), (("M", rng.choice((72, 88))), ("K", rng.choice((136, 150))), ("N", small_n))


def _batches(rng: random.Random, ranges: Ranges) -> tuple[Sizes, Sizes]:
    m, n, k = (rng.choice(ranges.sides[:5]) for _ in range(3))
    return (("B", rng.choice((8, 16, 32))), ("M", m), ("K", k), ("N", n)), (("B", 2), ("M", 40), ("K", 136), ("N", 70))


def _chain(rng: random.Random) -> tuple[Step, ...]:
    return _some(rng, _ELEMENTS, 2, 6)


def _product(rng: random.Random) -> tuple[Step, ...]:
    steps = _around(rng, Kind.PRODUCT, (0, int(rng.random() < 0.2)), (0, 3))
    if rng.random() < 0.6:  # most of these have too many columns and are passed over
        steps += (_step(rng, rng.choice((*_BY_KIND[Kind.FOLD], *_BY_KIND[Kind.ROW]))),)
    return steps


def _window(rng: random.Random) -> tuple[Step, ...]:
    scan = rng.random() < 0.5
    return _around(rng, Kind.SCAN if scan else Kind.POOL, (0, 2), (0, 1 if scan else 2))


def _mixed(rng: random.Random) -> tuple[Step, ...]:
    """A large product of half precision, which torch does best, and a row operator, which does not fit into its tile."""
    product = tuple(op for op in _BY_KIND[Kind.PRODUCT] if op.name != "bmm")
    steps = (_step(rng, rng.choice(product)), *_some(rng, _ELEMENTS, 0, 2))
    last = _step(rng, rng.choice((*_BY_KIND[Kind.ROW], *_BY_KIND[Kind.FOLD])))
    return (*steps, last, *_some(rng, _LINEAR, 0, 1, taken=steps))


@dataclass(frozen=True, slots=True)
class Family:
    """How the tasks of a family are drawn."""

    steps: Callable[[random.Random], tuple[Step, ...]]
    sizes: Callable[[random.Random, Ranges], tuple[Sizes, Sizes]]
    dtypes: tuple[str, ...] = ("float32", "float32", "float16", "bfloat16")


FAMILIES: Mapping[str, Family] = {
    "chain": Family(_chain, _grid),
    "row": Family(lambda rng: _around(rng, Kind.ROW, (0, 2), (0, 2)), _grid),
    "fold": Family(lambda rng: _around(rng, Kind.FOLD, (0, 2), (0, 1)), _long),
    "product": Family(_product, _sides, ("float32", "float16", "bfloat16")),
    "column": Family(lambda rng: _around(rng, Kind.COLUMN, (0, 2), (0, 1)), _tall),
    "window": Family(_window, _grid, ("float32",)),
    "mixed": Family(_mixed, _sides, ("float16", "bfloat16")),
    "columnnorm": Family(lambda rng: _around(rng, Kind.COLUMN_NORM, (0, 1), (0, 1)), _tall),
}
"""The families by name. Training never shows the last one."""
HELD_OUT = "columnnorm"


def candidate(family: str, rng: random.Random, ranges: Ranges, steps: tuple[Step, ...] | None = None) -> Task | None:
    """A task of the family, or None when what was drawn is not to be used. It may still be degenerate."""
    one = FAMILIES[family]
    steps = steps or one.steps(rng)
    batched = any(step.op.name == "bmm" for step in steps)
    full, small = (_batches if batched else one.sizes)(rng, ranges)
    task = Task(family, steps, full, small, rng.choice(one.dtypes))
    if task.half and any(step.op.name == "square" for step in steps):
        return None  # overflows in float16
    if family == "mixed" and (task.size("N") < 1024 or task.size("M") < 1024):
        return None
    rows = any(step.op.kind in (Kind.ROW, Kind.FOLD) for step in steps)
    if family == "product" and rows and task.size("N") > 256:
        return None
    large = max(task.elements(k) for k in range(len(steps) + 1)) > 1 << 27
    return task if not large and LEAST_US <= task.eager_us() <= MOST_US else None


def idle(task: Task) -> str | None:
    """Why the task is no fair problem, or None: an elementwise operation or `x` hardly matters, or `judging.degenerate` says so.

    The latter refuses outputs within 1 % of a constant, which reductions in float32 may be.
    """
    whole = _run(task)
    if not torch.isfinite(whole).all():
        return "the output is not finite"
    folds = not task.half and any(step.op.kind is Kind.FOLD for step in task.steps)
    if _distance(whole, _run(task, other_x=True)) < (FOLD_FOLLOWS if folds else FOLLOWS):
        return "the output hardly depends on x"
    for k, step in enumerate(task.steps):
        if step.op.kind is Kind.ELEMENT:
            rest = task.steps[:k] + task.steps[k + 1 :]
            if rest and _distance(whole, _run(replace(task, steps=rest))) < MATTERS:
                return f"without `{step.torch}` the output is nearly the same"
    return None if folds else degenerate(task.problem())


def _run(task: Task, *, other_x: bool = False) -> torch.Tensor:
    """The output at the small shape, of seeded inputs by name, so that a task without one of its steps gets the same ones."""
    reference = load_reference(task.source, small=True, name=task.name)
    model = reference.model(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(_seeded(name, parameter) * (parameter.shape[-1] ** -0.5 if name == "w" else 1.0))
        inputs = [_seeded(name, value) for name, value in zip(task.inputs(), reference.inputs(0), strict=True)]
        if other_x:
            inputs[0] = _seeded("another x", inputs[0])
        output: torch.Tensor = model(*inputs)
    return output.double().flatten()


def _seeded(name: str, like: torch.Tensor) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(map(ord, name)))
    return torch.randn(like.shape, generator=generator).to(like.dtype)


def _distance(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one - other).norm() / one.norm())
