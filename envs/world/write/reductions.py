"""The formulas of row and column operators: at once on a tile that holds whole rows, or in loops over tiles.

`{r}` stands for the axis of a reduction, `{size}` for the number of elements that are reduced, `{low}` and `{zero}` for the
values that an accumulator starts from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from envs.world.ops import NEUTRAL
from envs.world.write.text import Page

EPSILON = {"layer_norm": "1e-5", "rms_norm": "1e-6", "column_standard": "1e-5"}
PLAIN_NAME = {
    "column_sum": "sum",
    "column_mean": "mean",
    "column_max": "max",
    "column_softmax": "softmax",
    "column_standard": "layer_norm",
    "column_l2": "l2_norm",
}
"""The row operator with the same formula along the other axis."""


def at_once(page: Page, op: str, axis: str, size: str) -> list[str]:
    """Lines that turn `x`, whose masked elements are neutral, into the operator's result. `axis` is e.g. `axis=0`."""
    r = page.pick("axis", axis)
    size = page.pick("size", size)
    epsilon = page.pick("epsilon", EPSILON[op]) if op in EPSILON else ""
    lines = {
        "softmax": [
            f"x = tl.exp(x - tl.max(x, {r}))",
            f"x = {page.pick('softmax.divide', f'x / tl.sum(x, {r})', r=r)}",
        ],
        "log_softmax": [
            f"x = x - tl.max(x, {r})",
            f"x = x - {page.pick('log', f'tl.log(tl.sum(tl.exp(x), {r}))', r=r)}",
        ],
        "layer_norm": [
            f"x = x - tl.sum(x, {r}) / {size}",
            page.pick("centre.mask", "x = tl.where(m, x, 0.0)"),
            f"x = x * {page.pick('root', 'tl.rsqrt')}(tl.sum(x * x, {r}) / {size} + {epsilon})",
        ],
        "rms_norm": [f"x = x * {page.pick('root', 'tl.rsqrt')}(tl.sum({page.pick('square', 'x * x')}, {r}) / {size} + {epsilon})"],
        "l2_norm": [f"x = x / tl.maximum({page.pick('norm.root', 'tl.sqrt')}(tl.sum({page.pick('square', 'x * x')}, {r})), 1e-12)"],
        "sum": [f"x = tl.sum(x, {r})"],
        "mean": [f"x = tl.sum(x, {r}) / {size}"],
        "max": [f"x = {page.pick('max', 'tl.max')}(x, {r})"],
        "logsumexp": [
            f"top = tl.max(x, {r})",
            f"x = tl.log(tl.sum(tl.exp(x - top), {r})){page.pick('add.top', ' + top')}",
        ],
        "norm": [f"x = {page.pick('norm.root', 'tl.sqrt')}(tl.sum({page.pick('square', 'x * x')}, {r}))"],
        "cumsum": [f"x = tl.cumsum(x, {r.partition(',')[0]})"],
    }
    return lines[op]


@dataclass(frozen=True, slots=True)
class Loop:
    """One pass over the tiles: lines before it, lines per tile, lines after it."""

    before: tuple[str, ...]
    each: tuple[str, ...]
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Formula:
    """An operator in passes. `apply` turns a tile `x` into the result; for a reduction it makes `x` of the accumulators."""

    loops: tuple[Loop, ...]
    apply: tuple[str, ...]


_TOP = Loop(("top = {low}",), ("top = tl.maximum(top, tl.max(x, {r}))",))
_TOTAL_OF_EXP = Loop(("total = {zero}",), ("total += tl.sum(tl.exp(x - top), {r})",))
_TOTAL = Loop(("total = {zero}",), ("total += tl.sum(x, {r})",))
_SQUARES = Loop(("total = {zero}",), ("total += tl.sum({square}, {r})",))
_ONLINE = Loop(
    ("top = {low}", "total = {zero}"),
    (
        "new = tl.maximum(top, tl.max(x, {r}))",
        "total = {rescale} + tl.sum(tl.exp(x - new), {r})",
        "top = new",
    ),
)
_MEAN_OF_SQUARES = Loop(
    ("total = {zero}", "squares = {zero}"),
    ("total += tl.sum(x, {r})", "squares += tl.sum(x * x, {r})"),
    ("mean = total / {size}", "scale = {rsqrt}(squares / {size} - mean * mean + {eps})"),
)
_MEAN = Loop(_TOTAL.before, _TOTAL.each, ("mean = total / {size}",))
_VARIANCE = Loop(
    ("squares = {zero}",),
    ("x = tl.where(m, x - mean, 0.0)", "squares += tl.sum(x * x, {r})"),
    ("scale = {rsqrt}(squares / {size} + {eps})",),
)
_SCALED = ("x = (x - mean) * scale",)

FORMULAS: dict[tuple[str, int], Formula] = {
    ("softmax", 1): Formula((_ONLINE,), ("x = tl.exp(x - top) / total",)),
    ("softmax", 2): Formula((_TOP, _TOTAL_OF_EXP), ("x = tl.exp(x - top) / total",)),
    ("log_softmax", 1): Formula((_ONLINE,), ("x = x - top - tl.log(total)",)),
    ("log_softmax", 2): Formula((_TOP, _TOTAL_OF_EXP), ("x = x - top - tl.log(total)",)),
    ("logsumexp", 1): Formula((_ONLINE,), ("x = top + tl.log(total)",)),
    ("logsumexp", 2): Formula((_TOP, _TOTAL_OF_EXP), ("x = top + tl.log(total)",)),
    ("layer_norm", 1): Formula((_MEAN_OF_SQUARES,), _SCALED),
    ("layer_norm", 2): Formula((_MEAN, _VARIANCE), _SCALED),
    ("rms_norm", 1): Formula((Loop(_SQUARES.before, _SQUARES.each, ("scale = {rsqrt}(total / {size} + {eps})",)),), ("x = x * scale",)),
    ("l2_norm", 1): Formula((Loop(_SQUARES.before, _SQUARES.each, ("length = tl.maximum({sqrt}(total), 1e-12)",)),), ("x = x / length",)),
    ("norm", 1): Formula((_SQUARES,), ("x = {sqrt}(total)",)),
    ("sum", 1): Formula((_TOTAL,), ("x = total",)),
    ("mean", 1): Formula((_TOTAL,), ("x = total / {size}",)),
    ("max", 1): Formula((_TOP,), ("x = top",)),
    ("cumsum", 1): Formula((), ("carried = tl.sum(x, {r})", "x = tl.cumsum(x, axis=0){carry}", "total += carried")),
}  # fmt: skip
"""(operator, passes) -> formula; an operator without an entry for two passes has one for one."""
ONLINE = {name for name, passes in FORMULAS if (name, 2) in FORMULAS}
"""The operators for which one pass and two differ."""
PARTIAL = {"mean": "x = total / {size}", "norm": "x = total"}
"""What a chunk of a split reduction stores, where it is not the operator's own result of the chunk."""


def formula(op: str, passes: int) -> Formula:
    """The formula of a row or column operator."""
    name = PLAIN_NAME.get(op, op)
    return FORMULAS.get((name, passes)) or FORMULAS[name, 1]


def filled(page: Page, lines: Sequence[str], op: str, *, axis: str, size: str, low: str, zero: str) -> list[str]:
    """The lines of a formula with their blanks filled; a mistake may fill one otherwise."""
    found = []
    for line in lines:
        blanks = {"low": low, "zero": zero}
        if "{r}" in line:
            blanks["r"] = page.pick("axis", axis) if axis != "axis=0" else axis
        if "{size}" in line:
            blanks["size"] = page.pick("size", size)
        if "{eps}" in line:
            blanks["eps"] = page.pick("epsilon", EPSILON[op])
        if "{rescale}" in line:
            blanks["rescale"] = page.pick("rescale", "total * tl.exp(top - new)")
        if "{square}" in line:
            blanks["square"] = page.pick("square", "x * x")
        if "{rsqrt}" in line:
            blanks["rsqrt"] = page.pick("root", "tl.rsqrt")
        if "{sqrt}" in line:
            blanks["sqrt"] = page.pick("norm.root", "tl.sqrt")
        if "{carry}" in line:
            blanks["carry"] = page.pick("carry", " + total")
        found.append(line.format(**blanks))
    return found


def neutral(op: str) -> str:
    """The value of masked elements."""
    return NEUTRAL[op]
