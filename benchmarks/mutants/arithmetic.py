"""Kinds that touch what a kernel computes: operators, constants, neutral elements, casts, and how it accumulates."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

from benchmarks.mutants.kinds import called, keyword, kind, number, renamed, text, with_args, with_keyword, without

OTHER_OPERATOR = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
OTHER_FUNCTION = {
    "maximum": "minimum", "minimum": "maximum", "max": "min", "min": "max", "exp": "exp2", "exp2": "exp", "log": "log2",
    "log2": "log", "sqrt": "rsqrt", "rsqrt": "sqrt", "argmax": "argmin", "argmin": "argmax", "sin": "cos", "cos": "sin",
    "cumsum": "cumprod", "cumprod": "cumsum", "atomic_max": "atomic_min", "atomic_min": "atomic_max", "any": "all",
}  # fmt: skip
ROUNDING = ("floor", "ceil", "rint", "round", "nearbyint", "trunc")
SMALL_NUMBER = 1e-3
"""Numbers below this that are not 0 count as an eps."""


@kind("operator")
def operator(node: ast.AST) -> Iterator[str]:
    """`+` becomes `-`, `*` becomes `/`, and the reverse."""
    if isinstance(node, ast.BinOp) and type(node.op) in OTHER_OPERATOR:
        new = copy.copy(node)
        new.op = OTHER_OPERATOR[type(node.op)]()
        yield text(new)


@kind("function")
def function(node: ast.AST) -> Iterator[str]:
    """max becomes min, exp becomes exp2, sqrt becomes rsqrt, and the reverse."""
    if isinstance(node, ast.Call) and (call := called(node, *OTHER_FUNCTION)):
        yield renamed(call, OTHER_FUNCTION[ast.unparse(call.func).rpartition(".")[2]])


@kind("operands swapped")
def operands_swapped(node: ast.AST) -> Iterator[str]:
    """`a - b` becomes `b - a`, and the same for quotients and products of matrices."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub | ast.Div):
        new = copy.copy(node)
        new.left, new.right = node.right, node.left
        yield text(new)
    elif (call := called(node, "dot")) and len(call.args) >= 2:
        yield with_args(call, [call.args[1], call.args[0], *call.args[2:]])


@kind("term dropped")
def term_dropped(node: ast.AST) -> Iterator[str]:
    """Of `a + b` and `a - b` only a is left."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield text(node.left)


@kind("scale dropped")
def scale_dropped(node: ast.AST) -> Iterator[str]:
    """Of `a * b` and `a / b` only a is left, a product with a name excepted."""
    if isinstance(node, ast.BinOp) and (
        isinstance(node.op, ast.Div) or (isinstance(node.op, ast.Mult) and not isinstance(node.right, ast.Name))
    ):
        yield text(node.left)


@kind("branches of where swapped")
def branches_swapped(node: ast.AST) -> Iterator[str]:
    """`tl.where(c, a, b)` becomes `tl.where(c, b, a)`."""
    if (call := called(node, "where")) and len(call.args) == 3:
        yield with_args(call, [call.args[0], call.args[2], call.args[1]])


@kind("where decided")
def where_decided(node: ast.AST) -> Iterator[str]:
    """`tl.where(c, a, b)` becomes a."""
    if (call := called(node, "where")) and len(call.args) == 3:
        yield text(call.args[1])


@kind("clamp dropped")
def clamp_dropped(node: ast.AST) -> Iterator[str]:
    """Of `tl.maximum(a, b)` and its like only one is left."""
    if (call := called(node, "maximum", "minimum")) and len(call.args) >= 2:
        yield text(call.args[0])
        yield text(call.args[1])


@kind("constant by 1 %")
def constant_by_a_percent(node: ast.AST) -> Iterator[str]:
    """A fraction in the text becomes 1 % larger."""
    if isinstance(value := number(node), float) and abs(value) >= SMALL_NUMBER:
        yield repr(value * 1.01)


@kind("constant doubled")
def constant_doubled(node: ast.AST) -> Iterator[str]:
    """A fraction in the text becomes twice as large."""
    if isinstance(value := number(node), float) and abs(value) >= SMALL_NUMBER:
        yield repr(value * 2)


@kind("whole number by one")
def integer_by_one(node: ast.AST) -> Iterator[str]:
    """A whole number above 1 in the text becomes the next one."""
    if isinstance(value := number(node), int) and value > 1:
        yield repr(value + 1)


@kind("eps dropped")
def eps_dropped(node: ast.AST) -> Iterator[str]:
    """A tiny number becomes 0. `a + eps`, where eps is a name, becomes a."""
    if isinstance(value := number(node), float) and 0 < abs(value) < SMALL_NUMBER:
        yield "0.0"
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and "eps" in ast.unparse(node.right).lower():
        yield text(node.left)


@kind("eps enlarged")
def eps_enlarged(node: ast.AST) -> Iterator[str]:
    """A tiny number, or what is called eps in a sum, becomes a hundred times as large."""
    if isinstance(value := number(node), float) and 0 < abs(value) < SMALL_NUMBER:
        yield repr(100 * value)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and "eps" in ast.unparse(node.right).lower():
        yield f"({text(node.left)} + 100 * {text(node.right)})"


@kind("cast dropped")
def cast_dropped(node: ast.AST) -> Iterator[str]:
    """`x.to(t)` becomes x."""
    if (call := called(node, "to")) and isinstance(call.func, ast.Attribute) and call.args:
        yield text(call.func.value)


@kind("half for float")
def half_for_float(node: ast.AST) -> Iterator[str]:
    """`tl.float32` becomes `tl.float16` and `tl.bfloat16`."""
    if isinstance(node, ast.Attribute) and node.attr == "float32":
        for name in ("float16", "bfloat16"):
            yield f"{text(node.value)}.{name}"


@kind("value rounded to half")
def rounded_to_half(node: ast.AST) -> Iterator[str]:
    """What is stored, or summed up, goes through bfloat16."""
    if (call := called(node, "store")) and len(call.args) >= 2:
        rounded = ast.parse(f"({text(call.args[1])}).to(tl.bfloat16)", mode="eval").body
        yield with_args(call, [call.args[0], rounded, *call.args[2:]])
    elif (call := called(node, "sum")) and call.args:
        yield with_args(call, [ast.parse(f"({text(call.args[0])}).to(tl.bfloat16)", mode="eval").body, *call.args[1:]])


@kind("precision of a product")
def precision_of_product(node: ast.AST) -> Iterator[str]:
    """`tl.dot` multiplies in tf32, and in the default where it says another one."""
    if (call := called(node, "dot")) and (value := keyword(call, "input_precision")):
        yield without(call, "input_precision")
        if isinstance(value, ast.Constant) and value.value != "tf32":
            yield with_keyword(call, "input_precision", "'tf32'")


@kind("neutral element of a sum")
def started_at_one(node: ast.AST) -> Iterator[str]:
    """`tl.zeros(s, dtype=t)` becomes ones."""
    if (call := called(node, "zeros")) and call.args:
        rest = ", ".join([*(text(one) for one in call.args[1:]), *(f"{one.arg}={text(one.value)}" for one in call.keywords)])
        yield f"{text(call.func).replace('zeros', 'full')}({text(call.args[0])}, 1{f', {rest}' if rest else ''})"


@kind("neutral element of a maximum")
def infinity_for_zero(node: ast.AST) -> Iterator[str]:
    """Infinity becomes 0 and 10."""
    if isinstance(node, ast.Call) and ast.unparse(node) in ("float('inf')", "float('-inf')"):
        yield "0.0"
        yield "-10.0" if "-" in ast.unparse(node) else "10.0"


@kind("assigned for accumulated")
def assigned(node: ast.AST) -> Iterator[str]:
    """`a += b` becomes `a = b`."""
    if isinstance(node, ast.AugAssign):
        yield f"{ast.unparse(node.target)} = {ast.unparse(node.value)}"


@kind("accumulation dropped")
def accumulation_dropped(node: ast.AST) -> Iterator[str]:
    """`a += b` is left out."""
    if isinstance(node, ast.AugAssign):
        yield "pass"


@kind("accumulator of a product dropped")
def accumulator_dropped(node: ast.AST) -> Iterator[str]:
    """`tl.dot(a, b, acc)` becomes `tl.dot(a, b)`."""
    if (call := called(node, "dot")) and len(call.args) == 3:
        yield with_args(call, call.args[:2])
    elif call and keyword(call, "acc"):
        yield without(call, "acc")


@kind("maximum for sum")
def maximum_for_sum(node: ast.AST) -> Iterator[str]:
    """`tl.sum` becomes `tl.max`."""
    if call := called(node, "sum"):
        yield renamed(call, "max")


@kind("rounding dropped")
def rounding_dropped(node: ast.AST) -> Iterator[str]:
    """`floor(x)` and its like become x."""
    if (call := called(node, *ROUNDING, "abs")) and call.args:
        yield text(call.args[0])


@kind("sign dropped")
def sign_dropped(node: ast.AST) -> Iterator[str]:
    """`-x` becomes x."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield text(node.operand)


@kind("transposition dropped")
def transposition_dropped(node: ast.AST) -> Iterator[str]:
    """`tl.trans(x)` becomes x."""
    if (call := called(node, "trans")) and len(call.args) == 1:
        yield text(call.args[0])
