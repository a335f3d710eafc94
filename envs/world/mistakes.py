"""Mistakes that people and models really make in Triton, each as another text at one slot of the generator.

`becomes` may use `{right}`, the right text, and what the slot names besides. Whether a draft with a mistake is in fact wrong is
for the evaluator to say: a missing mask does no harm where the block divides the row. `sometimes` says when one goes unseen.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from envs.world.schedule import Schedule
from envs.world.task import Task
from envs.world.write.module import code, places
from envs.world.write.text import Place, Slip


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake: where it goes, what it writes there, and when it cannot be seen."""

    name: str
    slot: str
    becomes: str
    sometimes: str = ""
    """When the candidate is right all the same; empty if it never is."""


_EVEN = "the tile divides the size"

MISTAKES: tuple[Mistake, ...] = (
    # Masks, neutral elements, remainders.
    Mistake("flat load without a mask", "load.mask", "", _EVEN),
    Mistake("store without a mask", "store.mask", "", _EVEN),
    Mistake("reduced rows stored without a mask", "fold.mask", "", _EVEN),
    Mistake("mask of columns forgotten", "rows.mask", "m = row < rows", _EVEN),
    Mistake("mask of rows forgotten", "column.mask", "m = c < cols", _EVEN),
    Mistake("mask off by one", "row.mask", "m = c <= cols"),
    Mistake("flat mask off by one", "flat.mask", "m = i <= n", _EVEN),
    Mistake("tile's mask without columns", "tile.mask", "mask = rm[:, None] < m", _EVEN),
    Mistake("load without other", "load.other", "", "the row has no masked elements"),
    Mistake("zero where minus infinity belongs", "neutral.load", "0.0", "no masked elements, or zero is neutral"),
    Mistake("masked elements not made neutral", "neutral", "", "no masked elements, or they are neutral by chance"),
    Mistake("masked elements made zero", "neutral", "x = tl.where(m, x, {other})", "zero is neutral"),
    Mistake("centred row not masked", "centre.mask", "", "the row has no masked elements"),
    Mistake("last tile of the loop left out", "loop.end", "{extent} - {step}", "one tile, whose loop then never runs, is seen"),
    Mistake("remainder of the inner dimension left out", "inner.range", "0, k // BK * BK, BK", _EVEN),
    Mistake("inner dimension not masked", "inner.mask", "(rm[:, None] < m)", _EVEN),
    Mistake("tile loaded without other", "inner.other", "", _EVEN),
    Mistake("chunk rounded down", "chunk", "{extent} // SPLITS", "the splits divide the size"),
    # Grids and program ids.
    Mistake("grid rounded down", "flat.grid", "n // {block}", _EVEN),
    Mistake("grid of rows rounded down", "row.grid", "rows // {rows}", _EVEN),
    Mistake("grid of columns rounded down", "column.grid", "cols // {bc}", _EVEN),
    Mistake("grid of tiles rounded down", "product.grid", "m // {bm}", _EVEN),
    Mistake("half of the splits launched", "split.grid", "{right} // 2"),
    Mistake("program id not scaled", "flat.start", "", "one block"),
    Mistake("program id of rows not scaled", "row.start", "", "one program"),
    Mistake("program id of columns not scaled", "column.start", "", "one program"),
    Mistake("first row block of the group left out", "group.first", "", "one group"),
    # Strides, axes, indices.
    Mistake("row stride is the block", "row.stride", "BLOCK", "the row is as long as its block"),
    Mistake("row stride is the block in a loop", "row.stride.loop", "BLOCK", "one row"),
    Mistake("column stride is the number of rows", "column.stride", "rows", "a square"),
    Mistake("weight is read transposed", "weight.stride", "{other}", "the right text reads it so, and it is square"),
    Mistake("operand indexed by row", "vector.index", "{wrong}"),
    Mistake("second input read by column", "tensor.index", "{column}"),
    Mistake("wrong axis", "axis", "{other}"),
    Mistake("windows overlap", "pool.stride", "1"),
    Mistake("rows of the window's input mixed up", "pool.row", "out", "one row"),
    Mistake("batch offset of the weights forgotten", "batch.second", ""),
    Mistake("batch offset of the output forgotten", "batch.out", ""),
    Mistake("columns counted by rows", "cols", "x.shape[0]", "a square"),
    Mistake("output has the input's shape", "out.shape", "x.shape", "the product is square"),
    # Sizes and constants of formulas.
    Mistake("divided by the block", "size", "{block}", "the row is as long as its block"),
    Mistake("large epsilon", "epsilon", "1e-1"),
    Mistake("square root for its inverse", "root", "tl.sqrt"),
    Mistake("square root forgotten", "norm.root", ""),
    Mistake("absolute values for squares", "square", "tl.abs(x)"),
    Mistake("sum for maximum", "max", "tl.sum"),
    Mistake("not divided by the sum", "softmax.divide", "x"),
    Mistake("divided by the maximum", "softmax.divide", "x / tl.max(x, {r})"),
    Mistake("logarithm forgotten", "log", "tl.sum(tl.exp(x), {r})"),
    Mistake("maximum not added back", "add.top", ""),
    Mistake("running sum not rescaled", "rescale", "total", "one tile"),
    Mistake("carry forgotten", "carry", "", "one tile"),
    Mistake("parts' logsumexp added", "combine.logsumexp", "x = tl.sum(x, axis=0)"),
    Mistake("window off by one", "pool.range", "WINDOW - 1"),
    Mistake("window not averaged", "pool.divide", ""),
    Mistake("maximum starts at zero", "pool.low", "0.0", "no window is negative throughout"),
    Mistake("sum of the window for its maximum", "pool.update", "total + x"),
    Mistake("one part left out", "combine.range", "SPLITS - 1"),
    Mistake("operation left out", "element", ""),
    Mistake("wrong constant", "constant", "{other}"),
    # Precision and types.
    Mistake("computed in half precision", "widen", "", "the operations before the store lose less than the tolerance"),
    Mistake("products added in half precision", "accumulate", "acc += tl.dot(a, b{precision}).to(tl.float16)", "few products"),
    Mistake("sums not accumulated", "accumulate", "acc = tl.dot(a, b{precision})", "one tile"),
    # Races.
    Mistake("parts of a row overwrite each other", "partial.row", ""),
    Mistake("parts of a column overwrite each other", "partial.column", "0"),
    Mistake("parts of a product overwrite each other", "partial.product", ""),
    # Data flow on the host.
    Mistake("result not handed over", "hand.over", ""),
    # What does not compile.
    Mistake("constexpr forgotten", "constexpr", "{name}"),
    Mistake("program id misspelt", "program", "tl.programid(0)"),
    Mistake("misspelt arange", "tile.rows", "tl.range(0, BM)"),
    Mistake("tanh that Triton lacks", "element.tanh", "x = tl.tanh(x)"),
    Mistake("gelu that Triton lacks", "element.gelu", "x = tl.gelu(x)"),
    Mistake("silu that Triton lacks", "element.silu", "x = tl.silu(x)"),
    Mistake("relu that Triton lacks", "element.relu", "x = tl.relu(x)"),
    Mistake("softplus that Triton lacks", "element.softplus", "x = tl.softplus(x)"),
    # Formulas that compile and are not the operation.
    Mistake("gelu by a sigmoid", "element.gelu", "x = x * tl.sigmoid(1.702 * x)", "half precision's tolerance"),
    Mistake("gelu not halved", "element.gelu", "x = x * (1.0 + tl.erf(x * 0.70710678))"),
    Mistake("tanh of half the argument", "element.tanh", "x = 2.0 * tl.sigmoid(x) - 1.0"),
    Mistake("silu without its factor", "element.silu", "x = tl.sigmoid(x)"),
    Mistake("softplus that overflows", "element.softplus", "x = tl.maximum(x, 0.0) + tl.log(1.0 + tl.exp(tl.abs(x)))"),
    Mistake("leaky side confused", "element.leaky", "x = tl.where(x > 0, x * 0.1, x)"),
    Mistake("clamp turned round", "element.clamp", "x = tl.maximum(tl.minimum(x, -1.0), 1.0)"),
)  # fmt: skip
"""The library. A name says the mistake. The last two rows make two changes at once: both sides, or both bounds, are exchanged."""
BY_SLOT = {slot: tuple(m for m in MISTAKES if m.slot == slot) for slot in {mistake.slot for mistake in MISTAKES}}


def applicable(task: Task, schedule: Schedule, name: str = "") -> list[tuple[Place, Mistake]]:
    """Every mistake, or every one of that name, that can go somewhere into a candidate, with its place. It changes the
    candidate's text."""
    right = code(task, schedule)
    return [
        (place, mistake)
        for place in places(task, schedule)
        for mistake in BY_SLOT.get(place.slot, ())
        if name in ("", mistake.name) and code(task, schedule, (slip(place, mistake),)) != right
    ]


def slip(place: Place, mistake: Mistake) -> Slip:
    """The mistake as a change of a draft."""
    return Slip(place.stage, place.slot, mistake.becomes, place.at, mistake.name)


def draw_slips(task: Task, schedule: Schedule, count: int, rng: random.Random) -> tuple[Slip, ...]:
    """`count` mistakes of different kinds, or as many as there are: first the kind is drawn, then the place."""
    found: list[Slip] = []
    choices = applicable(task, schedule)
    for _ in range(count):
        taken = {(s.stage, s.slot, s.at) for s in found}
        left = [(p, m) for p, m in choices if (p.stage, p.slot, p.at) not in taken and m.name not in {s.mistake for s in found}]
        if not left:
            break
        name = rng.choice(sorted({mistake.name for _, mistake in left}))
        found.append(slip(*rng.choice([(p, m) for p, m in left if m.name == name])))
    return tuple(found)
