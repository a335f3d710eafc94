"""The formulas of row and column operators: at once on a tile that holds whole rows, or in loops over tiles.

`{r}` stands for the axis of a reduction, `{size}` for the number of elements that are reduced, `{low}` and `{zero}` for the
values that an accumulator starts from. The other blanks are pieces that people get wrong.
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


AT_ONCE: dict[str, tuple[str, ...]] = {
    "softmax": ("x = tl.exp(x - tl.max(x, {r}))", "x = {divided}"),
    "log_softmax": ("x = x - tl.max(x, {r})", "x = x - {log}"),
    "layer_norm": (
        "x = x - tl.sum(x, {r}) / {size}",
        "{centre}",
        "x = x * {rsqrt}(tl.sum({square}, {r}) / {size} + {eps})",
    ),
    "rms_norm": ("x = x * {rsqrt}(tl.sum({square}, {r}) / {size} + {eps})",),
    "l2_norm": ("x = x / tl.maximum({sqrt}(tl.sum({square}, {r})), 1e-12)",),
    "sum": ("x = tl.sum(x, {r})",),
    "mean": ("x = tl.sum(x, {r}) / {size}",),
    "max": ("x = {max}(x, {r})",),
    "logsumexp": ("top = tl.max(x, {r})", "x = tl.log(tl.sum(tl.exp(x - top), {r})){add_top}"),
    "norm": ("x = {sqrt}(tl.sum({square}, {r}))",),
    "cumsum": ("x = tl.cumsum(x, {scan})",),
}
"""Lines that turn a tile `x` of whole rows, whose masked elements are neutral, into the operator's result."""


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


def _scaled(after: str) -> Loop:
    """The sum of squares, and what is made of it."""
    return Loop(_SQUARES.before, _SQUARES.each, (after,))


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
    ("rms_norm", 1): Formula((_scaled("scale = {rsqrt}(total / {size} + {eps})"),), ("x = x * scale",)),
    ("l2_norm", 1): Formula((_scaled("length = tl.maximum({sqrt}(total), 1e-12)"),), ("x = x / length",)),
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


@dataclass(frozen=True, slots=True)
class Fill:
    """What the blanks of a formula stand for in one kernel."""

    op: str
    axis: str
    """The axis of reductions, e.g. `axis=0`."""
    size: str
    block: str
    """The name of the tile's size along the reduction."""
    mask: str = "m"
    low: str = '-float("inf")'
    zero: str = "0.0"


def filled(page: Page, lines: Sequence[str], fill: Fill) -> list[str]:
    """The lines of a formula with their blanks filled; a mistake may fill one otherwise."""
    return [line.format(**{blank: _blank(page, blank, fill) for blank in _BLANKS if f"{{{blank}}}" in line}) for line in lines]


_PICKED = {
    "rescale": ("rescale", "total * tl.exp(top - new)"),
    "square": ("square", "x * x"),
    "rsqrt": ("root", "tl.rsqrt"),
    "sqrt": ("norm.root", "tl.sqrt"),
    "max": ("max", "tl.max"),
    "carry": ("carry", " + total"),
    "add_top": ("add.top", " + top"),
}
"""Blank -> its slot and its right text, where those depend on nothing."""
_BLANKS = (*_PICKED, "low", "zero", "r", "scan", "size", "eps", "centre", "divided", "log")


def _blank(page: Page, blank: str, fill: Fill) -> str:
    if blank in _PICKED:
        return page.pick(*_PICKED[blank])
    if blank in ("low", "zero"):
        return fill.low if blank == "low" else fill.zero
    if blank == "r":
        return _axis(page, fill.axis)
    if blank == "scan":
        return fill.axis.partition(",")[0]
    if blank == "size":
        return page.pick("size", fill.size, block=fill.block)
    if blank == "eps":
        return page.pick("epsilon", EPSILON[fill.op])
    if blank == "centre":
        return page.pick("centre.mask", f"x = tl.where({fill.mask}, x, 0.0)")
    if blank == "divided":
        return page.pick("softmax.divide", f"x / tl.sum(x, {fill.axis})", r=fill.axis)
    return page.pick("log", f"tl.log(tl.sum(tl.exp(x), {fill.axis}))", r=fill.axis)


def _axis(page: Page, axis: str) -> str:
    """The axis of a reduction; of a tile with two axes the other one may be confused with it."""
    other = axis.replace("0", "1") if "axis=0" in axis else axis.replace("1", "0")
    return page.pick("axis", axis, other=other) if "keep_dims" in axis else axis


def neutral(op: str) -> str:
    """The value of masked elements."""
    return NEUTRAL[op]
