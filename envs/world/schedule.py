"""The schedule space: how a task's operations are cut into stages, and what can be chosen of each stage.

A stage is done by torch or by a kernel of one *form*. A form has *knobs*: tile sizes, warps, pipeline stages, passes over the
data, splits of a reduction, order of the grid, precision of a product. Which values are best is found only by measuring.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from envs.world.ops import Kind
from envs.world.task import BYTES, Task

Knobs = tuple[tuple[str, int | str], ...]
Cut = tuple[tuple[int, int], ...]
"""Consecutive runs of steps, as pairs of first and last (without it)."""
TORCH = "torch"
ATTEMPTS = 10_000
LARGEST_ROW = 16384
"""Elements of a tile that a program holds at most."""
PER_THREAD = (1, 128)
"""Least and most elements of a tile per thread."""
LONGEST_WALK = 800
"""Tiles that a program goes through at most, all passes together: without a GPU, two programs are followed at full shape."""
SHARED = 200_000
"""Bytes of shared memory that a product's pipeline takes at most."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Operations `first` to `last` (without it) of a task, with the form that does them and its knobs."""

    first: int
    last: int
    form: str = TORCH
    knobs: Knobs = ()

    def __getitem__(self, knob: str) -> int:
        return int(dict(self.knobs)[knob])

    @property
    def precision(self) -> str:
        """How a float32 product multiplies; empty elsewhere."""
        return str(dict(self.knobs).get("precision", ""))

    def turned(self, knob: str, value: int | str) -> Stage:
        """The stage with one knob at another value."""
        return replace(self, knobs=tuple((name, value if name == knob else old) for name, old in self.knobs))


Schedule = tuple[Stage, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """A way to write a kernel."""

    name: str
    knobs: Mapping[str, tuple[int | str, ...]]
    """The values of each knob, from which a search draws; the first is what a writer without experience takes."""
    fits: Callable[[Task, int, int], bool]
    """Whether the form can do steps `first` to `last` of a task."""


def _kinds(task: Task, first: int, last: int) -> list[Kind]:
    return [step.op.kind for step in task.steps[first:last] if step.op.kind is not Kind.ELEMENT]


def _flat(task: Task, first: int, last: int) -> bool:
    return not _kinds(task, first, last)


def _one_of(*kinds: Kind) -> Callable[[Task, int, int], bool]:
    return lambda task, first, last: _kinds(task, first, last) in [[kind] for kind in kinds]


def _whole(task: Task, first: int, last: int) -> bool:
    return _one_of(Kind.ROW, Kind.FOLD, Kind.SCAN)(task, first, last) and power_of_2(task.last(first)) <= LARGEST_ROW


def _pool(task: Task, first: int, last: int) -> bool:
    plain = all(step.plain or step.op.kind is Kind.POOL for step in task.steps[first:last])
    return plain and _kinds(task, first, last) == [Kind.POOL]


def _product(task: Task, first: int, last: int) -> bool:
    """Plain operations may come before the product: they are applied to the tiles of its first factor."""
    kinds = _kinds(task, first, last)
    if kinds != [Kind.PRODUCT]:
        return False
    before = next(k for k in range(first, last) if task.steps[k].op.kind is Kind.PRODUCT)
    return all(step.plain for step in task.steps[first:before])


def _product_row(task: Task, first: int, last: int) -> bool:
    """A row operator after the product, where one tile holds whole rows."""
    kinds = _kinds(task, first, last)
    if len(kinds) != 2 or kinds[0] is not Kind.PRODUCT or kinds[1] not in (Kind.ROW, Kind.FOLD):
        return False
    cut = next(k for k in range(first, last) if task.steps[k].op.kind in (Kind.ROW, Kind.FOLD))
    return _product(task, first, cut) and task.size("N") <= 256


def _batched(task: Task) -> bool:
    return "B" in dict(task.sizes)


_WARPS: tuple[int | str, ...] = (4, 1, 2, 8, 16)
_TILES: Mapping[str, tuple[int | str, ...]] = {
    "bm": (64, 16, 32, 128, 256),
    "bn": (64, 32, 128, 256),
    "bk": (32, 16, 64, 128),
    "warps": (4, 8),
    "stages": (3, 1, 2, 4, 5),
    "group": (1, 4, 8, 16),
    "precision": ("ieee", "tf32x3", "tf32"),
}
FORMS: Mapping[str, Form] = {
    form.name: form
    for form in (
        Form("flat", {"block": (1024, 256, 512, 2048, 4096, 8192), "warps": _WARPS}, _flat),
        Form("row_whole", {"rows": (1, 2, 4, 8, 16), "warps": _WARPS}, _whole),
        Form(
            "row_loop",
            {"block": (1024, 512, 2048, 4096, 8192), "passes": (2, 1), "warps": _WARPS},
            _one_of(Kind.ROW, Kind.FOLD, Kind.SCAN),
        ),
        Form(
            "row_split",
            {"block": (1024, 512, 2048, 4096), "passes": (1, 2), "splits": (8, 4, 16, 32), "warps": _WARPS},
            _one_of(Kind.FOLD),
        ),
        Form(
            "column_loop",
            {"br": (32, 8, 16, 64, 128), "bc": (64, 16, 32, 128, 256), "passes": (2, 1), "warps": _WARPS},
            _one_of(Kind.COLUMN, Kind.COLUMN_NORM),
        ),
        Form(
            "column_split",
            {"br": (32, 8, 16, 64, 128), "bc": (64, 16, 32, 128, 256), "splits": (8, 4, 16, 32), "warps": _WARPS},
            _one_of(Kind.COLUMN),
        ),
        Form("pool", {"block": (1024, 256, 512, 2048), "warps": _WARPS}, _pool),
        Form("product", _TILES, _product),
        Form("product_row", {k: v for k, v in _TILES.items() if k not in ("bn", "group")}, _product_row),
        Form("product_split", {**_TILES, "splits": (4, 2, 8, 16)}, lambda *a: _product(*a) and not _batched(a[0])),
    )
}
"""Every form by its name."""


def power_of_2(number: int) -> int:
    """The smallest power of two that is not below `number`."""
    return 1 << (number - 1).bit_length()


def knobs_of(task: Task, form: str) -> dict[str, tuple[int | str, ...]]:
    """The knobs that matter for a task: a product of half precision has no choice of precision."""
    knobs = dict(FORMS[form].knobs)
    if task.half:
        knobs.pop("precision", None)
    return knobs


def sound(task: Task, stage: Stage) -> bool:
    """Whether the stage's knobs fit each other: registers, shared memory, splits that are not empty."""
    if stage.form == TORCH:
        return True
    threads = 32 * stage["warps"]
    if stage.form.startswith("product"):
        return _sound_product(task, stage)
    if stage.form.startswith("column"):
        tile = stage["br"] * stage["bc"]
        whole = task.numbers(stage.first)[0], task.numbers(stage.first, small=True)[0]
    else:
        row = power_of_2(task.last(stage.first)) if stage.form == "row_whole" else stage["block"]
        tile = row * (stage["rows"] if stage.form == "row_whole" else 1)
        whole = task.last(stage.first), task.last(stage.first, small=True)
    if stage.form not in ("flat", "pool", "row_whole") and _walk(stage, whole[0]) > LONGEST_WALK:
        return False
    if stage.form.endswith("split") and any(_empty(size, stage["splits"]) for size in whole):
        return False
    return PER_THREAD[0] * threads <= tile <= PER_THREAD[1] * threads and tile <= 2 * LARGEST_ROW


def _walk(stage: Stage, extent: int) -> float:
    """The tiles that a program goes through; a normalisation's last pass counts, too."""
    knobs = dict(stage.knobs)
    step = stage["br"] if "br" in knobs else stage["block"]
    return extent / step / int(knobs.get("splits", 1)) * (1 + int(knobs.get("passes", 1)))


def _sound_product(task: Task, stage: Stage) -> bool:
    bn = power_of_2(task.size("N")) if stage.form == "product_row" else stage["bn"]
    tiles = (stage["bm"] + bn) * stage["bk"] * BYTES[task.dtype] * stage["stages"]
    # Three products of tf32 need both halves of the right operand in shared memory.
    halves = 2 * bn * stage["bk"] * BYTES[task.dtype] if stage.precision == "tf32x3" else 0
    per_thread = stage["bm"] * bn / (32 * stage["warps"])
    exact = stage.precision == "ieee"
    if stage.form == "product_split" and any(_empty(size, stage["splits"]) for size in _inner(task)):
        return False
    # Without matrix units every multiply-add of a tile is unrolled, which takes minutes to compile for large tiles.
    return max(tiles, halves) <= SHARED and 4 <= per_thread <= (32 if exact else 128) and not (exact and stage["bk"] > 32)


def _inner(task: Task) -> tuple[int, int]:
    return task.size("K"), task.size("K", small=True)


def _empty(size: int, splits: int) -> bool:
    """Whether the last of so many chunks would be empty."""
    return (splits - 1) * -(-size // splits) >= size


def forms(task: Task, first: int, last: int) -> tuple[str, ...]:
    """The forms that can do steps `first` to `last`."""
    return tuple(name for name, form in FORMS.items() if form.fits(task, first, last))


def cuts(task: Task) -> Iterator[Cut]:
    """Every way to cut the steps into consecutive runs that one kernel can do, the one with the fewest runs first."""
    found: list[Cut] = []

    def extend(done: Cut, first: int) -> None:
        if first == len(task.steps):
            found.append(done)
        for last in range(len(task.steps), first, -1):
            if forms(task, first, last):
                extend((*done, (first, last)), last)

    extend((), 0)
    yield from sorted(found, key=len)


def coarsest(task: Task) -> Cut:
    """The first of the cuts with the fewest runs."""
    return next(iter(cuts(task)))


def usual(task: Task, first: int, last: int, form: str) -> Stage:
    """The stage with the first value of each knob where those are sound, else with sound ones that are always the same."""
    knobs = knobs_of(task, form)
    stage = Stage(first, last, form, tuple((name, values[0]) for name, values in knobs.items()))
    return stage if sound(task, stage) else draw_stage(task, first, last, form, random.Random(0))


def draw_stage(task: Task, first: int, last: int, form: str, rng: random.Random, *, tf32: bool = True) -> Stage:
    """The stage with knobs drawn at random among those that are sound. `tf32`: products may round their factors to tf32, as
    the evaluator allows unless it is told otherwise. Raises ValueError if no knobs are sound."""
    knobs = knobs_of(task, form)
    if "precision" in knobs and not tf32:
        knobs["precision"] = tuple(value for value in knobs["precision"] if value != "tf32")
    for _ in range(ATTEMPTS):
        stage = Stage(first, last, form, tuple((name, rng.choice(values)) for name, values in knobs.items()))
        if sound(task, stage):
            return stage
    raise ValueError(f"{task.name}: no knobs of {form} are sound")


def draw(task: Task, rng: random.Random, cut: Cut, *, torch_share: float = 0.0, tf32: bool = True) -> Schedule:
    """A schedule of that cut, with forms and knobs at random; each run is left to torch with probability `torch_share`."""
    found = []
    for first, last in cut:
        form = TORCH if rng.random() < torch_share else rng.choice(forms(task, first, last))
        found.append(Stage(first, last) if form == TORCH else draw_stage(task, first, last, form, rng, tf32=tf32))
    return tuple(found)


def needs_tf32(schedule: Schedule) -> bool:
    """Whether a float32 product of the schedule rounds its factors to tf32: right only where the evaluator allows tf32."""
    return any(stage.precision == "tf32" for stage in schedule)
